//! Bundles are byte for byte what the established bundler writes.

use std::fs;

use qontract_bundle::diff::Diff;
use qontract_bundle::{Bundle, CommitStamp, Layout, Pool, Repo, Sha256, build, load};
use qontract_testkit::vectors;

const FIRST: (&str, &str) = ("0123456789abcdef0123456789abcdef01234567", "1700000000");
const SECOND: (&str, &str) = ("fedcba9876543210fedcba9876543210fedcba98", "1700000600");

fn built(repo: &str, (commit, timestamp): (&str, &str), pool: &Pool) -> (Bundle, Vec<u8>) {
    let stamp = CommitStamp { commit: commit.to_owned(), timestamp: timestamp.to_owned() };
    let outcome =
        build(&Repo::directory(vectors().join(repo), Layout::default()), stamp, pool).expect("a repo");
    assert_eq!(outcome.findings, []);
    let built = outcome.built.expect("no errors");
    let bytes = built.to_vec();
    (built, bytes)
}

fn check(repo: &str, stamp: (&str, &str), recorded: &str, sha: &str) {
    let (bundle, bytes) = built(repo, stamp, &Pool::default());
    let expected = fs::read(vectors().join(recorded)).expect("a vector");
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
    assert_eq!(bundle.sha().to_string(), sha);
    assert_eq!(Sha256::of(&expected), bundle.sha());
}

#[test]
fn the_first_repo_is_bundled_to_the_byte() {
    check("repo", FIRST, "bundle.json", "0bbd731020f4a6c05d332294852f45a838d3c360be4213a80b2eb76834ea88ff");
}

#[test]
fn the_changed_repo_is_bundled_to_the_byte() {
    check(
        "repo2",
        SECOND,
        "bundle2.json",
        "b99c88bc30254e59add5f955d67a4aeef9030b39d8d1936af177d8a30be7c000",
    );
}

#[test]
fn the_broken_repo_is_bundled_to_the_byte() {
    check(
        "broken",
        FIRST,
        "broken-bundle.json",
        "1e76a711e0af18f4aaaf350b81f813ce696c143be907313f758d4ed98dc1f55e",
    );
}

#[test]
fn a_loaded_bundle_is_the_built_one_and_shares_its_documents() {
    let pool = Pool::default();
    let (bundle, bytes) = built("repo", FIRST, &pool);
    let alive = pool.len();
    let loaded = load(&bytes, &pool).expect("our own bundle loads");
    assert_eq!(loaded.sha(), bundle.sha());
    assert_eq!(pool.len(), alive, "nothing new in memory");
    for (ours, theirs) in bundle.datafiles().iter().zip(loaded.datafiles()) {
        assert!(std::sync::Arc::ptr_eq(&ours.document, &theirs.document), "{}", ours.path);
    }
    for (ours, theirs) in bundle.resources().iter().zip(loaded.resources()) {
        assert!(std::sync::Arc::ptr_eq(ours, theirs), "{}", ours.path);
    }
}

#[test]
fn a_bundle_with_other_whitespace_has_the_same_content() {
    let pool = Pool::default();
    let (bundle, bytes) = built("repo", FIRST, &pool);
    let parsed: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let spread = serde_json::to_vec_pretty(&parsed).expect("JSON");
    let loaded = load(&spread, &pool).expect("a bundle with blanks in it");
    assert_ne!(loaded.sha(), bundle.sha(), "its name is the digest of its own bytes");
    assert!(Diff::between(&bundle, &loaded).is_empty());
}

#[test]
fn an_invalid_bundle_is_refused_with_the_invalid_part() {
    let around = |data: &str, resources: &str| {
        format!(
            r#"{{"data":{data},"git_commit":"","git_commit_timestamp":"","graphql":[],"resources":{resources},"schemas":{{}}}}"#
        )
    };
    let cases = [
        ("[]".to_owned(), "the bundle is not valid JSON"),
        (r#"{"data":{}}"#.to_owned(), "`git_commit` is missing in the bundle, or not a string"),
        (around(r#"{"/a":1}"#, "{}"), "`/a` is missing in the bundle, or not an object"),
        (around(r#"{"/a":{"x":NaN}}"#, "{}"), "`/a` in the bundle is not valid JSON"),
        (around("{}", r#"{"/r":{}}"#), "`/r` is missing in the bundle, or not a resource"),
    ];
    for (text, expect) in cases {
        let error = load(text.as_bytes(), &Pool::default()).expect_err(&text);
        assert_eq!(error.to_string(), expect);
    }
    assert!(load(b"\xff", &Pool::default()).is_err());
    assert!(load(around("{}", "{}").as_bytes(), &Pool::default()).is_ok());
}

#[test]
fn a_second_bundle_costs_only_what_differs() {
    let pool = Pool::default();
    let (_first, _) = built("repo", FIRST, &pool);
    let alive = pool.len();
    let second = load(&fs::read(vectors().join("bundle2.json")).expect("a vector"), &pool).expect("a bundle");
    // Two apps and a new team, one resource that changed.
    assert_eq!(pool.len(), alive + 4);
    drop(second);
    assert_eq!(pool.len(), alive, "the pool keeps nothing alive");
}
