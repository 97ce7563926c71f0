//! HTTP replies: status, headers, body, `ETag` and compression.

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

/// Media type of text replies, as sent by qontract-server.
pub const TEXT: &str = "text/html; charset=utf-8";
/// The header in which a client requests the names of the extensions that the server supports. The response lists
/// them in the header of the same name.
pub const EXTENSIONS_HEADER: &str = "qontract-extensions";
/// Media type of JSON.
pub const JSON: &str = "application/json; charset=utf-8";

/// Bodies above this size are compressed and tagged on a blocking thread.
const MIN_BACKGROUND_BYTES: usize = 64 << 10;
/// Size of the chunks in which a body is sent.
const CHUNK_BYTES: usize = 128 << 10;

/// A reply to a request, before its content coding is negotiated.
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Arc<CachedResponse>>,
    /// Whether the reply has an entity tag.
    is_tagged: bool,
    /// The guard that counts the bytes of the body as in flight, if they are counted.
    flight: Option<Arc<InFlightGuard>>,
}

impl Reply {
    /// Creates a reply without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: None, is_tagged: false, flight: None }
    }

    /// Creates a reply with a body of this media type.
    pub fn new(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::cached(media_type, Arc::new(CachedResponse::new(status.as_u16(), body)))
    }

    /// Creates a text reply.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status, TEXT, text.into())
    }

    /// Creates a reply whose body may be shared with the response cache.
    pub fn cached(media_type: &'static str, response: Arc<CachedResponse>) -> Self {
        let status = StatusCode::from_u16(response.status).expect("an HTTP status");
        Self { status, headers: Vec::new(), body: Some(response), is_tagged: true, flight: None }
            .header(CONTENT_TYPE, media_type)
    }

    /// Creates a GraphQL error for a request that is refused before the query is parsed.
    pub fn graphql_error(status: StatusCode, form: ResponseFormat, message: &str) -> Self {
        Self::cached(form.as_str(), Arc::new(error_response(status, message)))
    }

    /// Creates a GraphQL error with a code, for a query that cannot be executed.
    pub fn data_error(status: StatusCode, form: ResponseFormat, code: &str, message: &str) -> Self {
        Self::new(status, form.as_str(), error_body(code, message, ",\"extensions\":{\"schemas\":[]}}\n"))
    }

    /// Creates a page with an error message.
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

    /// Creates an error page with the name of the status.
    pub fn status_page(status: StatusCode) -> Self {
        Self::error_page(status, status.canonical_reason().unwrap_or_default())
    }

    /// Creates the reply 404 for a path that does not exist.
    pub fn no_such_path(method: &Method, path: &str) -> Self {
        let path = encode(path);
        Self::error_page(StatusCode::NOT_FOUND, &format!("Cannot {method} {path}"))
    }

    /// Creates a page for browsers, or a part of a page. The content security policy of the page allows scripts and
    /// styles only from this server.
    pub fn page(media_type: &'static str, body: &'static str) -> Self {
        const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                              img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        Self::new(StatusCode::OK, media_type, body)
            .header(CONTENT_SECURITY_POLICY, POLICY)
            .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
            .header(CACHE_CONTROL, "no-cache")
    }

    /// Creates the reply 503 with `Retry-After`, for a request that may succeed later.
    pub fn retry_later(message: impl Into<String>) -> Self {
        Self::text(StatusCode::SERVICE_UNAVAILABLE, message).header(RETRY_AFTER, "1")
    }

    /// Creates a redirect, with a body in a format that the client accepts.
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

    /// Creates the reply to `OPTIONS`, with the allowed methods.
    pub fn options(methods: &'static str) -> Self {
        let reply = Self::new(StatusCode::OK, "text/plain", methods).untagged();
        reply.allowing(methods).header(X_CONTENT_TYPE_OPTIONS, "nosniff")
    }

    /// Adds an `Allow` header with the allowed methods.
    #[must_use]
    pub fn allowing(self, methods: &'static str) -> Self {
        self.header(ALLOW, methods)
    }

    /// Creates the reply 401 to a request without a valid token.
    pub fn unauthorized() -> Self {
        Self::text(StatusCode::UNAUTHORIZED, "Unauthorized").header(WWW_AUTHENTICATE, "Bearer")
    }

    /// Counts the bytes of the body as in flight until the body is sent.
    #[must_use]
    pub fn in_flight(mut self, flight: Arc<InFlightGuard>) -> Self {
        self.flight = Some(flight);
        self
    }

    fn untagged(mut self) -> Self {
        self.is_tagged = false;
        self
    }

    /// Adds a header to the reply.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Adds the names of the supported extensions, which a client requested.
    #[must_use]
    pub fn extensions(self, names: &'static str) -> Self {
        self.header(HeaderName::from_static(EXTENSIONS_HEADER), names)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Builds the response to a request: negotiates the content coding and evaluates `If-None-Match`.
    pub async fn respond(self, method: &Method, request_headers: &HeaderMap) -> Response<ResponseBody> {
        let Self { status, headers, body, is_tagged, flight } = self;
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = status;
        for (name, value) in headers {
            response.headers_mut().insert(name, value);
        }
        let text = |name| request_headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let wants_all = text(CACHE_CONTROL).is_some_and(|word| word.contains("no-cache"));
        let is_conditional =
            status.is_success() && (method == Method::GET || method == Method::HEAD) && !wants_all;
        let if_none_match = text(IF_NONE_MATCH).filter(|_| is_conditional);
        let Some(cached) = body else {
            if if_none_match.is_some_and(|tags| tags.trim() == "*") {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
            }
            return response;
        };
        let coding = match text(hyper::header::ACCEPT_ENCODING) {
            Some(accepted) if cached.body.len() >= MIN_COMPRESSED_BYTES => Coding::of(accepted),
            _ => Coding::Identity,
        };
        let cached = if cached.body.len() > MIN_BACKGROUND_BYTES {
            let prepared = tokio::task::spawn_blocking(move || {
                if is_tagged {
                    cached.tag();
                }
                cached.encoded(coding);
                cached
            });
            let Ok(cached) = prepared.await else {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return response;
            };
            cached
        } else {
            cached
        };
        if cached.body.len() >= MIN_COMPRESSED_BYTES {
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if is_tagged {
            let tag = cached.tag();
            response.headers_mut().insert(ETAG, HeaderValue::from_str(tag.as_str()).expect("a tag is plain"));
            if if_none_match.is_some_and(|tags| tag.matches(tags)) {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response.headers_mut().remove(CONTENT_TYPE);
                return response;
            }
        }
        if let Some(word) = coding.as_str() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(word));
        }
        let bytes = cached.encoded(coding);
        *response.body_mut() = ResponseBody { bytes, response: Some(cached), flight, busy: None };
        response
    }
}

/// Percent-encodes the characters that are invalid in a path.
fn encode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    for (at, byte) in bytes.iter().enumerate() {
        // A truncated sequence, such as `%4`, is also left unchanged.
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

/// Creates the response to a refused request, as a GraphQL error.
pub fn error_response(status: StatusCode, message: &str) -> CachedResponse {
    CachedResponse::new(status.as_u16(), error_body("BAD_REQUEST", message, "}\n"))
}

/// The JSON text of an error, followed by `end`.
fn error_body(code: &str, message: &str, end: &str) -> Vec<u8> {
    let mut body = b"{\"errors\":[{\"message\":".to_vec();
    JavaScriptWriter(&mut body).str(message);
    body.extend_from_slice(b",\"extensions\":{\"code\":");
    JavaScriptWriter(&mut body).str(code);
    body.extend_from_slice(b"}}]");
    body.extend_from_slice(end.as_bytes());
    body
}

/// Escapes a string for HTML, including unsafe characters.
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

/// Minimum size of a response that triggers the [release hook](crate::Settings::on_release).
const MIN_RELEASE_BYTES: usize = 1 << 20;

/// The number of bytes that are being sent to clients.
#[derive(Clone, Default)]
pub struct InFlight {
    bytes: Arc<AtomicUsize>,
    released: Option<ReleaseHook>,
}

impl InFlight {
    /// Creates a counter that starts at 0 bytes. `released` is called when a large response is freed.
    pub fn new(released: Option<ReleaseHook>) -> Self {
        Self { bytes: Arc::default(), released }
    }

    /// Number of bytes in flight.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes as in flight until the guard is dropped.
    pub fn begin(&self, bytes: usize) -> InFlightGuard {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        InFlightGuard { all: self.clone(), bytes }
    }
}

/// A guard that counts bytes as in flight until the guard is dropped.
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

/// A response body, which is sent in chunks, so that the server can detect that the whole body has been sent.
#[derive(Default)]
pub struct ResponseBody {
    bytes: Bytes,
    /// The response, which is shared with requests that arrive while it is sent. It is dropped before `flight`,
    /// because `flight` reports that the memory was freed.
    response: Option<Arc<CachedResponse>>,
    flight: Option<Arc<InFlightGuard>>,
    busy: Option<BusyConnection>,
}

impl ResponseBody {
    /// Marks the connection as busy until the body is sent.
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
            self.response = None;
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
