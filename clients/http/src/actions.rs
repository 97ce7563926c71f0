//! Read actions of AWS APIs. Every action of such an API, read or write, is a `POST` to `/`. Pure.
//!
//! An API of the AWS Query protocol also executes actions, including writes, by `GET`. Therefore only `POST`
//! is sent to the origin of such an API, and a `POST` counts as a read only if its action is on a list.
//!
//! **Invariant:** a request that counts as a read names exactly one action, in a form that every server reads
//! the same way.

use reqwest::{Method, Url};

use crate::call::origin;
use crate::request::Request;

/// The header that names the action in the JSON protocol.
const TARGET_HEADER: &str = "x-amz-target";
/// The media type of the Query protocol.
const FORM: &str = "application/x-www-form-urlencoded";
/// The media types of the JSON protocol.
const JSON: [&str; 2] = ["application/x-amz-json-1.0", "application/x-amz-json-1.1"];

/// The actions of EC2 that only read.
pub const EC2_READS: &[&str] =
    &["DescribeImageAttribute", "DescribeImages", "DescribeInstances", "DescribeRegions", "DescribeTags"];
/// The actions of STS that change nothing. `AssumeRole` returns credentials; the requests that use them are
/// checked separately.
pub const STS_READS: &[&str] = &["AssumeRole", "GetCallerIdentity"];
/// The actions of SQS that only read. `ReceiveMessage` is a write, because it hides messages from other
/// consumers.
pub const SQS_READS: &[&str] = &["GetQueueAttributes", "GetQueueUrl", "ListQueues"];

/// An AWS API, and its actions that only read.
///
/// Only clients may construct it; a lint refuses it elsewhere (`clippy.toml`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadActions {
    origin: String,
    service: &'static str,
    actions: &'static [&'static str],
}

impl ReadActions {
    /// The API at the origin (scheme, host, port) of `target`. `service` is the prefix of its actions in the
    /// JSON protocol, such as `AmazonSQS`; the actions are exact names.
    pub fn new(target: &Url, service: &'static str, actions: &'static [&'static str]) -> Self {
        Self { origin: origin(target), service, actions }
    }

    /// Whether the API is at the origin of this URL.
    pub(crate) fn is_at(&self, url: &Url) -> bool {
        origin(url) == self.origin
    }

    /// Whether the request is a `POST` of an action on the list.
    pub(crate) fn covers(&self, request: &Request) -> bool {
        let url = request.url();
        let is_plain = *request.method() == Method::POST
            && self.is_at(url)
            && url.path() == "/"
            && url.query().is_none();
        let media_type = request.header_values("content-type");
        let target = request.header_values(TARGET_HEADER);
        let action = match (&media_type[..], &target[..]) {
            ([media_type], []) if essence(media_type) == FORM => request.body_bytes().and_then(form_action),
            ([media_type], [target]) if JSON.contains(&essence(media_type).as_str()) => {
                target.strip_prefix(self.service).and_then(|rest| json_action(rest))
            }
            _ => None,
        };
        is_plain && action.is_some_and(|action| self.actions.contains(&action))
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The action of a form, if it contains one literal `Action=NAME`, and nothing else that a server could read as
/// an action.
fn form_action(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    if body.contains([';', '\r', '\n', '\0']) {
        return None;
    }
    let mut literal = body.split('&').filter_map(|pair| pair.strip_prefix("Action="));
    let action = literal.next()?;
    let mut url = Url::parse("http://form").ok()?;
    url.set_query(Some(body));
    let is_action = |key: &str| {
        let key: String = key.chars().filter(|one| !one.is_whitespace() && !one.is_control()).collect();
        ["action", "operation"].contains(&key.to_ascii_lowercase().as_str())
    };
    let count = url.query_pairs().filter(|(key, _)| is_action(key)).count();
    (literal.next().is_none() && count == 1).then_some(action)
}

/// The action after the prefix of a service: `.NAME`, or `_VERSION.NAME`.
fn json_action(rest: &str) -> Option<&str> {
    let (version, action) = rest.split_once('.')?;
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (version.is_empty() || version.strip_prefix('_').is_some_and(is_version)).then_some(action)
}

#[cfg(test)]
mod tests {
    use qontract_access::{Access, Mode};
    use reqwest::{Method, Url};

    use super::{EC2_READS, ReadActions, SQS_READS};
    use crate::error::GuardRefusal;
    use crate::guard::RequestPolicy;
    use crate::request::Request;

    const HOST: &str = "https://ec2.us-east-1.amazonaws.com";

    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn policy() -> RequestPolicy {
        let target = |text: &str| Url::parse(text).unwrap();
        let ec2 = ReadActions::new(&target(HOST), "AmazonEC2", EC2_READS);
        let sqs = ReadActions::new(&target("https://sqs.us-east-1.amazonaws.com"), "AmazonSQS", SQS_READS);
        RequestPolicy::default().with_read_actions(ec2).with_read_actions(sqs)
    }

    fn form(body: &str) -> Request {
        let media_type = "application/x-www-form-urlencoded; charset=utf-8";
        Request::post(Url::parse(&format!("{HOST}/")).unwrap(), media_type, body.into())
    }

    fn json(target: &str) -> Request {
        let url = Url::parse("https://sqs.us-east-1.amazonaws.com/").unwrap();
        Request::post(url, "application/x-amz-json-1.0", b"{}".into()).header("X-Amz-Target", target)
    }

    #[track_caller]
    fn check(request: &Request, is_read: bool) {
        for mode in [Mode::DryRun, Mode::Real] {
            let read = policy().check_request(mode, request, Access::Read);
            assert_eq!(read.is_ok(), is_read, "{request:?} {read:?}");
            let write = policy().check_request(mode, request, Access::Write);
            assert_eq!(write.is_ok(), mode == Mode::Real, "{request:?} {write:?}");
        }
    }

    #[test]
    fn an_action_on_the_list_is_a_read() {
        check(&form("Action=DescribeImages&Version=2016-11-15&Owner.1=self"), true);
        check(&form("Version=2016-11-15&Action=DescribeImages"), true);
        check(&json("AmazonSQS.GetQueueUrl"), true);
        check(&json("AmazonSQS_20121105.GetQueueUrl"), true);
    }

    #[test]
    fn other_actions_are_writes() {
        for action in
            ["TerminateInstances", "DescribeImagesX", "describeimages", "Describe*", "", "DescribeImages "]
        {
            check(&form(&format!("Action={action}")), false);
        }
        for target in [
            "AmazonSQS.ReceiveMessage",
            "AmazonSNS.GetQueueUrl",
            "GetQueueUrl",
            "AmazonSQSx.GetQueueUrl",
            "AmazonSQS_x.GetQueueUrl",
            "AmazonSQS",
        ] {
            check(&json(target), false);
        }
    }

    #[test]
    fn a_repeated_or_disguised_action_is_not_a_read() {
        for body in [
            "",
            "Version=2016-11-15",
            "Action=DescribeImages&Action=TerminateInstances",
            "Action=DescribeImages&Action=DescribeImages",
            "Action=DescribeImages&action=TerminateInstances",
            "Action=DescribeImages&%41ction=TerminateInstances",
            "Action=DescribeImages&+Action=TerminateInstances",
            "Action=DescribeImages&Action%00=TerminateInstances",
            "Action=DescribeImages&Operation=TerminateInstances",
            "Action=Describe%49mages",
            "X=1;Action=TerminateInstances&Action=DescribeImages",
            "Action=DescribeImages\r\n&Action=TerminateInstances",
            "Action=DescribeImages&Action",
        ] {
            check(&form(body), false);
        }
        let not_utf8 =
            Request::post(form("").url().clone(), super::FORM, b"Action=DescribeImages&x=\xff".into());
        check(&not_utf8, false);
        let read = "Action=DescribeImages";
        check(&form(read).header("X-Amz-Target", "AmazonEC2.TerminateInstances"), false);
        check(&form(read).header("content-type", "application/x-amz-json-1.0"), false);
        check(&json("AmazonSQS.GetQueueUrl").header("x-amz-target", "AmazonSQS.DeleteQueue"), false);
        let url = |rest: &str| Url::parse(&format!("{HOST}{rest}")).unwrap();
        for rest in ["/?Action=TerminateInstances", "/?", "/x", "//"] {
            check(&Request::post(url(rest), super::FORM, read.into()), false);
        }
        for media_type in ["multipart/form-data; boundary=x", "text/plain", "application/json"] {
            check(&Request::post(url("/"), media_type, read.into()), false);
        }
        check(&Request::new(Method::POST, url("/")).bytes(read.into()), false);
    }

    #[test]
    fn other_methods_are_refused_even_to_writes() {
        let url = Url::parse(&format!("{HOST}/?Action=DescribeImages")).unwrap();
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
            let request = Request::new(method, url.clone());
            for mode in [Mode::DryRun, Mode::Real] {
                for access in [Access::Read, Access::Write] {
                    let refusal = policy().check_request(mode, &request, access).unwrap_err();
                    assert!(matches!(refusal, GuardRefusal::NotPost(_)), "{refusal}");
                }
            }
        }
    }

    #[test]
    fn other_origins_have_the_usual_rules() {
        for origin in ["https://ec2.eu-west-1.amazonaws.com/", "http://ec2.us-east-1.amazonaws.com/"] {
            let url = Url::parse(origin).unwrap();
            let get = Request::get(url.clone());
            assert!(policy().check_request(Mode::DryRun, &get, Access::Read).is_ok());
            check(&Request::post(url, super::FORM, b"Action=DescribeImages".into()), false);
        }
    }
}
