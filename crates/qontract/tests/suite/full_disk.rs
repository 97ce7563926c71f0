//! Tests of runs whose sandbox is on a full disk.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use qontract_testkit::{Scratch, example};

/// Reconciles the roles of the example in a sandbox, with a limit on the size of files in blocks of 512 bytes: a
/// larger file fails as it does on a full disk.
fn reconcile(scratch: &Scratch, max_blocks: Option<u32>) -> Output {
    let limit = max_blocks.map(|blocks| format!("trap '' XFSZ; ulimit -f {blocks}; ")).unwrap_or_default();
    let script = format!("{limit}exec \"$@\"");
    let words = ["reconcile", "openshift-resources", "--data", "repo", "--sandbox", "sandbox"];
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_qontract")]).args(words);
    command.current_dir(scratch.path()).env("QONTRACT_RUNS", "runs").env("HOME", scratch.path());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// All files below a directory whose names begin with a dot.
fn drafts(folder: &Path) -> Vec<PathBuf> {
    let mut drafts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            drafts.extend(self::drafts(&path));
        } else if path.file_name().unwrap().to_str().unwrap().starts_with('.') {
            drafts.push(path);
        }
    }
    drafts
}

#[test]
fn a_full_disk_is_one_error_and_leaves_no_drafts() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let namespaces =
        ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", "sandbox", "--runs", "runs"];
    let output = crate::support::command::qontract(scratch.path(), &namespaces);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let full = text(&reconcile(&scratch, Some(0)));
    let errors: Vec<&str> = full.lines().filter(|line| line.starts_with("error: ")).collect();
    let of_disk: Vec<&&str> = errors.iter().filter(|line| line.contains("File too large")).collect();
    assert!(
        matches!(of_disk[..], [one] if one.contains(" changes failed: cannot use the sandbox: ")),
        "{full}"
    );
    let left = drafts(&scratch.path().join("sandbox/clusters"));
    assert!(left.is_empty(), "{left:?}");

    let output = reconcile(&scratch, None);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = reconcile(&scratch, None);
    assert!(text(&output).contains("up to date") || output.stdout.is_empty(), "{}", text(&output));
}
