//! Requests that cannot be executed: codes, messages and places are those of graphql-js 16.15, recorded in
//! `support/mistakes.json` (over the types of `support/types.json`).
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::sync::Arc;

use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, Request};
use serde_json::{Value, json};

#[test]
fn mistakes_are_told_as_graphql_js_tells_them() {
    let types: Value = serde_json::from_str(include_str!("support/types.json")).unwrap();
    let bundle = json!({"data": {"/o/a.yml": {"$schema": "/w/other-1.yml", "name": "a"}}, "resources": {}, "schemas": {},
        "git_commit": "c", "git_commit_timestamp": "1", "graphql": {"confs": types}});
    let loaded = load(&serde_json::to_vec(&bundle).unwrap(), &Pool::default()).unwrap();
    let engine = Engine::new(Arc::new(loaded)).unwrap();
    let recorded: Vec<Value> = serde_json::from_str(include_str!("support/mistakes.json")).unwrap();
    assert!(recorded.len() > 60);
    for one in &recorded {
        let query = one["query"].as_str().unwrap();
        let answer = engine.answer(Request { query, ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 400, "{query}");
        let errors = body["errors"].as_array().unwrap().iter().map(|error| {
            let places = error["locations"].as_array().map(Vec::as_slice).unwrap_or_default();
            let places: Vec<Value> =
                places.iter().map(|place| json!([place["line"], place["column"]])).collect();
            json!({"code": error["extensions"]["code"], "message": error["message"], "locations": places})
        });
        assert_eq!(errors.collect::<Value>(), one["errors"], "{query}\n{body}");
    }
}
