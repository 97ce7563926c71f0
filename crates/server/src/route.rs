//! Which part of the server a request is for, by its path. Pure: nothing is looked up.

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Root,
    /// Is it alive?
    Health,
    /// Numbers.
    Metrics,
    /// The sha of the latest bundle.
    Sha,
    /// The commit of a bundle.
    Commit(Which),
    /// The commit of a bundle and its time.
    CommitInfo(Which),
    /// What is held.
    Held,
    /// Read the source again.
    Reload,
    /// What differs between two bundles.
    Diff {
        /// Before.
        base: String,
        /// After.
        head: String,
        /// Of one file: its type and its path.
        file: Option<(String, String)>,
    },
    /// GraphQL.
    Graphql(Which),
    /// Keep a bundle; the text is a sha, or the name of a lease.
    Lease(String),
    /// A part of the query page.
    Page(String),
    /// Nothing.
    Unknown,
}

/// Which bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The latest.
    Latest,
    /// The one that the client names so.
    Named(String),
}

impl Route {
    /// The route of a path. Fixed words are understood in any case, and a slash at the end does not matter.
    pub fn of(path: &str) -> Self {
        let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
        let Some(first) = parts.next() else { return Route::Unknown };
        let mut rest: Vec<&str> = parts.collect();
        if let [.., ""] = rest.as_slice() {
            rest.pop();
        }
        let first = first.to_ascii_lowercase();
        match (first.as_str(), rest.as_slice()) {
            ("", []) => Route::Root,
            ("healthz", []) => Route::Health,
            ("metrics", []) => Route::Metrics,
            ("sha256", []) => Route::Sha,
            ("git-commit", []) => Route::Commit(Which::Latest),
            ("git-commit", [sha]) => Route::Commit(Which::Named(decode(sha))),
            ("git-commit-info", []) => Route::CommitInfo(Which::Latest),
            ("git-commit-info", [sha]) => Route::CommitInfo(Which::Named(decode(sha))),
            ("cache", []) => Route::Held,
            ("reload", []) => Route::Reload,
            ("diff", [base, head]) => Route::Diff { base: decode(base), head: decode(head), file: None },
            ("diff", [base, head, kind, path @ ..]) if !path.is_empty() => Route::Diff {
                base: decode(base),
                head: decode(head),
                file: Some((decode(kind), format!("/{}", decode(&path.join("/"))))),
            },
            ("graphql", []) => Route::Graphql(Which::Latest),
            // What comes behind a sha has never mattered.
            ("graphqlsha", [sha, ..]) => Route::Graphql(Which::Named(decode(sha))),
            ("leases", [name]) => Route::Lease(decode(name)),
            ("page", [name]) => Route::Page(decode(name)),
            _ => Route::Unknown,
        }
    }

    /// The path as a label of metrics: one of a few words, whatever is asked.
    pub fn label(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Health => "/healthz",
            Route::Metrics => "/metrics",
            Route::Sha => "/sha256",
            Route::Commit(Which::Latest) => "/git-commit",
            Route::Commit(Which::Named(_)) => "/git-commit/#sha",
            Route::CommitInfo(Which::Latest) => "/git-commit-info",
            Route::CommitInfo(Which::Named(_)) => "/git-commit-info/#sha",
            Route::Held => "/cache",
            Route::Reload => "/reload",
            Route::Diff { file: None, .. } => "/diff/#sha/#sha",
            Route::Diff { file: Some(_), .. } => "/diff/#sha/#sha/#val",
            Route::Graphql(Which::Latest) => "/graphql",
            Route::Graphql(Which::Named(_)) => "/graphqlsha/#sha",
            Route::Lease(_) => "/leases/#val",
            Route::Page(_) => "/page/#val",
            Route::Unknown => "#other",
        }
    }
}

/// The text with `%41` and the like as what they stand for; what is no such sequence, or no text afterwards, stays as it
/// is.
pub fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| str::from_utf8(digits).ok());
        match digits.filter(|digits| bytes[at] == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            Some(digits) => {
                out.push(u8::from_str_radix(digits, 16).expect("two digits"));
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sha: &str) -> Which {
        Which::Named(sha.to_owned())
    }

    #[test]
    fn paths_lead_where_clients_expect() {
        for (path, route) in [
            ("/", Route::Root),
            ("/healthz", Route::Health),
            ("/SHA256/", Route::Sha),
            ("/git-commit", Route::Commit(Which::Latest)),
            ("/git-commit-info/abc", Route::CommitInfo(named("abc"))),
            ("/graphql", Route::Graphql(Which::Latest)),
            ("/graphqlsha/abc/what/ever", Route::Graphql(named("abc"))),
            ("/graphqlsha", Route::Unknown),
            ("/diff/a/b", Route::Diff { base: "a".to_owned(), head: "b".to_owned(), file: None }),
            ("/diff/a", Route::Unknown),
            ("/reload/x", Route::Unknown),
            ("/healthz/x", Route::Unknown),
            ("//healthz", Route::Unknown),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
        let file = Some(("datafile".to_owned(), "/apps/a b.yml".to_owned()));
        let diff = Route::Diff { base: "a".to_owned(), head: "b".to_owned(), file };
        assert_eq!(Route::of("/diff/a/b/datafile/apps/a%20b.yml"), diff);
        assert_eq!(Route::of("/diff/a/b/datafile/apps%2Fa%20b.yml"), diff);
    }

    #[test]
    fn what_cannot_be_decoded_stays_as_it_is() {
        for (text, decoded) in
            [("a%20b", "a b"), ("%zz", "%zz"), ("%", "%"), ("%4", "%4"), ("%ff", "%ff"), ("%+1", "%+1"), ("é%C3%A9", "éé")]
        {
            assert_eq!(decode(text), decoded);
        }
    }
}
