//! Runs the other validator as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// The verdict of jsonschema 3.2 for each question, a JSON pair of schema path and document.
pub fn verdicts(schemas: &str, questions: &[String]) -> Vec<bool> {
    answers("judge.py", schemas, questions).iter().map(|answer| answer == "true").collect()
}

/// The answers of a script of this folder to the questions; `about` is sent first.
pub fn answers(script: &str, about: &str, questions: &[String]) -> Vec<String> {
    let python = std::env::var("QONTRACT_PYTHON")
        .expect("QONTRACT_PYTHON names a Python with jsonschema 3.2: run `cargo xtask test`, or set it");
    let script = format!("{}/tests/suite/oracle/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut child = Command::new(python)
        .args(["-W", "ignore", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: Vec<String> = std::iter::once(about.to_owned()).chain(questions.iter().cloned()).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("the oracle reads every question");
        }
    });
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let answers: Vec<String> = output.lines().map(|line| line.expect("a line")).collect();
    writer.join().expect("all questions were sent");
    assert!(child.wait().expect("Python ends").success(), "the oracle failed");
    assert_eq!(answers.len(), questions.len(), "an answer to each question");
    answers
}
