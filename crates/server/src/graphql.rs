//! Handles GraphQL requests: parameters, persisted queries, response cache, and inline or queued execution.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use qontract_bundle::json::JavaScriptWriter;
use qontract_bundle::{Map, Sha256, Value};
use qontract_concurrency::{CancelOnDrop, Permit};
use qontract_graphql::{Answer, Engine, Request};

use crate::graphql_request::{self, GraphqlParams, PersistedQueryId, Refusal, ResponseFormat};
use crate::page;
use crate::persisted_queries;
use crate::reply::{InFlightGuard, Reply};
use crate::response_cache::{CachedResponse, ResponseKey, shrink, store};
use crate::server::ServerState;

/// Maximum estimated number of objects in a response that is computed inline. Queries with more objects are
/// queued and run on a blocking thread.
const MAX_INLINE_OBJECTS: u64 = 2_000;
/// Maximum time to compute a response inline.
const INLINE_TIMEOUT: Duration = Duration::from_millis(20);
/// Maximum size of a query that is executed inline: longer queries take time to parse.
const MAX_INLINE_QUERY_BYTES: usize = 16 << 10;
/// Maximum size of a response that is computed inline.
const MAX_INLINE_ANSWER_BYTES: usize = 1 << 20;

/// Whether a GraphQL request comes from a browser that requests a page.
pub fn wants_page(parts: &Parts) -> bool {
    parts.method == Method::GET && graphql_request::wants_page(header(&parts.headers, ACCEPT))
}

/// Executes a GraphQL request on a bundle.
pub async fn answer(
    shared: &ServerState,
    engine: &Arc<Engine>,
    parts: &Parts,
    body: Option<&Value>,
) -> Reply {
    if wants_page(parts) {
        return page::page();
    }
    let form = ResponseFormat::of(header(&parts.headers, ACCEPT));
    let params = match parts.method {
        Method::POST => graphql_request::read_body(body),
        Method::GET => {
            let content_type = header(&parts.headers, CONTENT_TYPE);
            graphql_request::read_parameters(content_type, parts.uri.query().unwrap_or_default())
        }
        _ => {
            let message = "Apollo Server supports only GET/POST requests.".to_owned();
            return refuse(Refusal::Json(StatusCode::METHOD_NOT_ALLOWED, message), form)
                .allowing("GET, POST");
        }
    };
    let refusal = match (params, form) {
        (Ok(params), Some(form)) => {
            return execute(shared, engine, GraphqlCall { method: &parts.method, form, params }).await;
        }
        (Ok(_), None) => Refusal::Json(
            StatusCode::NOT_ACCEPTABLE,
            format!(
                "An 'accept' header was provided for this request which does not accept {} or {}",
                ResponseFormat::Json.as_str(),
                ResponseFormat::Response.as_str()
            ),
        ),
        (Err(refusal), _) => refusal,
    };
    refuse(refusal, form)
}

/// The reply to an invalid request.
pub fn refuse(refusal: Refusal, form: Option<ResponseFormat>) -> Reply {
    match refusal {
        Refusal::Json(status, message) => {
            Reply::graphql_error(status, form.unwrap_or(ResponseFormat::Json), &message)
        }
        Refusal::Page(status) => Reply::status_page(status),
    }
}

/// A parsed request: its parameters, its method, and the format of the response.
struct GraphqlCall<'p> {
    method: &'p Method,
    form: ResponseFormat,
    params: GraphqlParams,
}

async fn execute(shared: &ServerState, engine: &Arc<Engine>, call: GraphqlCall<'_>) -> Reply {
    let GraphqlCall { method, form, params } = call;
    let sha = engine.bundle().sha();
    let failed = |status, code, message| {
        Reply::data_error(status, form, code, message).header(CACHE_CONTROL, "no-store")
    };
    let GraphqlParams { query, operation, variables, persisted } = params;
    let (query, digest) = match query_text(shared, sha, query, persisted) {
        Ok(query_and_digest) => query_and_digest,
        Err(QueryTextError::NotCached) => {
            let (code, message) = ("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound");
            let reply = Reply::data_error(StatusCode::OK, form, code, message);
            return reply.header(CACHE_CONTROL, "private, no-cache, must-revalidate");
        }
        Err(QueryTextError::Invalid(message)) => {
            return failed(StatusCode::BAD_REQUEST, "INTERNAL_SERVER_ERROR", message);
        }
        Err(QueryTextError::Missing) => {
            let message =
                "GraphQL operations must contain a non-empty `query` or a `persistedQuery` extension.";
            return failed(StatusCode::BAD_REQUEST, "BAD_REQUEST", message);
        }
    };
    let query = ResolvedQuery { text: query, operation, variables };
    let key = (!shared.answers.is_off()).then(|| {
        let (operation, has_operation) = match &query.operation {
            Some(operation) => (operation.as_str(), "1"),
            None => ("", ""),
        };
        // An operation that is not a query gets a different error for each method.
        let parts = [method.as_str(), &query.text, has_operation, operation, &query.variables_text()];
        ResponseKey::of(sha, &parts)
    });
    let cached = key.and_then(|key| shared.answers.get(&key));
    shared.metrics.count_answer(cached.is_some());
    let reply = |response| Reply::cached(form.as_str(), response).header(CACHE_CONTROL, "no-store");
    let persist = |digest: Option<String>, text: &str, status| {
        if let (Some(digest), 200) = (digest, status) {
            persisted_queries::insert(&shared.persisted, sha, &digest, text);
        }
    };
    if let Some(response) = cached {
        persist(digest, &query.text, response.status);
        return reply(response);
    }
    let text = if digest.is_some() { query.text.clone() } else { String::new() };
    let (answer, flight) = match answer_inline(engine, &query) {
        Some(answer) => (answer, None),
        None => match answer_queued(shared, engine, query).await {
            Ok((answer, flight)) => (answer, Some(flight)),
            Err(later) => return later,
        },
    };
    if let (Some(word), &Method::GET) = (answer.rootless, method) {
        let message = format!("GET requests only support query operations, not {word} operations");
        return failed(StatusCode::METHOD_NOT_ALLOWED, "BAD_REQUEST", &message).allowing("POST");
    }
    persist(digest, &text, answer.status);
    let response = Arc::new(CachedResponse::new(answer.status, shrink(answer.body)));
    if let Some(key) = key {
        store(&shared.answers, key, &response);
    }
    let reply = reply(response);
    match flight {
        Some(flight) => reply.in_flight(flight),
        None => reply,
    }
}

/// A query, the name of its operation, and its variables.
struct ResolvedQuery {
    text: String,
    operation: Option<String>,
    variables: Option<Map>,
}

impl ResolvedQuery {
    /// The variables as canonical JSON, regardless of how the client formatted them.
    fn variables_text(&self) -> String {
        let mut text = Vec::new();
        if let Some(variables) = &self.variables {
            JavaScriptWriter(&mut text).map(variables, &[]);
        }
        String::from_utf8(text).expect("JSON is text")
    }
}

/// The reason why a request has no query to execute.
enum QueryTextError {
    /// The persisted query is not cached.
    NotCached,
    /// The persisted-query extension is invalid.
    Invalid(&'static str),
    /// The request has neither a query nor the digest of a persisted query.
    Missing,
}

/// The query of a request, and its digest if the client requests that it is persisted.
fn query_text(
    shared: &ServerState,
    sha: Sha256,
    query: Option<String>,
    persisted: Option<PersistedQueryId>,
) -> Result<(String, Option<String>), QueryTextError> {
    let digest = match persisted {
        None => {
            return query
                .filter(|query| !query.is_empty())
                .map(|query| (query, None))
                .ok_or(QueryTextError::Missing);
        }
        Some(PersistedQueryId::UnsupportedVersion) => {
            return Err(QueryTextError::Invalid("Unsupported persisted query version"));
        }
        Some(PersistedQueryId::Digest(digest)) => digest,
    };
    match query {
        None => persisted_queries::get(&shared.persisted, sha, &digest)
            .map(|text| (text, None))
            .ok_or(QueryTextError::NotCached),
        Some(query) if Sha256::of(query.as_bytes()).to_string() == digest => Ok((query, Some(digest))),
        Some(_) => Err(QueryTextError::Invalid("provided sha does not match query")),
    }
}

/// Computes the response inline, if it is cheap enough; otherwise `None`.
fn answer_inline(engine: &Engine, query: &ResolvedQuery) -> Option<Answer> {
    if query.text.len() > MAX_INLINE_QUERY_BYTES {
        return None;
    }
    let begun = Instant::now();
    let is_late = || begun.elapsed() > INLINE_TIMEOUT;
    let answer = match engine.prepare(Request { cancelled: Some(&is_late), ..request(query) }) {
        Ok(ready) if ready.cost() > MAX_INLINE_OBJECTS => return None,
        Ok(ready) => ready.answer(),
        Err(answer) => return Some(answer),
    };
    // The estimate was too low, for example because a few objects have long strings. Large responses count as
    // in flight while they are sent, so they are computed on the queued path, which counts them.
    if answer.has_errors && is_late() || answer.body.len() > MAX_INLINE_ANSWER_BYTES {
        None
    } else {
        Some(answer)
    }
}

/// Computes the response on a blocking thread, within the concurrency limit. Cancelled when the client
/// disconnects.
async fn answer_queued(
    shared: &ServerState,
    engine: &Arc<Engine>,
    query: ResolvedQuery,
) -> Result<(Answer, InFlightGuard), Reply> {
    let permit = acquire(shared).await?;
    let (engine, cancel, limit) =
        (Arc::clone(engine), CancelOnDrop::default(), shared.settings.query_timeout);
    let cancellation = cancel.cancellation();
    let work = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let begun = Instant::now();
        let is_late = || begun.elapsed() > limit;
        let cancelled = || cancellation.is_cancelled() || is_late();
        let answer = engine.answer(Request { cancelled: Some(&cancelled), ..request(&query) });
        // A cancelled response is incomplete.
        if answer.has_errors && is_late() { None } else { Some(answer) }
    });
    let answer = work.await;
    drop(cancel);
    match answer {
        Ok(Some(answer)) => {
            let flight = shared.in_flight.begin(answer.body.len());
            Ok((answer, flight))
        }
        // A retry would take just as long.
        Ok(None) => Err(Reply::text(StatusCode::SERVICE_UNAVAILABLE, "the query took too long")),
        Err(_) => Err(Reply::status_page(StatusCode::INTERNAL_SERVER_ERROR)),
    }
}

/// Acquires the permit to compute a large response; an error reply if too many are queued or in flight.
pub async fn acquire(shared: &ServerState) -> Result<Permit, Reply> {
    let Ok(permit) = shared.queries.acquire().await else {
        return Err(Reply::retry_later("too many queries are waiting"));
    };
    if shared.in_flight.bytes() > shared.settings.max_in_flight_bytes {
        return Err(Reply::retry_later("too many responses are being sent"));
    }
    Ok(permit)
}

fn request(query: &ResolvedQuery) -> Request<'_> {
    Request {
        query: &query.text,
        operation: query.operation.as_deref(),
        variables: query.variables.as_ref(),
        ..Request::default()
    }
}

/// The value of a header, if it is a valid string.
pub fn header(headers: &HeaderMap, name: hyper::header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
