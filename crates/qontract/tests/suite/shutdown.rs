//! Tests that signals and the death of the process end every child with its group, and leave a record of
//! partially applied steps.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::records::records;
use crate::support::running::Running;
use qontract_testkit::eventually;
use qontract_testkit::{Scratch, example};
use qontract_testserver::DataServer;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// A program with one step, which hangs as long as a file `hold` exists, and a plan, which hangs as long as a
/// file `hold-plan` exists. A file `deaf` makes it ignore signals.
const PROGRAM: &str = r#"
hang() {
    [ -e deaf ] && trap '' TERM INT
    sleep 600 > /dev/null 2>&1 &
    echo $$ $! > pids.new; mv pids.new pids
    while [ -e $1 ]; do sleep 0.02; done
}
case $1 in
describe) echo '{"name": "service-dependencies", "description": "hangs", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    [ -e hold-plan ] && hang hold-plan
    if [ -e world ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 1}]}'; exit; fi
    echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [{"action": 1, "changes": [
        {"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card"}]}]}]}' ;;
apply) hang hold; echo done > world; echo '{}' ;;
esac
"#;

const STEP: &str = "+ write card `one` (app=a)";

fn stage(files: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", PROGRAM);
    scratch.write("config.toml", "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n");
    for file in files {
        scratch.write(file, "");
    }
    scratch
}

fn qontract(scratch: &Scratch, words: &str, timeout: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command.env("QONTRACT_SHUTDOWN_SECONDS", timeout).args(words.split(' '));
    command
}

const RECONCILE: &str = "reconcile service-dependencies --data repo --config config.toml --runs runs";

/// The processes of the program, once it hangs.
fn pids(scratch: &Scratch) -> Vec<Pid> {
    let pids = eventually("the program hangs", || std::fs::read_to_string(scratch.path().join("pids")).ok());
    pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
}

/// Whether a process exists and is not a zombie.
fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.contains(") Z ")
}

#[track_caller]
fn assert_gone(pids: &[Pid]) {
    assert_eq!(pids.len(), 2);
    for pid in pids {
        assert!(!is_alive(*pid), "{pid:?} is still there");
    }
}

/// Waits until processes that are not children of this process have ended.
fn expect_gone(pids: &[Pid]) {
    eventually("no process of the group is left", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

/// Asserts that the only record and the audit log name the abandoned step.
fn assert_recorded(scratch: &Scratch, exit: u8) {
    let mut records = records(&scratch.path().join("runs"));
    assert_eq!(records.len(), 1);
    let (_, record) = records.remove(0);
    assert_eq!((&record["ended"], &record["exit"]), (&"interrupted".into(), &exit.into()));
    let shard = &record["shards"]["app=a"];
    assert_eq!(shard["changes"][0]["result"], "interrupted");
    let text = format!("interrupted: {STEP} may be partially applied");
    assert_eq!(shard["faults"][0]["text"], text);
    let trail = scratch.read("runs/trail.jsonl");
    let line: Value = serde_json::from_str(trail.trim()).unwrap();
    assert_eq!((&line["message"], &line["done"]), (&text.into(), &false.into()));
    let listed = qontract(scratch, "runs list --runs runs", "0").output().unwrap();
    assert!(String::from_utf8(listed.stdout).unwrap().contains("interrupted"));
}

/// Without the file that makes it hang, the next run finishes, and the one after it has nothing to do.
fn assert_converges(scratch: &Scratch) {
    scratch.remove("hold");
    let output = qontract(scratch, RECONCILE, "0").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(scratch.read("world"), "done\n");
    let shown = qontract(scratch, &format!("{RECONCILE} --dry-run"), "0").output().unwrap();
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_second_ctrl_c_ends_a_step_that_ignores_signals_with_its_group_and_leaves_a_record() {
    let scratch = stage(&["hold", "deaf"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "600"));
    let pids = pids(&scratch);
    running.signal(Signal::INT);
    running.until("shutting down; waiting for up to 600 s for 1 step in progress (Ctrl-C again to force)");
    assert!(pids.iter().all(|pid| is_alive(*pid)), "a step in progress is waited for");
    running.signal(Signal::INT);
    running.until("forced shutdown; abandoning 1 step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    assert_gone(&pids);
    assert_recorded(&scratch, 130);
    assert_converges(&scratch);
}

#[test]
fn a_step_that_does_not_end_in_time_is_abandoned() {
    let scratch = stage(&["hold"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "0"));
    let pids = pids(&scratch);
    running.signal(Signal::TERM);
    running.until("shutdown timed out after 0 s; abandoning 1 step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    assert_gone(&pids);
    assert_recorded(&scratch, 143);
}

#[test]
fn a_closed_terminal_ends_a_run_with_a_record() {
    let scratch = stage(&["hold"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "0"));
    let pids = pids(&scratch);
    running.signal(Signal::HUP);
    running.until("shutdown timed out after 0 s; abandoning 1 step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(129));
    assert_gone(&pids);
    assert_recorded(&scratch, 129);
    assert_converges(&scratch);
}

#[test]
fn a_step_that_ends_in_time_is_finished() {
    let scratch = stage(&["hold"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "600"));
    pids(&scratch);
    running.signal(Signal::TERM);
    running.until("shutting down; waiting for up to 600 s for 1 step");
    scratch.remove("hold");
    assert_eq!(running.child.wait().unwrap().code(), Some(143), "what follows the step was not run");
    assert_eq!(scratch.read("world"), "done\n");
    assert!(scratch.read("runs/trail.jsonl").contains(STEP));
}

/// A program with its own time to end: its step hangs until it is interrupted, and then completes and reports
/// its state. A file `deaf` makes it ignore signals.
fn stage_interruptible(shutdown_seconds: u32, files: &[&str]) -> Scratch {
    let scratch = stage(files);
    let program = PROGRAM.replace(
        "apply) hang hold; echo done > world;",
        "apply) [ -e hold ] && trap 'echo done > world; rm hold' INT; hang hold; echo done > world;",
    );
    scratch.write("program.sh", program);
    let config = scratch.read("config.toml");
    scratch.write("config.toml", format!("{config}shutdown_seconds = {shutdown_seconds}\n"));
    scratch
}

#[test]
fn a_program_that_ends_when_it_is_interrupted_finishes_its_step() {
    let scratch = stage_interruptible(600, &["hold"]);
    let mut command = qontract(&scratch, RECONCILE, "0");
    let mut running = Running::of(command.env_remove("QONTRACT_SHUTDOWN_SECONDS"));
    pids(&scratch);
    running.signal(Signal::TERM);
    running.until("shutting down; waiting for up to 602 s for 1 step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    assert_eq!(scratch.read("world"), "done\n");
    assert!(scratch.read("runs/trail.jsonl").contains(STEP));
    let shown = qontract(&scratch, &format!("{RECONCILE} --dry-run"), "0").output().unwrap();
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), &b""[..]), "nothing is left to do");
}

#[test]
fn a_program_that_ignores_signals_is_killed_at_the_end_of_its_time() {
    let scratch = stage_interruptible(1, &["hold", "deaf"]);
    let mut command = qontract(&scratch, RECONCILE, "0");
    let mut running = Running::of(command.env_remove("QONTRACT_SHUTDOWN_SECONDS"));
    let pids = pids(&scratch);
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    assert_gone(&pids);
    assert_recorded(&scratch, 143);
    assert_converges(&scratch);
}

#[test]
fn a_loop_warns_if_a_shutdown_has_less_time_than_its_integration_needs() {
    let scratch = stage_interruptible(50, &[]);
    let mut running = Running::of(&mut qontract(&scratch, &format!("{RECONCILE} --every 1h"), "40"));
    running.until(
        "a shutdown waits 40 s for steps in progress, but a step of `service-dependencies` may need 52 s",
    );
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_loop_that_abandons_a_step_exits_with_an_error() {
    let scratch = stage(&["hold"]);
    let mut running = Running::of(&mut qontract(&scratch, &format!("{RECONCILE} --every 1h"), "0"));
    let pids = pids(&scratch);
    running.signal(Signal::TERM);
    running.until("abandoning 1 step");
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    assert_gone(&pids);
    assert_recorded(&scratch, 143);
}

#[test]
fn up_ends_its_children_and_exits_with_an_error_if_a_step_is_abandoned() {
    for (words, signal, code) in
        [("up repo --every 1h", Signal::TERM, 143), ("up repo --once", Signal::INT, 130)]
    {
        let scratch = stage(&["hold"]);
        let words = format!("{words} --config config.toml --sandbox sandbox --runs runs");
        let mut running = Running::with_log_on_stdout(&mut qontract(&scratch, &words, "0"));
        let pids = pids(&scratch);
        running.signal(signal);
        running.until("abandoning 1 step in progress");
        let printed = running.drain();
        assert_eq!(running.child.wait().unwrap().code(), Some(code), "{words}: {}", printed.join().unwrap());
        assert_gone(&pids);
        assert!(scratch.read("runs/trail.jsonl").contains("may be partially applied"));
    }
}

#[test]
fn reading_programs_end_at_the_first_signal() {
    let scratch = stage(&["hold-plan"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "600"));
    let pids = pids(&scratch);
    running.signal(Signal::INT);
    running.until("shutting down; no step in progress");
    running.until("interrupted before the first step");
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    assert_gone(&pids);
    let listed = qontract(&scratch, "runs list --runs runs", "0").output().unwrap();
    assert!(String::from_utf8(listed.stdout).unwrap().contains("interrupted"));
}

#[test]
fn a_run_on_the_data_of_a_server_shuts_down_gracefully() {
    let scratch = stage(&["hold-plan"]);
    let bundle = qontract(&scratch, "bundle repo -o -", "0").output().unwrap().stdout;
    let server = DataServer::with_token("Basic abc");
    server.load(&bundle);
    let config = scratch.read("config.toml");
    let graphql = format!("[graphql]\nserver = {:?}\ntoken = \"Basic abc\"\n", server.url());
    scratch.write("config.toml", format!("{config}{graphql}"));
    let words = "reconcile service-dependencies --config config.toml --runs runs";
    let mut running = Running::of(&mut qontract(&scratch, words, "600"));
    let pids = pids(&scratch);
    running.signal(Signal::INT);
    running.until("interrupted before the first step");
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    assert_gone(&pids);
}

#[test]
fn a_killed_process_leaves_no_child_behind() {
    let scratch = stage(&["hold", "deaf"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "600"));
    let pids = pids(&scratch);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    expect_gone(&pids);
    assert_converges(&scratch);
}

/// The watchdog of a process.
fn watchdog(parent: u32) -> Pid {
    let parent = format!("PPid:\t{parent}\n");
    let is_it = |folder: &std::path::Path| {
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        read("cmdline").contains("__watch-children") && read("status").contains(&parent)
    };
    eventually("there is a watchdog", || {
        let mut folders = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let folder = folders.find(|folder| is_it(folder))?;
        Pid::from_raw(folder.file_name()?.to_str()?.parse().ok()?)
    })
}

#[test]
fn a_watchdog_that_was_killed_is_replaced() {
    let scratch = stage(&["hold", "hold-plan"]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE, "600"));
    pids(&scratch);
    kill_process(watchdog(running.child.id()), Signal::KILL).unwrap();
    scratch.remove("pids");
    scratch.remove("hold-plan");
    let pids = pids(&scratch);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    expect_gone(&pids);
}

/// Replaces a tool with a program that hangs.
fn hanging_tool(scratch: &Scratch, name: &str) {
    let path = scratch.write(
        name,
        "#!/bin/sh\nsleep 600 > /dev/null 2>&1 &\necho $$ $! > \"$(dirname \"$0\")/../pids.new\"\n\
         mv \"$(dirname \"$0\")/../pids.new\" \"$(dirname \"$0\")/../pids\"\nwait\n",
    );
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn git_ends_with_a_command_that_is_killed_or_interrupted() {
    for signal in [Signal::KILL, Signal::INT] {
        let scratch = stage(&[]);
        scratch.git(&["-C", "repo", "init", "--quiet"]);
        scratch.git(&["-C", "repo", "add", "."]);
        scratch.git(&["-C", "repo", "commit", "--quiet", "--message", "x"]);
        hanging_tool(&scratch, "bin/git");
        let path = format!("{}:{}", scratch.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = qontract(&scratch, "validate HEAD --repo repo", "600");
        let mut running = Running::of(command.env("PATH", path));
        let pids = pids(&scratch);
        running.signal(signal);
        assert!(!running.child.wait().unwrap().success());
        expect_gone(&pids);
    }
}

#[test]
fn promtool_ends_with_a_run_that_is_interrupted() {
    let scratch = stage(&[]);
    hanging_tool(&scratch, "bin/promtool");
    let path = scratch.path().join("bin/promtool");
    scratch.write("config.toml", format!("[promtool]\npath = {path:?}\n"));
    let words = "reconcile prometheus-rules-tester --data repo --config config.toml --runs runs";
    let mut running = Running::of(&mut qontract(&scratch, words, "600"));
    let pids = pids(&scratch);
    running.signal(Signal::INT);
    running.until("shutting down; no step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    expect_gone(&pids);
}

#[test]
fn a_server_logs_the_signal_that_ends_it() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let scratch = stage(&[]);
        let mut running = Running::of(&mut qontract(&scratch, "serve repo --listen 127.0.0.1:0", "0"));
        running.until("Running at");
        running.signal(signal);
        running.until(&format!("{name} received; finishing open requests, 10 s at most"));
        assert_eq!(running.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_wrong_timeout_is_a_usage_error() {
    let output = qontract(&stage(&[]), &format!("{RECONCILE} --dry-run"), "soon").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("`QONTRACT_SHUTDOWN_SECONDS` is not a number of seconds: `soon`"), "{text}");
}
