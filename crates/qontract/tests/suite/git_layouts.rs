//! Tests of Git repository layouts: linked worktrees, reftable repositories, submodules.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::bounded_output::run;
use qontract_testkit::{Scratch, example, not_tested};

#[test]
fn a_submodule_among_the_data_of_a_revision_is_a_finding() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.git(&["init", "--quiet", "repo"]);
    scratch.git(&["-C", "repo", "add", "--all"]);
    let id = "1111111111111111111111111111111111111111";
    scratch.git(&["-C", "repo", "update-index", "--add", "--cacheinfo", &format!("160000,{id},data/extra")]);
    scratch.git(&["-C", "repo", "commit", "--quiet", "--message", "a submodule"]);
    let output = run(&scratch, "validate HEAD --repo repo");
    assert_eq!(output.code, Some(1), "{}", output.text);
    let expect = "it is a submodule, and files of submodules are not part of a revision";
    assert!(output.text.contains("data/extra") && output.text.contains(expect), "{}", output.text);
}

#[test]
fn a_linked_worktree_is_read() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.git(&["init", "--quiet", "repo"]);
    scratch.git(&["-C", "repo", "add", "--all"]);
    scratch.git(&["-C", "repo", "commit", "--quiet", "--message", "all"]);
    scratch.git(&["-C", "repo", "worktree", "add", "--quiet", "../linked", "-b", "other"]);
    assert_eq!(run(&scratch, "validate HEAD --repo linked").code, Some(0));
}

#[test]
#[ignore = "needs a git with reftable repositories; run by `cargo xtask test`"]
fn a_reftable_repository_is_read() {
    let scratch = Scratch::new();
    let mut reftable = Command::new("git");
    reftable.current_dir(scratch.path()).args(["init", "--quiet", "--ref-format=reftable", "reftable"]);
    if !reftable.output().unwrap().status.success() {
        return not_tested("reftable repositories: this `git` does not support them");
    }
    scratch.copy(&example(), "reftable");
    scratch.git(&["-C", "reftable", "add", "--all"]);
    scratch.git(&["-C", "reftable", "commit", "--quiet", "--message", "all"]);
    let output = run(&scratch, "validate HEAD --repo reftable");
    assert_eq!(output.code, Some(0), "{}", output.text);
}
