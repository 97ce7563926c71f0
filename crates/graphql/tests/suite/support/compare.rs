//! Runs a request on both executors.

use std::sync::Arc;

use qontract_bundle::json::JsonParser;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, QueryLimits, Request};
use serde_json::{Map, Value};

use super::reference::Reference;

/// A bundle, loaded into both executors.
pub struct EnginePair {
    pub engine: Engine,
    pub reference: Reference,
}

impl EnginePair {
    pub fn new(bundle: &[u8]) -> Self {
        let reference = Reference::read(bundle);
        let loaded = load(bundle, &Pool::default()).expect("a bundle");
        let engine = Engine::new(Arc::new(loaded)).expect("a schema").with_limits(QueryLimits::none());
        Self { engine, reference }
    }

    /// Runs a request on both executors, checks that the responses are equal, and returns the response.
    #[track_caller]
    pub fn check(&self, query: &str, variables: &Map<String, Value>) -> String {
        let text = Value::Object(variables.clone()).to_string();
        let given = JsonParser::new(&text).parse().unwrap();
        let answer = self.engine.answer(Request { query, variables: given.as_map(), ..Request::default() });
        let body = String::from_utf8(answer.body).unwrap();
        assert_eq!(answer.status, 200, "{query}\n{body}");
        assert_eq!(counted(&body), self.reference.answer(query, variables), "{query}\n{text}");
        body
    }
}

/// Replaces the locations of each error by their number, because the reference implementation has no
/// locations.
fn counted(body: &str) -> String {
    const PLACES: &str = "\"locations\":[";
    let mut out = String::new();
    let mut rest = body;
    while let Some(start) = rest.find(PLACES) {
        let (before, after) = rest.split_at(start + PLACES.len());
        let (places, after) = after.split_once(']').unwrap();
        out.push_str(before.trim_end_matches('['));
        out.push_str(&places.matches("\"line\"").count().to_string());
        rest = after;
    }
    out + rest
}
