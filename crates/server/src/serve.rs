//! From the socket to the reply: listens, holds connections to their limits, finds who answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, EXPECT, HOST};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use qontract_bundle::Bundle;
use qontract_bundle::json::JavaScript;
use qontract_graphql::Engine;
use qontract_telemetry::served::{Held, Request as Label, ServerMetrics};
use tokio::net::{TcpListener, TcpStream};

use crate::answers::Answers;
use crate::bundles::{Bundles, Missing, chain, now};
use crate::connection::{Connection, Connections, Patient};
use crate::graphql::header;
use crate::persisted::{self, Persisted};
use crate::reply::{InFlight, JSON, Reply, Sent, escape};
use crate::route::{Route, Which};
use crate::token::Token;
use crate::turns::Turns;
use crate::{body, diff, graphql, lease, page};

/// What a server allows.
#[derive(Clone)]
pub struct Settings {
    /// What `Authorization` must be; without one, anybody may ask.
    pub token: Option<Token>,
    /// Bytes of answers that are remembered.
    pub answers: usize,
    /// Bytes of answers that may be on their way.
    pub in_flight: usize,
    /// Connections.
    pub connections: usize,
    /// How many large answers are made at a time.
    pub at_a_time: usize,
    /// How many of them wait.
    pub waiting: usize,
    /// How long one of them may take.
    pub query_time: Duration,
    /// Bytes of a request's body.
    pub body: usize,
    /// How long a client may take to send the head of a request, or to send nothing at all.
    pub head_time: Duration,
    /// How long a client may take to send the body.
    pub body_time: Duration,
    /// How long a client may read nothing.
    pub patience: Duration,
    /// How long requests have to end when the server does.
    pub wind_down: Duration,
    /// Who hears of every request that was answered.
    pub heard: Option<Hearer>,
}

/// Hears of requests.
pub type Hearer = Arc<dyn Fn(&Heard<'_>) + Send + Sync>;

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard<'r> {
    /// Its method.
    pub method: &'r str,
    /// Its path, as it was sent; what comes behind it is nobody's business.
    pub path: &'r str,
    /// The status of the answer.
    pub status: u16,
    /// How long it took to make it.
    pub took: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            answers: 64 << 20,
            in_flight: 1 << 30,
            connections: 1024,
            at_a_time: std::thread::available_parallelism().map_or(2, usize::from),
            waiting: 64,
            query_time: Duration::from_mins(1),
            body: 1 << 20,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            patience: Duration::from_secs(30),
            wind_down: Duration::from_secs(10),
            heard: None,
        }
    }
}

/// What all requests share.
pub(crate) struct Shared {
    pub settings: Settings,
    pub bundles: Arc<Bundles>,
    pub answers: Answers,
    pub persisted: Persisted,
    pub turns: Turns,
    pub in_flight: InFlight,
    pub metrics: Arc<ServerMetrics>,
    connections: Arc<Connections>,
    /// Numbers that nobody can guess.
    new_id: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Shared {
    pub fn new_id(&self) -> u64 {
        (self.new_id)()
    }
}

/// A server that is not yet listening.
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server of these bundles. `new_id` gives the names of leases.
    pub fn new(
        settings: Settings,
        bundles: Arc<Bundles>,
        metrics: Arc<ServerMetrics>,
        new_id: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            answers: Answers::new(settings.answers),
            persisted: Persisted::new(persisted::MOST),
            turns: Turns::new(settings.at_a_time, settings.waiting),
            in_flight: InFlight::default(),
            connections: Arc::new(Connections::new(settings.connections)),
            new_id: Box::new(new_id),
            settings,
            bundles,
            metrics,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Answers until `stop`; then what is under way may end.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            if let Ok((stream, _)) = accepted {
                self.connect(stream, &graceful);
            } else {
                // Too many open files, or a client that was gone before it was there: it gets better, but not at once.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        drop(listener);
        // What has not ended by then ends with the process.
        let _ = tokio::time::timeout(self.shared.settings.wind_down, graceful.shutdown()).await;
    }

    fn connect(&self, stream: TcpStream, graceful: &GracefulShutdown) {
        let shared = Arc::clone(&self.shared);
        // Everybody is busy: whoever comes now is not heard at all, which clients try again.
        let Some(open) = shared.connections.open() else { return };
        // An answer is written as a whole: there is nothing to wait for.
        let _ = stream.set_nodelay(true);
        let stream = TokioIo::new(Patient::new(stream, shared.settings.patience));
        let connection = Arc::clone(&open.connection);
        let service = service_fn({
            let shared = Arc::clone(&shared);
            move |request| respond(Arc::clone(&shared), Arc::clone(&connection), request)
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(shared.settings.head_time)
            .max_buf_size(64 << 10)
            .serve_connection(stream, service);
        let serving = graceful.watch(serving);
        tokio::spawn(async move {
            tokio::select! {
                // A connection that breaks is the client's affair.
                _ = serving => {}
                () = open.connection.must_close() => {}
            }
        });
    }
}

async fn respond(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Sent>, std::convert::Infallible> {
    let busy = shared.connections.begin(&connection);
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let route = Route::of(parts.uri.path());
    let reply = answer(&shared, &route, &parts, body).await;
    let label = Label {
        status_code: match reply.status().as_u16() / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        },
        method: match parts.method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "HEAD" => "HEAD",
            "PUT" => "PUT",
            "DELETE" => "DELETE",
            "OPTIONS" => "OPTIONS",
            "PATCH" => "PATCH",
            _ => "other",
        },
        path: route.label(),
    };
    let mut response = reply.respond(&parts.method, &parts.headers).await;
    response.body_mut().keep_busy(busy);
    let took = begun.elapsed();
    shared.metrics.answered(&label, took.as_secs_f64());
    if let Some(heard) = &shared.settings.heard {
        let (method, path, status) = (parts.method.as_str(), parts.uri.path(), response.status().as_u16());
        heard(&Heard { method, path, status, took });
    }
    Ok(response)
}

/// Who may ask, and who answers.
async fn answer(shared: &Shared, route: &Route, parts: &Parts, body: Incoming) -> Reply {
    let (method, path) = (&parts.method, parts.uri.path());
    let is_read = method == Method::GET || method == Method::HEAD;
    if let Some(status) = unacceptable(parts) {
        return Reply::empty(status);
    }
    // What tells nothing about the data needs no token.
    match route {
        Route::Health if is_read => return Reply::empty(StatusCode::OK),
        Route::Root if is_read => return Reply::found("/graphql", header(&parts.headers, ACCEPT)),
        Route::Page(name) if is_read => return page::part(name, method, path),
        Route::Graphql(Which::Latest) if graphql::wants_page(parts) => return page::page(),
        // Whether there is such a bundle is told to those who have the token.
        Route::Graphql(_) if graphql::wants_page(parts) && shared.settings.token.is_some() => {
            return page::page();
        }
        _ => {}
    }
    if let Some(token) = &shared.settings.token
        && !parts.headers.get(AUTHORIZATION).is_some_and(|shown| token.is(shown.as_bytes()))
    {
        return Reply::unauthorized();
    }
    // What says that it is JSON has to be, wherever it is sent.
    let content_type = header(&parts.headers, CONTENT_TYPE);
    let body = match body::read(&shared.settings, &parts.headers, body).await {
        Ok(bytes) => match body::json(content_type, bytes).await {
            Ok((bytes, value)) => (bytes, value.filter(|_| matches!(route, Route::Graphql(_)))),
            Err(refusal) => return graphql::refuse(refusal, None),
        },
        Err(refusal) => return graphql::refuse(refusal, None),
    };
    match route {
        Route::Metrics => metrics(shared),
        Route::Sha if is_read => {
            of_bundle(shared, &Which::Latest, |bundle| Reply::text(StatusCode::OK, bundle.sha().to_string()))
                .await
        }
        Route::Commit(which) if is_read => {
            of_bundle(shared, which, |bundle| Reply::text(StatusCode::OK, escape(&bundle.stamp().commit)))
                .await
        }
        Route::CommitInfo(which) if is_read => of_bundle(shared, which, commit_info).await,
        Route::Held if is_read => held(shared),
        Route::Reload if method == Method::POST => reload(shared).await,
        Route::Diff { base, head, file } if is_read => diff::answer(shared, base, head, file.as_ref()).await,
        Route::Graphql(which) => match find(shared, which).await {
            Ok(engine) => {
                shared.bundles.shelf().found(&engine, now());
                graphql::answer(shared, &engine, parts, body.1.as_ref()).await
            }
            Err(Missing::Unknown) => Reply::no_such_path(method, path),
            Err(Missing::Later(why)) => Reply::later(why),
        },
        Route::Lease(name) => lease::answer(shared, method, name, &body.0).await,
        Route::Malformed => Reply::status_page(StatusCode::BAD_REQUEST),
        _ => match route.methods().filter(|_| method == Method::OPTIONS) {
            Some(methods) => Reply::options(methods),
            None => Reply::no_such_path(method, path),
        },
    }
}

/// What the rules of HTTP refuse, whatever is asked.
fn unacceptable(parts: &Parts) -> Option<StatusCode> {
    let needs_host = parts.version == Version::HTTP_11 && parts.uri.authority().is_none();
    if needs_host && !parts.headers.contains_key(HOST) {
        return Some(StatusCode::BAD_REQUEST);
    }
    let expectation = header(&parts.headers, EXPECT)?;
    (!expectation.eq_ignore_ascii_case("100-continue")).then_some(StatusCode::EXPECTATION_FAILED)
}

pub(crate) async fn find(shared: &Shared, which: &Which) -> Result<Arc<Engine>, Missing> {
    let found = shared.bundles.find(which).await;
    match (which, found) {
        (Which::Latest, Err(Missing::Unknown)) => Err(Missing::Later("No loaded data.".to_owned())),
        (_, found) => found,
    }
}

/// What a bundle tells about itself.
async fn of_bundle(shared: &Shared, which: &Which, tell: impl FnOnce(&Bundle) -> Reply) -> Reply {
    match find(shared, which).await {
        Ok(engine) => tell(engine.bundle()),
        Err(missing) => not_found(which, missing),
    }
}

pub(crate) fn not_found(which: &Which, missing: Missing) -> Reply {
    match (which, missing) {
        (_, Missing::Later(why)) => Reply::later(why),
        (Which::Named(name), Missing::Unknown) => {
            Reply::text(StatusCode::NOT_FOUND, format!("Bundle {} not found", escape(name)))
        }
        (Which::Latest, Missing::Unknown) => Reply::later("No loaded data."),
    }
}

fn commit_info(bundle: &Bundle) -> Reply {
    let stamp = bundle.stamp();
    let mut body = b"{\"commit\":".to_vec();
    JavaScript(&mut body).str(&stamp.commit);
    body.extend_from_slice(b",\"timestamp\":");
    JavaScript(&mut body).str(&stamp.timestamp);
    body.push(b'}');
    Reply::new(StatusCode::OK, JSON, body)
}

/// What is held, in the words that clients know.
fn held(shared: &Shared) -> Reply {
    let entries = shared.bundles.shelf().entries();
    let each =
        |one: &dyn Fn(&crate::shelf::Entry) -> String| entries.iter().map(one).collect::<Vec<_>>().join(",");
    let cached = each(&|entry| format!("{{\"sha\":\"{}\",\"expiration\":{}}}", entry.sha, entry.expires));
    let shas = each(&|entry| format!("\"{}\"", entry.sha));
    let text = format!(
        "{{\"bundleCache\":[{cached}],\"bundles\":[{shas}],\"routerStack\":{},\"searchableFields\":[{shas}]}}",
        entries.len()
    );
    Reply::text(StatusCode::OK, text)
}

fn metrics(shared: &Shared) -> Reply {
    let (bundles, leases, latest) = {
        let shelf = shared.bundles.shelf();
        (shelf.entries().len(), shelf.leases(now()), shelf.latest().cloned())
    };
    let held = Held {
        bundles,
        leases,
        connections: shared.connections.count(),
        answer_bytes: shared.answers.cost(),
    };
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = match latest {
        Some(latest) => shared.metrics.print(held, latest.index().schemas()),
        None => shared.metrics.print(held, []),
    };
    Reply::new(StatusCode::OK, media_type, text)
}

async fn reload(shared: &Shared) -> Reply {
    match shared.bundles.reload().await {
        Ok(_) => Reply::empty(StatusCode::OK),
        Err(error) => {
            let text = format!("error parsing bundle, not replacing: {}", escape(&chain(&error)));
            Reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}
