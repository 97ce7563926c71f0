//! Compatibility with the state store of qontract-reconcile: boto3 reads what this client writes, and vice
//! versa.

use std::process::Command;

use qontract_client_blobs::{AddCondition, BlobsError, NewValue, StateStore};
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, tool};
use serde_json::{Value, json};

use crate::stores::{Store, is_stale};

/// Writes as qontract-reconcile does, then prints the bodies and metadata that it reads.
const SCRIPT: &str = r#"
import boto3, json, sys
client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
client.put_object(Bucket="bucket", Key="state/theirs/x/y", Body=json.dumps({"b": "é", "a": 1.5e300}, sort_keys=True), Metadata={"who": "them"})
stored = {}
for entry in client.list_objects_v2(Bucket="bucket", Prefix="state/ours/")["Contents"]:
    found = client.get_object(Bucket="bucket", Key=entry["Key"])
    body = found["Body"].read().decode()
    assert body == json.dumps(json.loads(body), sort_keys=True), body
    stored[entry["Key"]] = [body, found["Metadata"]]
print(json.dumps(stored))
"#;

fn awkward() -> Value {
    json!({"z": [1, 2.5, 1e16, 1e-7, -0.0, 12_345_678_901_234_567_u64], "a": {"é\u{1F600}": null, "\u{7f}\n": true}, "": "x/\"\\"})
}

#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn real_s3_state_is_compatible_with_boto3() {
    let server = TestAws::start();
    let store = Store::bucket(&server, "bucket").await;
    let ours = StateStore::new(store.blobs.clone(), "ours");
    let draft = NewValue { value: awkward(), metadata: [("who".to_owned(), "us".to_owned())].into() };
    ours.add(store.write(), "/k/1", &draft, AddCondition::IfAbsent).await.unwrap();
    ours.add(store.write(), "k/2", &json!("plain").into(), AddCondition::IfAbsent).await.unwrap();
    let output = Command::new(tool("QONTRACT_PYTHON"))
        .args(["-c", SCRIPT, &server.url()])
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stored: Value = serde_json::from_slice(&output.stdout).unwrap();
    let body: Value = serde_json::from_str(stored["state/ours/k/1"][0].as_str().unwrap()).unwrap();
    assert_eq!((body, &stored["state/ours/k/1"][1]), (awkward(), &json!({"who": "us"})));
    assert_eq!(stored["state/ours/k/2"], json!(["\"plain\"", {}]));
    let theirs = StateStore::new(store.blobs.clone(), "theirs");
    assert_eq!(theirs.ls(store.read()).await.unwrap(), ["/x/y"]);
    let found = theirs.get(store.read(), "x/y").await.unwrap().unwrap();
    assert_eq!((found.value, &found.metadata["who"][..]), (json!({"a": 1.5e300, "b": "é"}), "them"));
}

#[tokio::test]
async fn state_is_listed_added_replaced_and_removed() {
    let scratch = Scratch::new();
    let store = Store::folder(scratch.path());
    let (state, all) =
        (StateStore::new(store.blobs.clone(), "saas"), StateStore::new(store.blobs.clone(), ""));
    let (read, write) = (store.read(), store.write());
    assert_eq!(state.get(read, "a").await.unwrap(), None);
    let first = state.add(write, "a", &json!({"n": 1}).into(), AddCondition::IfAbsent).await.unwrap();
    assert!(is_stale(&state.add(write, "a", &json!(2).into(), AddCondition::IfAbsent).await));
    state.add(write, "a", &json!(2).into(), AddCondition::IfMatch(first.clone())).await.unwrap();
    assert!(is_stale(&state.add(write, "a", &json!(3).into(), AddCondition::IfMatch(first)).await));
    state.add(write, "/b/c", &json!(3).into(), AddCondition::Force).await.unwrap();
    StateStore::new(store.blobs.clone(), "saas-2")
        .add(write, "x", &json!(4).into(), AddCondition::Force)
        .await
        .unwrap();
    assert_eq!(state.ls(read).await.unwrap(), ["/a", "/b/c"]);
    assert_eq!(all.ls(read).await.unwrap(), ["/saas-2/x", "/saas/a", "/saas/b/c"]);
    assert_eq!(state.get(read, "/a").await.unwrap().unwrap().value, json!(2));
    assert!(state.head(read, "a").await.unwrap().is_some_and(|metadata| metadata.is_empty()));
    state.rm(read, write, "a").await.unwrap();
    let error = state.rm(read, write, "a").await.unwrap_err();
    assert!(matches!(error, BlobsError::NotFound(_)), "{error:?}");
    scratch.write("state/saas/b/c.blob", "not JSON");
    let error = state.get(read, "b/c").await.unwrap_err();
    assert_eq!(error.to_string(), "blob `state/saas/b/c` is malformed: it is not JSON");
}
