//! Tests of programs that are approved elsewhere: approvals that they observe, and their own instructions.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::{Scratch, eventually};
use rustix::process::Signal;

/// A program that removes a volume, once the file `merged` approves its plan. If there is a file `die`, `plan` is
/// killed; a file `hold` stops `apply`.
const PROGRAM: &str = r#"
thing='{"scope": [["app", "a"]], "kind": "PersistentVolume", "name": "old"}'
case $1 in
describe) echo '{"name": "service-dependencies", "description": "removes volumes", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    if [ -e die ]; then kill -9 $$; fi
    if ! [ -e volume ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 4}]}'; exit; fi
    if [ -e merged ]; then approved=$thing; fi
    echo '{"scopes": [{"scope": [["app", "a"]], "count": 5}], "approved": ['$approved'],
        "approval": "Merge the plan https://git.example.com/plans/7",
        "groups": [{"steps": [{"action": 1, "changes": [{"kind": "remove", "thing": '$thing', "what": "remove volume"}]}]}]}' ;;
apply)
    if [ -e hold ]; then echo > held; sleep 600; fi
    rm volume; echo '{}' ;;
esac
"#;

const WORDS: [&str; 8] =
    ["reconcile", "service-dependencies", "--data", "repo", "--config", "config.toml", "--runs", "runs"];

fn fixture() -> Scratch {
    let scratch = operator_fixture();
    scratch.write("program.sh", PROGRAM);
    scratch.write("volume", "");
    scratch.write("config.toml", "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n");
    scratch
}

fn reconcile(scratch: &Scratch) -> (i32, String) {
    let output = run_with(scratch.path(), &[], &WORDS);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    (output.status.code().unwrap(), text)
}

#[test]
fn a_program_is_approved_by_what_it_observes_and_has_its_own_instructions() {
    let scratch = fixture();
    let is_there = || scratch.path().join("volume").exists();
    let (code, text) = reconcile(&scratch);
    assert_eq!((code, is_there()), (1, true), "{text}");
    assert!(text.contains("removing a PersistentVolume always needs an approval"), "{text}");
    let approve = |more: &[&str]| {
        run_with(scratch.path(), &[], &[&["approve", "last", "--runs", "runs"][..], more].concat())
    };
    let printed = approve(&[]);
    assert_eq!(printed.status.code(), Some(0), "{}", stderr(&printed));
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        "Merge the plan https://git.example.com/plans/7\n"
    );
    assert_eq!(approve(&["--once"]).status.code(), Some(2), "it is not a datafile");

    // A program that is killed approves nothing.
    scratch.write("merged", "");
    scratch.write("die", "");
    let (code, text) = reconcile(&scratch);
    assert!(code != 0 && is_there(), "{text}");
    scratch.remove("die");

    // A run that is killed while it removes the volume is completed by the next one.
    scratch.write("hold", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).args(WORDS);
    let running = Running::of(&mut command);
    eventually("the removal begins", || scratch.path().join("held").exists().then_some(()));
    running.signal(Signal::KILL);
    running.wait();
    assert!(is_there());
    scratch.remove("hold");
    let (code, text) = reconcile(&scratch);
    assert_eq!((code, is_there()), (0, false), "{text}");
    let (code, text) = reconcile(&scratch);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}
