//! Snapshot tests of the command line: exit code, stdout and stderr in `snapshots/`.

use std::path::{Path, PathBuf};

use crate::support::command;
use qontract_testkit::{Scratch, snapshot, vectors};

fn kept(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots")).join(format!("{name}.txt"))
}

/// Runs one command line in `folder` and compares its output with the snapshot.
fn check(name: &str, folder: &Path, arguments: &[&str]) {
    snapshot(&kept(name), &command::seen(folder, arguments));
}

/// The three recorded data repos in one directory.
fn repos() -> Scratch {
    Scratch::copy_of(&vectors())
}

#[test]
fn help_names_the_commands() {
    check("help", &vectors(), &["--help"]);
    check("help-bundle", &vectors(), &["bundle", "--help"]);
    check("help-validate", &vectors(), &["validate", "--help"]);
    check("help-schema-export", &vectors(), &["schema", "export", "--help"]);
}

#[test]
fn bundle_writes_a_file_and_prints_its_name() {
    let scratch = repos();
    let stamp = ["--commit", "0123456789abcdef0123456789abcdef01234567", "--commit-timestamp", "1700000000"];
    let arguments = [&["bundle", "repo", "-o", "out.json"][..], &stamp].concat();
    check("bundle", scratch.path(), &arguments);
    assert_eq!(scratch.read("out.json"), scratch.read("bundle.json"));
}

#[test]
fn bundle_takes_commit_and_time_from_git() {
    let scratch = repos();
    let commit = scratch.commit_all("data");
    let bundle = command::qontract(scratch.path(), &["bundle", "repo"]);
    let text = String::from_utf8_lossy(&bundle.stdout).into_owned();
    assert!(
        text.contains(&format!("\"git_commit\":\"{commit}\",\"git_commit_timestamp\":\"1700000000\"")),
        "{text}"
    );
}

#[test]
fn a_revision_is_bundled_without_a_checkout_to_the_same_bytes() {
    let scratch = repos();
    scratch.commit_all("data");
    let before = command::qontract(scratch.path(), &["bundle", "repo"]).stdout;
    scratch.write("repo/data/teams/core.yml", "$schema: /tiny/team-1.yml\nname: other\n");
    scratch.remove("repo/data/clusters/b.yml");
    let after = command::qontract(scratch.path(), &["bundle", "repo", "--rev", "HEAD"]).stdout;
    assert_eq!(String::from_utf8_lossy(&before), String::from_utf8_lossy(&after));
    assert!(!before.is_empty());
}

#[test]
fn every_bad_file_is_named_at_once_and_nothing_is_written() {
    let scratch = repos();
    scratch.write("repo/data/a.yml", "a: [1\n");
    scratch.write("repo/data/b.yml", "$schema: x\nday: 2024-01-02\n1: one\n");
    scratch.write("repo/data/c.yml", "- list\n");
    scratch.write("repo/resources/d.bin", [0xff, 0xfe]);
    scratch.link("repo/data/e.yml", "/etc/passwd");
    check("bundle-errors", scratch.path(), &["bundle", "repo"]);
    check("bundle-errors-file", scratch.path(), &["bundle", "repo", "-o", "out.json"]);
    assert!(!scratch.path().join("out.json").exists());
}

#[test]
fn warnings_fail_only_when_strict() {
    let scratch = repos();
    scratch.write("repo/data/teams/core.yml", "$schema: /tiny/team-1.yml\nname: a\nname: core\n");
    check("bundle-warning", scratch.path(), &["bundle", "repo", "-o", "out.json"]);
    check("bundle-strict", scratch.path(), &["bundle", "repo", "-o", "strict.json", "--strict"]);
    assert!(!scratch.path().join("strict.json").exists());
}

#[test]
fn missing_input_is_a_usage_error() {
    let scratch = repos();
    scratch.commit_all("data");
    check("bundle-no-folder", scratch.path(), &["bundle", "nowhere"]);
    check("bundle-no-data", scratch.path(), &["bundle", "kube"]);
    check("bundle-no-revision", scratch.path(), &["bundle", "repo", "--rev", "nowhere"]);
    check("bundle-no-revision-folder", scratch.path(), &["bundle", "repo", "--rev", "HEAD:nothing"]);
    let outside = Scratch::copy_of(&vectors().join("repo"));
    check("bundle-no-git", outside.path(), &["bundle", ".", "-o", "out.json"]);
}

#[test]
fn diff_shows_the_lines_in_which_two_directories_differ() {
    let scratch = repos();
    check("diff", scratch.path(), &["diff", "repo", "repo2"]);
    check("diff-md", scratch.path(), &["diff", "repo", "repo2", "-o", "md"]);
    check("diff-same", scratch.path(), &["diff", "repo", "repo"]);
    scratch.commit_all("data");
    check("diff-nowhere", scratch.path(), &["diff", "repo", "nowhere"]);
}

#[test]
fn diff_takes_bundles_and_revisions() {
    let scratch = repos();
    check("diff-bundles", scratch.path(), &["diff", "bundle.json", "bundle2.json"]);
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.commit_all("before");
    scratch.write(
        "data/teams/edge.yml",
        "$schema: /tiny/team-1.yml\n# who to call\nname: edge\ncontact: edge@example.org\n",
    );
    scratch.commit_all("after");
    scratch.write(
        "data/teams/edge.yml",
        "# moved\n$schema: /tiny/team-1.yml\nname: edge\ncontact: edge@example.org\n",
    );
    check("diff-revisions", scratch.path(), &["diff", "HEAD~1", "HEAD"]);
    check("diff-work-tree", scratch.path(), &["diff", "HEAD", "."]);
}

#[test]
fn a_json_datafile_has_lines_whatever_it_escapes() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    let team = |contact: &str| {
        let text = r#"{"$schema": "/tiny/team-1.yml",
  "name": "smile \ud83d\ude00",
  "contact": "CONTACT"
}
"#;
        scratch.write("data/teams/smile.json", text.replace("CONTACT", contact));
    };
    team("one");
    scratch.commit_all("before");
    team("two");
    let seen = command::seen(scratch.path(), &["diff", "HEAD", "."]);
    assert!(seen.contains("[data/teams/smile.json:3]"), "{seen}");
    let query = "{ teams_v1(path: \"/teams/smile.json\") { name } }";
    let seen = command::seen(scratch.path(), &["query", query, "--provenance"]);
    assert!(seen.contains("data/teams/smile.json:1"), "{seen}");
}

#[test]
fn a_changed_schema_is_a_difference() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.commit_all("before");
    let schema = scratch
        .read("schemas/tiny/team-1.yml")
        .replace("contact: {type: string}", "contact: {type: integer}");
    scratch.write("schemas/tiny/team-1.yml", schema);
    let types = scratch
        .read("graphql-schemas/schema.yml")
        .replace("name: contact, type: string", "name: contact, type: int");
    scratch.write("graphql-schemas/schema.yml", types);
    check("diff-schemas", scratch.path(), &["diff", "HEAD", "."]);
}

#[test]
fn names_and_keys_cannot_control_the_terminal_or_the_merge_request() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.commit_all("before");
    scratch.write("data/x\u{1b}[31m.yml", "a: [1\n");
    check("escape-name", scratch.path(), &["bundle", "."]);
    scratch.remove("data/x\u{1b}[31m.yml");
    let text = scratch.read("data/teams/core.yml") + "\"k\\e[31m``\\n- **x**\": \"`a`\"\n";
    scratch.write("data/teams/core.yml", text);
    check("escape-key", scratch.path(), &["diff", "HEAD", "."]);
    check("escape-key-md", scratch.path(), &["diff", "HEAD", ".", "-o", "md"]);
}

#[test]
fn very_many_findings_of_a_file_are_cut_short() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.write("data/many.yml", "1: x\n".repeat(100_000));
    let seen = command::seen(scratch.path(), &["bundle", "."]);
    assert!(seen.contains("… and 900 more in data/many.yml"), "{}", &seen[seen.len() - 400..]);
}

#[test]
fn both_sides_of_a_diff_are_reported() {
    let scratch = repos();
    scratch.write("repo/data/a.yml", "a: [1\n");
    scratch.write("repo2/data/b.yml", "b: [1\n");
    check("diff-broken", scratch.path(), &["diff", "repo", "repo2"]);
}

#[test]
fn diff_as_json_equals_the_recorded_response() {
    let output = command::qontract(&vectors(), &["diff", "bundle.json", "bundle2.json", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let answers: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(vectors().join("answers.json")).expect("a vector"))
            .expect("JSON");
    let endpoints = answers["endpoints"].as_array().expect("a list");
    let recorded = endpoints.iter().find(|endpoint| endpoint["request"] == "GET /diff/{bundle}/{bundle2}");
    let body = recorded.and_then(|endpoint| endpoint["body"].as_str()).expect("a recorded answer");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{body}\n"));
}

#[test]
fn explain_prints_the_long_text() {
    check("explain", &vectors(), &["explain", "q1007"]);
    check("explain-all", &vectors(), &["explain"]);
    check("explain-unknown", &vectors(), &["explain", "Q9999"]);
}

#[test]
fn the_peer_bundler_is_a_drop_in() {
    let scratch = repos();
    let places = ["repo/schemas", "repo/graphql-schemas/schema.yml", "repo/data/", "repo/resources"];
    let stamp = ["0123456789abcdef0123456789abcdef01234567", "1700000000"];
    let arguments = [&["peer", "bundler", "--thread-pool-size", "3"], &places[..], &stamp].concat();
    let output = command::qontract(scratch.path(), &arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), scratch.read("bundle.json"));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));

    // The same result if the binary is called by the peer's name.
    scratch.link("qontract-bundler", env!("CARGO_BIN_EXE_qontract"));
    let by_name = std::process::Command::new(scratch.path().join("qontract-bundler"))
        .current_dir(scratch.path())
        .args(places)
        .args(stamp)
        .output()
        .expect("the binary runs");
    assert_eq!(by_name.stdout, output.stdout);

    check("peer-bundler-usage", scratch.path(), &["peer", "bundler", "repo/schemas"]);
    let missing = [&["peer", "bundler"], &places[..3], &["nowhere", "c", "t"]].concat();
    check("peer-bundler-missing", scratch.path(), &missing);
}

#[test]
fn validate_shows_all_errors_of_a_directory_at_once() {
    let scratch = repos();
    check("validate", scratch.path(), &["validate", "repo"]);
    check("validate-broken", scratch.path(), &["validate", "broken", "--only-errors"]);
    check("validate-max", scratch.path(), &["validate", "broken", "--max", "1"]);
    check("validate-strict", scratch.path(), &["validate", "repo", "--strict", "--max", "1"]);
    check(
        "validate-json",
        scratch.path(),
        &["validate", "broken", "-o", "json", "--only-errors", "--max", "2"],
    );
    scratch.commit_all("data");
    check("validate-nowhere", scratch.path(), &["validate", "nowhere"]);
    check("validate-no-bundle", scratch.path(), &["validate", "README.md"]);
}

#[test]
fn validate_takes_a_bundle_and_notes_that_it_has_no_lines() {
    check("validate-bundle", &vectors(), &["validate", "broken-bundle.json", "--only-errors"]);
}

#[test]
fn validate_takes_a_revision_and_shows_its_lines() {
    let scratch = Scratch::copy_of(&vectors().join("broken"));
    scratch.commit_all("broken");
    scratch.write(
        "data/apps/bad-types.yml",
        "$schema: /tiny/app-1.yml\nname: mended\nteam: {$ref: /teams/core.yml}\n",
    );
    let revision = command::qontract(scratch.path(), &["validate", "HEAD", "--only-errors"]);
    let text = String::from_utf8_lossy(&revision.stdout).into_owned();
    assert!(text.contains("--> data/apps/bad-types.yml:2:7"), "{text}");
}

#[test]
fn a_file_that_cannot_be_read_hides_no_other_error() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.write("data/teams/core.yml", "$schema: /tiny/team-1.yml\nname: [core\n");
    scratch.write("data/teams/edge.yml", "$schema: /tiny/team-1.yml\nnmae: edge\n");
    check("validate-partial", scratch.path(), &["validate", ".", "--only-errors"]);
}

#[test]
fn bundle_validates_unless_disabled() {
    let scratch = repos();
    check("bundle-invalid", scratch.path(), &["bundle", "broken", "-o", "out.json"]);
    assert!(!scratch.path().join("out.json").exists());
    let stamp = ["--commit", "0123456789abcdef0123456789abcdef01234567", "--commit-timestamp", "1700000000"];
    let arguments = [&["bundle", "broken", "--no-validate"][..], &stamp].concat();
    let output = command::qontract(scratch.path(), &arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), scratch.read("broken-bundle.json"));
}

#[test]
fn the_peer_validator_is_a_drop_in() {
    let scratch = repos();
    let output = command::qontract(scratch.path(), &["peer", "validator", "bundle.json"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), scratch.read("validate.json"));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let good = command::qontract(scratch.path(), &["peer", "validator", "--only-errors", "bundle.json"]);
    assert_eq!((good.status.code(), &*good.stdout), (Some(0), &b"[]\n"[..]));
    let broken =
        command::qontract(scratch.path(), &["peer", "validator", "--only-errors", "broken-bundle.json"]);
    assert_eq!(broken.status.code(), Some(1));
    scratch.link("qontract-validator", env!("CARGO_BIN_EXE_qontract"));
    let by_name = std::process::Command::new(scratch.path().join("qontract-validator"))
        .current_dir(scratch.path())
        .args(["--only-errors", "broken-bundle.json"])
        .output()
        .expect("the binary runs");
    assert_eq!(by_name.stdout, broken.stdout);
    check("peer-validator-missing", scratch.path(), &["peer", "validator", "nowhere.json"]);
    check("peer-validator-usage", scratch.path(), &["peer", "validator"]);
}

#[test]
fn schemas_are_exported_for_editors() {
    let scratch = repos();
    check("schema-export", scratch.path(), &["schema", "export", "editor", "--from", "repo"]);
    snapshot(&kept("schema-export-app"), &scratch.read("editor/tiny/app-1.json"));
    snapshot(&kept("schema-export-settings"), &scratch.read("editor/settings.json"));
}

#[test]
fn a_closed_pipe_does_not_hide_errors() {
    use std::process::{Command, Stdio};
    for (words, code) in [
        (&["validate", "broken"][..], 1),
        (&["validate", "broken", "-o", "json"], 1),
        (&["diff", "bundle.json", "bundle2.json"], 1),
        (&["diff", "bundle.json", "bundle.json"], 0),
        (&["query", "{ nothing }", "--data", "repo"], 1),
        (&["peer", "validator", "broken-bundle.json"], 1),
    ] {
        // The pipe is closed from the start.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(vectors()).args(words).stdout(writer).stderr(Stdio::null());
        assert_eq!(command.status().expect("the binary runs").code(), Some(code), "{words:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(vectors())
        .args(["bundle", "repo", "--commit", "c", "--commit-timestamp", "t"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
