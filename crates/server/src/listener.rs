//! A listener for small services beside the data server, such as health and metrics, with the same limits on its clients.
//!
//! **Invariant:** a new connection is answered however many others are open: the connection that has waited longest for its client is closed in its favour.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::admission::{HostPolicy, head_refusal};
use crate::connection::{Connection, Connections, Patient};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 256;

/// Maximum time for the head of a request, and for a client that sends nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for which a client may read nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// Answers requests by `service` until the future is dropped. Requests that name another host than `hosts` allows do not reach it.
pub async fn serve_limited<S, B>(listener: TcpListener, hosts: HostPolicy, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (connections, hosts) = (Arc::new(Connections::new(MAX_CONNECTIONS)), Arc::new(hosts));
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connect(stream, &connections, &hosts, service.clone());
        } else {
            // The process is out of file descriptors, or the client is gone.
            connections.close_oldest_waiting();
            tokio::time::sleep(ACCEPT_RETRY).await;
        }
    }
}

fn connect<S, B>(stream: TcpStream, connections: &Arc<Connections>, hosts: &Arc<HostPolicy>, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // No connection is ever busy, so one can always give way.
    let Some(open) = connections.open() else { return };
    let answer = service_fn({
        let (connections, hosts) = (Arc::clone(connections), Arc::clone(hosts));
        let connection: Arc<Connection> = Arc::clone(&open.connection);
        move |request: Request<Incoming>| {
            connections.wait_for_client(&connection);
            respond(Arc::clone(&hosts), service.clone(), request)
        }
    });
    let stream = TokioIo::new(Patient::new(stream, WRITE_TIMEOUT));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(stream, answer);
    tokio::spawn(async move {
        tokio::select! {
            // A connection that breaks is not an error of the server.
            _ = serving => {}
            () = open.connection.must_close() => {}
        }
    });
}

async fn respond<S, B>(
    hosts: Arc<HostPolicy>,
    service: S,
    request: Request<Incoming>,
) -> Result<Response<Either<Full<Bytes>, B>>, Infallible>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    let (parts, body) = request.into_parts();
    if let Some((status, text)) = head_refusal(&hosts, &parts) {
        let mut response = Response::new(Either::Left(Full::from(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        return Ok(response);
    }
    Ok(service.call(Request::from_parts(parts, body)).await?.map(Either::Right))
}
