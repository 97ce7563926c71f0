//! The request that a client builds.

use std::fmt;

use qontract_access::Access;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use crate::call::Call;
use crate::error::HttpError;
use crate::secret::Secret;

/// Headers that would change the request after the guard checked it.
const FORBIDDEN_HEADERS: [&str; 4] = ["host", "x-http-method", "x-http-method-override", "x-method-override"];

/// An HTTP request that a client builds.
#[derive(Clone)]
pub struct Request {
    method: Method,
    url: Url,
    headers: Vec<(String, HeaderText)>,
    body: Option<Vec<u8>>,
    accepted_statuses: Vec<StatusCode>,
    idempotent: bool,
    max_body: Option<usize>,
}

/// A header value, which may be confidential.
#[derive(Clone)]
enum HeaderText {
    Plain(String),
    Hidden(Secret),
}

impl HeaderText {
    fn as_str(&self) -> &str {
        match self {
            Self::Plain(value) => value,
            Self::Hidden(secret) => secret.expose(),
        }
    }
}

impl Request {
    /// A request with any method.
    pub fn new(method: Method, url: Url) -> Self {
        let (headers, accepted_statuses) = (Vec::new(), Vec::new());
        Self { method, url, headers, body: None, accepted_statuses, idempotent: false, max_body: None }
    }

    /// A `GET`.
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    /// A `POST` with a body of this media type.
    pub fn post(url: Url, media_type: &str, body: Vec<u8>) -> Self {
        Self::new(Method::POST, url).body(media_type, body)
    }

    /// Sets the body and its media type.
    #[must_use]
    pub fn body(self, media_type: &str, body: Vec<u8>) -> Self {
        self.bytes(body).header(CONTENT_TYPE.as_str(), media_type)
    }

    /// Sets the body; the caller sets the media type as a header.
    #[must_use]
    pub fn bytes(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }

    /// Adds a header that may be shown.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), HeaderText::Plain(value.to_owned())));
        self
    }

    /// Adds a header that must not be shown.
    #[must_use]
    pub fn secret_header(mut self, name: &str, value: &Secret) -> Self {
        self.headers.push((name.to_owned(), HeaderText::Hidden(value.clone())));
        self
    }

    /// Accepts a status other than 2xx as a response instead of an error.
    #[must_use]
    pub fn accept_status(mut self, status: StatusCode) -> Self {
        self.accepted_statuses.push(status);
        self
    }

    /// Marks the request as idempotent although its method is not, because it has an idempotency key or a
    /// precondition.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Limits the size of the response body, in bytes, if the limit of the stack is higher.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = Some(bytes);
        self
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The values of all headers with this name, for the guard.
    pub(crate) fn header_values(&self, name: &str) -> Vec<&str> {
        let headers = self.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        headers.map(|(_, text)| text.as_str()).collect()
    }

    /// The body, for the guard.
    pub(crate) fn body_bytes(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Validates the request and prepares it for one or more attempts.
    pub(crate) fn prepare(self, access: Access) -> Result<PreparedRequest, HttpError> {
        let call = Call::new(&self.method, &self.url);
        let wrong = |why: String| HttpError::Prepare { call: call.clone(), why };
        if !["http", "https"].contains(&self.url.scheme()) {
            return Err(wrong("only http and https are supported".to_owned()));
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            return Err(wrong("the URL contains credentials: send them in a header".to_owned()));
        }
        let mut request = reqwest::Request::new(self.method.clone(), self.url);
        let mut secrets = Vec::new();
        for (name, text) in self.headers {
            let malformed = || wrong(format!("the header `{name}` is malformed"));
            let key = HeaderName::try_from(&name).map_err(|_| malformed())?;
            if FORBIDDEN_HEADERS.contains(&key.as_str()) {
                return Err(wrong(format!(
                    "the header `{name}` would change the request after it was checked"
                )));
            }
            let mut value = HeaderValue::try_from(text.as_str()).map_err(|_| malformed())?;
            value.set_sensitive(matches!(text, HeaderText::Hidden(_)));
            request.headers_mut().append(key, value);
            if let HeaderText::Hidden(secret) = text {
                secrets.push(secret);
            }
        }
        *request.body_mut() = self.body.map(Into::into);
        // A POST that only reads may be repeated like any other read.
        let repeatable = self.idempotent || access == Access::Read || self.method.is_idempotent();
        let (also, max_body) = (self.accepted_statuses, self.max_body);
        Ok(PreparedRequest { request, call, access, secrets, accepted_statuses: also, repeatable, max_body })
    }
}

impl fmt::Debug for Request {
    /// Omits headers, query and body, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", Call::new(&self.method, &self.url))
    }
}

/// A validated request.
pub(crate) struct PreparedRequest {
    pub request: reqwest::Request,
    pub call: Call,
    pub access: Access,
    pub secrets: Vec<Secret>,
    pub accepted_statuses: Vec<StatusCode>,
    pub repeatable: bool,
    pub max_body: Option<usize>,
}

#[cfg(test)]
mod tests {
    use qontract_access::Access;
    use reqwest::{Method, Url};

    use super::Request;
    use crate::secret::Secret;

    fn request(url: &str) -> Request {
        Request::get(Url::parse(url).unwrap())
    }

    fn refused(request: Request, expect: &str) {
        let error = request.prepare(Access::Read).err().expect("it cannot be sent");
        assert_eq!(error.to_string(), format!("`GET {expect}"));
    }

    #[test]
    fn a_password_in_the_url_is_refused_and_not_shown() {
        let why = "http://h/x` cannot be sent: the URL contains credentials: send them in a header";
        refused(request("http://user:word@h/x"), why);
    }

    #[test]
    fn other_schemes_are_refused() {
        refused(request("ftp://h/x"), "ftp://h/x` cannot be sent: only http and https are supported");
    }

    #[test]
    fn a_method_cannot_be_overridden() {
        let sneaky = request("http://h/x").header("X-HTTP-Method-Override", "DELETE");
        let why = "the header `X-HTTP-Method-Override` would change the request after it was checked";
        refused(sneaky, &format!("http://h/x` cannot be sent: {why}"));
    }

    #[test]
    fn a_malformed_secret_is_not_shown() {
        let bad = request("http://h/x").secret_header("authorization", &Secret::new("a\nb"));
        refused(bad, "http://h/x` cannot be sent: the header `authorization` is malformed");
    }

    #[test]
    fn debug_shows_only_method_and_url() {
        let secret = Secret::new("s3cret");
        let request =
            Request::post(Url::parse("http://h/x?key=s3cret").unwrap(), "text/plain", b"s3cret".into());
        let shown = format!("{:?}", request.secret_header("authorization", &secret));
        assert_eq!(shown, "Request(`POST http://h/x`)");
    }

    #[test]
    fn reads_and_idempotent_requests_may_be_repeated() {
        let repeatable = |method: Method, access| {
            let request = Request::new(method, Url::parse("http://h/x").unwrap());
            request.prepare(access).unwrap().repeatable
        };
        assert!(repeatable(Method::POST, Access::Read));
        assert!(repeatable(Method::PUT, Access::Write));
        assert!(repeatable(Method::DELETE, Access::Write));
        assert!(!repeatable(Method::POST, Access::Write));
        assert!(!repeatable(Method::PATCH, Access::Write));
        let keyed = Request::new(Method::PATCH, Url::parse("http://h/x").unwrap()).idempotent();
        assert!(keyed.prepare(Access::Write).unwrap().repeatable);
    }
}
