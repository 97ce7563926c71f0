//! Handles GraphQL requests: parameters, persisted queries, response cache, and inline or queued execution.
//!
//! **Invariant:** concurrent requests that have the same response share one evaluation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use qontract_bundle::json::JavaScriptWriter;
use qontract_bundle::{Map, Sha256, Value};
use qontract_concurrency::{CancelOnDrop, Permit};
use qontract_graphql::{Answer, Engine, Request};
use qontract_telemetry::server_metrics::AnswerOrigin;

use crate::graphql_request::{self, GraphqlParams, PersistedQueryId, Refusal, ResponseFormat};
use crate::page;
use crate::persisted_queries;
use crate::query_extension::{QueryExtension, ResultForm};
use crate::reply::{InFlightGuard, Reply};
use crate::response_cache::{self, CachedResponse, ResponseKey, shrink};
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

/// Creates the reply to an invalid request.
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

/// A response that was computed or cached, and the guard of its bytes in flight if it is large.
#[derive(Clone)]
pub struct EvaluatedResponse {
    /// The response, which may be shared with other requests.
    pub response: Arc<CachedResponse>,
    /// The type of the operation, `mutation` or `subscription`, if it is not a query.
    rootless: Option<&'static str>,
    /// Counts the bytes of a large response as in flight until all of its clients have received it.
    pub flight: Option<Arc<InFlightGuard>>,
}

impl EvaluatedResponse {
    /// Creates a response that is not a GraphQL response.
    pub fn new(response: CachedResponse, flight: Option<InFlightGuard>) -> Self {
        Self { response: Arc::new(response), rootless: None, flight: flight.map(Arc::new) }
    }

    /// Creates a response that was evaluated before.
    pub fn shared(response: Arc<CachedResponse>, flight: Option<Arc<InFlightGuard>>) -> Self {
        Self { response, rootless: None, flight }
    }

    /// Creates the reply to a client.
    pub fn reply(self, media_type: &'static str) -> Reply {
        let reply = Reply::cached(media_type, self.response);
        match self.flight {
            Some(flight) => reply.in_flight(flight),
            None => reply,
        }
    }
}

/// The reason why a request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationFailure {
    /// Too many requests are queued, or too many responses are in flight.
    Busy(&'static str),
    /// The evaluation took longer than the time limit.
    Timeout,
    /// The evaluation panicked.
    Panic,
}

impl EvaluationFailure {
    /// Creates the reply to the client.
    pub fn reply(self) -> Reply {
        match self {
            Self::Busy(why) => Reply::retry_later(why),
            // The reply has no `Retry-After`, because a retry would take as long.
            Self::Timeout => Reply::text(StatusCode::SERVICE_UNAVAILABLE, "the query took too long"),
            Self::Panic => Reply::status_page(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Returns the cached response of a key, or evaluates it. Concurrent requests with the same key share one evaluation,
/// which belongs to the first request. If the client of this request disconnects, the next request evaluates again. A
/// response that is too large for the cache is shared until its last client has received it.
pub async fn evaluate_once<F>(
    shared: &ServerState,
    key: ResponseKey,
    evaluate: impl FnOnce() -> F,
) -> Result<EvaluatedResponse, EvaluationFailure>
where
    F: Future<Output = Result<EvaluatedResponse, EvaluationFailure>>,
{
    let known = || {
        let cached = shared
            .answers
            .get(&key)
            .map(|response| (EvaluatedResponse::shared(response, None), AnswerOrigin::Cached));
        cached.or_else(|| Some((shared.live.get(&key)?, AnswerOrigin::Shared)))
    };
    if let Some((evaluated, origin)) = known() {
        shared.metrics.count_answer(origin);
        return Ok(evaluated);
    }
    let mut origin = AnswerOrigin::Shared;
    let evaluated = shared.evaluations.entry(key).get_or_init_if(
        |_| false,
        || async {
            // An evaluation may have ended since the lookup.
            if let Some((evaluated, known_origin)) = known() {
                origin = known_origin;
                return Ok(evaluated);
            }
            origin = AnswerOrigin::Evaluated;
            let evaluated = evaluate().await?;
            if evaluated.rootless.is_none() {
                response_cache::store(&shared.answers, key, &evaluated.response);
                if evaluated.flight.is_some() {
                    shared.live.insert(key, &evaluated);
                }
            }
            Ok(evaluated)
        },
    );
    let evaluated = evaluated.await;
    shared.metrics.count_answer(origin);
    evaluated
}

/// Shares an evaluation that consists of other evaluations. The other evaluations are cached and counted
/// individually.
pub async fn combine_once<F>(
    shared: &ServerState,
    key: ResponseKey,
    combine: impl FnOnce() -> F,
) -> Result<EvaluatedResponse, EvaluationFailure>
where
    F: Future<Output = Result<EvaluatedResponse, EvaluationFailure>>,
{
    if let Some(live) = shared.live.get(&key) {
        return Ok(live);
    }
    let combined = shared.evaluations.entry(key).get_or_init_if(
        |_| false,
        || async {
            let combined = combine().await?;
            shared.live.insert(key, &combined);
            Ok(combined)
        },
    );
    combined.await
}

async fn execute(shared: &ServerState, engine: &Arc<Engine>, call: GraphqlCall<'_>) -> Reply {
    let GraphqlCall { method, form, params } = call;
    let sha = engine.bundle().sha();
    let failed = |status, code, message| {
        Reply::data_error(status, form, code, message).header(CACHE_CONTROL, "no-store")
    };
    let GraphqlParams { query, operation, variables, persisted, extension } = params;
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
    let text = if digest.is_some() { query.clone() } else { String::new() };
    let query = ResolvedQuery { text: query, operation, variables, extension };
    let evaluated = match evaluate(shared, engine, method, query).await {
        Ok(evaluated) => evaluated,
        Err(failure) => return failure.reply(),
    };
    if let (Some(word), &Method::GET) = (evaluated.rootless, method) {
        let message = format!("GET requests only support query operations, not {word} operations");
        return failed(StatusCode::METHOD_NOT_ALLOWED, "BAD_REQUEST", &message).allowing("POST");
    }
    if let (Some(digest), 200) = (digest, evaluated.response.status) {
        persisted_queries::insert(&shared.persisted, sha, &digest, &text);
    }
    evaluated.reply(form.as_str()).header(CACHE_CONTROL, "no-store")
}

/// Evaluates one query of a [batch](crate::batch): the body of a `POST`, parsed as JSON. An invalid query has an
/// error response, as in a separate request.
pub async fn evaluate_part(
    shared: &ServerState,
    engine: &Arc<Engine>,
    body: Option<&Value>,
) -> Result<Result<EvaluatedResponse, Refusal>, EvaluationFailure> {
    let refused = |message: &str| Refusal::Json(StatusCode::BAD_REQUEST, message.to_owned());
    let params = match graphql_request::read_body(body) {
        Ok(params) => params,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let GraphqlParams { query, operation, variables, persisted, extension } = params;
    if persisted.is_some() {
        return Ok(Err(refused("a batch cannot contain persisted queries")));
    }
    let Some(text) = query.filter(|query| !query.is_empty()) else {
        return Ok(Err(refused("GraphQL operations must contain a non-empty `query`.")));
    };
    let query = ResolvedQuery { text, operation, variables, extension };
    evaluate(shared, engine, &Method::POST, query).await.map(Ok)
}

async fn evaluate(
    shared: &ServerState,
    engine: &Arc<Engine>,
    method: &Method,
    query: ResolvedQuery,
) -> Result<EvaluatedResponse, EvaluationFailure> {
    let key = query.key(engine.bundle().sha(), method);
    evaluate_once(shared, key, || async {
        let (answer, flight) = if let Some(answer) = answer_inline(engine, &query) {
            (answer, None)
        } else {
            let (answer, flight) = answer_queued(shared, engine, query).await?;
            (answer, Some(Arc::new(flight)))
        };
        let rootless = answer.rootless;
        let response = Arc::new(CachedResponse::new(answer.status, shrink(answer.body)));
        Ok(EvaluatedResponse { response, rootless, flight })
    })
    .await
}

/// A query with the name of its operation and its variables.
struct ResolvedQuery {
    text: String,
    operation: Option<String>,
    variables: Option<Map>,
    extension: Option<QueryExtension>,
}

impl ResolvedQuery {
    /// The cache key of the response, which contains every input that affects the response.
    fn key(&self, sha: Sha256, method: &Method) -> ResponseKey {
        let (operation, has_operation) = match &self.operation {
            Some(operation) => (operation.as_str(), "1"),
            None => ("", ""),
        };
        let variables = self.variables_text();
        let extension = self.extension.as_ref().map(QueryExtension::cache_key);
        // The method is part of the key, because an operation that is not a query gets a different error for each
        // method.
        let parts = [method.as_str(), &self.text, has_operation, operation, &variables];
        let parts: Vec<&str> = parts.into_iter().chain(extension.as_deref()).collect();
        ResponseKey::of(sha, &parts)
    }

    /// Whether the query is executed, so that the response needs the data.
    fn is_executed(&self) -> bool {
        self.extension.as_ref().is_none_or(|extension| extension.form != ResultForm::ReachableSchemas)
    }

    /// Executes the query.
    fn answer(&self, engine: &Engine, request: Request<'_>) -> Answer {
        match &self.extension {
            Some(extension) => extension.answer(engine, request),
            None => engine.answer(request),
        }
    }

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

/// The query of a request, with its digest if the client requests that the query is persisted.
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

/// Computes the response inline if it is cheap enough; otherwise, returns `None`.
fn answer_inline(engine: &Engine, query: &ResolvedQuery) -> Option<Answer> {
    if query.text.len() > MAX_INLINE_QUERY_BYTES {
        return None;
    }
    let begun = Instant::now();
    let is_late = || begun.elapsed() > INLINE_TIMEOUT;
    let request = Request { cancelled: Some(&is_late), ..request(query) };
    let answer = match engine.prepare(request) {
        // A query that is not executed is cheap, even if its result would be large.
        Ok(ready) if ready.cost() > MAX_INLINE_OBJECTS && query.is_executed() => return None,
        Ok(ready) if query.extension.is_none() => ready.answer(),
        Ok(_) => query.answer(engine, request),
        Err(answer) => return Some(answer),
    };
    // In this case, the estimate was too low, for example because a few objects have long strings. The response is
    // computed again on the queued path, which counts large responses as in flight while they are sent.
    if answer.has_errors && is_late() || answer.body.len() > MAX_INLINE_ANSWER_BYTES {
        None
    } else {
        Some(answer)
    }
}

/// Computes the response on a blocking thread, within the concurrency limit. The computation is cancelled when the
/// client disconnects.
async fn answer_queued(
    shared: &ServerState,
    engine: &Arc<Engine>,
    query: ResolvedQuery,
) -> Result<(Answer, InFlightGuard), EvaluationFailure> {
    let permit = acquire(shared).await?;
    let (engine, cancel, limit) =
        (Arc::clone(engine), CancelOnDrop::default(), shared.settings.query_timeout);
    let cancellation = cancel.cancellation();
    let work = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let begun = Instant::now();
        let is_late = || begun.elapsed() > limit;
        let cancelled = || cancellation.is_cancelled() || is_late();
        let answer = query.answer(&engine, Request { cancelled: Some(&cancelled), ..request(&query) });
        // A response whose computation was cancelled is incomplete, so it is not used.
        if answer.has_errors && is_late() { None } else { Some(answer) }
    });
    let answer = work.await;
    drop(cancel);
    match answer {
        Ok(Some(answer)) => {
            let flight = shared.in_flight.begin(answer.body.len());
            Ok((answer, flight))
        }
        Ok(None) => Err(EvaluationFailure::Timeout),
        Err(_) => Err(EvaluationFailure::Panic),
    }
}

/// Acquires the permit to compute a large response; fails if too many are queued or in flight.
pub async fn acquire(shared: &ServerState) -> Result<Permit, EvaluationFailure> {
    let Ok(permit) = shared.queries.acquire().await else {
        return Err(EvaluationFailure::Busy("too many queries are waiting"));
    };
    if shared.in_flight.bytes() > shared.settings.max_in_flight_bytes {
        return Err(EvaluationFailure::Busy("too many responses are being sent"));
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
