//! Diffs are byte for byte the answers of the server's `/diff` endpoint.

use std::fs;

use qontract_bundle::diff::Diff;
use qontract_bundle::json::JavaScriptWriter;
use qontract_bundle::{Bundle, Pool, load};
use qontract_testkit::vectors;

fn bundle(name: &str) -> Bundle {
    load(&fs::read(vectors().join(name)).expect("a vector"), &Pool::default()).expect("a bundle")
}

fn recorded(request: &str) -> String {
    let answers = fs::read_to_string(vectors().join("answers.json")).expect("a vector");
    let answers: serde_json::Value = serde_json::from_str(&answers).expect("JSON");
    let endpoints = answers["endpoints"].as_array().expect("a list");
    let found = endpoints.iter().find(|endpoint| endpoint["request"] == request).expect("a recorded request");
    found["body"].as_str().expect("a body").to_owned()
}

#[test]
fn the_whole_diff_is_the_recorded_one() {
    let diff = Diff::between(&bundle("bundle.json"), &bundle("bundle2.json"));
    let json = String::from_utf8(diff.to_json()).expect("UTF-8");
    assert_eq!(json, recorded("GET /diff/{bundle}/{bundle2}"));
}

#[test]
fn single_entries_are_the_recorded_ones() {
    let diff = Diff::between(&bundle("bundle.json"), &bundle("bundle2.json"));
    let mut out = Vec::new();
    let datafile = diff.datafiles.iter().find(|change| &*change.path == "/apps/search.yml").expect("changed");
    datafile.write(&mut JavaScriptWriter(&mut out));
    let expected = recorded("GET /diff/{bundle}/{bundle2}/datafile/apps/search.yml");
    assert_eq!(String::from_utf8_lossy(&out), expected);

    out.clear();
    let resource = diff.resources.iter().find(|change| &*change.path == "/rules/plain.txt").expect("changed");
    resource.write(&mut JavaScriptWriter(&mut out));
    let expected = recorded("GET /diff/{bundle}/{bundle2}/resourcefile/rules/plain.txt");
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn a_bundle_does_not_differ_from_itself() {
    let (one, other) = (bundle("bundle.json"), bundle("bundle.json"));
    assert!(Diff::between(&one, &other).is_empty());
}

#[test]
fn equal_digests_mean_equal_values_and_not_the_other_way_round() {
    let bytes = fs::read(vectors().join("bundle.json")).expect("a vector");
    let (pool, value) = (Pool::default(), serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON"));
    let mine = load(&bytes, &pool).expect("a bundle");
    let otherwise = serde_json::to_vec_pretty(&value).expect("JSON");
    let other = load(&otherwise, &pool).expect("a bundle");
    let files = mine.datafiles().iter().zip(other.datafiles());
    assert!(files.clone().all(|(a, b)| a.path == b.path && a.document.value == b.document.value));
    assert!(files.clone().all(|(a, b)| a.document.digest != b.document.digest));
    assert!(Diff::between(&mine, &other).is_empty());
    let again = load(&bytes, &pool).expect("a bundle");
    let mut files = mine.datafiles().iter().zip(again.datafiles());
    assert!(files.all(|(a, b)| a.document.digest == b.document.digest && a.document == b.document));
}
