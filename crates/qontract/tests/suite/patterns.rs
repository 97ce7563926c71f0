//! Runs every command of `docs/patterns.md`, and shows that a run of several shards is one process whose failed
//! shard is named.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};

#[test]
fn the_commands_of_the_page_succeed() {
    let root = example().ancestors().nth(2).unwrap().to_owned();
    let page = std::fs::read_to_string(root.join("docs/patterns.md")).unwrap();
    let scratch = Scratch::new();
    scratch.copy(&example(), "examples/app-interface");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    qontract ")).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let output = qontract(scratch.path(), &words);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{command}: {printed}");
    }
}

#[test]
fn a_failed_shard_is_named_and_the_others_are_finished() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let reconcile = |name: &str| {
        let words = format!("reconcile {name} --data repo --sandbox sandbox --runs runs");
        qontract(scratch.path(), &words.split(' ').collect::<Vec<_>>())
    };
    assert!(reconcile("openshift-namespaces").status.success());
    let broken = "sandbox/clusters/cliffs-stage/catalog-stage/LimitRange/default.yaml";
    scratch.write(broken, "a: [\n");
    let output = reconcile("openshift-limitranges");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let named = "error: cannot read `cluster=cliffs-stage, namespace=catalog-stage, kind=LimitRange`";
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(named), "{printed}");
    assert!(printed.contains("7 steps done; 1 error"), "the others are finished: {printed}");
    scratch.remove(broken);
    assert!(reconcile("openshift-limitranges").status.success());
    let again = reconcile("openshift-limitranges");
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to change"));
}
