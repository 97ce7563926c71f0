//! An empty datafile is an error, and never means the removal of the objects that it declared.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::support::running::Running;
use qontract_testkit::{Scratch, example};

const FILE: &str = "repo/data/access/users/dev-catalog-one.yml";

/// The example as a Git repository, next to a directory for records.
fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.init_journal("runs");
    git(&scratch, &["init", "-q"]);
    commit(&scratch);
    // RoleBindings need their namespaces.
    let words = ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", "sandbox"];
    assert_eq!(run(&scratch, &words).0, 0);
    scratch
}

fn commit(scratch: &Scratch) {
    git(scratch, &["add", "-A"]);
    git(scratch, &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "all"]);
}

fn git(scratch: &Scratch, words: &[&str]) {
    let output = Command::new("git").current_dir(scratch.path().join("repo")).args(words).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn command(scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let folder = scratch.path();
    command.current_dir(folder).args(words).env("NO_COLOR", "1").env("HOME", folder);
    command.env("QONTRACT_RUNS", "runs").env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command
}

/// The exit code and the output of a command.
fn run(scratch: &Scratch, words: &[&str]) -> (i32, String) {
    let output = command(scratch, words).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code().unwrap(), text.concat())
}

const RECONCILE: [&str; 6] =
    ["reconcile", "openshift-rolebindings", "--data", "repo", "--sandbox", "sandbox"];
const PLAN: [&str; 7] = ["plan", "HEAD", "repo", "--repo", "repo", "--sandbox", "sandbox"];

#[test]
fn an_empty_datafile_fails_every_plan_and_run_and_is_named() {
    let scratch = stage();
    assert_eq!(run(&scratch, &RECONCILE).0, 0);
    let no_validate = ["--no-validate"];
    let commands = [
        vec!["validate", "repo"],
        PLAN.to_vec(),
        [&PLAN[..], &no_validate].concat(),
        RECONCILE.to_vec(),
        [&RECONCILE[..], &no_validate].concat(),
        vec!["up", "repo", "--once", "--sandbox", "sandbox"],
    ];
    for (content, commands) in [("", &commands[..]), ("# soon\n", &commands[..2])] {
        scratch.write(FILE, content);
        for words in commands {
            let (code, text) = run(&scratch, words);
            assert_eq!(code, 1, "{words:?}: {text}");
            let is_named = text.contains("error[Q2002]: the file is empty\n") && text.contains(FILE);
            assert!(is_named, "{words:?}: {text}");
            assert!(!text.contains("to remove,") && !text.contains("no such file"), "{words:?}: {text}");
        }
    }
}

#[test]
fn an_empty_datafile_that_others_name_is_the_only_error() {
    let scratch = stage();
    scratch.write("repo/data/access/roles/dev-catalog.yml", "");
    for words in [&["validate", "repo", "--only-errors"][..], &PLAN] {
        let (code, text) = run(&scratch, words);
        assert_eq!(code, 1, "{words:?}: {text}");
        assert_eq!(text.matches("error[").count(), 1, "{words:?}: {text}");
    }
}

#[test]
fn bundle_leaves_an_empty_datafile_out_with_a_warning_as_if_it_were_deleted() {
    let scratch = stage();
    let stamp = ["--commit", "a", "--commit-timestamp", "1"];
    let bundle = |output: &str| run(&scratch, &[&["bundle", "repo", "-o", output][..], &stamp].concat());
    scratch.write(FILE, "");
    let (code, text) = bundle("empty.json");
    assert!(code == 0 && text.contains("warning[Q2002]: the file is empty and is left out"), "{text}");
    std::fs::remove_file(scratch.path().join(FILE)).unwrap();
    assert_eq!(bundle("deleted.json").0, 0);
    assert_eq!(scratch.read("empty.json"), scratch.read("deleted.json"));
}

#[test]
fn a_change_that_restores_an_empty_datafile_is_planned() {
    let scratch = stage();
    let content = scratch.read(FILE);
    scratch.write(FILE, "");
    commit(&scratch);
    scratch.write(FILE, content);
    let (code, text) = run(&scratch, &[&PLAN[..], &["-i", "openshift-rolebindings"]].concat());
    assert!(code == 0 && text.contains("11 to add"), "{code}: {text}");
}

/// The role bindings in the sandbox, with their modification times.
fn role_bindings(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(role_bindings(&path));
        } else if path.components().any(|part| part.as_os_str() == "RoleBinding") {
            found.insert(path.clone(), path.metadata().unwrap().modified().unwrap());
        }
    }
    found
}

#[test]
fn a_loop_removes_nothing_while_a_datafile_is_empty_and_continues_when_it_is_restored() {
    let scratch = stage();
    let sandbox = scratch.path().join("sandbox/clusters");
    let mut running = Running::of(&mut command(&scratch, &[&RECONCILE[..], &["--every", "1h"]].concat()));
    running.until("run ended: ok");
    let before = role_bindings(&sandbox);
    let content = scratch.read(FILE);
    scratch.write(FILE, "");
    let line = running.until("data is invalid: ");
    assert!(line.contains(" ERROR ") && line.contains("dev-catalog-one.yml: the file is empty"), "{line}");
    assert!(line.contains("; still reconciling bundle "), "{line}");
    scratch.write(FILE, content);
    running.until("data is valid again after ");
    assert_eq!(role_bindings(&sandbox), before, "nothing is removed, and nothing is written again");
    // Only a deleted file means that its objects are removed.
    std::fs::remove_file(scratch.path().join(FILE)).unwrap();
    running.until("run ended: ok");
    let after = role_bindings(&sandbox);
    assert!(after.len() < before.len() && after.iter().all(|(path, at)| before[path] == *at), "{after:?}");
}
