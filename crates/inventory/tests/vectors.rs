//! Objects recorded from the established runtime, with their canonical text and hash.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use qontract_inventory::canonical;
use qontract_testkit::vectors;
use serde_json::Value;

#[test]
fn text_and_hash_are_those_of_the_established_runtime() {
    let recorded = std::fs::read(vectors().join("kube/hashes.json")).unwrap();
    let recorded: Vec<Value> = serde_json::from_slice(&recorded).unwrap();
    assert_eq!(recorded.len(), 44);
    for one in &recorded {
        let canonical = canonical(&one["object"]).unwrap();
        assert_eq!(canonical.text, one["canonical"].as_str().unwrap(), "{}", one["object"]);
        assert_eq!(canonical.sha256.to_string(), one["sha256"].as_str().unwrap());
    }
}

#[test]
fn the_canonical_form_of_the_canonical_form_is_itself() {
    let recorded = std::fs::read(vectors().join("kube/hashes.json")).unwrap();
    for one in serde_json::from_slice::<Vec<Value>>(&recorded).unwrap() {
        let once = canonical(&one["object"]).unwrap();
        assert_eq!(canonical(&once.object).unwrap().text, once.text);
    }
}

#[test]
fn what_is_no_object_is_refused() {
    for text in [
        "1",
        "[]",
        "{}",
        r#"{"kind": "A", "apiVersion": "v1"}"#,
        r#"{"kind": 1, "apiVersion": "v1", "metadata": {}}"#,
    ] {
        assert!(canonical(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
    }
}
