//! AWS APIs, in which reads are `POST`s and writes may be `GET`s.

use qontract_access::Mode;
use qontract_client_http::{
    EC2_READS, GuardRefusal, Http, HttpError, Method, ReadActions, Request, STS_READS, Url,
};
use qontract_testkit::aws::TestAws;

use crate::loopback::{Loopback, reply};
use crate::{run, settings};

#[expect(clippy::disallowed_methods, reason = "this is what is tested")]
fn with_actions(http: &Http, target: &Url, actions: &'static [&'static str]) -> Http {
    http.with_read_actions(ReadActions::new(target, "none", actions))
}

/// A request of the Query protocol. The emulator takes the service from the signature, which it does not verify.
fn action(target: &Url, service: &str, form: &str) -> Request {
    let signature = format!(
        "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    let request = Request::post(target.clone(), "application/x-www-form-urlencoded", form.into());
    request.header("authorization", &signature)
}

#[tokio::test]
async fn a_dry_run_sends_listed_actions_only() {
    let server = Loopback::start(|_, _| reply("200 OK", "<ok/>")).await;
    let target = server.url("/");
    for mode in [Mode::DryRun, Mode::Real] {
        let (permits, http) = run(mode, settings());
        let http = with_actions(&http, &target, EC2_READS);
        let before = server.count();
        let read = action(&target, "ec2", "Action=DescribeImages&Version=2016-11-15");
        http.read(&permits.read, read).await.unwrap();
        assert_eq!(server.count(), before + 1);
        let terminate = "Action=TerminateInstances&InstanceId.1=i-1&Version=2016-11-15";
        let by_query = |method| Request::new(method, server.url(&format!("/?{terminate}")));
        let refused = [
            action(&target, "ec2", terminate),
            action(&target, "ec2", &format!("Action=DescribeImages&{terminate}")),
            by_query(Method::GET),
            by_query(Method::HEAD),
            by_query(Method::POST),
        ];
        for request in refused {
            let error = http.read(&permits.read, request).await.unwrap_err();
            assert!(matches!(error, HttpError::Refused(_)), "{error}");
        }
        // Not even with a permit to write.
        let permit = qontract_testkit::permits(Mode::Real).write.unwrap();
        let error = http.write(&permit, by_query(Method::GET)).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(GuardRefusal::NotPost(_))), "{error}");
        assert_eq!(server.count(), before + 1, "nothing else left the process");
    }
}

#[tokio::test]
async fn a_write_is_a_post_with_a_permit() {
    let server = Loopback::start(|_, _| reply("200 OK", "<ok/>")).await;
    let target = server.url("/");
    let permit = qontract_testkit::permits(Mode::Real).write.unwrap();
    let terminate = || action(&target, "ec2", "Action=TerminateInstances&InstanceId.1=i-1");
    let (_, dry) = run(Mode::DryRun, settings());
    let error = with_actions(&dry, &target, EC2_READS).write(&permit, terminate()).await.unwrap_err();
    assert!(matches!(error, HttpError::Refused(GuardRefusal::DryRun(_))), "{error}");
    assert_eq!(server.count(), 0);
    let (_, real) = run(Mode::Real, settings());
    with_actions(&real, &target, EC2_READS).write(&permit, terminate()).await.unwrap();
    assert_eq!(server.count(), 1);
}

/// moto, an emulator of AWS, accepts what the guard accepts as a read.
#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn an_emulator_of_aws_answers_the_actions_of_a_dry_run() {
    let aws = TestAws::start();
    let target: Url = format!("{}/", aws.url()).parse().unwrap();
    let (permits, http) = run(Mode::DryRun, settings());
    let identity = action(&target, "sts", "Action=GetCallerIdentity&Version=2011-06-15");
    let response = with_actions(&http, &target, STS_READS).read(&permits.read, identity).await.unwrap();
    let text = String::from_utf8(response.body).unwrap();
    assert!(text.contains("<GetCallerIdentityResponse"), "{text}");
}
