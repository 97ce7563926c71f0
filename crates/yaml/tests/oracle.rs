//! Our results are those of PyYAML: for every scalar, and for every document that is not refused.
//!
//! PyYAML is the real one, started as a process (`QONTRACT_PYTHON`, set by `cargo xtask test`).

mod oracle {
    pub mod documents;
    pub mod reader;
    pub mod scalars;
    pub mod seeds;
}

use oracle::{documents, reader, scalars, seeds};
use qontract_yaml::{Limits, parse};
use serde_json::{Value as Json, json};

/// Number of generated cases per test; set `QONTRACT_ORACLE_CASES` for more.
fn cases(default: usize) -> usize {
    std::env::var("QONTRACT_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// Our result for `text` in the format of the oracle, or `None` if it is refused.
fn ours(text: &str) -> Option<Json> {
    let parsed = parse(text.as_bytes(), &Limits::default());
    if parsed.findings.iter().any(qontract_diagnostics::Diagnostic::is_error) {
        assert!(parsed.document.is_none(), "a document with an error: {text:?}");
        return None;
    }
    Some(parsed.document.map_or_else(|| json!(["null"]), |document| reader::typed(document.root())))
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn every_plain_scalar_is_what_pyyaml_says() {
    let texts = scalars::generate(cases(20_000));
    for loader in ["c", "python"] {
        let documents: Vec<String> = texts.iter().map(|text| format!("k: {text}\n")).collect();
        for (document, theirs) in documents.iter().zip(reader::load_with_pyyaml(loader, &documents)) {
            let expect = theirs[0] == "map" && theirs[1][0][1][0] != "other";
            match ours(document) {
                Some(ours) => assert_eq!(ours, theirs, "{document:?} by the {loader} loader"),
                None => assert!(!expect, "{document:?} is refused, but the {loader} loader says {theirs}"),
            }
        }
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn no_document_has_another_meaning() {
    let mut texts: Vec<String> = seeds::SEEDS.iter().map(|seed| (*seed).to_owned()).collect();
    texts.extend(documents::generate(cases(20_000)));
    let mut accepted = 0;
    let mut refused_alone = Vec::new();
    let mut wrong = Vec::new();
    for (text, theirs) in texts.iter().zip(reader::load_with_pyyaml("c", &texts)) {
        match ours(text) {
            Some(ours) if ours == theirs => accepted += 1,
            // A file that is one bare text: every user of the tree refuses it.
            Some(ours) if theirs[0] == "refused" && ours[0] == "str" => {}
            Some(ours) => wrong.push(format!("{text:?}\n    ours:   {ours}\n    theirs: {theirs}")),
            None if theirs[0] == "refused" || reader::is_unrepresentable(&theirs) => {}
            None => refused_alone.push(text),
        }
    }
    wrong.sort_by_key(|line| (line.contains("refused"), line.len()));
    wrong.dedup();
    let shown = wrong.iter().take(60).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), texts.len());
    // Refusing is always safe, but refusing much would be useless.
    assert!(accepted * 4 > texts.len(), "only {accepted} of {} were compared", texts.len());
    let share = refused_alone.len() * 100 / texts.len();
    assert!(share < 5, "{share} % refused though PyYAML reads them: {:#?}", &refused_alone[..20]);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_hand_written_documents_are_read_and_not_refused() {
    let texts: Vec<String> = seeds::SEEDS.iter().map(|seed| (*seed).to_owned()).collect();
    for (text, theirs) in texts.iter().zip(reader::load_with_pyyaml("c", &texts)) {
        assert_eq!(ours(text), Some(theirs), "{text}");
    }
}
