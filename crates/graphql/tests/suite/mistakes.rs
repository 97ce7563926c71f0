//! Invalid requests: codes, messages and locations are those of graphql-js 16.15, recorded in
//! `support/mistakes.json` for the types in `support/types.json`.

use std::sync::Arc;

use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, QueryLimits, Request};
use serde_json::{Value, json};

fn engine() -> Engine {
    let types: Value = serde_json::from_str(include_str!("support/types.json")).unwrap();
    let bundle = json!({"data": {"/o/a.yml": {"$schema": "/w/other-1.yml", "name": "a"}}, "resources": {}, "schemas": {},
        "git_commit": "c", "git_commit_timestamp": "1", "graphql": {"confs": types}});
    let loaded = load(&serde_json::to_vec(&bundle).unwrap(), &Pool::default()).unwrap();
    Engine::new(Arc::new(loaded)).unwrap()
}

#[test]
fn errors_are_those_of_graphql_js() {
    let engine = engine();
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

#[test]
fn very_deep_or_long_requests_are_refused_without_harm() {
    let engine = engine().with_limits(QueryLimits::none());
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let nested = |open: &str, close: &str, count: usize| open.repeat(count) + &close.repeat(count);
    let chain = many(3_000, &|index| {
        format!("fragment F{index} on Other_v1 {{ deep {{ name ...F{} }} }} ", index + 1)
    });
    let same = many(1_000, &|index| format!("x: name(a: {index}) "));
    let deep = [
        nested("{a", "}", 30_000),
        format!("{{ a(b: {}) }}", nested("[", "]", 30_000)),
        format!("query ($a: {}) {{ a }}", nested("[", "]", 30_000)),
        format!("{{ a(b: {}1) }}", "{c: ".repeat(30_000)),
        format!("{{ others_v1 {{ ...F0 name }} }} {chain} fragment F3000 on Other_v1 {{ name }}"),
        format!("{chain} fragment F3000 on Other_v1 {{ ...F0 }} {{ others_v1 {{ ...F1 ...F2 }} }}"),
    ];
    for query in &deep {
        let answer = engine.answer(Request { query, ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["errors"][0]["extensions"]["code"], "LIMIT_EXCEEDED", "{}", &query[..60]);
    }
    let long = [
        (format!("{{ others_v1({}) {{ name }} }}", "name: \"a\" ".repeat(20_000)), 1),
        (format!("{{ others_v1 {{ {same} }} }}"), 1),
        (format!("{{ others_v1 {{ {} }} }}", "nope ".repeat(20_000)), 1),
        (format!("{{ others_v1 {{ name {} }} }}", "@skip(if: true) ".repeat(5_000)), 101),
    ];
    for (query, count) in &long {
        let answer = engine.answer(Request { query, ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["errors"].as_array().unwrap().len(), *count, "{}", &query[..60]);
    }
}
