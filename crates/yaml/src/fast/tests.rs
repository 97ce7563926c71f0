//! Texts that the fast parser accepts, always with the events of the fallback parser.

use std::cell::Cell;
use std::path::Path;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::compare::takes;
use super::generate;

#[path = "../../tests/oracle/seeds.rs"]
mod seeds;

fn assert_accepted(text: &str) {
    assert_eq!(takes(text), Ok(true), "{text:?}");
}

#[test]
fn maps_and_lists_by_their_columns() {
    assert_accepted("a: b\n");
    assert_accepted("a: b");
    assert_accepted("---\na: b\nc: d\n");
    assert_accepted("a:\n  b: c\n  d: e\nf: g\n");
    assert_accepted("a:\n    b:\n      c: d\n    e: f\ng: h\n");
    assert_accepted("  a: b\n  c: d\n");
    assert_accepted("- a\n- b\n");
    assert_accepted("a:\n- b\n- c\nd: e\n");
    assert_accepted("a:\n  - b\n  - c\nd: e\n");
    assert_accepted("a:\n- b: c\n  d: e\n- f: g\nh:\n  - i: j\n");
    assert_accepted("- - a\n  - b\n-   - c\n");
    assert_accepted("-\n  a: b\n-\n  - c\n");
    assert_accepted("a:\n-\n b: c\n");
    assert_accepted("a:\n-\n  - b\n  -\n- c\n");
}

#[test]
fn values_that_are_left_out() {
    assert_accepted("a:\nb: c\n");
    assert_accepted("a:\n");
    assert_accepted("a:");
    assert_accepted("a: # why\n# and\n  b: c\n");
    assert_accepted("a:\n  b:\nc:\n- d:\n- e\n");
    assert_accepted("-\n- # x\n-   \n- a");
    assert_accepted("a:\n- # x\nb:\n-\n");
    assert_accepted("a:\n-\n-");
    assert_accepted("- a:\n- b:\n    c:\n");
}

#[test]
fn scalars_on_one_line() {
    assert_accepted("a: b c  \nd: 'e f'\ng: \"h\"   # i\n");
    assert_accepted("a b : c\n'd e': f\n\"g\" : h\n");
    assert_accepted("a: http://x.y:1/#z\nb: -c\nd: c#e #f\n");
    assert_accepted("a: 'it''s'\nb: \"x\\n\\\"y\\\"\\t\\\\ \\/\"\nc: ''\nd: \"\"\n");
    assert_accepted("a: ключ — 文字\n\u{a0}ё: \u{3000}\n");
    assert_accepted("a: <<\n<<: b\n$ref: /x.yml\n~: .5\n");
    assert_accepted("- 'a'\n- \"b\": c\n- d e\n- -1\n");
}

#[test]
fn blocks_of_text() {
    assert_accepted("a: |\n  b\nc: d\n");
    assert_accepted("a: |-\n  b\n   c\n\n  d\n\n\ne: f\n");
    assert_accepted("a: |+  \n\n   \n    b\n\n  \n\n");
    assert_accepted("a: >\n  b\n  c\n\n  d\n   e\n   f\n  g\n\n   h\n\n  i\n");
    assert_accepted("a: >-\n\n  b\n\n\n  c\n # d\ne: f\n");
    assert_accepted("- |\n a\n- >+\n  b\n\n\n- c\n");
    assert_accepted("a:\n- |\n  b\n  # c\n# d\ne: f\n");
    assert_accepted("a:\n  b: |\n    c\n      \n \n  d: e\n");
    assert_accepted("a: |\n  b\tc\n  \td\n");
}

#[test]
fn brackets_on_one_line() {
    assert_accepted("a: []\nb: {}\nc: [ ]\n");
    assert_accepted("a: [b, 'c', \"d e\" , f g]\nh: {i: j, 'k': l , \"m\": [n, {o: p}], }\n");
    assert_accepted("- []\n- [a, b,]  # c\n- {$ref: /x#y.yml, z: http://a:1}\n");
    assert_accepted("a:\n- {b: -c}\n- [a:b, c'd]\n");
}

#[test]
fn anchors_and_aliases() {
    assert_accepted("a: &b\n  c: d\ne:\n  <<: *b\n  f: [*b, {g: *b}]\n");
    assert_accepted("a: &b\n- c\nd: &e\n  - f\ng: *e\nh: *b # i\n");
    assert_accepted("a: &b c\nd: &e 'f'\ng: &h |\n  i\nj: &k [l]\nm: [*b, *e , *h]\nn: *k");
    assert_accepted("- &a b\n- &c\n  d: *a\n- &e\n  - f\n- *c\n- &g {h: *e}\n- *g\n");
    assert_accepted("a: &b 1\nc: *b\nd: &b 2\ne: *b\n");
    assert_accepted("a: &b\n  c: *b\n");
    assert_accepted("a: &b # why\n# and\n  c: d\n");
}

#[test]
fn long_keys_and_longer_values() {
    assert_accepted(&format!("{}: {}\nl:\n- i\n", "k".repeat(1_000), "v".repeat(5_000)));
}

#[test]
fn comments_and_blank_lines() {
    assert_accepted("# a\n\n---  # b\n\n  # c\nd: e\n    # f\n\n  \ng:\n# h\n  # i\n  j: k\n# l");
    assert_accepted("a: b\n  ");
}

/// All YAML files below `folder`.
fn files(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the example exists") {
        let path = entry.expect("the example can be read").path();
        if path.is_dir() {
            texts.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml") {
            texts.push(std::fs::read_to_string(&path).expect("the example is text"));
        }
    }
    texts
}

fn example() -> Vec<String> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/app-interface"))
}

#[test]
fn files_of_the_example_are_accepted() {
    let files = example();
    let taken = files.iter().filter(|text| takes(text).expect("nothing differs")).count();
    assert!(taken * 100 >= files.len() * 90, "only {taken} of {} are taken", files.len());
}

#[test]
fn hand_written_documents_do_not_differ() {
    let taken = seeds::SEEDS.iter().filter(|text| takes(text).expect("nothing differs")).count();
    assert!(taken > 0, "some of them are accepted");
}

/// Number of generated texts to compare; set `QONTRACT_PLAIN_CASES` for more.
fn cases() -> u32 {
    std::env::var("QONTRACT_PLAIN_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(4_000)
}

#[test]
fn every_accepted_text_has_the_events_of_granit() {
    let mut texts = example();
    texts.extend(seeds::SEEDS.iter().map(|seed| (*seed).to_owned()));
    let taken = Cell::new(0);
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&generate::texts(texts), |text| {
        match takes(&text) {
            Ok(is_taken) => taken.set(taken.get() + u32::from(is_taken)),
            Err(difference) => return Err(TestCaseError::fail(difference)),
        }
        Ok(())
    });
    if let Err(difference) = result {
        panic!("{difference}");
    }
    assert!(taken.get() * 5 > cases(), "only {} of {} were compared", taken.get(), cases());
}
