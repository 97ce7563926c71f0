//! What belongs to a release: the version with its commit.

mod support {
    pub mod command;
}

// The build script says what is watched and what the version is; here it is told which checkout to look at.
#[path = "../build.rs"]
#[expect(dead_code, reason = "its `main` is for cargo")]
#[expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
mod build_script;

use std::path::{Path, PathBuf};

use qontract_testkit::Scratch;
use support::command;

fn said(arguments: &[&str]) -> String {
    let output = command::qontract(Path::new("."), arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_short_version_is_short_and_the_long_one_tells_the_commit() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(said(&["-V"]), format!("qontract {version}\n"));
    assert_eq!(said(&["--version"]), format!("qontract {}\n", env!("QONTRACT_VERSION")));
    assert!(env!("QONTRACT_VERSION").starts_with(version));
}

#[test]
fn the_version_tells_what_is_known_of_the_commit() {
    let check = |commit: &str, expect: &str| assert_eq!(build_script::version("1.2.3", commit), expect);
    check("", "1.2.3");
    check(" \n", "1.2.3");
    check("0123456789abcdef0123456789abcdef01234567", "1.2.3 (commit 0123456789ab)");
    check("0123456789abcdef 2026-11-16", "1.2.3 (commit 0123456789ab, 2026-11-16)");
    check("0123456789ab modified", "1.2.3 (commit 0123456789ab, modified)");
}

/// What the build script finds in the folder of the package, with the paths below `top`.
fn found(package: &Path, top: &Path) -> Option<(String, Vec<String>)> {
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
fn a_checkout_is_watched_where_its_commit_is_kept() {
    let (scratch, package, commit) = checkout();
    let expected = (format!("{commit} 2023-11-14"), names(["repo/.git/HEAD", "repo/.git/refs/heads/main"]));
    assert_eq!(found(&package, scratch.path()), Some(expected));
}

#[test]
fn a_branch_that_is_packed_is_watched_where_the_next_commit_will_be() {
    let (scratch, package, commit) = checkout();
    scratch.git(&["-C", "repo", "pack-refs", "--all"]);
    let watched = names(["repo/.git/HEAD", "repo/.git/packed-refs", "repo/.git/refs/heads"]);
    assert_eq!(found(&package, scratch.path()), Some((format!("{commit} 2023-11-14"), watched)));
}

#[test]
fn a_second_work_tree_has_its_own_head() {
    let (scratch, _, _) = checkout();
    scratch.git(&["-C", "repo", "worktree", "add", "--quiet", "-b", "side", "../side"]);
    scratch.write("side/new", "");
    let commit = commit(&scratch, "side");
    let watched = names(["repo/.git/worktrees/side/HEAD", "repo/.git/refs/heads/side"]);
    let package = scratch.path().join("side/crates/qontract");
    assert_eq!(found(&package, scratch.path()), Some((format!("{commit} 2023-11-14"), watched)));
}

#[test]
fn an_archive_has_no_commit_not_even_in_the_repository_of_somebody_else() {
    let scratch = Scratch::new();
    scratch.write("vendor/crates/qontract/Cargo.toml", "");
    let package = scratch.path().join("vendor/crates/qontract");
    assert_eq!(found(&package, scratch.path()), None);
    scratch.commit_all("theirs");
    assert_eq!(found(&package, scratch.path()), None);
}
