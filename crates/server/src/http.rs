//! The accept loop for HTTP connections. The data server and the small services next to it use this loop, each with
//! its own responder and limits.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use crate::connection::{Connection, Connections, StallTimeout};

/// The delay after a failure to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Responds to requests.
pub trait Responder: Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Responds to a request that arrived on a connection.
    fn respond(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The limits for clients.
pub struct ClientLimits {
    /// The open connections.
    pub connections: Arc<Connections>,
    /// Timeout for receiving a request head, and for idle connections.
    pub head_timeout: Duration,
    /// Maximum time that a client may take without reading any of the response.
    pub write_timeout: Duration,
}

/// Accepts connections until `stop` completes; the returned value shuts down the connections that are still open.
pub async fn accept<R: Responder>(
    listener: TcpListener,
    limits: &ClientLimits,
    responder: &Arc<R>,
    stop: impl Future<Output = ()>,
) -> GracefulShutdown {
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return graceful,
        };
        if let Ok((stream, _)) = accepted {
            connect(stream, limits, responder, &graceful);
        } else {
            // The process has too many open files, or the client closed the connection immediately. To free a file
            // descriptor, a waiting connection is closed; the descriptor is freed as soon as that connection is
            // dropped.
            limits.connections.close_oldest_waiting();
            tokio::time::sleep(ACCEPT_RETRY).await;
        }
    }
}

fn connect<R: Responder>(
    stream: TcpStream,
    limits: &ClientLimits,
    responder: &Arc<R>,
    graceful: &GracefulShutdown,
) {
    // If all connections, including the reserve, are busy, the new connection is closed, and the client can retry.
    let Some(open) = limits.connections.open() else { return };
    // A response is written as a whole, so Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(StallTimeout::new(stream, limits.write_timeout));
    let (connection, responder) = (Arc::clone(&open.connection), Arc::clone(responder));
    let service = service_fn(move |request| {
        let response = Arc::clone(&responder).respond(Arc::clone(&connection), request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(stream, service);
    let serving = graceful.watch(serving);
    tokio::spawn(async move {
        tokio::select! {
            // The result is ignored, because a broken connection is not an error of the server.
            _ = serving => {}
            () = open.connection.must_close() => {}
        }
    });
}
