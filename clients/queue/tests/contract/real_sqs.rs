//! The contract tests on a real SQS server, and tests for servers only.

use std::sync::Arc;
use std::time::SystemTime;

use qontract_access::Mode;
use qontract_client_http::Secret;
use qontract_client_queue::{
    QueueAddress, QueueError, QueueReader as _, Sqs, SqsCredentials, SqsLocation, SqsSettings,
};
use qontract_testkit::aws::TestAws;
use qontract_testkit::permits;

use crate::cases::CASES;
use crate::queues::{TestQueue, http, sqs};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an SQS server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_queue_passes_the_contract_tests() {
    let server = TestAws::start();
    for (queue, case) in CASES {
        server.queue(queue);
        case(&TestQueue::new(Arc::new(sqs(&server.url(), queue, Mode::Real)))).await;
    }
    // A missing queue is not an empty one.
    let missing = sqs(&server.url(), "missing", Mode::DryRun);
    let error = missing.counts(&permits(Mode::DryRun).read, SystemTime::now()).await.unwrap_err();
    assert!(matches!(error, QueueError::NoQueue(_)), "{error:?}");
    assert_eq!(error.to_string(), "queue `missing` not found");
}

/// Sends as the producers of qontract-reconcile do, and prints what it receives.
const SCRIPT: &str = r#"
import boto3, json, sys
client = boto3.client("sqs", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
url = client.get_queue_url(QueueName="orders")["QueueUrl"]
print(client.receive_message(QueueUrl=url, VisibilityTimeout=30, MaxNumberOfMessages=1)["Messages"][0]["Body"])
client.send_message(QueueUrl=url, MessageBody=json.dumps({"pr_type": "create_delete_user_mr", "username": "é"}))
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an SQS server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn real_sqs_messages_are_those_of_boto3() {
    let server = TestAws::start();
    server.queue("orders");
    let url = format!("{}/123456789012/orders", server.url());
    let location = SqsLocation::new(QueueAddress::Url(&url), None, None).unwrap();
    let credentials = SqsCredentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
    let queue = TestQueue::new(Arc::new(Sqs::new(&http(Mode::Real), SqsSettings { location, credentials })));
    queue.send("{\"pr_type\": \"ours\"}").await;
    assert_eq!(server.script(SCRIPT), "{\"pr_type\": \"ours\"}\n");
    let theirs = "{\"pr_type\": \"create_delete_user_mr\", \"username\": \"\\u00e9\"}";
    assert_eq!(queue.bodies(10).await, [theirs]);
}
