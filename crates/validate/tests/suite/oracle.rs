//! Compares our verdicts with those of Python's jsonschema 3.2, the established validator.
//!
//! The real one runs as a process (`QONTRACT_PYTHON`, set by `cargo xtask test`).

pub mod judge;
pub mod mutate;
pub mod patterns;

use std::path::Path;

use qontract_benches::corpus;
use qontract_bundle::{Bundle, CommitStamp, Layout, Pool, Repo, Value, build, json, value_of};
use qontract_testkit::{Scratch, SeededRng, example, not_tested, public_schemas};
use qontract_validate::schema::{Formats, SchemaChecker, metaschema};
use qontract_yaml::{Limits, parse};
use serde_json::{Value as Plain, json as plain};

/// Number of documents to compare; `QONTRACT_ORACLE_CASES` overrides it.
fn cases(default: usize) -> usize {
    std::env::var("QONTRACT_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

fn bundle(folder: &Path) -> Bundle {
    let repo = Repo::directory(folder, Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    outcome.built.expect("no errors")
}

fn to_plain(value: &Value) -> Plain {
    let mut text = Vec::new();
    json::write_python(value, &mut text);
    serde_json::from_slice(&text).expect("JSON")
}

fn to_value(value: &Plain) -> Value {
    let document = parse(value.to_string().as_bytes(), &Limits::default()).document.expect("JSON is YAML");
    value_of(document.root()).expect("JSON")
}

fn schemas(bundle: &Bundle) -> Plain {
    bundle
        .schemas()
        .iter()
        .map(|schema| (schema.path.to_string(), to_plain(&schema.document.value)))
        .collect()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn mutated_datafiles_of_the_example_get_the_same_verdict() {
    compare(&bundle(&example()), cases(4_000));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON and the public schemas; run by `cargo xtask test`"]
fn mutated_datafiles_of_the_public_schemas_get_the_same_verdict() {
    let Some(schemas) = public_schemas() else {
        return not_tested("mutated datafiles of the public schemas: they are not available");
    };
    let scratch = Scratch::copy_of(&schemas);
    corpus::generate(600, 3).write(scratch.path()).expect("the generated files");
    compare(&bundle(scratch.path()), cases(2_000));
}

fn compare(bundle: &Bundle, count: usize) {
    let files: Vec<(String, Plain)> = bundle
        .datafiles()
        .iter()
        .filter_map(|file| Some((file.document.schema()?.to_owned(), to_plain(&file.document.value))))
        .collect();
    let mut random = SeededRng::new(11);
    let documents: Vec<(String, Plain)> = (0..count)
        .map(|_| {
            let (path, document) = &files[random.below(files.len())];
            let mut document = document.clone();
            for _ in 0..=random.below(2) {
                mutate::mutate(&mut document, &mut random);
            }
            (path.clone(), document)
        })
        .collect();
    let questions: Vec<String> = documents.iter().map(|question| plain!(question).to_string()).collect();
    let verdicts = judge::verdicts(&schemas(bundle).to_string(), &questions);
    let checker = SchemaChecker::new(bundle, Formats::Ignored);
    let mut refused = 0;
    for ((path, document), theirs) in documents.iter().zip(verdicts) {
        let failures = checker.check(path, &to_value(document)).expect("a schema");
        assert_eq!(failures.is_empty(), theirs, "{path}: {document}\n{failures:#?}");
        refused += usize::from(!theirs);
    }
    assert!(refused * 10 > documents.len() * 3, "only {refused} of {} were refused", documents.len());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn mutated_schemas_get_the_same_verdict() {
    let bundle = bundle(&example());
    let mut random = SeededRng::new(5);
    let mutated: Vec<Plain> = (0..cases(2_000))
        .map(|_| {
            let schema = &bundle.schemas()[random.below(bundle.schemas().len())];
            let mut schema = to_plain(&schema.document.value);
            mutate::mutate(&mut schema, &mut random);
            schema
        })
        .collect();
    let questions: Vec<String> = mutated.iter().map(|schema| plain!([null, schema]).to_string()).collect();
    for (schema, theirs) in mutated.iter().zip(judge::verdicts("{}", &questions)) {
        let faults = metaschema::faults(&to_value(schema));
        assert_eq!(faults.is_empty(), theirs, "{schema}\n{faults:#?}");
    }
}
