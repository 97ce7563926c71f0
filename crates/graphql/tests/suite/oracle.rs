//! Invalid requests are rejected in the same way as by graphql-js, with the same messages and locations, in
//! the same order. Valid requests are not rejected.
//!
//! The real graphql-js runs as a child process. `QONTRACT_GRAPHQL_JS`, set by `cargo xtask test`, is the
//! directory whose `node_modules` contains it.

mod mutate;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use mutate::{GOOD, mutate};
use qontract_bundle::json::JsonParser;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, QueryLimits, Request};
use qontract_testkit::{Scratch, SeededRng, vectors};
use serde_json::{Value, json};

/// Number of requests that a test compares; `QONTRACT_ORACLE_CASES` overrides it.
fn cases(default: usize) -> usize {
    std::env::var("QONTRACT_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// The directory of graphql-js.
fn folder() -> PathBuf {
    let folder = std::env::var_os("QONTRACT_GRAPHQL_JS");
    let folder = PathBuf::from(folder.expect("`cargo xtask test` sets QONTRACT_GRAPHQL_JS"));
    assert!(folder.join("node_modules/graphql").is_dir(), "{} has no graphql-js", folder.display());
    folder
}

/// The errors that graphql-js reports for each request.
fn theirs(folder: &Path, bundle: &Path, requests: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut child = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/oracle/graphql.mjs"))
        .arg(bundle)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node runs");
    let mut stdin = child.stdin.take().unwrap();
    for request in requests {
        writeln!(stdin, "{request}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "graphql-js failed");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The errors that this crate reports.
fn ours(engine: &Engine, request: Request<'_>) -> Value {
    let Err(answer) = engine.prepare(request) else { return json!([]) };
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let told = |error: &Value| {
        let kind = match error["extensions"]["code"].as_str() {
            Some("GRAPHQL_PARSE_FAILED") => "syntax",
            Some("GRAPHQL_VALIDATION_FAILED") => "validation",
            Some("BAD_USER_INPUT" | "INTERNAL_SERVER_ERROR") if request.variables.is_some() => "variables",
            // The operation name and the values of variables are checked later.
            Some("OPERATION_RESOLUTION_FAILURE" | "BAD_USER_INPUT" | "INTERNAL_SERVER_ERROR") => return None,
            other => panic!("{other:?}"),
        };
        let places = error["locations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let places: Vec<Value> = places.iter().map(|place| json!([place["line"], place["column"]])).collect();
        Some(json!({"kind": kind, "message": error["message"], "locations": places}))
    };
    body["errors"].as_array().unwrap().iter().filter_map(told).collect()
}

/// Compares both results for valid requests with random mutations.
fn compare(bundle: &Value, good: &[String], seed: u64) {
    let folder = folder();
    let scratch = Scratch::new();
    let bytes = serde_json::to_vec(bundle).unwrap();
    let path = scratch.write("bundle.json", &bytes);
    let engine = Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    let engine = engine.with_limits(QueryLimits::none());
    let mut chance = SeededRng::new(seed);
    let mut requests = good.to_vec();
    while requests.len() < cases(1_000) {
        requests.push(mutate(&good[chance.below(good.len())], &mut chance));
    }
    let (mut syntax, mut single, mut several, mut fine) = ([0, 0], [0, 0], [0, 0], [0, 0]);
    let mut wrong = Vec::new();
    let asked = requests.iter().map(|request| json!({"query": request}));
    for (request, theirs) in requests.iter().zip(theirs(&folder, &path, asked)) {
        let ours = ours(&engine, Request { query: request, ..Request::default() });
        let count = match theirs.as_array().unwrap().as_slice() {
            [] => &mut fine,
            [first] if first["kind"] == "syntax" => &mut syntax,
            [_] => &mut single,
            _ => &mut several,
        };
        count[0] += 1;
        if ours == theirs {
            count[1] += 1;
        } else {
            wrong.push(format!("{request:?}\n    ours:   {ours}\n    theirs: {theirs}"));
        }
    }
    wrong.sort_by_key(String::len);
    let shown = wrong.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    let counts = format!("syntax {syntax:?}, one mistake {single:?}, several {several:?}, none {fine:?}");
    assert!(wrong.is_empty(), "{} differ: {counts}\n{shown}", wrong.len());
    // All kinds of requests were compared.
    for [count, _] in [syntax, single, several, fine] {
        assert!(count * 500 > requests.len(), "{counts}");
    }
}

#[test]
#[ignore = "needs node and QONTRACT_GRAPHQL_JS; run by `cargo xtask test`"]
fn requests_over_the_recorded_bundle_are_refused_as_graphql_js_refuses_them() {
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(vectors().join(name)).unwrap()).unwrap()
    };
    let recorded = read("answers.json");
    let queries = recorded["queries"].as_array().unwrap().iter();
    let mut good: Vec<String> = queries.map(|query| query["query"].as_str().unwrap().to_owned()).collect();
    good.extend(GOOD.iter().map(|text| (*text).to_owned()));
    compare(&read("bundle.json"), &good, 1);
}

#[test]
#[ignore = "needs node and QONTRACT_GRAPHQL_JS; run by `cargo xtask test`"]
fn requests_with_many_kinds_of_mistakes_are_refused_as_graphql_js_refuses_them() {
    let types: Value = serde_json::from_str(include_str!("support/types.json")).unwrap();
    let bundle = json!({"data": {}, "resources": {}, "schemas": {}, "git_commit": "c", "git_commit_timestamp": "1",
        "graphql": {"confs": types}});
    let recorded: Vec<Value> = serde_json::from_str(include_str!("support/mistakes.json")).unwrap();
    let bad: Vec<String> = recorded.iter().map(|one| one["query"].as_str().unwrap().to_owned()).collect();
    compare(&bundle, &bad, 2);
}

#[test]
#[ignore = "needs node and QONTRACT_GRAPHQL_JS; run by `cargo xtask test`"]
fn values_of_variables_are_refused_as_graphql_js_refuses_them() {
    const TYPES: &[&str] = &[
        "String",
        "String!",
        "Int",
        "Float",
        "Boolean!",
        "JSON",
        "__TypeKind",
        "[Int]",
        "[[String!]]",
        "[__TypeKind!]!",
    ];
    let values = json!([null, true, 1, 1.5, -0.0, 1e300, 2_147_483_648_i64, 123_456_789_012_345_678_u64, "", "a\"é\u{7f}", "OBJEC", "OBJECT",
        "1", [], [1, "a", null, [true]], [["a", null], "b", [{}]], {}, {"a": {"b": {"c": [1, 2]}}, "1": [[[1]]]}]);
    let folder = folder();
    let bundle = vectors().join("bundle.json");
    let engine =
        Engine::new(Arc::new(load(&std::fs::read(&bundle).unwrap(), &Pool::default()).unwrap())).unwrap();
    let mut requests =
        vec![json!({"query": "query ($a: Int!, $b: [Int]) { apps_v1(filter: {a: $a, b: $b}) { name } }",
        "variables": {"b": vec!["x"; 60]}})];
    for type_ in TYPES {
        let query = format!("query (\n $a: {type_}) {{ apps_v1(filter: {{a: $a}}) {{ name }} }}");
        requests.push(json!({"query": query, "variables": {}}));
        requests.extend(
            values.as_array().unwrap().iter().map(|value| json!({"query": query, "variables": {"a": value}})),
        );
    }
    for (request, theirs) in requests.iter().zip(theirs(&folder, &bundle, requests.iter().cloned())) {
        // Other filter errors are reported later.
        let theirs: Value = theirs
            .as_array()
            .unwrap()
            .iter()
            .filter(|error| error["message"].as_str().unwrap().contains("ariable"))
            .cloned()
            .collect();
        let variables = JsonParser::new(&request["variables"].to_string()).parse().unwrap();
        let query = request["query"].as_str().unwrap();
        let ours = ours(&engine, Request { query, variables: variables.as_map(), ..Request::default() });
        assert_eq!(ours, theirs, "{request}");
    }
}
