//! Server-side dry runs: writes with `dryRun=All` of Kubernetes. Pure.
//!
//! **Invariant:** an allowed request names one object or one collection, and contains `dryRun=All` exactly
//! once, in a form that every URL parser reads the same way.

use reqwest::{Method, Url};

use crate::call::origin;

/// A Kubernetes API server, where requests with `dryRun=All` change nothing.
///
/// Only clients may construct it; a lint refuses it elsewhere (`clippy.toml`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeRehearsal {
    origin: String,
    /// The path prefix of the server, without a trailing slash.
    prefix: String,
}

impl SafeRehearsal {
    /// Allows rehearsals on the API server at `target`.
    pub fn new(target: &Url) -> Self {
        Self { origin: origin(target), prefix: target.path().trim_end_matches('/').to_owned() }
    }

    /// Whether the request is a rehearsed `POST` to a collection or `PATCH` of an object.
    ///
    /// `DELETE` is excluded, because a server takes the options of a `DELETE` from its body, if it has one.
    /// Subresources are excluded, because some of them are forwarded to programs that do not support dry
    /// runs.
    pub(crate) fn covers(&self, method: &Method, url: &Url) -> bool {
        let parts = match *method {
            Method::POST => [1, 3],
            Method::PATCH => [2, 4],
            _ => return false,
        };
        // A path with escapes is refused, because the server may decode an escape to a slash or to dots.
        let is_plain = !url.path().contains('%') && origin(url) == self.origin;
        let below = url.path().strip_prefix(&self.prefix).and_then(object_segments);
        is_plain
            && below.is_some_and(|below| is_object_path(&below, parts))
            && url.query().is_some_and(is_dry_run_query)
    }
}

/// The segments of a path after the API version.
fn object_segments(path: &str) -> Option<Vec<&str>> {
    let parts: Vec<_> = path.strip_prefix('/')?.split('/').collect();
    match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => Some(rest.to_vec()),
        _ => None,
    }
}

/// Whether the path has `of_cluster` segments, or `in_namespace` segments that start with `namespaces`; none
/// may be empty.
fn is_object_path(parts: &[&str], [of_cluster, in_namespace]: [usize; 2]) -> bool {
    let is_placed = parts.len() == in_namespace && parts[0] == "namespaces";
    (parts.len() == of_cluster || is_placed) && parts.iter().all(|part| !part.is_empty())
}

/// Whether the query contains `dryRun=All` literally, and nothing else that a server could read as `dryRun`.
fn is_dry_run_query(query: &str) -> bool {
    let literal = query.split('&').filter(|pair| *pair == "dryRun=All").count();
    let keys = query_keys(query);
    // A query with a semicolon is refused, because some servers treat a semicolon as an ampersand.
    literal == 1 && !query.contains(';') && keys.filter(|key| key.eq_ignore_ascii_case("dryrun")).count() == 1
}

fn query_keys(query: &str) -> impl Iterator<Item = String> {
    let mut url = Url::parse("http://query").expect("a URL");
    url.set_query(Some(query));
    url.query_pairs().map(|(key, _)| key.trim().to_owned()).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use qontract_access::{Access, Mode};
    use reqwest::{Method, Url};

    use super::SafeRehearsal;
    use crate::guard::RequestPolicy;

    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn check(request: &str, allowed: bool) {
        let (method, rest) = request.split_once(' ').unwrap();
        let url = Url::parse(&format!("https://api.example.com{rest}")).unwrap();
        let target = Url::parse("https://api.example.com/").unwrap();
        let guard = RequestPolicy::default().with_rehearsal(SafeRehearsal::new(&target));
        for mode in [Mode::DryRun, Mode::Real] {
            let method = method.parse::<Method>().unwrap();
            let verdict = guard.check(mode, &method, &url, Access::Read);
            assert_eq!(verdict.is_ok(), allowed, "{request}: {verdict:?}");
            let write = guard.check(mode, &method, &url, Access::Write);
            assert_eq!(write.is_ok(), mode == Mode::Real, "{request}: {write:?}");
        }
    }

    #[test]
    fn creating_and_patching_objects_can_be_rehearsed() {
        check("POST /api/v1/namespaces?dryRun=All", true);
        check("POST /api/v1/namespaces/a/secrets?dryRun=All&fieldManager=q", true);
        check("POST /apis/apps/v1/namespaces/a/deployments?fieldManager=q&dryRun=All", true);
        check("PATCH /apis/apps/v1/namespaces/a/deployments/b?&dryRun=All&force=true", true);
        check("PATCH /api/v1/namespaces/a?dryRun=All", true);
    }

    #[test]
    fn a_query_without_dry_run_is_not_a_rehearsal() {
        for query in [
            "",
            "?",
            "?dryRun",
            "?dryRun=",
            "?dryRun=all",
            "?dryRun=All1",
            "?dryrun=All",
            "?DryRun=All",
            "?x=dryRun=All",
            "?#dryRun=All",
            "?dryRun=None",
        ] {
            check(&format!("POST /api/v1/namespaces{query}"), false);
        }
    }

    #[test]
    fn a_repeated_or_disguised_dry_run_is_not_a_rehearsal() {
        for query in [
            "dryRun=All&dryRun=All",
            "dryRun=All&dryRun=",
            "dryRun=&dryRun=All",
            "dryRun=All&dryRun",
            "dryRun=All&dry%52un=x",
            "dryRun=All&%64ryRun=All",
            "dryRun=All&DRYRUN=x",
            "dryRun=All&+dryRun=x",
            "dryRun=All;dryRun=",
            "a=b;dryRun=x&dryRun=All",
            "dryRun=%41ll",
            "dry%52un=All",
            "dryRun=All%00",
        ] {
            check(&format!("POST /api/v1/namespaces?{query}"), false);
        }
    }

    #[test]
    fn other_methods_are_not_rehearsals() {
        for method in ["PUT", "DELETE", "CONNECT", "TRACE", "PURGE"] {
            check(&format!("{method} /api/v1/namespaces/a?dryRun=All"), false);
        }
    }

    #[test]
    fn subresources_are_not_rehearsals() {
        check("POST /api/v1/namespaces/a/pods/b/exec?dryRun=All&command=x", false);
        check("POST /api/v1/namespaces/a/pods/b/eviction?dryRun=All", false);
        check("POST /api/v1/namespaces/a/services/b/proxy/x?dryRun=All", false);
        check("POST /api/v1/nodes/b/proxy?dryRun=All", false);
        check("PATCH /api/v1/nodes/b/proxy/x?dryRun=All", false);
        check("PATCH /api/v1/namespaces/a/status?dryRun=All", false);
        check("POST /api/v1/namespaces/a/pods/b%2fexec?dryRun=All", false);
        check("POST /api/v1/namespaces/a/?dryRun=All", false);
        check("POST /api/v1?dryRun=All", false);
        check("POST /other/v1/namespaces?dryRun=All", false);
        check("POST /?dryRun=All", false);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn other_targets_are_not_rehearsals() {
        let target = Url::parse("https://api.example.com/clusters/c1/").unwrap();
        let guard = RequestPolicy::default().with_rehearsal(SafeRehearsal::new(&target));
        let check = |url: &str, allowed: bool| {
            let url = Url::parse(url).unwrap();
            let verdict = guard.check(Mode::DryRun, &Method::POST, &url, Access::Read);
            assert_eq!(verdict.is_ok(), allowed, "{url}: {verdict:?}");
        };
        check("https://api.example.com/clusters/c1/api/v1/namespaces?dryRun=All", true);
        check("https://api.example.com/clusters/c2/api/v1/namespaces?dryRun=All", false);
        check("https://api.example.com/api/v1/namespaces?dryRun=All", false);
        check("http://api.example.com/clusters/c1/api/v1/namespaces?dryRun=All", false);
        check("https://api.example.com:6443/clusters/c1/api/v1/namespaces?dryRun=All", false);
        check("https://example.com/clusters/c1/api/v1/namespaces?dryRun=All", false);
    }
}
