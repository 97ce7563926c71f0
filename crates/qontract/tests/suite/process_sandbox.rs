//! Tests of process integrations: their environment in a sandbox, and reports of their failures.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::{Command, Output};

use qontract_testkit::{Scratch, example};

/// A program that manages one file, in `$QONTRACT_SANDBOX` or else in `real`, and records the secrets that it
/// gets in `apply`.
const PROGRAM: &str = r#"
world=${QONTRACT_SANDBOX:-real}
case $1 in
describe) echo '{"name": "service-dependencies", "description": "keeps a card" SANDBOX}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    echo "plan: ${WRITE_IT-none} ${READ_IT-none} ${PLAIN-none}" >> seen
    if [ -e "$world/card" ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 1}]}'; exit; fi
    echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [{"action": 1, "changes": [
        {"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card"}]}]}]}' ;;
apply)
    echo "apply: ${WRITE_IT-none} ${READ_IT-none} ${PLAIN-none}" >> seen
    mkdir -p "$world"; echo > "$world/card"; echo '{}' ;;
esac
"#;

fn stage(program: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", program);
    scratch.write(
        "config.toml",
        "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\nenvironment = [\"PLAIN\"]\n\
         secret_environment = [\"READ_IT\"]\nwrite_environment = [\"WRITE_IT\"]\n",
    );
    scratch
}

fn run(scratch: &Scratch, words: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command.envs([("PLAIN", "plain-value"), ("READ_IT", "read-token"), ("WRITE_IT", "write-token")]);
    let Output { status, stdout, stderr } = command.args(words.split(' ')).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

const RECONCILE: &str = "reconcile service-dependencies --data repo --config config.toml --runs runs";
const UNSUPPORTED: &str = "the program of `service-dependencies` does not support a sandbox";

fn supporting() -> Scratch {
    stage(&PROGRAM.replace("SANDBOX}", ", \"sandbox\": true}"))
}

fn unaware() -> Scratch {
    stage(&PROGRAM.replace("SANDBOX}", "}"))
}

#[test]
fn a_program_that_supports_it_works_on_the_sandbox_and_gets_no_credentials() {
    let scratch = supporting();
    let (code, text) = run(&scratch, &format!("{RECONCILE} --sandbox box"));
    assert_eq!(code, Some(0), "{text}");
    assert!(scratch.path().join("box/card").is_file(), "the path is absolute or relative to our directory");
    assert!(!scratch.path().join("real").exists());
    assert_eq!(scratch.read("seen"), "plan: none none plain-value\napply: none none plain-value\n");
}

#[test]
fn outside_of_a_sandbox_only_apply_gets_write_credentials() {
    let scratch = supporting();
    let (code, text) = run(&scratch, RECONCILE);
    assert_eq!(code, Some(0), "{text}");
    assert!(scratch.path().join("real/card").is_file());
    let seen = "plan: none read-token plain-value\napply: write-token read-token plain-value\n";
    assert_eq!(scratch.read("seen"), seen);
}

#[test]
fn a_program_that_does_not_support_a_sandbox_is_refused_there() {
    let scratch = unaware();
    for more in ["", " --dry-run", " --every 1h"] {
        let (code, text) = run(&scratch, &format!("{RECONCILE} --sandbox box{more}"));
        assert_eq!(code, Some(2), "{more}: {text}");
        assert!(text.contains(UNSUPPORTED) && text.contains("\"sandbox\": true"), "{text}");
    }
    let config = scratch.read("config.toml");
    scratch.write("config.toml", format!("[sandbox]\ndirectory = \"box\"\n{config}"));
    assert_eq!(run(&scratch, RECONCILE).0, Some(2), "the sandbox of a configuration is one, too");
    assert!(!scratch.path().join("seen").exists(), "it was not asked for a plan");
}

#[test]
fn up_skips_a_program_that_does_not_support_the_sandbox() {
    let words = "up repo --once --config config.toml --sandbox box --runs runs";
    let scratch = unaware();
    let (code, text) = run(&scratch, words);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("skipped: {UNSUPPORTED}")), "{text}");
    assert!(!scratch.path().join("seen").exists(), "it was not asked for a plan");
    assert!(scratch.path().join("box/clusters").is_dir(), "the others run");
    let scratch = supporting();
    let (code, text) = run(&scratch, words);
    assert_eq!(code, Some(0), "{text}");
    assert!(scratch.path().join("box/card").is_file() && !text.contains("left out: the program"), "{text}");
}

#[test]
fn a_program_removes_no_protected_kind_without_an_approval() {
    for (kind, is_protected) in [
        ("Namespace", true),
        ("Project", true),
        ("Project.project.openshift.io", true),
        ("PersistentVolume", true),
        ("PersistentVolumeClaim", true),
        ("aws_rds_cluster", true),
        ("aws_s3_bucket", true),
        ("card", false),
    ] {
        let plan = r#"echo '{"scopes": [{"scope": [["app", "a"]], "count": 50}], "groups": [{"steps": [{"action": 1, "changes": [
            {"kind": "remove", "thing": {"scope": [["app", "a"]], "kind": "KIND", "name": "one"}, "what": "remove it"}]}]}]}'; exit"#;
        let scratch = failing("plan", &plan.replace("KIND", kind));
        // Without a ledger everything is held; protected kinds have their own reason.
        let (code, text) = run(&scratch, &format!("{RECONCILE} --dry-run"));
        assert_eq!(code, Some(1), "{kind}: {text}");
        let why = format!("removing a {kind} always needs an approval");
        assert_eq!(text.contains(&why), is_protected, "{text}");
    }
}

/// A program that fails in a phase.
fn failing(phase: &str, script: &str) -> Scratch {
    let usual = PROGRAM.replace("SANDBOX}", ", \"sandbox\": true}");
    stage(&format!("if [ $1 = {phase} ]; then {script}; fi\n{usual}"))
}

const TRACEBACK: &str = "printf 'Traceback (most recent call last):\\n  File \"cards.py\", line 3\\nKeyError: name\\n' >&2; exit 1";

#[test]
fn a_traceback_is_shown_with_its_lines_and_the_name_of_the_integration() {
    let text = "`plan` of `service-dependencies` (`sh program.sh`) failed (exit status: 1): KeyError: name\n    \
                Traceback (most recent call last):\n      File \"cards.py\", line 3\n    KeyError: name\n";
    let (code, shown) = run(&failing("plan", TRACEBACK), &format!("{RECONCILE} --dry-run"));
    assert_eq!(code, Some(1));
    assert!(shown.contains(text), "{shown}");
    // In a loop they are below the log line.
    let up = "up repo --once --config config.toml --sandbox box --runs runs";
    for phase in ["plan", "describe"] {
        let (_, shown) = run(&failing(phase, TRACEBACK), up);
        assert!(
            shown.contains("\n    |   File \"cards.py\", line 3\n    | KeyError: name\n"),
            "{phase}: {shown}"
        );
    }
    // Also before there is a run.
    let (code, shown) = run(&failing("describe", TRACEBACK), RECONCILE);
    assert_eq!(code, Some(1));
    assert!(shown.contains(&text.replace("`plan`", "`describe`")), "{shown}");
}

#[test]
fn a_response_that_is_not_json_is_quoted() {
    let (code, shown) = run(&failing("plan", "echo debugging here"), &format!("{RECONCILE} --dry-run"));
    assert_eq!(code, Some(1));
    let text = "the response to `plan` of `service-dependencies` (`sh program.sh`) is not JSON: \
                expected value at line 1 column 1; stdout begins with `debugging here`\n";
    assert!(shown.contains(text) && shown.contains("hint: stdout must contain only the response"), "{shown}");
    // A secret in the response is redacted.
    let (_, shown) = run(&failing("plan", "echo it is $READ_IT"), &format!("{RECONCILE} --dry-run"));
    assert!(shown.contains("stdout begins with `[redacted]`") && !shown.contains("read-token"), "{shown}");
}

#[test]
fn stderr_is_logged_line_by_line_and_only_secrets_are_redacted() {
    let script = "echo \"asked with $PLAIN\" >&2; echo \"token $READ_IT\" >&2";
    let scratch = failing("plan", script);
    let (code, shown) = run(&scratch, &format!("{RECONCILE} --dry-run --log-level DEBUG"));
    assert_eq!(code, Some(0), "{shown}");
    for text in
        ["DEBUG   stderr: asked with plain-value integration=service-dependencies", "stderr: [redacted] int"]
    {
        assert!(shown.contains(text), "`{text}` is not in: {shown}");
    }
    assert!(!shown.contains("read-token"), "{shown}");
    let (_, shown) = run(&scratch, &format!("{RECONCILE} --dry-run"));
    assert!(!shown.contains("asked with"), "{shown}");
}

#[test]
fn each_change_of_a_real_run_has_its_result() {
    let two = r#"echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [
        {"action": 1, "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card"}]},
        {"action": 2, "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "two"}, "what": "write card"}]},
        {"action": 3, "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "three"}, "what": "write card"}]}]}]}'; exit"#;
    let script =
        format!("{two}; fi; if [ $1 = apply ]; then grep -q '\"action\":2' && exit 1; echo '{{}}'; exit");
    let scratch = failing("plan", &script);
    for (mode, expect) in [("", ["done", "failed", "not-tried"]), (" --dry-run", ["null"; 3])] {
        let (_, shown) = run(&scratch, &format!("{RECONCILE} -o json --log-level ERROR{mode}"));
        let record: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let changes = record["shards"]["app=a"]["changes"].as_array().unwrap();
        let results: Vec<&str> =
            changes.iter().map(|change| change["result"].as_str().unwrap_or("null")).collect();
        assert_eq!(results, expect, "{shown}");
    }
}

/// The blocks of code in a section of a page, by language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut parts = page.split("\n```");
    parts.next();
    let pairs = parts.step_by(2).filter_map(|block| block.split_once('\n'));
    pairs.collect()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_example_at_the_start_of_the_page_works_as_written() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/specs/process-integration.md"
    ));
    let page = page.unwrap();
    let (_, start) = page.split_once("## A complete example").unwrap();
    let (start, _) = start.split_once("## Registration").unwrap();
    let [("python", program), ("yaml", datafile), ("toml", config)] = blocks(start)[..] else {
        panic!("{:?}", blocks(start))
    };
    let python = std::env::var("QONTRACT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("app_marks.py", format!("{program}\n"));
    scratch.write("repo/data/integrations/app-marks.yml", format!("{datafile}\n"));
    scratch.write(
        "config.toml",
        config.replace("\"python3\"", &format!("{python:?}")).replace("\"MARKS\"", "\"PLAIN\""),
    );
    let program = scratch.read("app_marks.py").replace("\"MARKS\"", "\"PLAIN\"");
    scratch.write("app_marks.py", program);
    let words = "reconcile app-marks --data repo --config config.toml --runs runs";
    for (more, folder) in [(" --sandbox box", "box/app-marks"), ("", "plain-value")] {
        let (code, text) = run(&scratch, &format!("{words}{more} --dry-run"));
        assert!(code == Some(0) && text.contains("+ write mark `catalog` (app=catalog)"), "{text}");
        assert!(!scratch.path().join(folder).exists(), "a dry run");
        let (code, text) = run(&scratch, &format!("{words}{more}"));
        assert_eq!(code, Some(0), "{text}");
        assert!(scratch.path().join(folder).join("catalog").is_file());
        let (code, text) = run(&scratch, &format!("{words}{more} --dry-run"));
        assert!(code == Some(0) && !text.contains("write mark"), "{text}");
    }
}
