//! The server: accepts connections within the limits and dispatches requests by route.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use qontract_bundle::Bundle;
use qontract_bundle::json::JavaScriptWriter;
use qontract_concurrency::Limiter;
use qontract_diagnostics::error_chain;
use qontract_graphql::Engine;
use qontract_telemetry::server_metrics::{RequestLabels as Label, ResourceCounts, ServerMetrics};
use tokio::net::TcpListener;

use crate::admission::refusal;
use crate::bundles::{Bundles, Unavailable, now};
use crate::connection::{Admission, Connection, Connections};
use crate::graphql::header;
use crate::http::{ClientLimits, Responder, accept};
use crate::persisted_queries::{self, PersistedQueries};
use crate::reply::{EXTENSIONS_HEADER, InFlight, JSON, Reply, ResponseBody, escape};
use crate::response_cache::{Evaluations, LiveResponses, ResponseCache};
use crate::route::{RequestedBundle, Route};
use crate::settings::{AccessLogEntry, Settings};
use crate::{analysis, batch, body, diff, graphql, lease, page};

/// The state that all requests share.
pub(crate) struct ServerState {
    pub settings: Settings,
    pub bundles: Arc<Bundles>,
    pub answers: ResponseCache,
    pub evaluations: Evaluations,
    pub live: LiveResponses,
    pub persisted: PersistedQueries,
    pub queries: Limiter,
    pub in_flight: InFlight,
    pub metrics: Arc<ServerMetrics>,
    connections: Arc<Connections>,
    /// Generates unguessable ids.
    new_id: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl ServerState {
    pub fn new_id(&self) -> u64 {
        (self.new_id)()
    }
}

/// A server that is not yet listening.
pub struct Server {
    shared: Arc<ServerState>,
}

impl Server {
    /// Creates a server for these bundles. `new_id` generates unguessable lease ids.
    pub fn new(
        settings: Settings,
        bundles: Arc<Bundles>,
        metrics: Arc<ServerMetrics>,
        new_id: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let shared = ServerState {
            answers: ResponseCache::new(settings.cache_bytes),
            evaluations: Evaluations::default(),
            live: LiveResponses::default(),
            persisted: PersistedQueries::new(persisted_queries::MAX_BYTES),
            queries: Limiter::new(settings.max_concurrent_queries)
                .with_max_waiting(settings.max_queued_queries),
            in_flight: InFlight::new(settings.on_release.clone()),
            connections: Arc::new(Connections::new(settings.max_connections)),
            new_id: Box::new(new_id),
            settings,
            bundles,
            metrics,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Serves until `stop` completes; requests in progress then get the shutdown timeout to finish.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let Self { shared } = self;
        let limits = ClientLimits {
            connections: Arc::clone(&shared.connections),
            head_timeout: shared.settings.head_timeout,
            write_timeout: shared.settings.write_timeout,
        };
        let graceful = accept(listener, &limits, &shared, stop).await;
        // Requests that have not finished by the timeout are aborted when the process exits.
        let _ = tokio::time::timeout(shared.settings.shutdown_timeout, graceful.shutdown()).await;
    }
}

impl Responder for ServerState {
    type Body = ResponseBody;

    async fn respond(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        respond(self, connection, request).await
    }
}

async fn respond(
    shared: Arc<ServerState>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let route = Route::of(parts.uri.path());
    let early = early_answer(&shared, connection.admission, &route, &parts);
    // While the body arrives, the connection waits for its client and may be closed in favour of another
    // connection.
    shared.connections.mark_waiting_for_body(&connection);
    let received = if let Some(reply) = early {
        Err(reply)
    } else {
        let received = body::read(&shared.settings, &parts.headers, body).await;
        received.map_err(|refusal| graphql::refuse(refusal, None))
    };
    let busy = shared.connections.begin(&connection);
    let reply = match received {
        Ok(body) => answer(&shared, &route, &parts, body).await,
        Err(reply) => reply,
    };
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
    if connection.admission == Admission::HealthOnly {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.body_mut().keep_busy(busy);
    let took = begun.elapsed();
    shared.metrics.observe_request(&label, took.as_secs_f64());
    if let Some(access_log) = &shared.settings.access_log {
        let (method, path, status) = (parts.method.as_str(), parts.uri.path(), response.status().as_u16());
        access_log(&AccessLogEntry { method, path, status, took });
    }
    response
}

/// The reply to a request that can be answered without its body; `None` if the body is needed.
fn early_answer(shared: &ServerState, admission: Admission, route: &Route, parts: &Parts) -> Option<Reply> {
    let (method, path) = (&parts.method, parts.uri.path());
    let is_read = method == Method::GET || method == Method::HEAD;
    if let Some(reply) = refusal(&shared.settings.hosts, route, parts) {
        return Some(reply);
    }
    // Routes that reveal nothing about the data need no token.
    match route {
        Route::Health if is_read => return Some(health(shared)),
        _ if admission == Admission::HealthOnly => {
            return Some(Reply::retry_later("All connections are busy."));
        }
        Route::Root if is_read => return Some(Reply::found("/graphql", header(&parts.headers, ACCEPT))),
        Route::Page(name) if is_read => return Some(page::part(name, method, path)),
        Route::Graphql(RequestedBundle::Latest) if graphql::wants_page(parts) => return Some(page::page()),
        // Without the token, the reply must not reveal whether a bundle exists.
        Route::Graphql(_) if graphql::wants_page(parts) && shared.settings.token.is_some() => {
            return Some(page::page());
        }
        _ => {}
    }
    let token = shared.settings.token.as_ref()?;
    let is_known = parts.headers.get(AUTHORIZATION).is_some_and(|shown| token.matches(shown.as_bytes()));
    (!is_known).then(Reply::unauthorized)
}

/// The reply to a health check: empty, or the reason why the server is degraded. The status is always 200, because a
/// restart would not help.
fn health(shared: &ServerState) -> Reply {
    match shared.settings.degradation.as_ref().and_then(|degradation| degradation()) {
        Some(reason) => Reply::text(StatusCode::OK, format!("degraded: {reason}\n")),
        None => Reply::empty(StatusCode::OK),
    }
}

/// Dispatches a complete request to the handler of its route.
async fn answer(shared: &ServerState, route: &Route, parts: &Parts, body: Bytes) -> Reply {
    let (method, path) = (&parts.method, parts.uri.path());
    let is_read = method == Method::GET || method == Method::HEAD;
    // On every route, a body that is declared as JSON must be valid.
    let body = match body::json(header(&parts.headers, CONTENT_TYPE), body).await {
        Ok((bytes, value)) => (bytes, value.filter(|_| matches!(route, Route::Graphql(_)))),
        Err(refusal) => return graphql::refuse(refusal, None),
    };
    match route {
        Route::Metrics => metrics(shared),
        Route::Sha if is_read => {
            of_bundle(shared, &RequestedBundle::Latest, |bundle| {
                Reply::text(StatusCode::OK, bundle.sha().to_string())
            })
            .await
        }
        Route::Commit(which) if is_read => {
            of_bundle(shared, which, |bundle| Reply::text(StatusCode::OK, escape(&bundle.stamp().commit)))
                .await
        }
        Route::CommitInfo(which) if is_read => {
            let reply = of_bundle(shared, which, commit_info).await;
            if parts.headers.contains_key(EXTENSIONS_HEADER) {
                reply.extensions(extensions(shared))
            } else {
                reply
            }
        }
        Route::Cache if is_read => cache_listing(shared),
        Route::Reload if method == Method::POST => reload(shared).await,
        Route::Diff { base, head, file } if is_read => diff::answer(shared, base, head, file.as_ref()).await,
        Route::Graphql(which) => match find(shared, which).await {
            Ok(engine) => {
                shared.bundles.registry().touch_or_insert(&engine, now());
                graphql::answer(shared, &engine, parts, body.1.as_ref()).await
            }
            Err(Unavailable::NotFound) => Reply::no_such_path(method, path),
            Err(Unavailable::RetryLater(why)) => Reply::retry_later(why),
        },
        Route::Batch(sha) => batch::answer(shared, method, sha, &body.0).await,
        Route::Compare { base, head } if shared.settings.analysis.is_some() => {
            analysis::compare(shared, method, [base, head], body.0).await
        }
        Route::Locate(sha) if shared.settings.analysis.is_some() => {
            analysis::locate(shared, method, sha, body.0).await
        }
        Route::Lease(name) => lease::answer(shared, method, name, &body.0).await,
        Route::Malformed => Reply::status_page(StatusCode::BAD_REQUEST),
        _ => match route.methods().filter(|_| method == Method::OPTIONS) {
            Some(methods) => Reply::options(methods),
            None => Reply::no_such_path(method, path),
        },
    }
}

pub(crate) async fn find(shared: &ServerState, which: &RequestedBundle) -> Result<Arc<Engine>, Unavailable> {
    let result = shared.bundles.find(which).await;
    match (which, result) {
        (RequestedBundle::Latest, Err(Unavailable::NotFound)) => {
            Err(Unavailable::RetryLater("No loaded data.".to_owned()))
        }
        (_, result) => result,
    }
}

/// Replies with a property of a bundle.
async fn of_bundle(
    shared: &ServerState,
    which: &RequestedBundle,
    reply_for: impl FnOnce(&Bundle) -> Reply,
) -> Reply {
    match find(shared, which).await {
        Ok(engine) => reply_for(engine.bundle()),
        Err(missing) => not_found(which, missing),
    }
}

pub(crate) fn not_found(which: &RequestedBundle, missing: Unavailable) -> Reply {
    match (which, missing) {
        (_, Unavailable::RetryLater(why)) => Reply::retry_later(why),
        (RequestedBundle::Named(name), Unavailable::NotFound) => {
            Reply::text(StatusCode::NOT_FOUND, format!("Bundle {} not found", escape(name)))
        }
        (RequestedBundle::Latest, Unavailable::NotFound) => Reply::retry_later("No loaded data."),
    }
}

/// The names of the extensions that this server supports.
fn extensions(shared: &ServerState) -> &'static str {
    if shared.settings.analysis.is_some() { "query batch compare locate" } else { "query batch" }
}

fn commit_info(bundle: &Bundle) -> Reply {
    let stamp = bundle.stamp();
    let mut body = b"{\"commit\":".to_vec();
    JavaScriptWriter(&mut body).str(&stamp.commit);
    body.extend_from_slice(b",\"timestamp\":");
    JavaScriptWriter(&mut body).str(&stamp.timestamp);
    body.push(b'}');
    Reply::new(StatusCode::OK, JSON, body)
}

/// The reply with the loaded bundles, in the format of qontract-server.
fn cache_listing(shared: &ServerState) -> Reply {
    let entries = shared.bundles.registry().entries();
    let each = |one: &dyn Fn(&crate::registry::CachedBundle) -> String| {
        entries.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let cached = each(&|entry| format!("{{\"sha\":\"{}\",\"expiration\":{}}}", entry.sha, entry.expires));
    let shas = each(&|entry| format!("\"{}\"", entry.sha));
    let text = format!(
        "{{\"bundleCache\":[{cached}],\"bundles\":[{shas}],\"routerStack\":{},\"searchableFields\":[{shas}]}}",
        entries.len()
    );
    Reply::text(StatusCode::OK, text)
}

fn metrics(shared: &ServerState) -> Reply {
    let (bundles, leases, latest) = {
        let registry = shared.bundles.registry();
        (registry.entries().len(), registry.leases(now()), registry.latest().cloned())
    };
    let held = ResourceCounts {
        bundles,
        leases,
        connections: shared.connections.count(),
        answer_bytes: shared.answers.cost(),
    };
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = match latest {
        Some(latest) => shared.metrics.encode(held, latest.index().schemas()),
        None => shared.metrics.encode(held, []),
    };
    Reply::new(StatusCode::OK, media_type, text)
}

async fn reload(shared: &ServerState) -> Reply {
    match shared.bundles.reload().await {
        Ok(_) => Reply::empty(StatusCode::OK),
        Err(error) => {
            let text = format!("error parsing bundle, not replacing: {}", escape(&error_chain(&error)));
            Reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}
