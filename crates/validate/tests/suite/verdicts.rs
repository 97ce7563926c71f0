//! Small schemas and values with easily misjudged verdicts, compared with Python's jsonschema 3.2.
//!
//! The real one runs as a process (`QONTRACT_PYTHON`, set by `cargo xtask test`).

use qontract_bundle::{Bundle, Pool, load};
use qontract_validate::schema::{Formats, SchemaChecker};
use qontract_validate::{Options, validate};
use serde_json::{Value as Plain, json};

use crate::oracle::judge;

/// A bundle of schemas, with one file of the schema `/tiny/here-1.yml`.
fn bundle(schemas: &Plain, document: &Plain) -> Bundle {
    let text = json!({
        "git_commit": "", "git_commit_timestamp": "", "graphql": [], "resources": {},
        "data": { "/file.yml": { "$schema": "/tiny/here-1.yml", "value": document } }, "schemas": schemas,
    });
    load(text.to_string().as_bytes(), &Pool::default()).expect("a bundle")
}

/// Compares verdicts on pairs of a schema and a value; where Python ends with a traceback, the schema is
/// reported.
fn compare(others: &Plain, cases: &[(Plain, Plain)]) {
    let questions: Vec<String> = cases.iter().map(|case| json!(case).to_string()).collect();
    let answers = judge::answers("judge.py", &others.to_string(), &questions);
    for ((schema, document), answer) in cases.iter().zip(answers) {
        let mut schemas = others.clone();
        schemas["/tiny/here-1.yml"] = schema.clone();
        let bundle = bundle(&schemas, document);
        let value = bundle.datafile("/file.yml").and_then(|file| file.value.get("value")).expect("the value");
        let checker = SchemaChecker::new(&bundle, Formats::Ignored);
        let failures = checker.check("/tiny/here-1.yml", value).expect("the schema");
        match answer.as_str() {
            "null" => {
                let told = validate(&bundle, &Options::default());
                let told = told.iter().filter(|finding| finding.location.file.ends_with("here-1.yml"));
                assert!(told.count() > 1, "{schema}: only its missing `$schema` is reported");
            }
            theirs => assert_eq!(failures.is_empty(), theirs == "true", "{schema} {document}\n{failures:#?}"),
        }
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn values_are_equal_as_python_counts_them() {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(1.0),
        json!(-0.0),
        json!(""),
        json!("1"),
        json!([]),
        json!([1]),
        json!([true]),
        json!([[1.0]]),
        json!([[true]]),
        json!({}),
        json!({"a": 1}),
        json!({"a": true}),
        json!({"a": 1.0}),
        json!(1e19),
        json!(10_000_000_000_000_000_000_u64),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(0.1),
    ];
    let mut cases = Vec::new();
    for one in &values {
        for other in &values {
            cases.push((json!({ "enum": [one] }), other.clone()));
            cases.push((json!({ "const": one }), other.clone()));
            cases.push((json!({ "uniqueItems": true }), json!([one, other])));
            cases.push((json!({ "uniqueItems": true }), json!([[one], [other], "x"])));
            cases.push((
                json!({ "items": [{ "enum": [one, "x"] }], "additionalItems": false }),
                json!([other]),
            ));
        }
    }
    compare(&json!({}), &cases);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn numbers_are_compared_and_divided_as_python_does() {
    let numbers = [
        json!(0),
        json!(1),
        json!(3),
        json!(-3),
        json!(7.5),
        json!(0.1),
        json!(0.2),
        json!(0.3),
        json!(1.1),
        json!(19.99),
        json!(1e300),
        json!(1e20),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(15_000_000_000_000_000_000_u64),
        json!(1e-7),
        json!(i64::MIN),
        json!("x"),
    ];
    let mut cases = Vec::new();
    for limit in numbers.iter().filter(|number| number.is_number()) {
        for number in &numbers {
            for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
                cases.push((json!({ keyword: limit }), number.clone()));
            }
            // Python fails with a traceback for tiny divisors.
            if limit.as_f64().is_some_and(|of| of >= 1e-6) {
                cases.push((json!({ "multipleOf": limit }), number.clone()));
            }
        }
    }
    compare(&json!({}), &cases);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn references_resolve_as_in_python() {
    let others = json!({
        "/o.json": { "$schema": "x", "definitions": { "a": { "type": "string" }, "a b": { "type": "integer" }, "a/b": { "type": "null" } } },
        "/tiny/b.json": { "type": "boolean" },
    });
    let references = [
        "#/definitions/a%20b",
        "#/definitions/a b",
        "#/definitions/a~1b",
        "#/definitions/a%2Fb",
        "#/definitions/ü",
        "#/definitions/%C3%BC",
        "#definitions/t",
        "#/",
        "#",
        "#//definitions/t",
        "#/allOf/0",
        "#/allOf/1",
        "#/allOf/-1",
        "#/allOf/x",
        "#/definitions/list",
        "#/definitions/text",
        "#/definitions/nothing",
        "#/definitions/t/type",
        "/o.json",
        "/o.json#/definitions/a",
        "//o.json",
        "../o.json",
        "../../o.json",
        "./b.json",
        "b.json",
        "b.json#",
        "/tiny/../tiny/b.json",
        "/tiny//b.json",
        "/none.json",
        "here-1.yml#/definitions/t",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-06/schema#/definitions/simpleTypes",
        "mailto:x",
        "/o.json?x",
        "#/definitions/%zz",
    ];
    let values = [
        json!("x"),
        json!("string"),
        json!(1),
        json!(null),
        json!(true),
        json!({}),
        json!({ "type": "nonsense" }),
        json!([]),
    ];
    let mut cases = Vec::new();
    for reference in references {
        for value in &values {
            // The reference is in `properties`, so a schema that refers to itself is not a cycle.
            let schema = json!({
                "properties": { "x": { "$ref": reference, "type": "null" } },
                "additionalProperties": false,
                "allOf": [{}, { "type": "object" }],
                "definitions": {
                    "t": { "type": "string" }, "a b": { "type": "integer" }, "a/b": { "type": "null" }, "a": { "b": { "type": "array" } }, "ü": { "type": "boolean" },
                    "list": [{}], "text": "x", "%zz": { "type": "null" },
                },
            });
            cases.push((schema, json!({ "x": value })));
        }
    }
    compare(&others, &cases);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn names_of_fields_are_matched_as_python_matches_them() {
    let patterns = ["(?i)^a", "^(?!x)", "(?<=a)b", "^\\w+$", "", "^a$", "a|b", "\\101", "^x-"];
    let names = ["a", "A", "ab", "b", "x", "x-y", "é", "a\n", ""];
    let mut cases = Vec::new();
    for pattern in patterns {
        for name in names {
            let fields = json!({ pattern: { "type": "string" } });
            for other in [json!(false), json!(true), json!({ "type": "null" })] {
                let schema = json!({ "patternProperties": fields, "additionalProperties": other });
                cases.push((schema, json!({ name: 1 })));
            }
            // `additionalProperties` joins all patterns into one, and flags must be at its start.
            let two = json!({ "(?i)^b": {}, pattern: {} });
            if pattern > "(?i)^b" {
                cases.push((
                    json!({ "patternProperties": two, "additionalProperties": false }),
                    json!({ name: 1 }),
                ));
            }
            cases.push((json!({ "propertyNames": { "pattern": pattern } }), json!({ name: 1 })));
        }
    }
    compare(&json!({}), &cases);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn other_keywords_mean_what_python_means() {
    let schemas = [
        json!(true),
        json!(false),
        json!({ "type": ["integer", "null"] }),
        json!({ "items": false }),
        json!({ "items": [true, false] }),
        json!({ "items": [{}], "additionalItems": { "type": "null" } }),
        json!({ "additionalItems": false }),
        json!({ "items": {}, "additionalItems": false }),
        json!({ "contains": { "type": "null" } }),
        json!({ "not": {} }),
        json!({ "oneOf": [{}, true] }),
        json!({ "oneOf": [{ "type": "null" }, true] }),
        json!({ "dependencies": { "a": ["b"], "b": { "required": ["c"] }, "c": false } }),
        json!({ "minLength": 1.0 }),
        json!({ "maxLength": 1 }),
        json!({ "minProperties": 1, "maxProperties": 1 }),
        json!({ "minItems": 1, "maxItems": 1 }),
        json!({ "enum": [] }),
        json!({ "required": ["a"] }),
        json!({ "allOf": [{ "required": ["a"] }, { "properties": { "a": { "type": "string" } } }] }),
        json!({ "anyOf": [false, false] }),
        json!({ "format": "ipv4" }),
        json!({ "if": false, "then": false, "else": false }),
        json!({ "$id": 5, "type": "string" }),
        json!({ "propertyNames": { "maxLength": 1 } }),
        json!({ "propertyNames": false }),
        json!({ "additionalProperties": { "type": "null" } }),
    ];
    let values = [
        json!(null),
        json!(true),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(1e20),
        json!(""),
        json!("é"),
        json!("ab"),
        json!([]),
        json!([null]),
        json!([1, null]),
        json!([null, 1]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": "x", "b": 1 }),
        json!({ "b": 1 }),
        json!({ "c": 1 }),
        json!({ "ab": null }),
    ];
    let cases: Vec<_> = schemas
        .iter()
        .flat_map(|schema| values.iter().map(|value| (schema.clone(), value.clone())))
        .collect();
    compare(&json!({}), &cases);
}
