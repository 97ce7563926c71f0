//! Tests that processes that leave their process group end with the run that started them, and that the next
//! run reports a killed run.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::{Command, Stdio};

use crate::support::running::Running;
use qontract_testkit::eventually;
use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// A program with one step. The file `PHASE.sh` is executed in that phase. `escaped` lists processes that
/// have left the group.
const PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "escapes", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    [ -e plan.sh ] && . ./plan.sh
    if [ -e world ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 1}]}'; exit; fi
    echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [{"action": 1, "changes": [
        {"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card"}]}]}]}' ;;
apply) [ -e apply.sh ] && . ./apply.sh; echo done > world; echo '{}' ;;
esac
"#;

const STEP: &str = "+ write card `one` (app=a)";

/// Starts a session, which inherits stdout.
const NEW_SESSION: &str = "setsid sh -c 'echo $$ >> escaped; exec sleep 600' &
while [ ! -s escaped ]; do sleep 0.01; done\n";

/// Starts a session whose leader ends, as a daemon does.
const DAEMON: &str =
    "(setsid sh -c 'sh -c \"echo \\$\\$ >> escaped; exec sleep 600\" & exit' > /dev/null 2>&1 &)
while [ ! -s escaped ]; do sleep 0.01; done\n";

/// Starts 200 sessions of processes that ignore all signals that can be ignored, each of which leaves a
/// daemon with closed streams behind.
const SWARM: &str = "i=0; while [ $i -lt 200 ]; do i=$((i + 1))
    setsid sh -c 'trap \"\" HUP INT QUIT TERM USR1 USR2; (setsid sleep 600 <&- >&- 2>&- &); echo $$ >> escaped; sleep 600' > /dev/null 2>&1 &
done
while [ \"$(wc -l < escaped)\" -lt 200 ]; do sleep 0.01; done\n";

fn stage(files: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", PROGRAM);
    scratch.write("config.toml", "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n");
    for (file, text) in files {
        scratch.write(file, text);
    }
    scratch
}

fn at(scratch: &Scratch, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command.env("QONTRACT_SHUTDOWN_SECONDS", "600");
    command
}

fn qontract(scratch: &Scratch, words: &str) -> Command {
    let mut command = at(scratch, env!("CARGO_BIN_EXE_qontract"));
    command.args(words.split(' '));
    command
}

const RECONCILE: &str = "reconcile service-dependencies --data repo --config config.toml --runs runs";

/// The processes that a file lists.
fn listed(scratch: &Scratch, file: &str) -> Vec<Pid> {
    let text = scratch.read(file);
    text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
}

/// The state and the parent of a process: the fields of `/proc/PID/stat` after the name.
fn stat(pid: &str) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether a process exists and is not a zombie.
fn is_alive(pid: Pid) -> bool {
    let state = stat(&pid.as_raw_nonzero().to_string());
    test_kill_process(pid).is_ok() && state.is_some_and(|(state, _)| state != "Z")
}

#[track_caller]
fn assert_gone(pids: &[Pid]) {
    assert!(!pids.is_empty());
    let alive: Vec<&Pid> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?} are still there");
}

/// The command lines of the children of a process, dead ones among them.
fn children(parent: u32) -> Vec<String> {
    let folders = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = folders.filter_map(|name| name.to_str().map(str::to_owned));
    let children = pids.filter(|pid| stat(pid).is_some_and(|(_, of)| of == parent));
    children.map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()).collect()
}

fn assert_has_nothing_to_do(scratch: &Scratch) {
    let shown = qontract(scratch, &format!("{RECONCILE} --dry-run")).output().unwrap();
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_process_that_leaves_its_group_ends_with_the_run() {
    for (phase, escape) in [("plan.sh", NEW_SESSION), ("plan.sh", DAEMON), ("apply.sh", DAEMON)] {
        let scratch = stage(&[(phase, escape)]);
        let output = qontract(&scratch, RECONCILE).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_gone(&listed(&scratch, "escaped"));
        scratch.remove(phase);
        assert_has_nothing_to_do(&scratch);
    }
}

#[test]
fn an_idle_loop_has_no_child_but_its_watchdog() {
    for escape in [NEW_SESSION, DAEMON] {
        let scratch = stage(&[("apply.sh", escape)]);
        let mut running = Running::of(&mut qontract(&scratch, &format!("{RECONCILE} --every 1h")));
        running.until("run ended: ok");
        assert_gone(&listed(&scratch, "escaped"));
        let children = children(running.child.id());
        assert_eq!(children.len(), 1, "{children:?}");
        assert!(children[0].contains("__watch-children"), "{children:?}");
        running.signal(Signal::TERM);
        assert_eq!(running.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_swarm_of_daemons_that_ignore_signals_ends_with_the_run() {
    let scratch = stage(&[("apply.sh", SWARM)]);
    let mut running = Running::of(&mut qontract(&scratch, &format!("{RECONCILE} --every 1h")));
    running.until("run ended: ok");
    let escaped = listed(&scratch, "escaped");
    assert_eq!(escaped.len(), 200);
    assert_gone(&escaped);
    let children = children(running.child.id());
    assert_eq!(children.len(), 1, "{children:?}");
    scratch.remove("apply.sh");
    assert_has_nothing_to_do(&scratch);
}

#[test]
fn a_shutdown_ends_processes_that_have_left_a_running_group() {
    let hang = format!("{DAEMON}{NEW_SESSION}trap '' TERM INT; touch hangs; while :; do sleep 0.02; done");
    let scratch = stage(&[("apply.sh", &hang)]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE));
    eventually("the program hangs", || scratch.path().join("hangs").exists().then_some(()));
    let escaped = listed(&scratch, "escaped");
    assert!(escaped.iter().all(|pid| is_alive(*pid)), "a program may have helpers while it runs");
    running.signal(Signal::INT);
    running.until("shutting down; waiting for up to 600 s for 1 step in progress");
    running.signal(Signal::INT);
    running.until("forced shutdown; abandoning 1 step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    assert_gone(&escaped);
}

#[test]
fn inherited_children_of_the_process_are_left_alone() {
    let scratch = stage(&[("apply.sh", NEW_SESSION)]);
    // A child in our own process group, as a library would start it, and a service that a container starts
    // earlier.
    let script = "sleep 600 > /dev/null 2>&1 & echo $! >> kept
        setsid sleep 600 > /dev/null 2>&1 & echo $! >> kept
        exec \"$@\"";
    let mut command = at(&scratch, "sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_qontract")]).args(RECONCILE.split(' '));
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let kept = listed(&scratch, "kept");
    let alive: Vec<bool> = kept.iter().map(|pid| is_alive(*pid)).collect();
    for pid in kept {
        let _ = kill_process(pid, Signal::KILL);
    }
    assert_eq!((status.code(), alive), (Some(0), vec![true, true]));
    assert_gone(&listed(&scratch, "escaped"));
}

#[test]
fn a_stopped_plan_ends_its_programs_and_exits_with_the_code_of_the_signal() {
    let hang = "sleep 600 > /dev/null 2>&1 & echo $$ $! > escaped; touch hangs; while :; do sleep 0.02; done";
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let scratch = stage(&[("plan.sh", hang)]);
        let words =
            "plan repo repo --all -i service-dependencies --config config.toml --sandbox sandbox --runs runs";
        let mut running = Running::of(&mut qontract(&scratch, words));
        eventually("the program hangs", || scratch.path().join("hangs").exists().then_some(()));
        running.signal(signal);
        running.until("shutting down; no step in progress");
        assert_eq!(running.child.wait().unwrap().code(), Some(code));
        assert_gone(&listed(&scratch, "escaped"));
    }
}

#[test]
fn a_killed_run_is_reported_by_the_next_one() {
    let scratch = stage(&[("apply.sh", "touch hangs; while :; do sleep 0.02; done")]);
    let mut running = Running::of(&mut qontract(&scratch, RECONCILE));
    eventually("the program hangs", || scratch.path().join("hangs").exists().then_some(()));
    let dry = qontract(&scratch, &format!("{RECONCILE} --dry-run")).output().unwrap();
    assert!(!String::from_utf8(dry.stderr).unwrap().contains("did not finish"), "it is still running");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    scratch.remove("apply.sh");
    let warnings = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        text.lines().filter(|line| line.contains("did not finish")).map(str::to_owned).collect::<Vec<_>>()
    };
    let reported = warnings(&mut qontract(&scratch, RECONCILE));
    assert_eq!(reported.len(), 1, "{reported:?}");
    let rest = reported[0].strip_prefix("warning: run ").unwrap();
    let (run, rest) = rest.split_once(' ').unwrap();
    let expect = format!(
        "did not finish: it was killed or stalled; may be partially applied: {STEP}; see `qontract runs show {run}`"
    );
    assert_eq!(rest, expect);
    let shown = qontract(&scratch, &format!("runs show {run} --runs runs")).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains(&format!("interrupted: {STEP} may be partially applied")), "{text}");
    let first: Value =
        serde_json::from_str(scratch.read("runs/trail.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!((&first["run"], &first["done"]), (&run.into(), &false.into()));
    assert!(warnings(&mut qontract(&scratch, RECONCILE)).is_empty(), "it is reported once");
}

#[test]
fn a_loop_names_an_abandoned_step_once() {
    let scratch = stage(&[("apply.sh", "touch hangs; while :; do sleep 0.02; done")]);
    let mut command = qontract(&scratch, &format!("{RECONCILE} --every 1h"));
    let mut running = Running::of(command.env("QONTRACT_SHUTDOWN_SECONDS", "0"));
    eventually("the program hangs", || scratch.path().join("hangs").exists().then_some(()));
    running.signal(Signal::TERM);
    let output = running.drain();
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    let output = output.join().unwrap();
    let named: Vec<&str> = output.lines().filter(|line| line.contains(STEP)).collect();
    assert_eq!(named.len(), 1, "{output}");
    assert!(named[0].contains("WARNING interrupted: "), "{output}");
}
