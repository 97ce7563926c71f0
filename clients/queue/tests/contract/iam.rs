//! The guard at an AWS that verifies signatures and policies: EC2 and SQS. The access key of these tests may do
//! everything, so that only the guard stands between a dry run and a write.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use qontract_access::Mode;
use qontract_client_http::{
    EC2_READS, GuardRefusal, Http, HttpError, Method, ReadActions, Request, Secret, Url,
};
use qontract_client_queue::{NewMessage, QueueError, QueueReader as _, QueueWriter as _, ReceiveOptions};
use qontract_testkit::aws::TestAws;
use qontract_testkit::permits;
use serde_json::Value;

use crate::queues::{HIDDEN, http, with_key};

/// Creates two users, an instance, and a queue with a message; prints their keys.
const SET_UP: &str = r#"
import boto3, json, sys
def client(name):
    return boto3.client(name, endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
iam, ec2, sqs = client("iam"), client("ec2"), client("sqs")
actions = {"all": ["*"], "reader": ["ec2:Describe*", "sqs:Get*"]}
keys = {}
for user, allowed in actions.items():
    iam.create_user(UserName=user)
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": allowed, "Resource": "*"}]}
    iam.put_user_policy(UserName=user, PolicyName="p", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    keys[user] = [key["AccessKeyId"], key["SecretAccessKey"]]
image = ec2.describe_images()["Images"][0]["ImageId"]
keys["instance"] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
sqs.send_message(QueueUrl=sqs.create_queue(QueueName="orders")["QueueUrl"], MessageBody="kept")
print(json.dumps(keys))
"#;

/// A relay to the server that counts what is sent to it.
struct Relay {
    url: Url,
    bytes: Arc<AtomicUsize>,
}

impl Relay {
    fn start(server: &TestAws) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let upstream = server.url().strip_prefix("http://").unwrap().to_owned();
        let bytes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&upstream).unwrap();
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (counter, none) = (Arc::clone(&counter), AtomicUsize::new(0));
                std::thread::spawn(move || copy(client, server, &counter));
                std::thread::spawn(move || copy(back, forth, &none));
            }
        });
        Self { url, bytes }
    }

    /// Number of bytes that were sent to the server.
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, counter: &AtomicUsize) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        counter.fetch_add(length, Ordering::SeqCst);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // The peer may be gone.
    let _ = to.shutdown(Shutdown::Write);
}

/// A signed request of the Query protocol of EC2, in a form or in the query.
fn ec2(target: &Url, method: Method, form: &str, key: (&str, &str)) -> Request {
    let media_type = "application/x-www-form-urlencoded; charset=utf-8";
    let is_form = method == Method::POST;
    let (mut url, body) = (target.clone(), if is_form { form } else { "" });
    url.set_query(Some(form).filter(|_| !is_form));
    let identity = Credentials::new(key.0, key.1, None, None, "test").into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region("us-east-1")
        .name("ec2")
        .time(SystemTime::now())
        .settings(SigningSettings::default())
        .build()
        .unwrap();
    let headers = [("content-type", media_type)].into_iter().take(usize::from(is_form));
    let signable =
        SignableRequest::new(method.as_str(), url.as_str(), headers, SignableBody::Bytes(body.as_bytes()))
            .unwrap();
    let (instructions, _) = sign(signable, &params.into()).unwrap().into_parts();
    let request = if is_form {
        Request::post(url, media_type, body.as_bytes().into())
    } else {
        Request::new(method, url)
    };
    instructions
        .headers()
        .fold(request, |request, (name, value)| request.secret_header(name, &Secret::new(value)))
}

#[expect(clippy::disallowed_methods, reason = "this is what is tested")]
fn with_ec2(http: &Http, target: &Url) -> Http {
    http.with_read_actions(ReadActions::new(target, "AmazonEC2", EC2_READS))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an AWS server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_dry_run_with_the_key_of_an_administrator_sends_only_reads() {
    let server = TestAws::start();
    let set_up: Value = serde_json::from_str(&server.script(SET_UP)).unwrap();
    server.require_permissions();
    let key = |user: &str| (set_up[user][0].as_str().unwrap(), set_up[user][1].as_str().unwrap());
    let (relay, instance) = (Relay::start(&server), set_up["instance"].as_str().unwrap());
    let (dry, stolen) = (permits(Mode::DryRun).read, permits(Mode::Real).write.unwrap());
    let now = SystemTime::now();

    // EC2.
    let stack = with_ec2(&http(Mode::DryRun), &relay.url);
    let read = async |form: &str, key: (&str, &str)| {
        let response = stack.read(&dry, ec2(&relay.url, Method::POST, form, key)).await?;
        Ok::<_, HttpError>(String::from_utf8(response.body).unwrap())
    };
    for user in ["all", "reader"] {
        let images = read("Action=DescribeImages&Version=2016-11-15", key(user)).await.unwrap();
        assert!(images.contains("<imageId>ami-"), "{images}");
    }
    // The signature matters.
    let error = read("Action=DescribeImages&Version=2016-11-15", (key("all").0, "wrong")).await.unwrap_err();
    assert!(error.status().is_some_and(|status| status.is_client_error()), "{error}");
    let before = relay.bytes();
    let terminate = format!("Action=TerminateInstances&InstanceId.1={instance}&Version=2016-11-15");
    for method in [Method::POST, Method::GET, Method::HEAD, Method::PUT] {
        let request = || ec2(&relay.url, method.clone(), &terminate, key("all"));
        for outcome in [stack.read(&dry, request()).await, stack.write(&stolen, request()).await] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, HttpError::Refused(_)), "{method}: {error}");
        }
    }
    // Not even a real run writes by `GET`.
    let real = with_ec2(&http(Mode::Real), &relay.url);
    let by_get = ec2(&relay.url, Method::GET, &terminate, key("all"));
    let error = real.write(&stolen, by_get).await.unwrap_err();
    assert!(matches!(error, HttpError::Refused(GuardRefusal::NotPost(_))), "{error}");
    assert_eq!(relay.bytes(), before, "no byte of a refused write left the process");
    let instances = read("Action=DescribeInstances&Version=2016-11-15", key("all")).await.unwrap();
    assert!(instances.contains(instance) && instances.contains("<name>running</name>"), "{instances}");

    // SQS.
    let endpoint = relay.url.as_str();
    let queue = with_key(endpoint, "orders", Mode::DryRun, key("all"));
    let counts = async || {
        let counts = queue.counts(&dry, now).await.unwrap();
        (counts.visible, counts.hidden)
    };
    assert_eq!(counts().await, (1, 0));
    let before = relay.bytes();
    let options = ReceiveOptions::new(1, HIDDEN).unwrap();
    let (message, receipt) =
        (NewMessage::new("x").unwrap(), qontract_client_queue::ReceiptHandle("r".to_owned()));
    for error in [
        queue.send(&stolen, &message, now).await.unwrap_err(),
        queue.receive(&stolen, options, now).await.unwrap_err(),
        queue.delete(&stolen, &receipt, now).await.unwrap_err(),
        queue.change_visibility(&stolen, &receipt, Duration::ZERO, now).await.unwrap_err(),
    ] {
        assert!(matches!(error, QueueError::Refused(_)), "{error:?}");
    }
    assert_eq!(relay.bytes(), before, "no byte of a refused write left the process");
    assert_eq!(counts().await, (1, 0));

    // In a real run the policies decide.
    let reader = with_key(endpoint, "orders", Mode::Real, key("reader"));
    assert_eq!(reader.counts(&dry, now).await.unwrap().visible, 1);
    let error = reader.receive(&stolen, options, now).await.unwrap_err();
    assert!(matches!(error, QueueError::Denied { .. }), "{error:?}");
    let wrong = with_key(endpoint, "orders", Mode::Real, (key("all").0, "wrong"));
    let error = wrong.counts(&dry, now).await.unwrap_err();
    assert!(matches!(error, QueueError::Denied { .. }), "{error:?}");
    let allowed = with_key(endpoint, "orders", Mode::Real, key("all"));
    let received = allowed.receive(&stolen, options, now).await.unwrap();
    assert_eq!(received.len(), 1);
    allowed.delete(&stolen, &received[0].receipt, now).await.unwrap();
    assert_eq!(counts().await, (0, 0));
}
