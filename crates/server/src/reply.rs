//! Replies: status, headers, body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use qontract_bundle::json::JavaScriptWriter;
use qontract_diagnostics::sanitize_lines;

use crate::compression::{Coding, MIN_COMPRESSED_BYTES};
use crate::connection::BusyConnection;
use crate::graphql_request::ResponseFormat;
use crate::response_cache::CachedResponse;
use crate::settings::ReleaseHook;

/// Media type of text, as the established server sends it.
pub const TEXT: &str = "text/html; charset=utf-8";
/// Media type of JSON.
pub const JSON: &str = "application/json; charset=utf-8";

/// Bodies above this size are compressed and tagged on a blocking thread.
const MIN_BACKGROUND_BYTES: usize = 64 << 10;
/// Number of bytes of a body that are handed to a connection at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// A reply to a request, before its content coding is negotiated.
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Arc<CachedResponse>>,
    /// Whether it has an entity tag.
    is_tagged: bool,
    /// Counts its bytes as in flight, unless they are shared with the cache.
    flight: Option<InFlightGuard>,
}

impl Reply {
    /// A status without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: None, is_tagged: false, flight: None }
    }

    /// A body of a media type.
    pub fn new(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::cached(media_type, Arc::new(CachedResponse::new(status.as_u16(), body)))
    }

    /// A text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status, TEXT, text.into())
    }

    /// A response that may come from the cache.
    pub fn cached(media_type: &'static str, answered: Arc<CachedResponse>) -> Self {
        let status = StatusCode::from_u16(answered.status).expect("a status of HTTP");
        Self { status, headers: Vec::new(), body: Some(answered), is_tagged: true, flight: None }
            .header(CONTENT_TYPE, media_type)
    }

    /// An error for a request that did not reach the data.
    pub fn graphql_error(status: StatusCode, form: ResponseFormat, message: &str) -> Self {
        Self::new(status, form.as_str(), error_body("BAD_REQUEST", message, "}\n"))
    }

    /// An error for a request to the data that cannot be executed.
    pub fn data_error(status: StatusCode, form: ResponseFormat, code: &str, message: &str) -> Self {
        Self::new(status, form.as_str(), error_body(code, message, ",\"extensions\":{\"schemas\":[]}}\n"))
    }

    /// A page with an error message.
    pub fn error_page(status: StatusCode, message: &str) -> Self {
        let message = escape(message);
        let body = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Error</title>\n</head>\n<body>\n<pre>{message}</pre>\n</body>\n</html>\n"
        );
        Self::new(status, TEXT, body)
            .header(CONTENT_SECURITY_POLICY, "default-src 'none'")
            .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
            .untagged()
    }

    /// A page with the text of a status.
    pub fn status_page(status: StatusCode) -> Self {
        Self::error_page(status, status.canonical_reason().unwrap_or_default())
    }

    /// The path does not exist.
    pub fn no_such_path(method: &Method, path: &str) -> Self {
        let path = encode(path);
        Self::error_page(StatusCode::NOT_FOUND, &format!("Cannot {method} {path}"))
    }

    /// A page for browsers, or a part of one. Its policy allows scripts and styles of this server only.
    pub fn page(media_type: &'static str, body: &'static str) -> Self {
        const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                              img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        Self::new(StatusCode::OK, media_type, body)
            .header(CONTENT_SECURITY_POLICY, POLICY)
            .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
            .header(CACHE_CONTROL, "no-cache")
    }

    /// The request may succeed later: 503 with `Retry-After`.
    pub fn retry_later(message: impl Into<String>) -> Self {
        Self::text(StatusCode::SERVICE_UNAVAILABLE, message).header(RETRY_AFTER, "1")
    }

    /// A redirect, with a body in a format that the client accepts.
    pub fn found(location: &'static str, accept: Option<&str>) -> Self {
        let likes = |word: &str| accept.is_none_or(|accept| accept.contains(word) || accept.contains("*/*"));
        let reply = if accept.is_some_and(|accept| accept.contains("text/html")) {
            let page = format!(
                "<!DOCTYPE html><head><title>Found</title></head><body><p>Found. Redirecting to {location}</p></body>"
            );
            Self::text(StatusCode::FOUND, page)
        } else if likes("text/plain") || likes("text/*") {
            let text = format!("Found. Redirecting to {location}");
            Self::new(StatusCode::FOUND, "text/plain; charset=utf-8", text)
        } else {
            Self::empty(StatusCode::FOUND)
        };
        reply.untagged().header(LOCATION, location).header(VARY, "Accept")
    }

    /// The answer to `OPTIONS`: the allowed methods.
    pub fn options(methods: &'static str) -> Self {
        let reply = Self::new(StatusCode::OK, "text/plain", methods).untagged();
        reply.allowing(methods).header(X_CONTENT_TYPE_OPTIONS, "nosniff")
    }

    /// Adds the allowed methods.
    #[must_use]
    pub fn allowing(self, methods: &'static str) -> Self {
        self.header(ALLOW, methods)
    }

    /// A token is required.
    pub fn unauthorized() -> Self {
        Self::text(StatusCode::UNAUTHORIZED, "Unauthorized").header(WWW_AUTHENTICATE, "Bearer")
    }

    /// Counts its bytes as in flight until they are sent.
    #[must_use]
    pub fn in_flight(mut self, flight: InFlightGuard) -> Self {
        self.flight = Some(flight);
        self
    }

    fn untagged(mut self) -> Self {
        self.is_tagged = false;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The response to a request with these headers.
    pub async fn respond(self, method: &Method, request_headers: &HeaderMap) -> Response<ResponseBody> {
        let Self { status, headers, body, is_tagged, flight } = self;
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = status;
        for (name, value) in headers {
            response.headers_mut().insert(name, value);
        }
        let text = |name| request_headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let wants_all = text(CACHE_CONTROL).is_some_and(|word| word.contains("no-cache"));
        let may_be_known =
            status.is_success() && (method == Method::GET || method == Method::HEAD) && !wants_all;
        let known = text(IF_NONE_MATCH).filter(|_| may_be_known);
        let Some(answered) = body else {
            if known.is_some_and(|known| known.trim() == "*") {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
            }
            return response;
        };
        let coding = match text(hyper::header::ACCEPT_ENCODING) {
            Some(accepted) if answered.body.len() >= MIN_COMPRESSED_BYTES => Coding::of(accepted),
            _ => Coding::Identity,
        };
        let answered = if answered.body.len() > MIN_BACKGROUND_BYTES {
            let prepared = tokio::task::spawn_blocking(move || {
                if is_tagged {
                    answered.tag();
                }
                answered.encoded(coding);
                answered
            });
            let Ok(answered) = prepared.await else {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return response;
            };
            answered
        } else {
            answered
        };
        if answered.body.len() >= MIN_COMPRESSED_BYTES {
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if is_tagged {
            let tag = answered.tag();
            response.headers_mut().insert(ETAG, HeaderValue::from_str(tag.as_str()).expect("a tag is plain"));
            if known.is_some_and(|known| tag.matches(known)) {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response.headers_mut().remove(CONTENT_TYPE);
                return response;
            }
        }
        if let Some(word) = coding.as_str() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(word));
        }
        let bytes = answered.encoded(coding);
        *response.body_mut() = ResponseBody { bytes, flight, busy: None };
        response
    }
}

/// The path with characters that are invalid in one percent-encoded.
fn encode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    for (at, byte) in bytes.iter().enumerate() {
        // A truncated sequence is left as it is.
        let is_sequence = || {
            let digits = &bytes[at + 1..bytes.len().min(at + 3)];
            !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
        };
        match byte {
            b'%' if is_sequence() => out.push('%'),
            b'%' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | 0..=b' ' | 0x7f.. => {
                out.push_str(&format!("%{byte:02X}"));
            }
            plain => out.push(char::from(*plain)),
        }
    }
    out
}

/// An error as JSON, followed by `end`.
fn error_body(code: &str, message: &str, end: &str) -> Vec<u8> {
    let mut body = b"{\"errors\":[{\"message\":".to_vec();
    JavaScriptWriter(&mut body).str(message);
    body.extend_from_slice(b",\"extensions\":{\"code\":");
    JavaScriptWriter(&mut body).str(code);
    body.extend_from_slice(b"}}]");
    body.extend_from_slice(end.as_bytes());
    body
}

/// The text escaped for HTML, with unsafe characters as escapes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in sanitize_lines(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Minimum size of an answer that triggers the [release hook](crate::Settings::released).
const MIN_RELEASE_BYTES: usize = 1 << 20;

/// The number of bytes that are being sent to clients.
#[derive(Clone, Default)]
pub struct InFlight {
    bytes: Arc<AtomicUsize>,
    released: Option<ReleaseHook>,
}

impl InFlight {
    /// No bytes yet; `released` is called when a large answer is freed.
    pub fn new(released: Option<ReleaseHook>) -> Self {
        Self { bytes: Arc::default(), released }
    }

    /// Number of bytes in flight.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes, until the guard is dropped.
    pub fn begin(&self, bytes: usize) -> InFlightGuard {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        InFlightGuard { all: self.clone(), bytes }
    }
}

/// Bytes that are in flight until this is dropped.
pub struct InFlightGuard {
    all: InFlight,
    bytes: usize,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(released) = self.all.released.as_ref().filter(|_| self.bytes >= MIN_RELEASE_BYTES) {
            released();
        }
    }
}

/// A response body, sent in chunks so that its end is observed.
#[derive(Default)]
pub struct ResponseBody {
    bytes: Bytes,
    flight: Option<InFlightGuard>,
    busy: Option<BusyConnection>,
}

impl ResponseBody {
    /// Keeps its connection busy until it is sent.
    pub fn keep_busy(&mut self, busy: BusyConnection) {
        self.busy = Some(busy);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.bytes.is_empty() {
            (self.flight, self.busy) = (None, None);
            return Poll::Ready(None);
        }
        let length = self.bytes.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
