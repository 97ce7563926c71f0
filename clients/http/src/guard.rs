//! The guard: decides which requests a run may send. Pure, so that other HTTP stacks can use it as well.
//!
//! **Invariant:** in a dry run no unsafe method is allowed, except a `POST` on the allow-list and rehearsals
//! of known targets. At an API whose read actions are listed, only a `POST` of an action on the list is a
//! read, and no method other than `POST` is sent.

use qontract_access::{Access, Mode, WriteBounds};
use reqwest::{Method, Url};

use crate::actions::ReadActions;
use crate::call::{Call, origin};
use crate::error::GuardRefusal;
use crate::rehearsal::SafeRehearsal;
use crate::request::Request;

/// An endpoint where `POST` only reads: GraphQL queries, logins.
///
/// Only clients may construct it; a lint refuses it elsewhere (`clippy.toml`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafePost {
    origin: String,
    path: String,
}

impl SafePost {
    /// Allows `POST`s to the origin (scheme, host, port) of `target` with this path, or below it if it ends
    /// in a slash.
    pub fn new(target: &Url, path: &str) -> Self {
        Self { origin: origin(target), path: path.to_owned() }
    }

    fn covers(&self, url: &Url) -> bool {
        let is_below = self.path.ends_with('/') && url.path().starts_with(&self.path);
        // A path with escapes is refused, because the server may decode an escape to a slash or to dots.
        (is_below || url.path() == self.path) && !url.path().contains('%') && origin(url) == self.origin
    }
}

/// Decides which requests may be sent.
#[derive(Clone, Debug, Default)]
pub struct RequestPolicy {
    safe_posts: Vec<SafePost>,
    rehearsals: Vec<SafeRehearsal>,
    read_actions: Vec<ReadActions>,
}

impl RequestPolicy {
    /// Creates a guard with this allow-list.
    pub fn new(safe_posts: Vec<SafePost>) -> Self {
        Self { safe_posts, ..Self::default() }
    }

    /// Adds an endpoint to the allow-list.
    #[must_use]
    pub fn with(mut self, safe_post: SafePost) -> Self {
        if !self.safe_posts.contains(&safe_post) {
            self.safe_posts.push(safe_post);
        }
        self
    }

    /// Allows rehearsals on this target.
    #[must_use]
    pub fn with_rehearsal(mut self, rehearsal: SafeRehearsal) -> Self {
        if !self.rehearsals.contains(&rehearsal) {
            self.rehearsals.push(rehearsal);
        }
        self
    }

    /// Judges requests to this API by their actions.
    #[must_use]
    pub fn with_read_actions(mut self, actions: ReadActions) -> Self {
        if !self.read_actions.contains(&actions) {
            self.read_actions.push(actions);
        }
        self
    }

    /// Checks whether a run of this mode may send a request with this method and URL for this half of a
    /// client. Used by other HTTP stacks, whose requests are judged without headers and body.
    pub fn check(&self, mode: Mode, method: &Method, url: &Url, access: Access) -> Result<(), GuardRefusal> {
        self.check_request(mode, &Request::new(method.clone(), url.clone()), access)
    }

    /// Checks whether a run of this mode may send this request for this half of a client.
    pub fn check_request(&self, mode: Mode, request: &Request, access: Access) -> Result<(), GuardRefusal> {
        let call = || Call::new(request.method(), request.url());
        if self.has_actions(request.url()) && *request.method() != Method::POST {
            return Err(GuardRefusal::NotPost(call()));
        }
        match (access, mode) {
            (Access::Read, Mode::DryRun | Mode::Real) if self.is_read(request) => Ok(()),
            (Access::Read, Mode::DryRun | Mode::Real) => Err(GuardRefusal::UnsafeRead(call())),
            (Access::Write, Mode::DryRun) => Err(GuardRefusal::DryRun(call())),
            (Access::Write, Mode::Real) => Ok(()),
        }
    }

    /// Checks whether a permit with these bounds covers a write. A request that only reads needs no bounds.
    pub fn check_bounds(&self, request: &Request, bounds: &WriteBounds) -> Result<(), GuardRefusal> {
        let url = request.url();
        if self.is_read(request) || bounds.covers(request.method().as_str(), &origin(url), url.path()) {
            return Ok(());
        }
        Err(GuardRefusal::OutOfBounds { call: Call::new(request.method(), url), bounds: bounds.to_string() })
    }

    /// Whether the actions of the API at this URL are listed.
    fn has_actions(&self, url: &Url) -> bool {
        self.read_actions.iter().any(|actions| actions.is_at(url))
    }

    fn is_read(&self, request: &Request) -> bool {
        let (method, url) = (request.method(), request.url());
        if self.has_actions(url) {
            return self.read_actions.iter().any(|actions| actions.covers(request));
        }
        [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
            || *method == Method::POST && self.safe_posts.iter().any(|safe| safe.covers(url))
            || self.rehearsals.iter().any(|safe| safe.covers(method, url))
    }
}

#[cfg(test)]
mod tests {
    use qontract_access::{Access, Mode};
    use reqwest::{Method, Url};

    use super::{RequestPolicy, SafePost};

    const MODES: [Mode; 2] = [Mode::DryRun, Mode::Real];

    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn guard() -> RequestPolicy {
        let target = Url::parse("https://data.example.com/").unwrap();
        RequestPolicy::new(vec![SafePost::new(&target, "/graphql"), SafePost::new(&target, "/graphqlsha/")])
    }

    #[track_caller]
    fn check(modes: &[Mode], access: Access, request: &str, allowed: bool) {
        let (method, url) = request.split_once(' ').unwrap();
        let (method, url) = (method.parse::<Method>().unwrap(), Url::parse(url).unwrap());
        for mode in modes {
            let verdict = guard().check(*mode, &method, &url, access);
            assert_eq!(verdict.is_ok(), allowed, "{request} in a {}: {verdict:?}", mode.as_str());
        }
    }

    #[test]
    fn reads_use_safe_methods_only() {
        for method in ["GET", "HEAD", "OPTIONS"] {
            check(&MODES, Access::Read, &format!("{method} https://data.example.com/x"), true);
        }
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PURGE"] {
            check(&MODES, Access::Read, &format!("{method} https://data.example.com/x"), false);
        }
    }

    #[test]
    fn a_post_on_the_allow_list_is_a_read() {
        check(&MODES, Access::Read, "POST https://data.example.com/graphql", true);
        check(&MODES, Access::Read, "POST https://data.example.com:443/graphql?a=b", true);
        check(&MODES, Access::Read, "POST https://data.example.com/graphqlsha/abc", true);
    }

    #[test]
    fn another_method_is_not_on_the_allow_list() {
        check(&MODES, Access::Read, "DELETE https://data.example.com/graphql", false);
        check(&MODES, Access::Read, "PUT https://data.example.com/graphqlsha/abc", false);
    }

    #[test]
    fn another_endpoint_is_not_on_the_allow_list() {
        check(&MODES, Access::Read, "POST http://data.example.com/graphql", false);
        check(&MODES, Access::Read, "POST https://data.example.com:8443/graphql", false);
        check(&MODES, Access::Read, "POST https://example.com/graphql", false);
        check(&MODES, Access::Read, "POST https://data.example.com/graphqlx", false);
        check(&MODES, Access::Read, "POST https://data.example.com/graphql/x", false);
        check(&MODES, Access::Read, "POST https://data.example.com/graphqlsha/../reload", false);
        check(&MODES, Access::Read, "POST https://data.example.com/graphqlsha/%2e%2e/reload", false);
        check(&MODES, Access::Read, "POST https://data.example.com/graphqlsha/..%2freload", false);
    }

    #[test]
    fn writes_use_any_method_in_a_real_run_and_none_in_a_dry_run() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let request = format!("{method} https://data.example.com/graphql");
            check(&[Mode::Real], Access::Write, &request, true);
            check(&[Mode::DryRun], Access::Write, &request, false);
        }
    }

    #[test]
    fn a_refusal_shows_method_and_url_without_the_query() {
        let url = Url::parse("https://user:word@data.example.com/x?token=t").unwrap();
        let refusal = guard().check(Mode::DryRun, &Method::DELETE, &url, Access::Write).unwrap_err();
        let expected = "`DELETE https://data.example.com/x` is refused: this is a dry run";
        assert_eq!(refusal.to_string(), expected);
    }
}
