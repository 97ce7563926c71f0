//! Maps the path of a request to a route. Pure: does not access bundles.

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The path `/`.
    Root,
    /// The health check.
    Health,
    /// The metrics of the server.
    Metrics,
    /// The sha of the latest bundle.
    Sha,
    /// The commit of a bundle.
    Commit(RequestedBundle),
    /// The commit of a bundle, with the time of the commit.
    CommitInfo(RequestedBundle),
    /// The loaded bundles.
    Cache,
    /// A request to reload the bundle from its source.
    Reload,
    /// The diff of two bundles.
    Diff {
        /// The base bundle.
        base: String,
        /// The head bundle.
        head: String,
        /// The file to which the diff is restricted, if any.
        file: Option<FileRef>,
    },
    /// A GraphQL request to a bundle.
    Graphql(RequestedBundle),
    /// A request to take, renew or end a lease; the string is a sha or a lease id.
    Lease(String),
    /// A batch of queries and resources of a bundle.
    Batch(String),
    /// A comparison: whether the differences of two bundles affect an integration, and why.
    Compare {
        /// The base bundle.
        base: String,
        /// The head bundle.
        head: String,
    },
    /// The lines of source locations in a bundle.
    Locate(String),
    /// A part of the query page.
    Page(String),
    /// A path that cannot be decoded.
    Malformed,
    /// A path that does not exist.
    Unknown,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The type of the file: `datafile` or `resourcefile`.
    pub kind: String,
    /// The path of the file.
    pub path: String,
}

/// Selects a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedBundle {
    /// The latest bundle.
    Latest,
    /// The bundle with this sha, as spelled by the client.
    Named(String),
}

impl Route {
    /// The route of a path. Fixed words are case-insensitive and a trailing slash is ignored, except for
    /// GraphQL.
    pub fn of(path: &str) -> Self {
        let Some(path) = path.strip_prefix('/') else { return Route::Unknown };
        if path == "graphql" {
            return Route::Graphql(RequestedBundle::Latest);
        }
        let mut parts = path.split('/');
        let first = parts.next().unwrap_or_default();
        let mut rest: Vec<&str> = parts.collect();
        if let [.., ""] = rest.as_slice() {
            rest.pop();
        }
        let Some(names) = rest.iter().map(|part| decode(part)).collect::<Option<Vec<String>>>() else {
            return Route::Malformed;
        };
        let lowered = first.to_ascii_lowercase();
        match (lowered.as_str(), names.as_slice()) {
            ("", []) => Route::Root,
            ("healthz", []) => Route::Health,
            ("metrics", []) => Route::Metrics,
            ("sha256", []) => Route::Sha,
            ("git-commit", []) => Route::Commit(RequestedBundle::Latest),
            ("git-commit", [sha]) => Route::Commit(RequestedBundle::Named(sha.clone())),
            ("git-commit-info", []) => Route::CommitInfo(RequestedBundle::Latest),
            ("git-commit-info", [sha]) => Route::CommitInfo(RequestedBundle::Named(sha.clone())),
            ("cache", []) => Route::Cache,
            ("reload", []) => Route::Reload,
            ("diff", [base, head]) => Route::Diff { base: base.clone(), head: head.clone(), file: None },
            ("diff", [base, head, kind, path @ ..]) => Route::Diff {
                base: base.clone(),
                head: head.clone(),
                file: Some(FileRef { kind: kind.clone(), path: format!("/{}", path.join("/")) }),
            },
            // As in qontract-server, path segments after the sha are ignored.
            ("graphqlsha", [sha, ..]) if first == "graphqlsha" => {
                Route::Graphql(RequestedBundle::Named(sha.clone()))
            }
            ("leases", [name]) => Route::Lease(name.clone()),
            ("batch", [sha]) => Route::Batch(sha.clone()),
            ("compare", [base, head]) => Route::Compare { base: base.clone(), head: head.clone() },
            ("locate", [sha]) => Route::Locate(sha.clone()),
            ("page", [name]) => Route::Page(name.clone()),
            _ => Route::Unknown,
        }
    }

    /// The allowed methods of a route that allows only reads or only `POST`; `None` for any other route.
    pub fn methods(&self) -> Option<&'static str> {
        match self {
            Route::Unknown
            | Route::Malformed
            | Route::Graphql(_)
            | Route::Lease(_)
            | Route::Batch(_)
            | Route::Compare { .. }
            | Route::Locate(_) => None,
            Route::Reload => Some("POST"),
            _ => Some("GET, HEAD"),
        }
    }

    /// The path as a metric label, from a fixed set.
    pub fn label(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Health => "/healthz",
            Route::Metrics => "/metrics",
            Route::Sha => "/sha256",
            Route::Commit(RequestedBundle::Latest) => "/git-commit",
            Route::Commit(RequestedBundle::Named(_)) => "/git-commit/#sha",
            Route::CommitInfo(RequestedBundle::Latest) => "/git-commit-info",
            Route::CommitInfo(RequestedBundle::Named(_)) => "/git-commit-info/#sha",
            Route::Cache => "/cache",
            Route::Reload => "/reload",
            Route::Diff { file: None, .. } => "/diff/#sha/#sha",
            Route::Diff { file: Some(_), .. } => "/diff/#sha/#sha/#val",
            Route::Graphql(RequestedBundle::Latest) => "/graphql",
            Route::Graphql(RequestedBundle::Named(_)) => "/graphqlsha/#sha",
            Route::Lease(_) => "/leases/#val",
            Route::Batch(_) => "/batch/#sha",
            Route::Compare { .. } => "/compare/#sha/#sha",
            Route::Locate(_) => "/locate/#sha",
            Route::Page(_) => "/page/#val",
            Route::Unknown | Route::Malformed => "#other",
        }
    }
}

/// Percent-decodes a string; `None` if a sequence is invalid or the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut is_good = true;
    let bytes = bytes_of(text, |_| is_good = false);
    if is_good { String::from_utf8(bytes).ok() } else { None }
}

/// Percent-decodes a string; invalid sequences are left unchanged.
pub fn decode_lossy(text: &str) -> String {
    String::from_utf8_lossy(&bytes_of(text, |_| {})).into_owned()
}

fn bytes_of(text: &str, mut bad: impl FnMut(usize)) -> Vec<u8> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok()).filter(|_| bytes[at] == b'%');
        if let Some(digits) = digits {
            out.push(u8::from_str_radix(digits, 16).expect("two digits"));
            at += 3;
            continue;
        }
        if bytes[at] == b'%' {
            bad(at);
        }
        out.push(bytes[at]);
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sha: &str) -> RequestedBundle {
        RequestedBundle::Named(sha.to_owned())
    }

    #[test]
    fn paths_map_to_routes() {
        for (path, route) in [
            ("/", Route::Root),
            ("/healthz", Route::Health),
            ("/SHA256/", Route::Sha),
            ("/git-commit", Route::Commit(RequestedBundle::Latest)),
            ("/git-commit-info/abc", Route::CommitInfo(named("abc"))),
            ("/graphql", Route::Graphql(RequestedBundle::Latest)),
            ("/graphqlsha/abc/what/ever", Route::Graphql(named("abc"))),
            ("/graphqlsha", Route::Unknown),
            ("/graphql/", Route::Unknown),
            ("/GraphQL", Route::Unknown),
            ("/GRAPHQLSHA/abc", Route::Unknown),
            ("/git-commit/%zz", Route::Malformed),
            ("*", Route::Unknown),
            ("/diff/a/b", Route::Diff { base: "a".to_owned(), head: "b".to_owned(), file: None }),
            ("/batch/a", Route::Batch("a".to_owned())),
            ("/batch", Route::Unknown),
            ("/compare/a/b/", Route::Compare { base: "a".to_owned(), head: "b".to_owned() }),
            ("/compare/a", Route::Unknown),
            ("/locate/a", Route::Locate("a".to_owned())),
            ("/diff/a", Route::Unknown),
            ("/reload/x", Route::Unknown),
            ("/healthz/x", Route::Unknown),
            ("//healthz", Route::Unknown),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
        let file = Some(FileRef { kind: "datafile".to_owned(), path: "/apps/a b.yml".to_owned() });
        let diff = Route::Diff { base: "a".to_owned(), head: "b".to_owned(), file };
        assert_eq!(Route::of("/diff/a/b/datafile/apps/a%20b.yml"), diff);
        assert_eq!(Route::of("/diff/a/b/datafile/apps%2Fa%20b.yml"), diff);
    }

    #[test]
    fn invalid_sequences_are_rejected_or_kept() {
        for (text, decoded, lossy) in [
            ("a%20b", Some("a b"), "a b"),
            ("%zz", None, "%zz"),
            ("%", None, "%"),
            ("%4", None, "%4"),
            ("%ff", None, "\u{fffd}"),
            ("%+1", None, "%+1"),
            ("é%C3%A9", Some("éé"), "éé"),
        ] {
            assert_eq!((decode(text).as_deref(), decode_lossy(text).as_str()), (decoded, lossy), "{text}");
        }
    }
}
