//! What each path answers.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use qontract_bundle::json::{JavaScript, Reader};
use qontract_bundle::{Keys, Value};
use qontract_graphql::Engine;

use crate::{State, lock};

/// How many bytes a request may have, there and here.
const LARGEST_REQUEST: usize = 100 << 10;

const TEXT: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";

/// Answers any request.
pub(crate) async fn answer(Shared(state): Shared<Arc<State>>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    *lock(&state.requests).entry(path.clone()).or_default() += 1;
    let token = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if state.token.as_ref().is_some_and(|wanted| token != Some(wanted.as_bytes())) {
        return reply(StatusCode::UNAUTHORIZED, TEXT, "Unauthorized".to_owned());
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let engine = |sha: Option<&str>| {
        let bundles = lock(&state.bundles);
        bundles.engines.get(sha.unwrap_or(&bundles.latest)).cloned()
    };
    match (method, parts.as_slice()) {
        (Method::GET, ["healthz"]) => StatusCode::OK.into_response(),
        (Method::GET, ["sha256"]) => match engine(None) {
            Some(engine) => reply(StatusCode::OK, TEXT, engine.bundle().sha().to_string()),
            None => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, "No loaded data.".to_owned()),
        },
        (Method::GET, ["git-commit-info"]) => commit(engine(None), "latest"),
        (Method::GET, ["git-commit-info", sha]) => commit(engine(Some(sha)), sha),
        (Method::POST, ["graphql"]) => graphql(engine(None), &path, request.into_body()).await,
        (Method::POST, ["graphqlsha", sha]) => graphql(engine(Some(sha)), &path, request.into_body()).await,
        (_, ["graphql"] | ["graphqlsha", _]) => {
            let message = "Apollo Server supports only GET/POST requests.";
            let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, message);
            response.headers_mut().insert(ALLOW, "GET, POST".parse().expect("a header"));
            response
        }
        (method, _) => missing(&method, &path),
    }
}

fn commit(engine: Option<Arc<Engine>>, sha: &str) -> Response {
    let Some(engine) = engine else {
        return reply(StatusCode::NOT_FOUND, TEXT, format!("Bundle {sha} not found"));
    };
    let stamp = engine.bundle().stamp();
    let mut body = b"{\"commit\":".to_vec();
    JavaScript(&mut body).str(&stamp.commit);
    body.extend_from_slice(b",\"timestamp\":");
    JavaScript(&mut body).str(&stamp.timestamp);
    body.push(b'}');
    reply(StatusCode::OK, JSON, body)
}

async fn graphql(engine: Option<Arc<Engine>>, path: &str, body: Body) -> Response {
    let Some(engine) = engine else { return missing(&Method::POST, path) };
    let Ok(body) = to_bytes(body, LARGEST_REQUEST).await else {
        return reply(StatusCode::PAYLOAD_TOO_LARGE, TEXT, "PayloadTooLargeError".to_owned());
    };
    let request =
        str::from_utf8(&body).ok().and_then(|text| Reader::new(text).whole(&mut Keys::default()).ok());
    let Some(request) = request else {
        return reply(StatusCode::BAD_REQUEST, TEXT, "SyntaxError".to_owned());
    };
    let Some(query) = request.get("query").and_then(Value::as_str) else {
        let message = "POST body missing, invalid Content-Type, or JSON object has no keys.";
        return refuse(StatusCode::BAD_REQUEST, message);
    };
    let answer = engine.answer(qontract_graphql::Request {
        query,
        operation: request.get("operationName").and_then(Value::as_str),
        variables: request.get("variables").and_then(Value::as_map),
        ..qontract_graphql::Request::default()
    });
    let status = StatusCode::from_u16(answer.status).expect("a status of HTTP");
    reply(status, JSON, answer.body)
}

fn missing(method: &Method, path: &str) -> Response {
    reply(StatusCode::NOT_FOUND, TEXT, format!("<pre>Cannot {method} {path}</pre>"))
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let body = format!(r#"{{"errors":[{{"message":"{message}","extensions":{{"code":"BAD_REQUEST"}}}}]}}"#);
    reply(status, JSON, body)
}

fn reply(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, media_type)], body.into()).into_response()
}
