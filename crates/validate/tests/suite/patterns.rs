//! Patterns mean what they mean to Python's `re`: the same are rejected, and the others match the same texts.
//!
//! The real one runs as a process (`QONTRACT_PYTHON`, set by `cargo xtask test`).

use qontract_testkit::SeededRng;
use qontract_validate::pattern::Pattern;
use serde_json::json;

use crate::oracle::{judge, patterns};

/// Number of random patterns; `QONTRACT_ORACLE_CASES` overrides it.
fn cases(default: usize) -> usize {
    std::env::var("QONTRACT_ORACLE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// Compares patterns with Python, and reports all differences together. Returns the number of valid patterns.
fn compare(patterns: &[String]) -> usize {
    let questions: Vec<String> = patterns.iter().map(|pattern| json!(pattern).to_string()).collect();
    let answers = judge::answers("search.py", &json!(patterns::TEXTS).to_string(), &questions);
    let mut differences = Vec::new();
    let mut good = 0;
    for (written, answer) in patterns.iter().zip(answers) {
        let theirs: Option<Vec<bool>> = serde_json::from_str(&answer).expect("an answer");
        match (Pattern::new(written), theirs) {
            (Err(_), None) => {}
            (Ok(_), None) => differences.push(format!("{written:?}: Python rejects it")),
            (Err(why), Some(_)) => differences.push(format!("{written:?}: Python accepts it, {why:?}")),
            (Ok(pattern), Some(theirs)) => {
                good += 1;
                for (text, theirs) in patterns::TEXTS.iter().zip(theirs) {
                    // An aborted match is not a difference.
                    if pattern.is_match(text).is_ok_and(|ours| ours != theirs) {
                        differences.push(format!("{written:?} in {text:?}: {theirs} for Python"));
                        break;
                    }
                }
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        patterns.len(),
        differences.join("\n")
    );
    good
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn patterns_that_are_easily_misread_mean_what_python_means() {
    // A character by its name is rejected with a message: we have no table of names.
    let odd = patterns::ODD.iter().filter(|pattern| !pattern.contains("\\N{"));
    let good = compare(&odd.map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>());
    assert!(good > 150, "only {good} are patterns");
    assert!(Pattern::new(r"\N{EM DASH}").is_err());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn random_patterns_mean_what_python_means() {
    let mut random = SeededRng::new(17);
    let made: Vec<String> = (0..cases(3_000)).map(|_| patterns::random(&mut random)).collect();
    let good = compare(&made);
    assert!(good * 3 > made.len(), "only {good} of {} are patterns", made.len());
}
