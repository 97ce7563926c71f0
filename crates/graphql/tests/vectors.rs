//! Responses equal the recorded ones, byte for byte.
#![allow(clippy::unwrap_used, reason = "a test unwraps what it expects")]

use std::sync::Arc;

use qontract_bundle::json::JsonParser;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, Request};
use qontract_testkit::vectors;

fn engine() -> Engine {
    let bytes = std::fs::read(vectors().join("bundle.json")).unwrap();
    Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap()
}

fn recorded() -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(vectors().join("answers.json")).unwrap()).unwrap()
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn all_recorded_queries_are_answered_to_the_byte() {
    let engine = engine();
    let recorded = recorded();
    let queries = recorded["queries"].as_array().unwrap();
    assert_eq!(queries.len(), 25);
    for query in queries {
        let variables = JsonParser::new(&query["variables"].to_string()).parse().unwrap();
        let request =
            Request { query: text(&query["query"]), variables: variables.as_map(), ..Request::default() };
        // Twice, because the second response may come from a cache.
        for _ in 0..2 {
            let answer = engine.answer(request);
            let body = String::from_utf8(answer.body).unwrap();
            assert_eq!(u64::from(answer.status), query["status"].as_u64().unwrap(), "{}", query["name"]);
            assert_eq!(body, text(&query["body"]), "{}", query["name"]);
        }
    }
}

/// The introspection query of `vectors/README.md`.
const INTROSPECTION: &str = "{ __schema { queryType { name } types { kind name fields { name args { name type \
    { kind name ofType { name } } } type { kind name ofType { kind name ofType { kind name ofType { name } } } } } \
    interfaces { name } possibleTypes { name } } } }";

#[test]
fn introspection_is_answered_to_the_byte_order_of_types_included() {
    let engine = engine();
    let recorded = recorded();
    for _ in 0..2 {
        let answer = engine.answer(Request { query: INTROSPECTION, ..Request::default() });
        assert_eq!(String::from_utf8(answer.body).unwrap(), text(&recorded["introspection"]["body"]));
    }
}
