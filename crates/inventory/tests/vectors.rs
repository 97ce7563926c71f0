//! Objects recorded from the established runtime, with their canonical text and hash.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeSet;

use qontract_inventory::{
    Callers, DesiredBody, Disclosure, LiveBody, ObjectIntent, Owner, PresentIntent, Replacement, Verdict,
    canonical, decide,
};
use qontract_testkit::vectors;
use serde_json::{Value, json};

#[test]
fn text_and_hash_equal_those_of_the_established_runtime() {
    let recorded = std::fs::read(vectors().join("kube/hashes.json")).unwrap();
    let recorded: Vec<Value> = serde_json::from_slice(&recorded).unwrap();
    assert_eq!(recorded.len(), 44);
    for one in &recorded {
        let canonical = canonical(&one["object"]).unwrap();
        assert_eq!(canonical.text, one["canonical"].as_str().unwrap(), "{}", one["object"]);
        assert_eq!(canonical.sha256.to_string(), one["sha256"].as_str().unwrap());
    }
}

#[test]
fn the_canonical_form_of_the_canonical_form_is_itself() {
    let recorded = std::fs::read(vectors().join("kube/hashes.json")).unwrap();
    for one in serde_json::from_slice::<Vec<Value>>(&recorded).unwrap() {
        let once = canonical(&one["object"]).unwrap();
        assert_eq!(canonical(&once.object).unwrap().text, once.text);
    }
}

#[test]
fn an_object_that_the_established_runtime_wrote_is_kept() {
    let recorded = std::fs::read(vectors().join("kube/hashes.json")).unwrap();
    let owner = Owner::of("openshift-resources", None).unwrap();
    let moved_from = BTreeSet::new();
    for one in serde_json::from_slice::<Vec<Value>>(&recorded).unwrap() {
        let mut live = one["object"].clone();
        if !live["metadata"]["annotations"].is_object() {
            live["metadata"]["annotations"] = json!({});
        }
        live["metadata"]["annotations"]["qontract.integration"] = "openshift_resources".into();
        live["metadata"]["annotations"]["qontract.integration_version"] = "1.2.0".into();
        live["metadata"]["annotations"]["qontract.sha256sum"] = one["sha256"].clone();
        let desired = DesiredBody::new(one["object"].clone()).unwrap();
        let wanted = ObjectIntent::Present(PresentIntent {
            body: &desired,
            moved_from: &moved_from,
            disclosure: Disclosure::Everything,
            replacement: Replacement::WithoutPods,
        });
        let verdict = decide(&owner, &Callers::Unknown, wanted, Some(&LiveBody::new(live)));
        assert_eq!(verdict, Verdict::Keep, "{}", one["object"]);
    }
}

#[test]
fn reading_labels_does_not_create_them() {
    let cluster = json!({"apiVersion": "v1", "kind": "ManagedCluster", "metadata": {"name": "a"}});
    let text =
        r#"{"apiVersion": "v1", "kind": "ManagedCluster", "metadata": {"annotations": {}, "name": "a"}}"#;
    assert_eq!(canonical(&cluster).unwrap().text, text);
}

#[test]
fn a_value_that_is_not_an_object_is_refused() {
    for text in [
        "1",
        "[]",
        "{}",
        r#"{"kind": "A", "apiVersion": "v1"}"#,
        r#"{"kind": 1, "apiVersion": "v1", "metadata": {}}"#,
    ] {
        assert!(canonical(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
    }
}
