//! Bounds of a write permit: a run that may write only to a few URLs.

use std::collections::BTreeSet;
use std::fmt;

/// The requests that a bounded permit allows: each is covered by at least one bound.
///
/// ```
/// use qontract_access::{WriteBound, WriteBounds};
///
/// let request = "/api/v4/projects/7/merge_requests/12";
/// let notes = WriteBound::new("https://forge.example.com", &["POST", "PUT"], &format!("{request}/notes/"))?;
/// let labels = WriteBound::new("https://forge.example.com", &["PUT"], request)?;
/// let bounds = WriteBounds::new([notes, labels]);
///
/// assert!(bounds.covers("PUT", "https://forge.example.com", "/api/v4/projects/7/merge_requests/12"));
/// assert!(bounds.covers("POST", "https://forge.example.com", "/api/v4/projects/7/merge_requests/12/notes/3"));
/// assert!(!bounds.covers("PUT", "https://forge.example.com", "/api/v4/projects/7/merge_requests/13"));
/// assert!(!bounds.covers("DELETE", "https://forge.example.com", "/api/v4/projects/7/merge_requests/12"));
/// # Ok::<_, qontract_access::BoundError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBounds(Vec<WriteBound>);

/// The methods and paths at one origin that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBound {
    origin: String,
    methods: BTreeSet<String>,
    /// The path, or a prefix if it ends in a slash.
    path: String,
}

/// The reason why a bound is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundError {
    /// The origin is not a scheme and a host.
    Origin(String),
    /// There are no methods, or a method is not in capital letters.
    Methods,
    /// The path is not absolute, or servers may resolve it to another path.
    Path(String),
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin(origin) => {
                write!(f, "`{origin}` is not an origin such as `https://forge.example.com`")
            }
            Self::Methods => f.write_str("the methods must be at least one name in capital letters"),
            Self::Path(path) => {
                write!(f, "`{path}` is not an absolute path without escapes, `//`, `.` and `..`")
            }
        }
    }
}

impl std::error::Error for BoundError {}

impl WriteBound {
    /// Allows these methods at an origin (scheme, host, and the port if it is not the default), on this path, or
    /// below it if it ends in a slash.
    pub fn new(origin: &str, methods: &[&str], path: &str) -> Result<Self, BoundError> {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '?', '#', '@', '%'])) {
            return Err(BoundError::Origin(origin.to_owned()));
        }
        let is_method =
            |method: &&str| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if methods.is_empty() || !methods.iter().all(is_method) {
            return Err(BoundError::Methods);
        }
        if !is_plain(path) {
            return Err(BoundError::Path(path.to_owned()));
        }
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        Ok(Self { origin: origin.to_owned(), methods, path: path.to_owned() })
    }

    fn covers(&self, method: &str, origin: &str, path: &str) -> bool {
        let is_below = self.path.ends_with('/') && path.starts_with(&self.path);
        self.origin == origin && self.methods.contains(method) && (is_below || self.path == path)
    }
}

impl fmt::Display for WriteBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, methods, path } = self;
        let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
        write!(f, "{} {origin}{path}", methods.join(","))
    }
}

impl WriteBounds {
    /// Creates bounds. Without any bound, nothing may be written.
    pub fn new(bounds: impl IntoIterator<Item = WriteBound>) -> Self {
        Self(bounds.into_iter().collect())
    }

    /// Whether a request is within the bounds. A path that a server could resolve to another path is never
    /// within them.
    pub fn covers(&self, method: &str, origin: &str, path: &str) -> bool {
        is_plain(path) && self.0.iter().any(|bound| bound.covers(method, origin, path))
    }
}

impl fmt::Display for WriteBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds: Vec<String> = self.0.iter().map(|bound| format!("`{bound}`")).collect();
        if bounds.is_empty() { f.write_str("nothing") } else { f.write_str(&bounds.join(", ")) }
    }
}

/// Whether every server resolves an absolute path to the same resource: it has no escapes, backslashes,
/// parameters or empty segments, and no segment is `.` or `..`. The last segment may be empty.
fn is_plain(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let is_segment = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    let inner = rest.strip_suffix('/').unwrap_or(rest);
    !path.contains(['%', '\\', ';', '?', '#'])
        && !path.contains(|one: char| one.is_control() || one.is_whitespace())
        && (rest.is_empty() || inner.split('/').all(is_segment))
}

#[cfg(test)]
mod tests {
    use super::{BoundError, WriteBound, WriteBounds};

    const FORGE: &str = "https://forge.example.com";

    fn bounds() -> WriteBounds {
        let bound = |methods: &[&str], path: &str| WriteBound::new(FORGE, methods, path).unwrap();
        WriteBounds::new([bound(&["PUT", "POST"], "/api/mr/12/"), bound(&["PUT"], "/api/mr/12")])
    }

    #[track_caller]
    fn check(request: &str, expect: bool) {
        let (method, path) = request.split_once(' ').unwrap();
        assert_eq!(bounds().covers(method, FORGE, path), expect, "{request}");
    }

    #[test]
    fn a_path_is_exact_unless_it_ends_in_a_slash() {
        check("PUT /api/mr/12", true);
        check("PUT /api/mr/12/", true);
        check("POST /api/mr/12/notes", true);
        check("POST /api/mr/12/notes/", true);
        check("POST /api/mr/12", false);
        check("PUT /api/mr/1", false);
        check("PUT /api/mr/123", false);
        check("PUT /api/mr", false);
        check("PUT /", false);
    }

    #[test]
    fn methods_are_exact() {
        for method in ["DELETE", "PATCH", "GET", "put", "", "PUT,POST"] {
            check(&format!("{method} /api/mr/12/notes"), false);
        }
    }

    #[test]
    fn a_path_that_could_lead_elsewhere_is_never_covered() {
        for path in [
            "/api/mr/12/../13",
            "/api/mr/12/./notes",
            "/api/mr/12//notes",
            "/api/mr/12/notes//",
            "/api/mr/12/%2e%2e/13",
            "/api/mr/12/..%2f13",
            "/api/mr/12/..",
            "/api/mr/12/a\\..\\b",
            "/api/mr/12/a;b",
            "/api/mr/12/a b",
            "api/mr/12/notes",
        ] {
            check(&format!("PUT {path}"), false);
        }
    }

    #[test]
    fn another_origin_is_not_covered() {
        for origin in
            ["http://forge.example.com", "https://forge.example.com:8443", "https://forge.example.org"]
        {
            assert!(!bounds().covers("PUT", origin, "/api/mr/12"), "{origin}");
        }
    }

    #[test]
    fn without_bounds_nothing_is_covered() {
        let none = WriteBounds::new([]);
        assert!(!none.covers("PUT", FORGE, "/"));
        assert_eq!(none.to_string(), "nothing");
        assert_eq!(
            bounds().to_string(),
            "`POST,PUT https://forge.example.com/api/mr/12/`, `PUT https://forge.example.com/api/mr/12`"
        );
    }

    #[test]
    fn a_bound_that_is_not_exact_is_refused() {
        let check = |origin: &str, methods: &[&str], path: &str, expect: BoundError| {
            assert_eq!(WriteBound::new(origin, methods, path).unwrap_err(), expect);
        };
        for origin in
            ["forge.example.com", "https://", "https://forge.example.com/", "https://u@h", "ftp://h"]
        {
            check(origin, &["PUT"], "/", BoundError::Origin(origin.to_owned()));
        }
        for methods in [&[][..], &[""], &["put"], &["PUT", "*"]] {
            check(FORGE, methods, "/", BoundError::Methods);
        }
        for path in ["", "a", "/a//b", "/a/../b", "/a%20b", "/a?b", "//"] {
            check(FORGE, &["PUT"], path, BoundError::Path(path.to_owned()));
        }
        WriteBound::new(FORGE, &["PUT"], "/").unwrap();
    }

    /// Random paths of segments that parsers interpret differently: a covered path has the prefix as whole
    /// segments.
    #[test]
    fn a_covered_path_is_below_its_prefix_segment_by_segment() {
        const PIECES: [&str; 12] =
            ["/", "//", ".", "..", "%2e", "%2f", "\\", ";", "api", "mr", "12", "notes"];
        let mut covered = 0;
        for seed in 0..200_000_u64 {
            let (mut path, mut rest) = (String::from("/api/mr/12"), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for _ in 0..4 {
                path.push_str(PIECES[(rest % 12) as usize]);
                rest /= 12;
            }
            if bounds().covers("PUT", FORGE, &path) {
                covered += 1;
                let segments: Vec<&str> = path.split('/').collect();
                assert_eq!(segments[..4], ["", "api", "mr", "12"], "{path}");
                let is_name = |segment: &&str| segment.chars().all(|one| one.is_alphanumeric() || one == '.');
                assert!(segments.iter().all(is_name) && !segments.contains(&".."), "{path}");
            }
        }
        assert!(covered > 100, "{covered}");
    }
}
