//! A GraphQL request, from its parts to its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use qontract_graphql::{Engine, Request};

use crate::answers::{Answered, Key};
use crate::page;
use crate::reply::Reply;
use crate::serve::Shared;
use crate::turns::Waiter;
use crate::wire::{self, Asked, Form, Refusal};

/// Answers with more objects wait for their turn, and are made beside everything else.
const SMALL: u64 = 2_000;
/// So are those of longer texts: it takes time to understand them.
const SHORT: usize = 16 << 10;

/// Whether a request to GraphQL is one of a browser that wants a page.
pub fn wants_page(parts: &Parts) -> bool {
    parts.method == Method::GET && wire::wants_page(header(&parts.headers, ACCEPT))
}

/// Answers a request to a bundle.
pub async fn answer(shared: &Shared, engine: &Arc<Engine>, parts: &Parts, body: &Bytes) -> Reply {
    if wants_page(parts) {
        return page::page();
    }
    let asked = match parts.method {
        Method::POST => wire::read_body(header(&parts.headers, CONTENT_TYPE), body),
        Method::GET => wire::read_parameters(parts.uri.query().unwrap_or_default()),
        _ => return not_allowed(),
    };
    let reply = match asked {
        Ok(asked) => execute(shared, engine, parts, asked).await,
        Err(refusal) => Err(refusal),
    };
    match reply {
        Ok(reply) => reply.header(CACHE_CONTROL, "no-store"),
        Err(Refusal::Json(status, message)) => {
            Reply::graphql_error(status, "BAD_REQUEST", &message).header(CACHE_CONTROL, "no-store")
        }
        Err(Refusal::Page(status)) => {
            Reply::error_page(status, status.canonical_reason().unwrap_or_default())
        }
    }
}

fn not_allowed() -> Reply {
    let message = "Apollo Server supports only GET/POST requests.";
    Reply::graphql_error(StatusCode::METHOD_NOT_ALLOWED, "BAD_REQUEST", message).allowing("GET, POST")
}

async fn execute(shared: &Shared, engine: &Arc<Engine>, parts: &Parts, mut asked: Asked) -> Result<Reply, Refusal> {
    if let Some(reply) = persisted(shared, &mut asked)? {
        return Ok(reply);
    }
    if asked.query.is_empty() {
        let message = "GraphQL operations must contain a non-empty `query` or a `persistedQuery` extension.";
        return Err(Refusal::Json(StatusCode::BAD_REQUEST, message.to_owned()));
    }
    let Some(form) = Form::of(header(&parts.headers, ACCEPT)) else {
        let (json, response) = (Form::Json.as_str(), Form::Response.as_str());
        let message = format!(
            "An 'accept' header was provided for this request which does not accept {json} or {response}"
        );
        return Err(Refusal::Json(StatusCode::NOT_ACCEPTABLE, message));
    };
    let reply = |answered| Ok(Reply::answered(form.as_str(), answered));
    let key = (!shared.answers.is_off()).then(|| {
        let operation = asked.operation.as_deref().map_or("", |name| name);
        let has_operation = if asked.operation.is_some() { "1" } else { "" };
        Key::of(engine.bundle().sha(), &[&asked.query, has_operation, operation, &asked.variables_text()])
    });
    if let Some(known) = key.and_then(|key| shared.answers.get(key)) {
        shared.metrics.remembered(true);
        return reply(known);
    }
    shared.metrics.remembered(false);
    let answered = match small(engine, &asked) {
        Some(answered) => answered,
        None => match large(shared, engine, asked).await {
            Ok(answered) => answered,
            Err(later) => return Ok(later),
        },
    };
    let answered = Arc::new(answered);
    if let Some(key) = key {
        shared.answers.insert(key, Arc::clone(&answered));
    }
    reply(answered)
}

/// The answer, if it takes little time to make it.
fn small(engine: &Engine, asked: &Asked) -> Option<Answered> {
    if asked.query.len() > SHORT {
        return None;
    }
    let answer = match engine.ready(request(asked)) {
        Ok(ready) if ready.cost() > SMALL => return None,
        Ok(ready) => ready.answer(),
        Err(answer) => answer,
    };
    Some(Answered::new(answer.status, answer.body))
}

/// The answer, made in its turn and beside everything else. If nobody waits for it any more, it is not finished.
async fn large(shared: &Shared, engine: &Arc<Engine>, asked: Asked) -> Result<Answered, Reply> {
    if shared.in_flight.bytes() > shared.settings.in_flight {
        return Err(Reply::later("too many answers are on their way"));
    }
    let Ok(turn) = shared.turns.take().await else { return Err(Reply::later("too many queries wait")) };
    let (engine, waiter, limit) = (Arc::clone(engine), Waiter::default(), shared.settings.query_time);
    let gone = waiter.gone();
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let begun = Instant::now();
        let is_late = || begun.elapsed() > limit;
        let cancelled = || gone.load(Ordering::Relaxed) || is_late();
        let answer = engine.answer(Request { cancelled: Some(&cancelled), ..request(&asked) });
        // What was broken off is nobody's answer.
        if answer.has_errors && is_late() { None } else { Some(Answered::new(answer.status, answer.body)) }
    });
    let answered = work.await;
    drop(waiter);
    match answered {
        Ok(Some(answered)) => Ok(answered),
        Ok(None) => Err(Reply::later("the query took too long")),
        Err(_) => Err(Reply::error_page(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")),
    }
}

fn request(asked: &Asked) -> Request<'_> {
    Request {
        query: &asked.query,
        operation: asked.operation.as_deref(),
        variables: asked.variables.as_ref(),
        ..Request::default()
    }
}

/// Finds the text that a client names by its digest, or remembers it.
fn persisted(shared: &Shared, asked: &mut Asked) -> Result<Option<Reply>, Refusal> {
    let Some(digest) = asked.persisted.take() else { return Ok(None) };
    if !asked.query.is_empty() {
        return if shared.persisted.insert(&digest, &asked.query) {
            Ok(None)
        } else {
            Err(Refusal::Json(StatusCode::BAD_REQUEST, "provided sha does not match query".to_owned()))
        };
    }
    match shared.persisted.get(&digest) {
        Some(text) => {
            asked.query = text;
            Ok(None)
        }
        None => {
            let (code, message) = ("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound");
            Ok(Some(Reply::graphql_error(StatusCode::OK, code, message)))
        }
    }
}

/// A header that is text.
pub fn header(headers: &HeaderMap, name: hyper::header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
