//! Compares our output with that of Jinja2, to the byte; templates whose output may differ are refused.
//!
//! The real Jinja2 runs as a process (`QONTRACT_PYTHON`, set by `cargo xtask test`).

mod oracle {
    pub mod corpus;
    pub mod grammar;
    pub mod reader;
}

use oracle::reader::{Case, RenderResult, jinja2_results, our_result};
use oracle::{corpus, grammar};
use qontract_template::{Whitespace, builtin_names};

/// Number of generated cases of a test; `QONTRACT_ORACLE_CASES` overrides it.
fn cases(default: usize) -> usize {
    std::env::var("QONTRACT_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// Compares all cases; returns the number of rendered ones, and of refused ones that Jinja2 renders.
fn compare(cases: &[Case], may_refuse: impl Fn(usize) -> bool) -> (usize, usize) {
    let mut wrong = Vec::new();
    let (mut rendered, mut refused) = (0, 0);
    for (index, (case, theirs)) in cases.iter().zip(jinja2_results(cases)).enumerate() {
        let ours = our_result(case);
        let fine = match (&ours, &theirs) {
            (RenderResult::Text(ours), RenderResult::Text(theirs)) => {
                rendered += 1;
                ours == theirs
            }
            (RenderResult::Refused(_), RenderResult::Text(_)) => {
                refused += 1;
                may_refuse(index)
            }
            (RenderResult::Refused(_) | RenderResult::Failed(_), _) => {
                matches!(theirs, RenderResult::Failed(_))
            }
            (RenderResult::Text(_), _) => false,
        };
        if !fine {
            wrong.push(format!("{:?}\n    ours:   {ours:?}\n    theirs: {theirs:?}", case.template));
        }
    }
    wrong.sort_by_key(String::len);
    let shown = wrong.iter().take(80).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), cases.len());
    (rendered, refused)
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn every_template_of_the_corpus_is_rendered_as_jinja2_renders_it() {
    let corpus = corpus::read();
    assert!(corpus.len() >= 300, "only {} templates", corpus.len());
    let cases: Vec<Case> = corpus.iter().map(|entry| entry.case.clone()).collect();
    compare(&cases, |index| corpus[index].may_be_refused);
    for entry in corpus.iter().filter(|entry| entry.may_be_refused) {
        assert!(
            matches!(our_result(&entry.case), RenderResult::Refused(_)),
            "{:?} is not refused",
            entry.case.template
        );
    }
    let refused = corpus.iter().filter(|entry| entry.may_be_refused).count();
    assert!(refused * 10 < corpus.len(), "{refused} of {} are refused", corpus.len());
}

#[test]
fn every_function_filter_and_test_is_in_the_corpus() {
    let corpus: Vec<String> = corpus::read().into_iter().map(|entry| entry.case.template).collect();
    for (kind, name) in builtin_names() {
        let forms = match kind {
            "function" => vec![format!("{name}(")],
            "filter" => vec![format!("|{name}"), format!("| {name}")],
            _ => vec![format!("is {name}"), format!("\"{name}\"")],
        };
        let found = corpus.iter().any(|template| forms.iter().any(|form| template.contains(form)));
        assert!(found, "no template uses the {kind} `{name}`");
    }
    for tag in
        ["b64encode", "raise_error", "for", "if", "set", "with", "macro", "call", "filter", "print", "raw"]
    {
        assert!(
            corpus.iter().any(|template| template.contains(&format!("% {tag}"))),
            "no template uses `{tag}`"
        );
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn whitespace_is_trimmed_as_jinja2_trims_it() {
    let mut cases = Vec::new();
    for entry in corpus::read() {
        for switches in 1..8 {
            let whitespace = Whitespace {
                trim_blocks: switches & 1 != 0,
                lstrip_blocks: switches & 2 != 0,
                keep_trailing_newline: switches & 4 != 0,
            };
            if entry.case.template.contains('\n') {
                cases.push(Case { whitespace, ..entry.case.clone() });
            }
        }
    }
    assert!(cases.len() >= 70);
    compare(&cases, |_| false);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn no_generated_template_is_rendered_differently() {
    let generated = grammar::generate(cases(3_000));
    let (rendered, refused) = compare(&generated, |_| true);
    // Refusing is always safe, but refusing much would be useless.
    assert!(refused * 10 < rendered, "{refused} were refused, {rendered} rendered");
    assert!(rendered * 4 > generated.len(), "only {rendered} of {} were rendered", generated.len());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn no_mutated_template_is_rendered_differently() {
    compare(&grammar::mutate(cases(3_000)), |_| true);
}
