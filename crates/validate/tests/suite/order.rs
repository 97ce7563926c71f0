//! A valid repo stays valid under any order of files and keys, and a broken one keeps its findings.

use std::collections::BTreeSet;

use proptest::prelude::*;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, Value, build, json};
use qontract_testkit::{Scratch, SeededRng, example, vectors};
use qontract_validate::{Options, validate};

/// Findings: code, file, pointer and message.
type FindingSet = BTreeSet<(String, String, Option<String>, String)>;

fn found(repo: &Repo) -> (Vec<(String, Value)>, FindingSet) {
    let outcome = build(repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    let bundle = outcome.built.expect("no errors");
    let findings = validate(&bundle, &Options::default()).into_iter();
    let found = findings
        .map(|one| (one.code.to_string(), one.location.file, one.location.pointer, one.message))
        .collect();
    let files =
        bundle.datafiles().iter().map(|file| (file.path.to_string(), file.document.value.clone())).collect();
    (files, found)
}

/// Writes a value as JSON, which is YAML, with the keys of each map in a random order.
fn write(value: &Value, random: &mut SeededRng, out: &mut String) {
    match value {
        Value::Map(map) => {
            let added = |key: &str| matches!(key, "$file_sha256sum" | "__identifier");
            let mut entries: Vec<_> = map.iter().filter(|(key, _)| !added(key.as_str())).collect();
            for index in (1..entries.len()).rev() {
                entries.swap(index, random.below(index + 1));
            }
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(&Value::str(key.as_str()), random, out);
                out.push_str(": ");
                write(value, random, out);
            }
            out.push('}');
        }
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(item, random, out);
            }
            out.push(']');
        }
        scalar => {
            let mut text = Vec::new();
            json::write_python(scalar, &mut text);
            out.push_str(&String::from_utf8_lossy(&text));
        }
    }
}

fn check(folder: &std::path::Path, seed: u64) {
    let (mut files, before) = found(&Repo::directory(folder, Layout::default()));
    let scratch = Scratch::copy_of(folder);
    let mut random = SeededRng::new(seed);
    let first = random.below(files.len());
    files.rotate_left(first);
    for (path, _) in &files {
        scratch.remove(&format!("data{path}"));
    }
    for (path, value) in &files {
        let mut text = String::new();
        write(value, &mut random, &mut text);
        scratch.write(&format!("data{path}"), text + "\n");
    }
    let (_, after) = found(&Repo::directory(scratch.path(), Layout::default()));
    assert_eq!(after, before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_valid_repo_stays_valid_under_reordering(seed in any::<u64>()) {
        check(&example(), seed);
    }

    #[test]
    fn a_broken_repo_keeps_its_findings_under_reordering(seed in any::<u64>()) {
        check(&vectors().join("broken"), seed);
    }
}

#[test]
fn the_example_is_without_findings() {
    let (_, found) = found(&Repo::directory(example(), Layout::default()));
    assert!(found.is_empty(), "{found:#?}");
}
