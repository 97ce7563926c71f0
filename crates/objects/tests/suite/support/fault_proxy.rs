//! A proxy in front of a real API server that injects random faults: it refuses requests, and loses requests
//! and responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use qontract_testkit::SeededRng;

/// Fault rates, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultRates {
    /// Responds with 409 without forwarding the request.
    pub conflicts: usize,
    /// Responds with 429 and `retry-after: 1`.
    pub throttles: usize,
    /// Responds with 500 without forwarding the request.
    pub failures: usize,
    /// Forwards the request, and drops the response.
    pub lost_responses: usize,
}

/// The proxy.
pub struct FaultProxy {
    /// The address.
    pub address: SocketAddr,
    counts: Arc<Mutex<RequestCounts>>,
}

/// Request counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestCounts {
    /// Reads.
    pub reads: usize,
    /// Writes.
    pub writes: usize,
    /// Requests with an injected fault.
    pub faults: usize,
}

struct Inner {
    server: String,
    client: reqwest::Client,
    rates: FaultRates,
    chance: Mutex<SeededRng>,
    counts: Arc<Mutex<RequestCounts>>,
}

impl FaultProxy {
    /// Starts a proxy in front of `server`, in the current async runtime.
    pub async fn start(server: &str, ca: &[u8], rates: FaultRates, seed: u64) -> Self {
        let ca = reqwest::Certificate::from_pem(ca).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([ca]).no_proxy().build().unwrap();
        let counts = Arc::<Mutex<RequestCounts>>::default();
        let inner = Inner {
            server: server.trim_end_matches('/').to_owned(),
            client,
            rates,
            chance: Mutex::new(SeededRng::new(seed)),
            counts: Arc::clone(&counts),
        };
        let router = Router::new().fallback(forward).with_state(Arc::new(inner));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, counts }
    }

    /// The counts so far.
    pub fn counts(&self) -> RequestCounts {
        *self.counts.lock().unwrap()
    }
}

async fn forward(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let is_write = request.method() != axum::http::Method::GET;
    let draw = inner.chance.lock().unwrap().below(100);
    let FaultRates { conflicts, throttles, failures, lost_responses } = inner.rates;
    let mut bound = 0;
    let mut within = |share: usize| {
        bound += share;
        draw < bound
    };
    let refusal = if within(conflicts) && is_write {
        Some(refused(StatusCode::CONFLICT, "Conflict", "the object has been modified"))
    } else if within(throttles) {
        Some(refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "slow down"))
    } else if within(failures) {
        Some(refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "etcd is away"))
    } else {
        None
    };
    let loses = within(lost_responses);
    {
        let mut counts = inner.counts.lock().unwrap();
        counts.faults += usize::from(refusal.is_some() || loses);
        if is_write {
            counts.writes += 1;
        } else {
            counts.reads += 1;
        }
    }
    if let Some(refusal) = refusal {
        return refusal;
    }
    let answer = inner.forward(request).await;
    if loses {
        return refused(StatusCode::BAD_GATEWAY, "", "the response was lost");
    }
    answer.unwrap_or_else(|_| refused(StatusCode::BAD_GATEWAY, "", "the server is away"))
}

impl Inner {
    async fn forward(&self, request: Request) -> Result<Response, reqwest::Error> {
        let (parts, body) = request.into_parts();
        let body: Bytes = to_bytes(body, 64 << 20).await.unwrap_or_default();
        let url = format!("{}{}", self.server, parts.uri);
        let mut forwarded = self.client.request(parts.method, url).body(body);
        for name in ["authorization", "content-type", "accept"] {
            if let Some(value) = parts.headers.get(name) {
                forwarded = forwarded.header(name, value);
            }
        }
        let answer = forwarded.send().await?;
        let (status, kind) = (answer.status(), answer.headers().get("content-type").cloned());
        let mut response = Response::new(Body::from(answer.bytes().await?));
        *response.status_mut() = status;
        if let Some(kind) = kind {
            response.headers_mut().insert("content-type", kind);
        }
        Ok(response)
    }
}

fn refused(status: StatusCode, reason: &str, message: &str) -> Response {
    let body = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": message, "code": status.as_u16()});
    let headers = [("content-type", "application/json"), ("retry-after", "1")];
    let headers = if status == StatusCode::TOO_MANY_REQUESTS { &headers[..] } else { &headers[..1] };
    let mut response = (status, body.to_string()).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}
