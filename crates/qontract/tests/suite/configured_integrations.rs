//! Tests of how a command line finds the configuration, and of when it starts configured programs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Output;

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};

/// A program that notes each start.
const PROGRAM: &str = r#"
echo "$1" >> starts
echo '{"name": "cards", "description": "Keeps cards", "flags": [{"name": "deck", "help": "The deck"}]}'
"#;

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", PROGRAM);
    scratch.write("config.toml", "[integrations.cards]\ncommand = [\"sh\", \"program.sh\"]\n");
    scratch
}

fn run(scratch: &Scratch, line: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = line.split(' ').collect();
    let Output { status, stdout, stderr } = qontract(scratch.path(), &words);
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

/// The number of starts of the program so far.
fn starts(scratch: &Scratch) -> usize {
    if scratch.path().join("starts").exists() { scratch.read("starts").lines().count() } else { 0 }
}

#[test]
fn the_name_of_a_program_is_only_a_word_to_other_commands() {
    let scratch = stage();
    // The configuration is in a default location.
    scratch.write("qontract.toml", scratch.read("config.toml"));
    for line in [
        "runs list cards --runs runs",
        "--quiet runs list cards --runs runs",
        "explain cards",
        "completions bash",
        "man pages",
        "help reconcile",
        "reconcile openshift-namespaces --help",
    ] {
        let (_, text) = run(&scratch, line);
        assert_eq!(starts(&scratch), 0, "{line}: {text}");
    }
}

#[test]
fn a_program_is_started_to_describe_its_own_flags_wherever_the_configuration_is_named() {
    for line in [
        "reconcile cards --help --config config.toml",
        "reconcile --config=config.toml cards --help",
        "--quiet reconcile cards --config config.toml --help",
        "peer reconcile --config config.toml cards --help",
        "reconcile cards --deck a --config config.toml --help",
    ] {
        let scratch = stage();
        let (code, text) = run(&scratch, line);
        assert!(code == Some(0) && text.contains("--deck"), "{line}: {code:?} {text}");
        assert_eq!(starts(&scratch), 1, "{line}");
    }
}

#[test]
fn the_integrations_of_the_configuration_are_listed_without_starting_them() {
    let scratch = stage();
    scratch.write("qontract.toml", scratch.read("config.toml"));
    for line in ["reconcile --help", "help reconcile"] {
        let (code, text) = run(&scratch, line);
        assert!(code == Some(0) && text.contains("cards"), "{line}: {text}");
    }
    assert_eq!(starts(&scratch), 0);
}

#[test]
fn an_unknown_integration_is_reported_behind_options_of_every_command() {
    let scratch = stage();
    for line in ["reconcile card --config config.toml", "--quiet reconcile --config config.toml card"] {
        let (code, text) = run(&scratch, line);
        let expect = "no such integration: `card`; did you mean `cards`?";
        assert!(code == Some(2) && text.contains(expect), "{line}: {code:?} {text}");
    }
    scratch.write("config.toml", "[integration.cards]\n");
    let (code, text) = run(&scratch, "reconcile cards --config config.toml");
    assert!(code == Some(2) && text.contains("unknown table"), "{code:?} {text}");
}

#[test]
fn up_reads_the_configuration_that_is_named_behind_options_of_every_command() {
    let scratch = stage();
    let line = "--quiet up repo --once --dry-run --config config.toml --sandbox box --runs runs";
    let (code, text) = run(&scratch, line);
    assert_eq!(code, Some(0), "{text}");
    // It does not search the default locations: this file would be an error.
    scratch.write("qontract.toml", "[nonsense]\n");
    let (code, text) = run(&scratch, &line.replace(" --config config.toml", ""));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(starts(&scratch), 0, "the data does not define the integration");
}
