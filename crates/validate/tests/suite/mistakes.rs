//! A broken copy of the example repo: every mistake is reported once, at its line, and nothing else is.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use qontract_bundle::repo::NameFilter;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_diagnostics::render::{self, Colour};
use qontract_diagnostics::{Diagnostic, Report, Sources as _, position};
use qontract_testkit::{Scratch, example, snapshot};
use qontract_validate::{Options, locate, validate};
use table::{EDITS, FILES, TYPES, WHOLE};

const GRAPHQL: &str = "graphql-schemas/schema.yml";

/// All findings in a data repo, as the command finds them.
fn findings(repo: &Repo) -> Vec<Diagnostic> {
    let outcome = build(repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    let errors = outcome.findings.iter().filter(|finding| finding.is_error());
    let unread: BTreeSet<String> = errors.map(|finding| finding.location.file.clone()).collect();
    let bundle = outcome.built.as_ref().or(outcome.partial.as_ref());
    let options = Options { unread, ..Options::default() };
    let mut found = validate(bundle.expect("what could be read"), &options);
    locate(&mut found, repo);
    found.extend(outcome.findings);
    for file in repo.list("data", NameFilter::Documents).expect("datafiles").files {
        let text = repo.text(&file.name).expect("a text");
        found.extend(
            qontract_yaml::lint::dialect(&text).into_iter().map(|finding| finding.in_file(&file.name)),
        );
    }
    found
}

fn broken() -> Scratch {
    let scratch = Scratch::copy_of(&example());
    for (file, from, to) in EDITS {
        let text = scratch.read(file);
        assert_eq!(text.matches(from).count(), 1, "{file}: {from:?} is there once");
        scratch.write(file, text.replace(from, to));
    }
    for (file, text) in FILES {
        scratch.write(file, text);
    }
    scratch.write(GRAPHQL, scratch.read(GRAPHQL) + TYPES);
    scratch
}

/// The expected findings: file, line (0 for the whole file) and code.
fn expected(scratch: &Scratch) -> BTreeSet<(String, u32, String)> {
    let mut places = BTreeSet::new();
    let files =
        EDITS.iter().map(|(file, ..)| *file).chain(FILES.iter().map(|(file, _)| *file)).chain([GRAPHQL]);
    for file in files {
        for (line, text) in (1..).zip(scratch.read(file).lines()) {
            let codes = text.split_once("#! ").map(|(_, codes)| codes).unwrap_or_default();
            places.extend(codes.split_whitespace().map(|code| (file.to_owned(), line, code.to_owned())));
        }
    }
    places.extend(WHOLE.iter().map(|(file, code)| ((*file).to_owned(), 0, (*code).to_owned())));
    places
}

#[test]
fn every_mistake_is_reported_once_at_its_line_and_nothing_else() {
    let scratch = broken();
    let repo = Repo::directory(scratch.path(), Layout::default());
    let known: BTreeSet<String> = findings(&Repo::directory(example(), Layout::default()))
        .into_iter()
        .map(|finding| finding.message)
        .collect();
    let found: Vec<Diagnostic> =
        findings(&repo).into_iter().filter(|finding| !known.contains(&finding.message)).collect();
    let mut places: Vec<(String, u32, String)> = found
        .iter()
        .map(|finding| {
            let text = repo.text(&finding.location.file);
            let line =
                finding.location.span.zip(text).map(|(span, text)| position(&text, span.start as usize).line);
            (finding.location.file.clone(), line.unwrap_or_default(), finding.code.to_string())
        })
        .collect();
    places.sort();
    let expected: Vec<_> = expected(&scratch).into_iter().collect();
    let report = Report::new(found);
    let text = render::render_all(&report, &repo, Colour::Plain) + &report.summary() + "\n";
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/mistakes/findings.txt"));
    let odd: Vec<_> = places.iter().filter(|place| !expected.contains(place)).collect();
    let missed: Vec<_> = expected.iter().filter(|place| !places.contains(place)).collect();
    assert!(odd.is_empty() && missed.is_empty(), "not expected: {odd:#?}\nmissed: {missed:#?}\n{text}");
    assert_eq!(places, expected, "each once");
    assert!(expected.len() >= 40, "{} mistakes", expected.len());
    snapshot(kept, &text);
}
