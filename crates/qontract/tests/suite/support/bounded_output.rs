//! Runs the binary against hostile remote systems and programs, and checks the invariants of its output.

use qontract_testkit::Scratch;

use super::command::qontract;

/// Maximum length of the output for a hostile response.
pub const MAX_OUTPUT: usize = 20_000;

/// The output and the exit code of a command.
pub struct BoundedOutput {
    pub code: Option<i32>,
    pub text: String,
}

/// Runs a command whose output has limits, no raw control characters and no secret: secrets of tests begin
/// with `hush`.
pub fn run(scratch: &Scratch, words: &str) -> BoundedOutput {
    let words: Vec<&str> = words.split(' ').collect();
    let output = qontract(scratch.path(), &words);
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("hush"), "no secret is printed: {text}");
    assert!(text.len() < MAX_OUTPUT, "{} bytes: {}", text.len(), text.chars().take(500).collect::<String>());
    let is_raw = |one: char| (one.is_control() && one != '\n') || ('\u{202a}'..='\u{202e}').contains(&one);
    assert!(!text.contains(is_raw), "{text:?}");
    BoundedOutput { code: output.status.code(), text }
}
