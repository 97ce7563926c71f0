//! The records are those of the established validator, but for the words of JSON-schema errors.

use qontract_bundle::{Bundle, Pool, load};
use qontract_testkit::vectors;
use qontract_validate::peer::{self, Record};
use serde_json::Value;

fn bundle(name: &str) -> Bundle {
    load(&std::fs::read(vectors().join(name)).expect("a vector"), &Pool::default()).expect("a bundle")
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(vectors().join(name)).expect("a vector")
}

/// The records without the words of JSON-schema errors, which are ours.
fn worded_alike(records: &str) -> Vec<Value> {
    let mut records: Vec<Value> = serde_json::from_str(records).expect("records");
    for record in &mut records {
        let result = record["result"].as_object_mut().expect("a result");
        if matches!(result.get("reason").and_then(Value::as_str), Some("VALIDATION_ERROR")) {
            assert!(result.insert("error".to_owned(), Value::Null).is_some_and(|words| words.is_string()));
        }
    }
    records
}

#[test]
fn the_records_of_the_good_repo_are_the_recorded_bytes() {
    assert_eq!(peer::to_json(&peer::records(&bundle("bundle.json"))), recorded("validate.json"));
}

#[test]
fn the_errors_of_the_broken_repo_are_the_recorded_ones_in_order() {
    let errors: Vec<Record> =
        peer::records(&bundle("broken-bundle.json")).into_iter().filter(Record::is_error).collect();
    assert_eq!(worded_alike(&peer::to_json(&errors)), worded_alike(&recorded("broken-validate.json")));
}
