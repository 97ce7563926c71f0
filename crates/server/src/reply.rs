//! What is sent back: status, headers, body.

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
use qontract_bundle::json::JavaScript;
use qontract_diagnostics::shown_lines;

use crate::answers::Answered;
use crate::compress::{Coding, LEAST};
use crate::connection::Busy;
use crate::settings::ReleaseHook;
use crate::wire::Form;

/// Text, as the established server calls it.
pub const TEXT: &str = "text/html; charset=utf-8";
/// JSON.
pub const JSON: &str = "application/json; charset=utf-8";

/// Larger bodies are compressed and tagged beside everything else.
const LARGE: usize = 64 << 10;
/// How much of a body is handed to a connection at a time.
const PIECE: usize = 128 << 10;

/// An answer to a request, before it is known in which form the client wants it.
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Arc<Answered>>,
    /// Whether it has a tag, by which clients can tell that they know it.
    is_tagged: bool,
    /// That it is on its way, if its bytes are nobody else's.
    flight: Option<Flight>,
}

impl Reply {
    /// A status without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: None, is_tagged: false, flight: None }
    }

    /// A body of a media type.
    pub fn new(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::answered(media_type, Arc::new(Answered::new(status.as_u16(), body)))
    }

    /// A text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status, TEXT, text.into())
    }

    /// An answer that may have been given before.
    pub fn answered(media_type: &'static str, answered: Arc<Answered>) -> Self {
        let status = StatusCode::from_u16(answered.status).expect("a status of HTTP");
        Self { status, headers: Vec::new(), body: Some(answered), is_tagged: true, flight: None }
            .header(CONTENT_TYPE, media_type)
    }

    /// An error of a request that never got as far as the data.
    pub fn graphql_error(status: StatusCode, form: Form, message: &str) -> Self {
        Self::new(status, form.as_str(), error_body("BAD_REQUEST", message, "}\n"))
    }

    /// An error of a request to the data that cannot be executed.
    pub fn data_error(status: StatusCode, form: Form, code: &str, message: &str) -> Self {
        Self::new(status, form.as_str(), error_body(code, message, ",\"extensions\":{\"schemas\":[]}}\n"))
    }

    /// A page that tells nothing but an error.
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

    /// A page that tells nothing but a status.
    pub fn status_page(status: StatusCode) -> Self {
        Self::error_page(status, status.canonical_reason().unwrap_or_default())
    }

    /// There is nothing at that path.
    pub fn no_such_path(method: &Method, path: &str) -> Self {
        let path = encode(path);
        Self::error_page(StatusCode::NOT_FOUND, &format!("Cannot {method} {path}"))
    }

    /// A page for browsers, or a part of one. Scripts and styles come from here and from nowhere else.
    pub fn page(media_type: &'static str, body: &'static str) -> Self {
        const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                              img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        Self::new(StatusCode::OK, media_type, body)
            .header(CONTENT_SECURITY_POLICY, POLICY)
            .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
            .header(CACHE_CONTROL, "no-cache")
    }

    /// It may work later.
    pub fn later(message: impl Into<String>) -> Self {
        Self::text(StatusCode::SERVICE_UNAVAILABLE, message).header(RETRY_AFTER, "1")
    }

    /// Elsewhere, told in the form that the client likes.
    pub fn found(location: &'static str, accept: Option<&str>) -> Self {
        let likes = |word: &str| accept.is_none_or(|accept| accept.contains(word) || accept.contains("*/*"));
        let told = if accept.is_some_and(|accept| accept.contains("text/html")) {
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
        told.untagged().header(LOCATION, location).header(VARY, "Accept")
    }

    /// Which methods there are.
    pub fn options(methods: &'static str) -> Self {
        let told = Self::new(StatusCode::OK, "text/plain", methods).untagged();
        told.allowing(methods).header(X_CONTENT_TYPE_OPTIONS, "nosniff")
    }

    /// Not with this method.
    #[must_use]
    pub fn allowing(self, methods: &'static str) -> Self {
        self.header(ALLOW, methods)
    }

    /// It needs a token.
    pub fn unauthorized() -> Self {
        Self::text(StatusCode::UNAUTHORIZED, "Unauthorized").header(WWW_AUTHENTICATE, "Bearer")
    }

    /// With what tells that its bytes are on their way.
    #[must_use]
    pub fn in_flight(mut self, flight: Flight) -> Self {
        self.flight = Some(flight);
        self
    }

    fn untagged(mut self) -> Self {
        self.is_tagged = false;
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The response to whoever sent these headers.
    pub async fn respond(self, method: &Method, asked: &HeaderMap) -> Response<Sent> {
        let Self { status, headers, body, is_tagged, flight } = self;
        let mut response = Response::new(Sent::default());
        *response.status_mut() = status;
        for (name, value) in headers {
            response.headers_mut().insert(name, value);
        }
        let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
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
            Some(accepted) if answered.body.len() >= LEAST => Coding::of(accepted),
            _ => Coding::Identity,
        };
        let answered = if answered.body.len() > LARGE {
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
        if answered.body.len() >= LEAST {
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if is_tagged {
            let tag = answered.tag();
            response.headers_mut().insert(ETAG, HeaderValue::from_str(tag.as_str()).expect("a tag is plain"));
            if known.is_some_and(|known| tag.is_named(known)) {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response.headers_mut().remove(CONTENT_TYPE);
                return response;
            }
        }
        if let Some(word) = coding.as_str() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(word));
        }
        let bytes = answered.encoded(coding);
        *response.body_mut() = Sent { bytes, flight, busy: None };
        response
    }
}

/// The path with what does not belong into one in sequences of `%`.
fn encode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    for (at, byte) in bytes.iter().enumerate() {
        // One that ends too early is left as it is.
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

/// An error in JSON, with what follows the list of them.
fn error_body(code: &str, message: &str, end: &str) -> Vec<u8> {
    let mut body = b"{\"errors\":[{\"message\":".to_vec();
    JavaScript(&mut body).str(message);
    body.extend_from_slice(b",\"extensions\":{\"code\":");
    JavaScript(&mut body).str(code);
    body.extend_from_slice(b"}}]");
    body.extend_from_slice(end.as_bytes());
    body
}

/// The text without what a page would take for its own, and with unsafe characters as escapes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in shown_lines(text).chars() {
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

/// An answer of this many bytes is worth a call of the [release hook](crate::Settings::released).
const WORTH_RELEASING: usize = 1 << 20;

/// How many bytes are on their way to clients.
#[derive(Clone, Default)]
pub struct InFlight {
    bytes: Arc<AtomicUsize>,
    released: Option<ReleaseHook>,
}

impl InFlight {
    /// None yet; `released` is called when a large answer is gone.
    pub fn new(released: Option<ReleaseHook>) -> Self {
        Self { bytes: Arc::default(), released }
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// So many more, until what is returned is dropped.
    pub fn begin(&self, bytes: usize) -> Flight {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Flight { all: self.clone(), bytes }
    }
}

/// Bytes that are on their way until this is dropped.
pub struct Flight {
    all: InFlight,
    bytes: usize,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(released) = self.all.released.as_ref().filter(|_| self.bytes >= WORTH_RELEASING) {
            released();
        }
    }
}

/// A body, handed out in pieces so that it is known when it is gone.
#[derive(Default)]
pub struct Sent {
    bytes: Bytes,
    flight: Option<Flight>,
    busy: Option<Busy>,
}

impl Sent {
    /// Its connection is busy until it is gone.
    pub fn keep_busy(&mut self, busy: Busy) {
        self.busy = Some(busy);
    }
}

impl Body for Sent {
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
        let length = self.bytes.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
