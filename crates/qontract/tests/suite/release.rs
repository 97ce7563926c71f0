//! Tests of the parts of a release: the version with its commit, completions, manual pages.

// The build script computes the watched files and the version; here it runs on test checkouts.
#[path = "../../build.rs"]
#[expect(dead_code, reason = "its `main` is for cargo")]
#[expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
mod build_script;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::command;
use qontract_testkit::{Scratch, not_tested};

fn stdout(arguments: &[&str]) -> String {
    let output = command::qontract(Path::new("."), arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The commands, or integrations, that a help text lists.
fn listed(help: &str) -> Vec<&str> {
    let is_heading = |line: &str| {
        let headings = ["Commands:", "Integrations:"];
        let groups = ["Start here:", "Data:", "Reconciliation:", "Inspection:", "Setup and other:"];
        headings.contains(&line) || groups.contains(&line)
    };
    let sections = help.split("\n\n").filter(|section| section.lines().next().is_some_and(is_heading));
    let rows = sections.flat_map(|section| section.lines().skip(1));
    // A row begins with a name in the third column; its text may continue in the next line.
    rows.filter(|row| row.len() > 2 && row.as_bytes()[2] != b' ')
        .filter_map(|row| row.split_whitespace().next())
        .collect()
}

#[test]
fn the_short_version_is_short_and_the_long_one_has_the_commit() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["-V"]), format!("qontract {version}\n"));
    assert_eq!(stdout(&["--version"]), format!("qontract {}\n", env!("QONTRACT_VERSION")));
    assert!(env!("QONTRACT_VERSION").starts_with(version));
}

#[test]
fn the_version_has_the_commit_if_it_is_known() {
    let check = |commit: &str, expect: &str| assert_eq!(build_script::version("1.2.3", commit), expect);
    check("", "1.2.3");
    check(" \n", "1.2.3");
    check("0123456789abcdef0123456789abcdef01234567", "1.2.3 (commit 0123456789ab)");
    check("0123456789abcdef 2026-11-16", "1.2.3 (commit 0123456789ab, 2026-11-16)");
    check("0123456789ab modified", "1.2.3 (commit 0123456789ab, modified)");
}

/// The result of the build script in the directory of the package, with paths relative to `top`.
fn checkout_info(package: &Path, top: &Path) -> Option<(String, Vec<String>)> {
    let (commit, watched) = build_script::checkout(package)?;
    let top = top.canonicalize().expect("a folder");
    let place = |path: &PathBuf| {
        let path = path.canonicalize().expect("what is watched is there");
        path.strip_prefix(&top).expect("it is below the top").display().to_string()
    };
    Some((commit, watched.iter().map(place).collect()))
}

fn checkout() -> (Scratch, PathBuf, String) {
    let scratch = Scratch::new();
    scratch.write("repo/crates/qontract/Cargo.toml", "");
    scratch.git(&["init", "--quiet", "--initial-branch=main", "repo"]);
    let package = scratch.path().join("repo/crates/qontract");
    let commit = commit(&scratch, "repo");
    (scratch, package, commit)
}

fn commit(scratch: &Scratch, folder: &str) -> String {
    scratch.git(&["-C", folder, "add", "--all"]);
    scratch.git(&["-C", folder, "commit", "--quiet", "--allow-empty", "--message", "x"]);
    scratch.git(&["-C", folder, "rev-parse", "HEAD"])
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

#[test]
fn a_checkout_is_watched_at_the_ref_of_its_commit() {
    let (scratch, package, commit) = checkout();
    let expected = (format!("{commit} 2023-11-14"), names(["repo/.git/HEAD", "repo/.git/refs/heads/main"]));
    assert_eq!(checkout_info(&package, scratch.path()), Some(expected));
}

#[test]
fn a_branch_that_is_packed_is_watched_where_the_next_commit_will_be() {
    let (scratch, package, commit) = checkout();
    scratch.git(&["-C", "repo", "pack-refs", "--all"]);
    let watched = names(["repo/.git/HEAD", "repo/.git/packed-refs", "repo/.git/refs/heads"]);
    assert_eq!(checkout_info(&package, scratch.path()), Some((format!("{commit} 2023-11-14"), watched)));
}

#[test]
fn a_second_work_tree_has_its_own_head() {
    let (scratch, _, _) = checkout();
    scratch.git(&["-C", "repo", "worktree", "add", "--quiet", "-b", "side", "../side"]);
    scratch.write("side/new", "");
    let commit = commit(&scratch, "side");
    let watched = names(["repo/.git/worktrees/side/HEAD", "repo/.git/refs/heads/side"]);
    let package = scratch.path().join("side/crates/qontract");
    assert_eq!(checkout_info(&package, scratch.path()), Some((format!("{commit} 2023-11-14"), watched)));
}

#[test]
fn an_archive_has_no_commit_even_inside_an_unrelated_repository() {
    let scratch = Scratch::new();
    scratch.write("vendor/crates/qontract/Cargo.toml", "");
    let package = scratch.path().join("vendor/crates/qontract");
    assert_eq!(checkout_info(&package, scratch.path()), None);
    scratch.commit_all("theirs");
    assert_eq!(checkout_info(&package, scratch.path()), None);
}

#[test]
fn completions_of_every_shell_have_every_command() {
    let help = stdout(&["--help"]);
    let commands = listed(&help);
    assert!(commands.contains(&"reconcile") && commands.len() > 15, "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&["completions", shell]);
        for word in commands.iter().chain(&["openshift-namespaces", "only-errors"]) {
            assert!(script.contains(word), "the completions of {shell} lack `{word}`");
        }
    }
}

/// Checks the syntax of the completions for a shell; whether the shell is installed.
fn check_completions(shell: &str) -> bool {
    let scratch = Scratch::new();
    let script = scratch.write(shell, stdout(&["completions", shell]));
    let Ok(output) = Command::new(shell).arg("-n").arg(&script).output() else { return false };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn bash_can_read_its_completions() {
    assert!(check_completions("bash"), "bash is not installed");
}

#[test]
#[ignore = "needs zsh and fish; run by `cargo xtask test`"]
fn other_shells_can_read_their_completions() {
    for shell in ["zsh", "fish"] {
        if !check_completions(shell) {
            not_tested(&format!("completions for {shell}: this machine has no {shell}"));
        }
    }
}

#[test]
fn bash_completes_commands_integrations_and_values() {
    let scratch = Scratch::new();
    scratch.write("completions", stdout(&["completions", "bash"]));
    let check = |words: &str, expect: &str| {
        let last = words.split(' ').count() - 1;
        let ask = format!(
            "source ./completions; COMP_WORDS=({words}); COMP_CWORD={last}; _qontract qontract \
             \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last}-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").current_dir(scratch.path()).args(["-c", &ask]).output();
        let output = output.expect("bash runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expect, "{words}");
    };
    check("qontract vali", "validate");
    check("qontract reconcile openshift-rol", "openshift-rolebindings");
    check("qontract diff --output m", "md");
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("man1");
    stdout(&["man", folder.to_str().expect("text")]);
    let pages: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    let mut expected = BTreeSet::from(["qontract.1".to_owned()]);
    let mut unread = vec![Vec::new()];
    while let Some(words) = unread.pop() {
        let words: Vec<String> = words;
        let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
        asked.push("--help");
        for command in listed(&stdout(&asked)) {
            let deeper = [&words[..], &[command.to_owned()]].concat();
            expected.insert(format!("qontract-{}.1", deeper.join("-")));
            unread.push(deeper);
        }
    }
    assert_eq!(pages, expected);
    let page = scratch.read("man1/qontract-validate.1");
    assert!(page.contains("Hide warnings") && page.contains(".SH OPTIONS"), "{page}");
}

#[test]
#[ignore = "needs a man that can set pages; run by `cargo xtask test`"]
fn manual_pages_can_be_set() {
    let scratch = Scratch::new();
    stdout(&["man", scratch.path().to_str().expect("text")]);
    let arguments = ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "qontract.1", "qontract-reconcile.1"];
    match Command::new("man").current_dir(scratch.path()).args(arguments).output() {
        Ok(output) if output.status.success() => {
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            assert!(!output.stdout.is_empty());
        }
        _ => not_tested("manual pages: this machine has no man that can set pages"),
    }
}
