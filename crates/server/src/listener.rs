//! Small read-only services next to the data server, such as health and metrics, on the same HTTP stack with
//! the same limits on clients.
//!
//! **Invariant:** a new connection is served regardless of the number of open connections: if necessary, the
//! connection that has waited longest for its client is closed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;

use crate::admission::{HostPolicy, head_refusal};
use crate::connection::{Connection, Connections};
use crate::http::{ClientLimits, Responder, accept};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 256;

/// Timeout for receiving a request head, and for idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time that a client may take without reading any of the response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The media type of plain text.
const TEXT: &str = "text/plain; charset=utf-8";

/// A page of a small service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body.
    pub media_type: &'static str,
    /// The response body.
    pub body: String,
}

impl Page {
    /// Creates a page of plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, media_type: TEXT, body: body.into() }
    }
}

/// A service that serves pages by path.
pub trait Pages: Send + Sync + 'static {
    /// The page at this path, if it exists.
    fn page(&self, path: &str) -> Option<Page>;
}

/// Serves pages until the future is dropped. Requests for a host that `hosts` does not allow are refused.
pub async fn serve_pages(listener: TcpListener, hosts: HostPolicy, pages: impl Pages) {
    let connections = Arc::new(Connections::new(MAX_CONNECTIONS));
    let limits = ClientLimits {
        connections: Arc::clone(&connections),
        head_timeout: HEAD_TIMEOUT,
        write_timeout: WRITE_TIMEOUT,
    };
    let service = Arc::new(PageService { connections, hosts, pages });
    accept(listener, &limits, &service, std::future::pending()).await;
}

/// Responds with pages. Its connections are never marked as busy, so that one of them can always be closed in favour
/// of a new connection.
struct PageService<P> {
    connections: Arc<Connections>,
    hosts: HostPolicy,
    pages: P,
}

impl<P: Pages> Responder for PageService<P> {
    type Body = Full<Bytes>;

    async fn respond(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        self.connections.mark_waiting_for_body(&connection);
        let (parts, _) = request.into_parts();
        if let Some((status, text)) = head_refusal(&self.hosts, &parts) {
            return response(Page::text(status.as_u16(), text));
        }
        let Some(page) = self.pages.page(parts.uri.path()) else {
            return empty(StatusCode::NOT_FOUND);
        };
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let mut refusal = empty(StatusCode::METHOD_NOT_ALLOWED);
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET,HEAD"));
            return refusal;
        }
        response(page)
    }
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page.body));
    *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.media_type));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
