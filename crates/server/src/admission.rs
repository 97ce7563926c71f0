//! Admission checks on the head of a request: HTTP protocol errors, the host name, and the origin of the page that
//! sent the request. Pure.
//!
//! A server on the loopback interface without a token serves the users and programs of one machine. A web page that
//! such a user visits can make the browser send requests to the server under a host name that the attacker controls
//! and that resolves to 127.0.0.1 (DNS rebinding). The `Host` header of such requests contains the name that the
//! attacker controls, so they are refused.

use hyper::header::{EXPECT, HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode, Version};

use crate::graphql::header;
use crate::reply::{Reply, escape};
use crate::route::Route;

/// The host names that a server accepts in `Host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// Any name: the server is not on the loopback interface, or a token is required.
    #[default]
    Any,
    /// Loopback names (`localhost`, `*.localhost`, 127.0.0.0/8, `::1`) and the listed names.
    Loopback(Vec<String>),
}

impl HostPolicy {
    /// Whether this policy allows the host `NAME[:PORT]`.
    fn allows(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback(others) => name_of(host).is_some_and(|name| {
                is_loopback(&name) || others.iter().any(|other| other.eq_ignore_ascii_case(&name))
            }),
        }
    }
}

/// The response that refuses a request to the data server based on the head of the request; `None` if the request is
/// admitted.
pub fn refusal(policy: &HostPolicy, route: &Route, parts: &Parts) -> Option<Reply> {
    match head_refusal(policy, parts) {
        Some((StatusCode::MISDIRECTED_REQUEST, text)) => {
            let text = format!("{text}Use `--allow-host` to allow another name.\n");
            return Some(Reply::text(StatusCode::MISDIRECTED_REQUEST, text));
        }
        Some((status, _)) => return Some(Reply::empty(status)),
        None => {}
    }
    if changes_state(route, &parts.method) && has_foreign_origin(&parts.headers, host(parts)) {
        return Some(Reply::text(
            StatusCode::FORBIDDEN,
            "the request was sent by a page from another origin\n",
        ));
    }
    None
}

/// The status and message that refuse a request to any server based on the head of the request; `None` if the request
/// is admitted.
pub fn head_refusal(policy: &HostPolicy, parts: &Parts) -> Option<(StatusCode, String)> {
    if let Some(status) = protocol_error(parts) {
        return Some((status, String::new()));
    }
    let foreign = host(parts).filter(|host| !policy.allows(host))?;
    let text = format!(
        "`{}` is not an allowed host name. This server listens on the loopback interface without a token, so it \
         accepts only `localhost` and loopback addresses.\n",
        escape(foreign)
    );
    Some((StatusCode::MISDIRECTED_REQUEST, text))
}

/// The status for a request that violates the HTTP specification.
fn protocol_error(parts: &Parts) -> Option<StatusCode> {
    let needs_host = parts.version == Version::HTTP_11 && parts.uri.authority().is_none();
    match parts.headers.get_all(HOST).iter().count() {
        0 if needs_host => return Some(StatusCode::BAD_REQUEST),
        0 | 1 => {}
        _ => return Some(StatusCode::BAD_REQUEST),
    }
    let expectation = header(&parts.headers, EXPECT)?;
    (!expectation.eq_ignore_ascii_case("100-continue")).then_some(StatusCode::EXPECTATION_FAILED)
}

/// The host of a request: from the target of the request or, if the target has no host, from the `Host` header. A
/// header that is not valid text matches no allowed name.
fn host(parts: &Parts) -> Option<&str> {
    let named = parts.headers.get(HOST).map(|value| value.to_str().unwrap_or("?"));
    parts.uri.authority().map(Authority::as_str).or(named)
}

/// The name in `NAME[:PORT]`, without the brackets of an IPv6 address; `None` if it is malformed.
fn name_of(host: &str) -> Option<String> {
    let authority: Authority = host.parse().ok()?;
    if authority.as_str().contains('@') {
        return None;
    }
    Some(authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase())
}

fn is_loopback(name: &str) -> bool {
    if let Ok(address) = name.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a request changes the state of the server.
fn changes_state(route: &Route, method: &Method) -> bool {
    matches!(route, Route::Reload | Route::Lease(_)) && !method.is_safe()
}

/// Whether the `Origin` header shows that a page from another origin sent the request. The scheme is not compared,
/// because a proxy may have terminated TLS.
fn has_foreign_origin(headers: &HeaderMap, host: Option<&str>) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return false };
    let authority = origin.to_str().ok().and_then(|origin| Some(origin.split_once("://")?.1));
    let is_own = authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host));
    !is_own || origins.next().is_some()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn parts(method: &str, target: &str, version: Version, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri(target).version(version);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    /// The status of the refusal, or 0 if the request is admitted.
    fn status(policy: &HostPolicy, parts: &Parts) -> u16 {
        let route = Route::of(parts.uri.path());
        refusal(policy, &route, parts).map_or(0, |reply| reply.status().as_u16())
    }

    fn loopback() -> HostPolicy {
        HostPolicy::Loopback(vec!["data.example".to_owned()])
    }

    #[test]
    fn loopback_names_are_admitted_and_others_are_not() {
        let check = |host: &str, expect: u16| {
            let parts = parts("GET", "/graphql", Version::HTTP_11, &[("host", host)]);
            assert_eq!(status(&loopback(), &parts), expect, "{host}");
            assert_eq!(status(&HostPolicy::Any, &parts), 0, "{host}");
        };
        for own in [
            "localhost",
            "LOCALHOST:4000",
            "localhost.:4000",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]",
            "[::1]:4000",
            "[::ffff:127.0.0.1]:1",
            "data.example:4000",
            "Data.Example",
        ] {
            check(own, 0);
        }
        for foreign in [
            "evil.example",
            "evil.example:4000",
            "notlocalhost",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "128.0.0.1",
            "[::2]",
            "0.0.0.0",
            "2130706433",
            "localhost@evil.example",
            "evil@localhost",
            "sub.data.example",
            "",
            "local host",
            "?",
        ] {
            check(foreign, 421);
        }
    }

    #[test]
    fn the_target_of_a_request_takes_precedence_over_its_header() {
        let absolute = |target: &str, host: &str| parts("GET", target, Version::HTTP_11, &[("host", host)]);
        assert_eq!(status(&loopback(), &absolute("http://evil.example/graphql", "localhost")), 421);
        assert_eq!(status(&loopback(), &absolute("http://localhost/graphql", "evil.example")), 0);
    }

    #[test]
    fn a_request_names_its_host_once() {
        for policy in [HostPolicy::Any, loopback()] {
            let twice = parts("GET", "/", Version::HTTP_11, &[("host", "localhost"), ("host", "localhost")]);
            assert_eq!(status(&policy, &twice), 400);
            assert_eq!(status(&policy, &parts("GET", "/", Version::HTTP_11, &[])), 400);
            assert_eq!(status(&policy, &parts("GET", "/", Version::HTTP_10, &[])), 0);
        }
    }

    #[test]
    fn requests_that_change_state_are_refused_from_other_origins() {
        let check = |method: &str, target: &str, origin: &str, expect: u16| {
            let headers = [("host", "localhost:4000"), ("origin", origin)];
            let parts = parts(method, target, Version::HTTP_11, &headers);
            for policy in [HostPolicy::Any, loopback()] {
                assert_eq!(status(&policy, &parts), expect, "{method} {target} from {origin}");
            }
        };
        for (origin, expect) in [
            ("http://localhost:4000", 0),
            ("https://LOCALHOST:4000", 0),
            ("http://localhost", 403),
            ("http://localhost:4001", 403),
            ("http://evil.example", 403),
            ("null", 403),
            ("", 403),
            ("localhost:4000", 403),
        ] {
            check("POST", "/reload", origin, expect);
            check("POST", "/leases/abc", origin, expect);
            check("GET", "/reload", origin, 0);
            check("POST", "/graphql", origin, 0);
        }
        let twice =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")];
        assert_eq!(status(&HostPolicy::Any, &parts("POST", "/reload", Version::HTTP_11, &twice)), 403);
    }

    #[test]
    fn only_100_continue_is_supported_in_expect() {
        let check = |expectation: &str, expect: u16| {
            let headers = [("host", "x"), ("expect", expectation)];
            assert_eq!(status(&HostPolicy::Any, &parts("POST", "/", Version::HTTP_11, &headers)), expect);
        };
        check("100-Continue", 0);
        check("200-ok", 417);
    }
}
