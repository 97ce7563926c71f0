//! Process integrations with invalid responses: their secrets are not shown, and an invalid plan is an error
//! of its shard.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::bounded_output::run;
use crate::support::records::all_text;
use qontract_testkit::{Scratch, example};
use serde_json::json;

/// A program that responds to `plan` with the content of the file `answer`.
const PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "leaks what it was given", "sandbox": true}' ;;
declare) sed "s#RAW#$GIVEN_TOKEN#g" declared ;;
plan) base=$(printf %s "$GIVEN_TOKEN" | base64 -w0); sed -e "s#RAW#$GIVEN_TOKEN#g" -e "s#BASE64#$base#g" answer; sed "s#.*#$GIVEN_TOKEN $base#" >&2 ;;
apply) echo '{}' ;;
esac
"#;

/// A plan that creates an object with this string in every displayed field.
fn leaking_plan(text: &str) -> String {
    let thing = json!({"scope": [["app", "a"]], "kind": text, "name": text});
    let change =
        json!({"kind": "add", "thing": thing, "what": format!("create {text}"), "diff": [text, "fine"]});
    let steps = json!([{"action": 1, "changes": [change]}]);
    json!({"scopes": [{"scope": [["app", "a"]], "count": 0}], "groups": [{"steps": steps}]}).to_string()
}

/// A process integration, registered as `service-dependencies`.
fn program_stage(script: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", script);
    scratch
        .write("declared", json!({"shards": [{"key": [["app", "a"]], "state": "in the data"}]}).to_string());
    // Without a sandbox, so that the program gets its credentials.
    let config = "[integrations.service-dependencies]\n\
                  command = [\"sh\", \"program.sh\"]\nenvironment = [\"GIVEN_TOKEN\"]\n";
    scratch.write("config.toml", config);
    scratch
}

const PROGRAM_WORDS: &str =
    "reconcile service-dependencies --dry-run --data repo --config config.toml --runs runs --log-level DEBUG";

#[test]
fn secrets_of_a_program_are_not_shown_in_any_encoding() {
    let scratch = program_stage(PROGRAM);
    let wrong = |text: &str| json!({"scopes": text, "groups": []}).to_string();
    // Also in errors about the data that contain it.
    let fault = json!({"text": "cannot log in with RAW", "hint": "is RAW right?", "key": [["app", "b"]]});
    let off = json!({"key": [["app", "c"]], "state": 1, "disabled": "RAW is old"});
    let declared = json!({"shards": [off, {"key": [["app", "a"]], "state": 1}], "faults": [fault]});
    scratch.write("declared", declared.to_string());
    for answer in [
        leaking_plan("RAW"),
        leaking_plan("BASE64"),
        wrong("RAW"),
        wrong("a BASE64 b"),
        "{\"RAW\": 1}".to_owned(),
        "RAW".to_owned(),
    ] {
        scratch.write("answer", &answer);
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command
            .current_dir(scratch.path())
            .args(PROGRAM_WORDS.split(' '))
            .env("GIVEN_TOKEN", "hush-token-123");
        let output = command.env("NO_COLOR", "1").output().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{answer}: {text}");
        assert!(text.contains("[redacted]"), "{answer}: {text}");
        text += &all_text(&scratch.path().join("runs"));
        for leak in ["hush-token-123", "aHVzaC10b2tlbi0xMjM"] {
            assert!(!text.contains(leak), "{answer}: {text}");
        }
    }
}

#[test]
fn a_program_response_that_is_not_a_plan_is_an_error_of_its_shard() {
    let scratch = program_stage(PROGRAM);
    let scope = json!({"scope": [["app", "a"]], "count": 5});
    let unknown = json!({"scope": [["app", "a"]], "unknown": "it could not be read"});
    let escapes = json!({"waits": ["\u{1b}[2J".repeat(200_000)]});
    for (answer, expect) in [
        ("[]".to_owned(), "it is not a JSON object"),
        ("null".to_owned(), "invalid type: null"),
        (String::new(), "stdout is empty"),
        ("{} {}".to_owned(), "trailing characters"),
        (json!({"scopes": [unknown, scope]}).to_string(), "`app=a` is listed more than once in `scopes`"),
        (json!({"waits": ["x".repeat((1 << 20) + 1)]}).to_string(), "exceed 1048576 bytes"),
        (escapes.to_string(), "exceed 1048576 bytes"),
        (json!({"scopes": "\u{1b}".repeat(1 << 20)}).to_string(), "is invalid: invalid type: string"),
    ] {
        scratch.write("answer", &answer);
        let output = run(&scratch, PROGRAM_WORDS);
        let shown: String = answer.chars().take(100).collect();
        assert_eq!(output.code, Some(1), "{shown}: {}", output.text);
        assert!(output.text.contains(expect), "{shown}: {}", output.text);
    }
}

#[test]
fn an_error_of_a_program_names_its_shards_and_counts_once() {
    let scratch = program_stage(PROGRAM);
    let shard = |app: &str| json!({"key": [["app", app]], "state": 1});
    scratch.write(
        "declared",
        json!({"shards": [shard("a1"), shard("b1"), shard("c1"), shard("d1")]}).to_string(),
    );
    scratch.write("answer", "[]");
    let output = run(&scratch, PROGRAM_WORDS);
    assert_eq!(output.code, Some(1), "{}", output.text);
    assert!(output.text.contains("    in shards app=a1; app=b1; app=c1; and 1 more\n"), "{}", output.text);
    assert!(output.text.contains("1 error"), "{}", output.text);
    let listed = run(&scratch, "runs list --runs runs -o json");
    assert!(listed.text.contains("\"errors\": 1"), "{}", listed.text);
    // One shard of several.
    scratch.write("declared", json!({"shards": [shard("a1")]}).to_string());
    let output = run(&scratch, PROGRAM_WORDS);
    assert!(output.text.contains("    in shard app=a1\n"), "{}", output.text);
    let explained = run(&scratch, "explain run last --runs runs");
    assert!(explained.text.contains("shard app=a1: ran in "), "{}", explained.text);
    assert!(explained.text.contains(", failed with 1 error\n"), "{}", explained.text);
}

#[test]
fn a_guess_of_a_secret_in_the_data_is_not_confirmed() {
    let scratch = program_stage(PROGRAM);
    // The program repeats a string of the data; the output does not reveal whether it equals the secret.
    for answer in [leaking_plan("in the data"), json!({"scopes": "in the data"}).to_string()] {
        scratch.write("answer", &answer);
        let outputs = ["in the data", "something else"].map(|given| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
            command.current_dir(scratch.path()).args(PROGRAM_WORDS.split(' ')).env("GIVEN_TOKEN", given);
            let output = command.env("NO_COLOR", "1").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        });
        assert!(outputs[0].contains("in the data"), "{}", outputs[0]);
        assert_eq!(outputs[0], outputs[1]);
    }
}
