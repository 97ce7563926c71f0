//! Batches: several GraphQL requests and resources of one bundle, in one HTTP request. qontract-server does not
//! support batches.
//!
//! Each query has the response that a separate request has. The limits and the cache of separate requests also apply
//! to the queries of a batch.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use qontract_bundle::Sha256;
use qontract_bundle::json::JavaScriptWriter;
use qontract_graphql::Engine;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bundles::now;
use crate::graphql::{self, EvaluatedResponse, EvaluationFailure};
use crate::graphql_request::{Refusal, ResponseFormat, json_of};
use crate::reply::{JSON, Reply, error_response};
use crate::response_cache::{CachedResponse, ResponseKey};
use crate::route::RequestedBundle;
use crate::server::{ServerState, find, not_found};

/// Maximum number of queries in a batch.
const MAX_QUERIES: usize = 100;
/// Maximum number of resources in a batch.
const MAX_RESOURCES: usize = 10_000;
/// Maximum size of the response to a batch, in bytes, which is also the maximum of a single query.
const MAX_BYTES: usize = 256 << 20;

/// The body of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BatchBody<'a> {
    /// The bodies of GraphQL requests.
    #[serde(borrow, default)]
    queries: Vec<&'a RawValue>,
    /// The paths of resources.
    #[serde(default)]
    resources: BTreeSet<String>,
    /// Whether to list the schemas that have a GraphQL type.
    #[serde(default)]
    typed_schemas: bool,
}

/// The response to one query of a batch, which is shared with the cache, or a refusal.
type PartResponse = Arc<CachedResponse>;

/// Responds to a batch for the bundle with this sha.
pub async fn answer(shared: &ServerState, method: &Method, sha: &str, body: &Bytes) -> Reply {
    if method != Method::POST {
        return Reply::text(StatusCode::METHOD_NOT_ALLOWED, "use POST").allowing("POST");
    }
    let batch = match parse(body) {
        Ok(batch) => batch,
        Err(message) => return refused(&message),
    };
    let which = RequestedBundle::Named(sha.to_owned());
    let engine = match find(shared, &which).await {
        Ok(engine) => engine,
        Err(missing) => return not_found(&which, missing),
    };
    shared.bundles.registry().touch_or_insert(&engine, now());
    let digest = Sha256::of(body).to_string();
    let key = ResponseKey::of(engine.bundle().sha(), &["batch", &digest]);
    match graphql::combine_once(shared, key, || evaluate(shared, &engine, &batch)).await {
        Ok(evaluated) => evaluated.reply(JSON),
        Err(failure) => failure.reply(),
    }
}

fn refused(message: &str) -> Reply {
    Reply::graphql_error(StatusCode::BAD_REQUEST, ResponseFormat::Json, message)
}

fn parse(body: &[u8]) -> Result<BatchBody<'_>, String> {
    // Without this check, `serde` would also accept a list of the values.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err("the batch is invalid: it must be an object".to_owned());
    }
    let batch: BatchBody<'_> =
        serde_json::from_slice(body).map_err(|error| format!("the batch is invalid: {error}"))?;
    if batch.queries.len() > MAX_QUERIES {
        return Err(format!(
            "the batch has {} queries; at most {MAX_QUERIES} are allowed",
            batch.queries.len()
        ));
    }
    if batch.resources.len() > MAX_RESOURCES {
        let count = batch.resources.len();
        return Err(format!("the batch has {count} resources; at most {MAX_RESOURCES} are allowed"));
    }
    Ok(batch)
}

/// Evaluates the queries one after the other and writes the response.
async fn evaluate(
    shared: &ServerState,
    engine: &Arc<Engine>,
    batch: &BatchBody<'_>,
) -> Result<EvaluatedResponse, EvaluationFailure> {
    let mut parts: Vec<PartResponse> = Vec::with_capacity(batch.queries.len());
    let mut bytes = 0;
    for query in &batch.queries {
        let body = json_of(Some("application/json"), query.get().as_bytes());
        let part = match body {
            Ok(body) => graphql::evaluate_part(shared, engine, body.as_ref()).await?,
            Err(refusal) => Err(refusal),
        };
        let response = match part {
            Ok(evaluated) => evaluated.response,
            Err(refusal) => Arc::new(refusal_response(&refusal)),
        };
        bytes += response.body.len();
        parts.push(response);
    }
    let contents = batch.resources.iter().filter_map(|path| engine.bundle().resource(path));
    bytes += contents.map(|resource| resource.content.len()).sum::<usize>();
    if bytes > MAX_BYTES {
        let message = format!("the response to the batch has more than {MAX_BYTES} bytes");
        return Ok(EvaluatedResponse::new(error_response(StatusCode::BAD_REQUEST, &message), None));
    }
    if shared.in_flight.bytes() > shared.settings.max_in_flight_bytes {
        return Err(EvaluationFailure::Busy("too many responses are being sent"));
    }
    let flight = shared.in_flight.begin(bytes);
    let (engine, resources, typed) = (Arc::clone(engine), batch.resources.clone(), batch.typed_schemas);
    let write = move || write(&engine, &parts, &resources, typed);
    let body = tokio::task::spawn_blocking(write).await.map_err(|_| EvaluationFailure::Panic)?;
    Ok(EvaluatedResponse::new(CachedResponse::new(200, body), Some(flight)))
}

fn refusal_response(refusal: &Refusal) -> CachedResponse {
    match refusal {
        Refusal::Json(status, message) => error_response(*status, message),
        Refusal::Page(status) => error_response(*status, "the query is not valid JSON"),
    }
}

fn write(engine: &Engine, parts: &[PartResponse], resources: &BTreeSet<String>, typed: bool) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.body.len() + 32).sum();
    let mut body = Vec::with_capacity(size + 64);
    body.extend_from_slice(b"{\"answers\":[");
    for (number, part) in parts.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        body.extend_from_slice(format!("{comma}{{\"status\":{},\"body\":", part.status).as_bytes());
        body.extend_from_slice(part.body.trim_ascii_end());
        body.push(b'}');
    }
    let mut json = JavaScriptWriter(&mut body);
    json.raw("],\"resources\":{");
    let found = resources.iter().filter_map(|path| Some((path, engine.bundle().resource(path)?)));
    for (number, (path, resource)) in found.enumerate() {
        json.raw(if number > 0 { "," } else { "" });
        json.str(path);
        json.raw(":");
        json.str(&resource.content);
    }
    json.raw("}");
    if typed {
        json.raw(",\"typedSchemas\":[");
        for (number, schema) in engine.schema().typed_schemas().iter().enumerate() {
            json.raw(if number > 0 { "," } else { "" });
            json.str(schema);
        }
        json.raw("]");
    }
    json.raw("}\n");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_batch_is_refused() {
        let check = |body: &str, expect: &str| {
            let message = parse(body.as_bytes()).err().expect("an error");
            assert!(message.contains(expect), "{body}: {message}");
        };
        check("", "the batch is invalid");
        check("[1]", "the batch is invalid");
        check(r#"{"query": "{a}"}"#, "unknown field `query`");
        check(r#"{"queries": [], "queries": []}"#, "duplicate field `queries`");
        check(&format!("{{\"queries\": [{}]}}", vec!["{}"; 101].join(",")), "at most 100 are allowed");
        let paths: Vec<String> = (0..=MAX_RESOURCES).map(|number| format!("\"/{number}\"")).collect();
        check(&format!("{{\"resources\": [{}]}}", paths.join(",")), "at most 10000 are allowed");
        assert!(parse(b"{}").is_ok());
    }
}
