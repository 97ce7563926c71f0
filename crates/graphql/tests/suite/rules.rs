//! Execution semantics, with expectations written by hand.

use std::cell::Cell;
use std::sync::Arc;

use qontract_bundle::json::JsonParser;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, QueryLimits, Request};
use serde_json::{Value, json};

use crate::support::random_bundle;

fn bundle() -> Value {
    let (thing, other, shape) = ("/w/thing-1.yml", "/w/other-1.yml", "/w/shape-1.yml");
    json!({
        "git_commit": "c", "git_commit_timestamp": "1", "schemas": {},
        "graphql": {"confs": random_bundle::confs()},
        "resources": {
            "/r/a.txt": {"$schema": null, "path": "/r/a.txt", "content": "a\n", "sha256sum": "x", "backrefs": [
                {"path": "/t/a.yml", "datafileSchema": thing, "jsonpath": "file"}]},
            "/r/b.yml": {"$schema": other, "path": "/r/b.yml", "content": "b", "sha256sum": "y", "backrefs": []},
        },
        "data": {
            "/o/a.yml": {"$schema": other, "name": "a", "number": 3, "tags": ["x", "y"]},
            "/o/b.yml": {"$schema": other, "name": "b", "tags": [], "peer": {"$ref": "/o/a.yml"}},
            "/o/c.yml": {"$schema": other, "name": "c", "number": null},
            "/s/q.yml": {"$schema": shape, "kind": 5, "name": "q", "side": 2, "peer": {"$ref": "/s/r.yml"}},
            "/s/r.yml": {"$schema": shape, "kind": "round", "name": "r", "radius": 1},
            "/t/a.yml": {"$schema": thing, "name": "a", "other": {"$ref": "/o/a.yml"}, "file": "/r/a.txt",
                "must_string": "m", "one_json": {"10": 1.0, "9": [1e21, "é\n"]}, "many_json": [{}, null, 1],
                "others": [{"$ref": "/o/a.yml"}, {"$ref": "/o/b.yml"}],
                "inners": [{"x": "1", "other": {"$ref": "/o/b.yml"}}, {"other": {"$ref": "/o/b.yml"}}, "text"],
                "any": {"$ref": "/s/q.yml"}, "shapes": [{"kind": "round", "radius": "0x10"}, {"kind": true, "side": 1}]},
            "/t/b.yml": {"$schema": thing, "name": "b", "other": {"$ref": "/o/none.yml"}, "file": "/r/none",
                "one_int": "12", "one_float": true, "one_boolean": 0, "one_string": 1.50, "many_int": [1, 1.5],
                "must_string": {"obj": 1}, "many_string": "no list", "others": [{"$ref": "/o/none.yml"}],
                "inner": {"$schema": "/w/inner", "x": false, "path": "/o/a.yml"}, "any": {"no": "file"},
                "shapes": [{"kind": "gone"}], "shape": {"kind": "odd"}, "one_json": {"$ref": "/o/b.yml$/name"}},
        },
    })
}

fn engine() -> Engine {
    let bytes = serde_json::to_vec(&bundle()).unwrap();
    Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap()
}

fn query_json(query: &str) -> Value {
    serde_json::from_slice(&engine().answer(Request { query, ..Request::default() }).body).unwrap()
}

/// Checks the data of a response without errors.
#[track_caller]
fn check(query: &str, expect: impl Into<Value>) {
    let answer = query_json(query);
    assert_eq!(answer.get("errors"), None, "{query}");
    assert_eq!(answer["data"], expect.into(), "{query}");
}

/// Checks the message and path of the first error, and the data.
#[track_caller]
fn fails(query: &str, message: &str, path: impl Into<Value>, data: impl Into<Value>) {
    let answer = query_json(query);
    assert_eq!(answer["errors"][0]["message"], message, "{query}");
    assert_eq!(answer["errors"][0]["path"], path.into(), "{query}");
    assert_eq!(answer["data"], data.into(), "{query}");
}

/// Checks the names of the objects that pass a filter.
#[track_caller]
fn filters(filter: &str, expect: &[&str]) {
    let expected: Vec<Value> = expect.iter().map(|name| json!({"name": name})).collect();
    check(&format!("{{ others_v1(filter: {filter}) {{ name }} }}"), json!({"others_v1": expected}));
}

#[test]
fn filters_compare_the_values_of_the_file() {
    filters("{}", &["a", "b", "c"]);
    filters("null", &["a", "b", "c"]);
    filters("{name: \"a\"}", &["a"]);
    filters("{name: a}", &["a"]);
    filters("{number: 3.0}", &["a"]);
    filters("{number: \"3\"}", &[]);
    filters("{number: null}", &["b", "c"]);
    filters("{number: {ne: null}}", &["a"]);
    filters("{number: {ne: 3}, name: {ne: \"c\"}}", &["b"]);
    filters("{path: {in: [\"/o/a.yml\", \"/o/c.yml\"]}}", &["a", "c"]);
    filters("{name: {in: \"ab\"}}", &["a", "b"]);
    filters("{name: {in: []}}", &[]);
    filters("{number: {in: [null]}}", &["c"]);
    filters("{name: {in: [\"a\"], ne: \"a\"}}", &["a"]);
    filters("{schema: \"/w/other-1.yml\"}", &[]);
    filters("{schema: null}", &["a", "b", "c"]);
    filters("{things: null}", &["a", "b", "c"]);
    filters("\"text\"", &[]);
    filters("{name: {}}", &[]);
    filters("[]", &["a", "b", "c"]);
}

#[test]
fn filters_on_lists_compare_in_order_or_every_element() {
    filters("{tags: [\"x\", \"y\"]}", &["a"]);
    filters("{tags: [\"y\", \"x\"]}", &[]);
    filters("{tags: []}", &["b"]);
    filters("{tags: \"x\"}", &[]);
    let things = |filter: &str, expect: &[&str]| {
        let expected: Vec<Value> = expect.iter().map(|name| json!({"name": name})).collect();
        check(&format!("{{ things_v1(filter: {filter}) {{ name }} }}"), json!({"things_v1": expected}));
    };
    things("{name: \"a\", others: {filter: {name: {in: [\"a\", \"b\"]}}}}", &["a"]);
    things("{name: \"a\", others: {filter: {name: {in: [\"a\"]}}}}", &[]);
    things("{name: \"a\", others: {filter: {name: \"a\"}}}", &[]);
    things("{name: \"a\", others: {filter: {name: null}}}", &["a"]);
    things("{other: {filter: {name: \"a\"}}}", &["a"]);
    things("{inner: {filter: {x: {ne: true}}}}", &["b"]);
}

#[test]
fn invalid_filters_are_errors() {
    let query = "{ things_v1(filter: {other: {filter: {nope: 1}}}) { name } }";
    fails(
        query,
        "Field \"nope\" does not exist on type \"Other_v1\"",
        json!(["things_v1"]),
        json!({"things_v1": null}),
    );
    assert_eq!(
        query_json(query)["errors"][0]["extensions"],
        json!({"code": "BAD_FILTER_FIELD", "gqlType": "Other_v1"})
    );
    let fail = |filter: &str, message: &str| {
        let query = format!("{{ things_v1(filter: {filter}) {{ name }} }}");
        fails(&query, message, json!(["things_v1"]), json!({"things_v1": null}));
    };
    fail("[1]", "Field \"0\" does not exist on type \"Thing_v1\"");
    fail("{name: {in: 5}}", "number 5 is not iterable (cannot read property Symbol(Symbol.iterator))");
    fail("{name: {filter: {}}}", "Cannot read properties of undefined (reading 'name')");
    fail(
        "{name: \"b\", others: {filter: {name: {ne: 1}}}}",
        "Cannot read properties of null (reading 'name')",
    );
    // A dangling reference never passes.
    check("{ things_v1(filter: {name: \"b\", other: {filter: null}}) { name } }", json!({"things_v1": []}));
    // No datafiles: the filter is not evaluated.
    check("{ none_v1(filter: {nope: 1}) { name } }", json!({"none_v1": []}));
    // The fields of all mapped types are allowed.
    check("{ shapes_v1(filter: {radius: 1}) { name } }", json!({"shapes_v1": [{"name": "r"}]}));
}

#[test]
fn arguments_search_by_text() {
    check("{ others_v1(name: \"a\") { name } }", json!({"others_v1": [{"name": "a"}]}));
    check("{ others_v1(number: \"3\") { name } }", json!({"others_v1": []}));
    check("{ others_v1(name: null, path: \"/o/b.yml\") { name } }", json!({"others_v1": [{"name": "b"}]}));
    check("{ others_v1(path: \"/t/a.yml\") { name } }", json!({"others_v1": []}));
}

#[test]
fn references_and_back_references_are_followed() {
    check(
        "{ things_v1 { name other { name } } }",
        json!({"things_v1": [{"name": "a", "other": {"name": "a"}}, {"name": "b", "other": null}]}),
    );
    check(
        "{ others_v1 { things { name } deep { name } } }",
        json!({"others_v1": [{"things": [{"name": "a"}], "deep": []}, {"things": [], "deep": [{"name": "a"}]},
            {"things": [], "deep": []}]}),
    );
    // A list where one object is expected has no keys.
    check(
        "{ others_v1(name: \"a\") { single { name } } }",
        json!({"others_v1": [{"single": {"name": null}}]}),
    );
    let query = "{ things_v1(name: \"b\") { others { name } } }";
    let message = "Cannot return null for non-nullable field Thing_v1.others.";
    fails(query, message, json!(["things_v1", 0, "others", 0]), json!({"things_v1": [{"others": null}]}));
    let query = "{ things_v1(name: \"b\") { one_json } }";
    let path = json!(["things_v1", 0, "one_json"]);
    fails(query, "Invalid JSON pointer.", path, json!({"things_v1": [{"one_json": null}]}));
}

#[test]
fn scalars_are_coerced_as_in_javascript() {
    check(
        "{ things_v1(name: \"b\") { one_int one_float one_boolean one_string inner { x schema } } }",
        json!({"things_v1": [{"one_int": 12, "one_float": 1, "one_boolean": false, "one_string": "1.5",
            "inner": {"x": "false", "schema": "/w/inner"}}]}),
    );
    check(
        "{ things_v1(name: \"a\") { one_json shapes { ... on Round_v1 { radius } } } }",
        json!({"things_v1": [{"one_json": "{\"9\":[1e+21,\"é\\n\"],\"10\":1}", "shapes": [{"radius": 16}]}]}),
    );
    let path = |field: &str| json!(["things_v1", 0, field]);
    let one = |field: &str| json!({"things_v1": [{field: null}]});
    let query = "{ things_v1(name: \"b\") { many_int } }";
    let at = json!(["things_v1", 0, "many_int", 1]);
    fails(query, "Int cannot represent non-integer value: 1.5", at, one("many_int"));
    let query = "{ things_v1(name: \"b\") { many_string } }";
    let message = "Expected Iterable, but did not find one for field \"Thing_v1.many_string\".";
    fails(query, message, path("many_string"), one("many_string"));
    // A null in a non-nullable position nulls the list.
    let query = "{ things_v1(name: \"b\") { name must_string } }";
    fails(
        query,
        "String cannot represent value: { obj: 1 }",
        path("must_string"),
        json!({"things_v1": null}),
    );
    let query = "{ others_v1 { number } }";
    let message = "Cannot read properties of null (reading 'constructor')";
    let data = json!({"others_v1": [{"number": 3}, {"number": null}, {"number": null}]});
    fails(query, message, json!(["others_v1", 2, "number"]), data);
    let query = "{ things_v1(name: \"a\") { many_json } }";
    fails(query, message, path("many_json"), one("many_json"));
}

#[test]
fn interfaces_resolve_to_their_types() {
    check(
        "{ shapes_v1 { __typename name ... on Square_v1 { peer { kind } } } }",
        json!({"shapes_v1": [{"__typename": "Square_v1", "name": "q", "peer": {"kind": "round"}},
            {"__typename": "Round_v1", "name": "r"}]}),
    );
    check(
        "{ things_v1(name: \"a\") { any { __typename path } shapes { __typename } } }",
        json!({"things_v1": [{"any": {"__typename": "Square_v1", "path": "/s/q.yml"},
            "shapes": [{"__typename": "Round_v1"}, {"__typename": "Square_v1"}]}]}),
    );
    let fail = |field: &str, message: &str, path: Value| {
        let query = format!("{{ things_v1(name: \"b\") {{ {field} {{ __typename }} }} }}");
        fails(&query, message, path, json!({"things_v1": [{field: null}]}));
    };
    fail(
        "any",
        "Abstract type \"DatafileObject_v1\" must resolve to an Object type at runtime for field \"Thing_v1.any\". \
         Either the \"DatafileObject_v1\" type should provide a \"resolveType\" function or each possible type should \
         provide an \"isTypeOf\" function.",
        json!(["things_v1", 0, "any"]),
    );
    fail(
        "shapes",
        "Abstract type \"Shape_v1\" was resolved to a type \"Gone_v1\" that does not exist inside the schema.",
        json!(["things_v1", 0, "shapes", 0]),
    );
    fail(
        "shape",
        "Runtime Object type \"Inner_v1\" is not a possible type for \"Shape_v1\".",
        json!(["things_v1", 0, "shape"]),
    );
}

#[test]
fn resources_are_found_by_path_and_schema() {
    check(
        "{ resources_v1 { path schema } }",
        json!({"resources_v1": [
        {"path": "/r/a.txt", "schema": null}, {"path": "/r/b.yml", "schema": "/w/other-1.yml"}]}),
    );
    check(
        "{ resources_v1(path: \"\", schema: \"/w/other-1.yml\") { path } }",
        json!({"resources_v1": [{"path": "/r/b.yml"}]}),
    );
    check(
        "{ resources_v1(path: \"/r/a.txt\") { backrefs { path jsonpath type } } }",
        json!({"resources_v1": [
        {"backrefs": [{"path": "/t/a.yml", "jsonpath": "file", "type": null}]}]}),
    );
    // A missing resource is null, even for a required field.
    check(
        "{ things_v1 { file { content } } }",
        json!({"things_v1": [{"file": {"content": "a\n"}}, {"file": null}]}),
    );
}

#[test]
fn empty_objects_are_removed_from_lists_only() {
    check(
        "{ things_v1(name: \"a\") { inners { ... on Inner_v1 @skip(if: true) { x } } } }",
        json!({"things_v1": [{"inners": []}]}),
    );
    check(
        "{ things_v1 { other { name @skip(if: true) } } }",
        json!({"things_v1": [{"other": {}}, {"other": null}]}),
    );
    check("{ things_v1 { name @skip(if: true) } }", json!({"things_v1": []}));
}

#[test]
fn schemas_are_those_of_objects_whose_keys_were_read_in_order_of_first_occurrence() {
    let schemas = |query: &str| query_json(query)["extensions"]["schemas"].clone();
    assert_eq!(schemas("{ things_v1 { __typename } }"), json!([]));
    assert_eq!(
        schemas("{ others_v1 { things { name } name } }"),
        json!(["/w/thing-1.yml", "/w/other-1.yml"])
    );
    assert_eq!(
        schemas("{ others_v1 { name things { name } } }"),
        json!(["/w/other-1.yml", "/w/thing-1.yml"])
    );
    assert_eq!(schemas("{ things_v1 { file { content } } }"), json!([]));
    assert_eq!(schemas("{ resources_v1 { path } }"), json!(["/w/other-1.yml"]));
    assert_eq!(schemas("{ things_v1(name: \"b\") { inner { x } } }"), json!(["/w/thing-1.yml", "/w/inner"]));
}

#[test]
fn provenance_has_file_and_pointer_of_every_object_in_the_response() {
    let query = "{ things_v1(name: \"a\") { inners { ... on Inner_v1 { other { name } } } shapes { ... on Square_v1 { side } } } }";
    let answer = engine().answer(Request { query, provenance: true, ..Request::default() });
    let plain = engine().answer(Request { query, ..Request::default() });
    assert_eq!(answer.body, plain.body, "provenance is not part of the answer");
    let origins = answer.provenance.unwrap();
    let listed: Vec<String> =
        origins.origins().iter().map(|one| format!("{} {}{}", one.at, one.path, one.pointer)).collect();
    assert_eq!(
        listed,
        [
            "/things_v1/0 /t/a.yml",
            "/things_v1/0/inners/0 /t/a.yml/inners/0",
            "/things_v1/0/inners/0/other /o/b.yml",
            "/things_v1/0/inners/1 /t/a.yml/inners/1",
            "/things_v1/0/inners/1/other /o/b.yml",
            "/things_v1/0/inners/2 /t/a.yml/inners/2",
            // The first shape is not a square: the remaining one moves up.
            "/things_v1/0/shapes/0 /t/a.yml/shapes/1",
        ]
    );
    // Objects that were rewound are not recorded.
    let query = "{ things_v1(name: \"b\") { inner { x } must_string } }";
    let answer = engine().answer(Request { query, provenance: true, ..Request::default() });
    assert!(answer.provenance.unwrap().origins().is_empty());
}

#[test]
fn exceeded_limits_are_clear_errors() {
    let refused = |limits: QueryLimits, query: &str, message: &str| {
        let answer = engine().with_limits(limits).answer(Request { query, ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["errors"][0]["message"], message);
        assert_eq!(body["errors"][0]["extensions"]["code"], "LIMIT_EXCEEDED");
        assert!(body["data"].is_null());
    };
    let limits = QueryLimits::default;
    let query = "{ others_v1 { things { other { things { name } } } } }";
    refused(
        QueryLimits { query_bytes: 10, ..limits() },
        query,
        "The request has 54 bytes; at most 10 are allowed.",
    );
    refused(
        QueryLimits { depth: 4, ..limits() },
        query,
        "The request nests fields 5 levels deep; at most 4 are allowed.",
    );
    refused(
        QueryLimits { cost: 5, ..limits() },
        query,
        "The response would contain about 13 objects; at most 5 are allowed.",
    );
    let aliases = "{ a: others_v1 { name } b: others_v1 { name } }";
    refused(
        QueryLimits { aliases: 1, ..limits() },
        aliases,
        "The request has 2 aliases; at most 1 are allowed.",
    );
    let many = format!("{{ others_v1 {{ {} }} }}", "name ".repeat(3_000));
    refused(
        QueryLimits::default(),
        &many,
        "The request has 3001 selections and directives; at most 2000 are allowed.",
    );
    let repeated = format!("{{ others_v1 {{ name {} }} }}", "@skip(if: false) ".repeat(50));
    refused(
        QueryLimits::default(),
        &repeated,
        "The request has 2502 selections and directives; at most 2000 are allowed.",
    );
    let long = (0..150).map(|index| format!("a{index}: others_v1 {{ name }}")).collect::<Vec<_>>().join(" ");
    refused(
        QueryLimits { answer_bytes: 100, ..limits() },
        &format!("{{ {long} }}"),
        "The response has more than 100 bytes.",
    );
    // Nested fragments that expand to a billion spreads: each fragment is compiled once.
    let mut bomb = String::from("{ others_v1 { ...F0 } } fragment F30 on Other_v1 { name }");
    for level in 0..30 {
        let next = level + 1;
        bomb += &format!(" fragment F{level} on Other_v1 {{ peer {{ ...F{next} }} ...F{next} }}");
    }
    let answer = engine().answer(Request { query: &bomb, ..Request::default() });
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

#[test]
fn a_cancelled_request_stops_early() {
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 1
    };
    let long = (0..190)
        .map(|index| format!("a{index}: others_v1 {{ name peer {{ name }} }}"))
        .collect::<Vec<_>>()
        .join(" ");
    let query = format!("{{ {long} }}");
    let answer =
        engine().answer(Request { query: &query, cancelled: Some(&cancelled), ..Request::default() });
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["errors"][0]["extensions"]["code"], "CANCELLED");
    assert_eq!(body["data"], Value::Null);
    assert_eq!(asked.get(), 2);
}

#[test]
fn a_cyclic_query_is_refused_before_execution() {
    // 40 clusters of 25 namespaces each: six levels of this are 10^10 objects.
    let mut data = serde_json::Map::new();
    for thing in 0..1000 {
        let other = json!({"$ref": format!("/o/{}.yml", thing % 40)});
        data.insert(format!("/t/{thing}.yml"), json!({"$schema": "/w/thing-1.yml", "other": other}));
    }
    for other in 0..40 {
        data.insert(format!("/o/{other}.yml"), json!({"$schema": "/w/other-1.yml", "name": "o"}));
    }
    let mut bundle = bundle();
    bundle["data"] = Value::Object(data);
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let engine = Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    let query = format!("{{ others_v1 {}{{ name }}{} }}", "{ things { other ".repeat(6), "} }".repeat(6));
    let answer = engine.answer(Request { query: &query, ..Request::default() });
    assert_eq!(answer.status, 400);
    assert!(String::from_utf8_lossy(&answer.body).contains("at most 20000000 are allowed"));
    let shallow = "{ others_v1 { things { other { name } } } }";
    assert_eq!(engine.answer(Request { query: shallow, ..Request::default() }).status, 200);
}

#[test]
fn data_that_the_peers_refuse_can_be_queried() {
    let mut bundle = bundle();
    bundle["data"]["/t/c.yml"] = json!({"$schema": "/w/thing-1.yml", "other": null, "inners": "text"});
    bundle["data"]["/t/d.yml"] = json!({"$schema": "/w/thing-1.yml", "other": "text", "inners": [null]});
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let engine = Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    let answer = engine.answer(Request { query: "{ others_v1 { things { path } } }", ..Request::default() });
    assert_eq!((answer.status, answer.has_errors), (200, false));
}

#[test]
fn bundles_with_the_same_types_share_schema_and_plans() {
    let base = engine();
    let mut bundle = bundle();
    bundle["data"]["/o/d.yml"] = json!({"$schema": "/w/other-1.yml", "name": "d"});
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let head = base.derive(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    assert!(std::ptr::eq(base.schema(), head.schema()));
    bundle["graphql"]["confs"].as_array_mut().unwrap().reverse();
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let other = base.derive(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    assert!(!std::ptr::eq(base.schema(), other.schema()));
}

#[test]
fn variables_are_checked_and_every_error_is_reported() {
    let complaints = |query: &str, variables: &str| {
        let given = JsonParser::new(variables).parse().unwrap();
        let answer = engine().answer(Request { query, variables: given.as_map(), ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 400, "{body}");
        let errors = body["errors"].as_array().unwrap().iter();
        errors.map(|error| error["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let query =
        "query($a: [String!], $b: Int!, $c: Boolean!) { others_v1(filter: {x: $a, y: $b, z: $c}) { name } }";
    assert_eq!(
        complaints(query, "{\"a\": [\"x\", null, 5], \"b\": 1.5}"),
        [
            "Variable \"$a\" got invalid value null at \"a[1]\"; Expected non-nullable type \"String!\" not to be null.",
            "Variable \"$a\" got invalid value 5 at \"a[2]\"; String cannot represent a non string value: 5",
            "Variable \"$b\" got invalid value 1.5; Int cannot represent non-integer value: 1.5",
            "Variable \"$c\" of required type \"Boolean!\" was not provided.",
        ]
    );
    assert_eq!(
        complaints(query, "{\"b\": 5000000000, \"c\": null}"),
        [
            "Variable \"$b\" got invalid value 5000000000; Int cannot represent non 32-bit signed integer value: 5000000000",
            "Variable \"$c\" of non-null type \"Boolean!\" must not be null.",
        ]
    );
}

#[test]
fn repeated_errors_are_reported_as_in_graphql_js() {
    let errors = |query: &str| {
        let answer = engine().answer(Request { query, ..Request::default() });
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        body["errors"].as_array().unwrap().clone()
    };
    let repeated = errors("{ others_v1 { name @skip(if: false) @skip(if: false) @skip(if: false) } }");
    let columns = |error: &Value| -> Vec<u64> {
        error["locations"].as_array().unwrap().iter().filter_map(|place| place["column"].as_u64()).collect()
    };
    assert_eq!(repeated.iter().map(columns).collect::<Vec<_>>(), [[20, 37], [20, 54]]);
    let many = errors(&format!("{{ {} }}", "x ".repeat(150)));
    assert_eq!(many.len(), 101);
    assert_eq!(many[100]["message"], "Too many validation errors, error limit reached. Validation aborted.");
}

#[test]
fn an_object_that_was_rewound_is_written_again() {
    let (thing, other) = ("/w/thing-1.yml", "/w/other-1.yml");
    let mut bundle = bundle();
    let at = |path: &str| json!({"$ref": path});
    bundle["data"] = json!({
        "/o/a.yml": {"$schema": other, "name": "a"},
        "/o/b.yml": {"$schema": other, "name": "b"},
        "/o/c.yml": {"$schema": other, "name": "c", "number": null},
        "/t/a.yml": {"$schema": thing, "other": at("/o/c.yml"), "inners": [{"other": at("/o/a.yml")}], "must_string": {}},
        "/t/b.yml": {"$schema": thing, "other": at("/o/c.yml"), "inners": [{"other": at("/o/b.yml")}], "must_string": "m"},
    });
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let engine = Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
    let ask = |query: &str| -> Value {
        serde_json::from_slice(&engine.answer(Request { query, ..Request::default() }).body).unwrap()
    };
    let answer = ask("{ others_v1 { deep { other { name } must_string } } }");
    let found = json!([{"other": {"name": "c"}, "must_string": "m"}]);
    assert_eq!(answer["data"], json!({"others_v1": [{"deep": null}, {"deep": found}, {"deep": []}]}));
    // An object with an error has it at each position.
    let answer = ask("{ things_v1 { other { name number } } }");
    let paths: Vec<&Value> =
        answer["errors"].as_array().unwrap().iter().map(|error| &error["path"]).collect();
    let path = |index: usize| json!(["things_v1", index, "other", "number"]);
    assert_eq!(paths, [&path(0), &path(1)]);
}

#[test]
fn copies_count_towards_the_size_of_the_response() {
    let mut bundle = bundle();
    let other = json!({"$schema": "/w/other-1.yml", "name": "x".repeat(1000)});
    bundle["data"] = json!({"/o/a.yml": other});
    for number in 0..20 {
        let thing = json!({"$schema": "/w/thing-1.yml", "other": {"$ref": "/o/a.yml"}});
        bundle["data"][format!("/t/{number:02}.yml")] = thing;
    }
    let bytes = serde_json::to_vec(&bundle).unwrap();
    let engine = |answer_bytes| {
        let limits = QueryLimits { answer_bytes, ..QueryLimits::default() };
        Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap().with_limits(limits)
    };
    let request = Request { query: "{ things_v1 { other { name } } }", ..Request::default() };
    assert!(!engine(25_000).answer(request).has_errors);
    let answer = engine(10_000).answer(request);
    assert!(answer.has_errors && answer.body.len() < 10_000, "{} bytes", answer.body.len());
    let touched = engine(25_000).answer(Request { touched: true, ..request }).touched.unwrap();
    assert_eq!(touched.files().count(), 21);
}
