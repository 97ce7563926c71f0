//! Hostile data repos: deep directories, files with very many errors, files that change their type while they
//! are read.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::running::{Running, get};
use qontract_testkit::{Scratch, example};
use rustix::fs::{CWD, Mode, mkfifoat};

const BINARY: &str = env!("CARGO_BIN_EXE_qontract");

/// A command with its own state and cache directories.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(arguments).env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", folder.join(".cache")).env("XDG_STATE_HOME", folder.join(".state"));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The small data repo of the code examples, in `repo`.
fn small() -> Scratch {
    let scratch = Scratch::new();
    let repo = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/code-examples-repo");
    scratch.copy(Path::new(repo), "repo");
    scratch
}

/// Creates nested directories, with a file in the innermost one.
fn nest(folder: &Path, depth: usize) {
    // Step by step, because the whole path exceeds the maximum length of a path.
    let open = |at: &rustix::fd::OwnedFd, name: &str| {
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::openat(at, name, flags, Mode::empty()).unwrap()
    };
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = open(&at, "d");
    }
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::openat(&at, "x.yml", flags, Mode::RUSR | Mode::WUSR).unwrap();
}

/// Waits until a condition holds.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn directories_nested_too_deeply_are_a_finding_in_a_directory_and_in_a_revision() {
    let scratch = small();
    let repo = scratch.path().join("repo");
    nest(&repo.join("data"), 64);
    let output = run(&repo, &["validate", "."]);
    assert!(!stdout(&output).contains("Q2012"), "64 levels are fine: {}", stdout(&output));
    fs::remove_dir_all(repo.join("data/d")).unwrap();
    nest(&repo.join("data"), 1_500);
    let expect = format!(
        "error[Q2012]: the folder is nested more than 64 levels deep, and is not read\n--> data{}\n",
        "/d".repeat(65)
    );
    let output = run(&repo, &["validate", "."]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains(&expect), "{}", stdout(&output));
    assert!(stdout(&output).contains("1 error in 1 file"), "{}", stdout(&output));
    scratch.git(&["init", "--quiet", "--initial-branch=main"]);
    scratch.git(&["add", "--all"]);
    scratch.git(&["commit", "--quiet", "--message", "all"]);
    let output = run(&repo, &["validate", "HEAD"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains(&expect), "{}", stdout(&output));
    assert!(stdout(&output).contains("1 error in 1 file"), "{}", stdout(&output));
}

#[test]
fn a_server_survives_deep_directories_and_keeps_serving() {
    let scratch = small();
    let repo = scratch.path().join("repo");
    let mut server = Running::of(&mut command(&repo, &["serve", "--watch", "--listen", "127.0.0.1:0"]));
    let line = server.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let sha = |address: &str| get(address, "/sha256").rsplit("\r\n").next().unwrap().to_owned();
    let first = sha(&address);
    nest(&repo.join("data"), 1_500);
    server.until("Q2012");
    assert_eq!(sha(&address), first);
    fs::remove_dir_all(repo.join("data/d")).unwrap();
    scratch.write("repo/data/teams/core.yml", "---\n$schema: /access/team-1.yml\nname: another\n");
    eventually("the edit is served", || sha(&address) != first);
}

#[test]
fn up_survives_deep_directories_and_a_data_repo_that_was_deleted_and_recreated() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let words = ["up", "repo", "--sandbox", "sandbox", "--runs", "runs", "--every", "1h"];
    let mut up = Running::with_log_on_stdout(&mut command(scratch.path(), &words));
    up.until("integration=openshift-namespaces");
    nest(&scratch.path().join("repo/data"), 1_500);
    up.until("Q2012");
    fs::remove_dir_all(scratch.path().join("repo/data/d")).unwrap();
    let label = |value: &str| {
        let file = "repo/data/services/catalog/namespaces/catalog-stage.yml";
        let text =
            fs::read_to_string(example().join("data/services/catalog/namespaces/catalog-stage.yml")).unwrap();
        scratch.write(file, format!("{text}\n# {value}\n"));
    };
    label("one");
    up.until("the data changed");
    // After the repo was deleted and recreated, edits are detected immediately, not only by the next poll.
    fs::remove_dir_all(scratch.path().join("repo")).unwrap();
    up.until("is not a directory");
    scratch.copy(&example(), "repo");
    up.until("the data changed");
    for value in ["two", "three", "four"] {
        let began = Instant::now();
        label(value);
        up.until("the data changed");
        assert!(began.elapsed() < Duration::from_secs(8), "{value} took {:?}", began.elapsed());
    }
}

/// A schema of teams that allows no other fields.
const STRICT_SCHEMA: &str = "---
$schema: /metaschema-1.json
version: '1.0'
type: object
additionalProperties: false
properties:
  $schema: {type: string, enum: [/access/team-1.yml]}
  name: {type: string}
  contact: {type: string}
  list: {type: array, items: {type: string}}
required: [$schema, name]
";

/// A data repo with a team of this content.
fn team(text: &str) -> Scratch {
    let scratch = small();
    scratch.write("repo/schemas/access/team-1.yml", STRICT_SCHEMA);
    scratch.write("repo/data/teams/core.yml", text);
    scratch
}

/// Validates a team with this number of errors.
fn mistakes(text: &str, errors: usize) {
    let scratch = team(text);
    let began = Instant::now();
    let output = run(&scratch.path().join("repo"), &["validate", "."]);
    // A second in a release build; quadratic time would be minutes.
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let printed = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(printed.len() < 200_000, "{} bytes", printed.len());
    assert_eq!(printed.lines().filter(|line| line.starts_with("error[")).count(), 100, "{printed}");
    assert!(printed.contains(&format!("… and {} more in data/teams/core.yml\n", errors - 100)), "{printed}");
    assert!(printed.ends_with(&format!("{errors} errors in 1 file, the first 100 shown\n")), "{printed}");
}

/// Numbered lines.
fn numbered(lines: usize, line: impl Fn(usize) -> String) -> String {
    (0..lines).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_hundred_thousand_wrong_items_are_not_quadratic() {
    let items = "- 7\n".repeat(100_000);
    mistakes(&format!("---\n$schema: /access/team-1.yml\nname: core\nlist:\n{items}"), 100_000);
}

#[test]
fn many_unknown_fields_with_anchors_are_not_quadratic() {
    let fields = numbered(80_000, |number| format!("field{number}: &a{number} x\n"));
    mistakes(&format!("---\n$schema: /access/team-1.yml\nname: core\n{fields}"), 80_000);
}

#[test]
fn many_unknown_fields_in_one_line_are_not_quadratic() {
    let fields = numbered(16_000, |number| format!(", field{number}: x"));
    mistakes(&format!("{{$schema: /access/team-1.yml, name: core{fields}}}\n"), 16_000);
}

#[test]
fn records_hold_a_hundred_findings_of_a_file_and_count_the_others() {
    let scratch = team(&format!("$schema: /access/team-1.yml\nname: core\nlist:\n{}", "- 7\n".repeat(150)));
    let check = |more: &[&str], listed: usize| {
        let output = run(&scratch.path().join("repo"), &[&["validate", ".", "-o", "json"], more].concat());
        let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["errors"], 150, "{printed}");
        assert_eq!(printed["findings"].as_array().map(Vec::len), Some(listed), "{printed}");
        let omitted = serde_json::json!([{"file": "data/teams/core.yml", "errors": 50, "warnings": 0}]);
        assert_eq!(printed["omitted"], omitted);
    };
    check(&[], 100);
    check(&["--max", "7"], 7);
}

/// Replaces a path repeatedly while commands run.
struct Swapper {
    ended: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Swapper {
    /// Creates files with `make` next to a path, and moves each to the path.
    fn start(path: &Path, make: impl Fn(&Path, u64) + Send + 'static) -> Self {
        let ended = std::sync::Arc::new(AtomicBool::new(false));
        let (is_ended, path) = (std::sync::Arc::clone(&ended), path.to_owned());
        let thread = std::thread::spawn(move || {
            let beside = path.with_extension("beside-that-is-not-a-document");
            let mut turns = 0;
            while !is_ended.load(Ordering::Relaxed) {
                make(&beside, turns);
                fs::rename(&beside, &path).unwrap();
                turns += 1;
            }
            turns
        });
        Self { ended, thread: Some(thread) }
    }

    /// Stops, and returns the number of replacements.
    fn end(mut self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn a_file_that_becomes_a_link_or_a_fifo_while_it_is_read_is_not_followed_and_does_not_block() {
    let scratch = small();
    let repo = scratch.path().join("repo");
    let outside = scratch.write("outside.yml", "$schema: /access/team-1.yml\nname: outside\n");
    let file = scratch.write("repo/data/teams/swapped.yml", "$schema: /access/team-1.yml\nname: inside\n");
    let (target, text) = (outside, fs::read(&file).unwrap());
    let swapper = Swapper::start(&file, move |path, turn| match turn % 3 {
        0 => std::os::unix::fs::symlink(&target, path).unwrap(),
        1 => fs::write(path, &text).unwrap(),
        _ => mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap(),
    });
    let mut made = 0;
    for _ in 0..60 {
        let output =
            run(&repo, &["bundle", ".", "--no-validate", "--commit", "x", "--commit-timestamp", "1"]);
        assert!(output.status.code().is_some(), "{}", stderr(&output));
        assert!(!stdout(&output).contains("outside"), "{}", stdout(&output));
        made += usize::from(stdout(&output).contains("inside"));
    }
    let turns = swapper.end();
    assert!(turns > 60, "{turns} turns, {made} bundles");
}

#[test]
fn secrets_of_a_data_repo_are_read_like_its_files() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let outside = scratch.write("outside.toml", scratch.read("repo/sandbox/secrets.toml"));
    let file = scratch.path().join("repo/sandbox/secrets.toml");
    let check = |expect: &str| {
        let words = ["up", "repo", "--once", "--dry-run", "--sandbox", "sandbox", "--runs", "runs"];
        let output = run(scratch.path(), &words);
        assert_ne!(output.status.code(), Some(0));
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains(expect), "{expect}: {text}");
        fs::remove_file(&file).unwrap();
    };
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    check("which is not part of the data repo");
    fs::File::create(&file).unwrap().set_len(6 << 30).unwrap();
    check("6442450944 bytes; the maximum is 8388608");
    mkfifoat(CWD, &file, Mode::RUSR | Mode::WUSR).unwrap();
    check("it is not a regular file");
    fs::write(&file, b"\xff").unwrap();
    check("it is not UTF-8");
}

#[test]
fn types_that_cannot_be_queried_are_a_finding() {
    let scratch = small();
    let repo = scratch.path().join("repo");
    let team = "- name: Team_v1\n  fields:\n  - {name: name, type: string}\n";
    let types = [
        ("[]\n", "type `Query` is not defined"),
        (team, "type `Query` is not defined"),
        ("- name: Query\n  fields: []\n", "not a valid GraphQL schema"),
        ("- name: Query\n  fields:\n  - {name: a-b, type: string}\n", "not a valid GraphQL schema"),
    ];
    for (text, expect) in types {
        scratch.write("repo/graphql-schemas/schema.yml", text);
        let output = run(&repo, &["query", "{ teams_v1 { name } }"]);
        assert_ne!(output.status.code(), Some(0), "{text}: {}", stdout(&output));
        let output = run(&repo, &["validate", ".", "--only-errors"]);
        assert_eq!(output.status.code(), Some(1), "{text}: {}", stdout(&output));
        let printed = stdout(&output);
        assert!(printed.contains("error[Q3129]") && printed.contains(expect), "{text}: {printed}");
    }
}
