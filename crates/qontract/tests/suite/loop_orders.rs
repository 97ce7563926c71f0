//! Tests of orders to loops through the binary: pause, drain, resume and run now.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::running::{Running, get};
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, example};
use rustix::process::Signal;
use serde_json::Value;

/// Keeps as many files in `marks` as `wanted` says. A step takes as many seconds as `slow` says.
const PROGRAM: &str = r#"
import json, os, sys, time
phase, request = sys.argv[-1], json.load(sys.stdin)
if phase == "describe":
    print(json.dumps({"name": "marks", "description": "keeps files", "sandbox": True}))
elif phase == "declare":
    print(json.dumps({"shards": [{"key": [["app", "a"]], "state": int(open("wanted").read())}]}))
elif phase == "plan":
    scope = request["key"]
    there = os.listdir("marks")
    def step(name):
        thing = {"scope": scope, "kind": "mark", "name": name}
        return {"changes": [{"kind": "add", "what": "add mark", "thing": thing}], "action": name}
    names = [f"m{number}" for number in range(request["state"])]
    steps = [step(name) for name in names if name not in there]
    print(json.dumps({"scopes": [{"scope": scope}], "groups": [{"steps": steps}] if steps else []}))
else:
    open("marks/" + request["action"], "w").close()
    time.sleep(float(open("slow").read()))
    print("{}")
"#;

struct Platform {
    scratch: Scratch,
    aws: Option<TestAws>,
}

impl Platform {
    fn new(aws: Option<TestAws>) -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        scratch.write("program.py", PROGRAM);
        scratch.write("wanted", "1");
        scratch.write("slow", "0");
        std::fs::create_dir_all(scratch.path().join("marks")).unwrap();
        let python = std::env::var("QONTRACT_PYTHON").unwrap();
        let mut config = format!("[integrations.marks]\ncommand = [\"{python}\", \"program.py\"]\n");
        if let Some(aws) = &aws {
            aws.bucket("journal");
            config += &format!("[targets.journal]\nbucket = \"journal\"\nendpoint = \"{}\"\n", aws.url());
        }
        scratch.write("config.toml", config);
        Self { scratch, aws }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.scratch.path()).args(words).args(["--config", "config.toml"]);
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b").env("NO_COLOR", "1");
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", self.scratch.path()).env("USER", "ann");
        if self.aws.is_none() {
            command.env("QONTRACT_RUNS", "runs");
        }
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String) {
        let output = self.command(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    #[track_caller]
    fn order(&self, words: &[&str]) -> String {
        let (code, text) = self.run(&[&["loop"], words].concat());
        assert_eq!(code, 0, "{text}");
        text
    }

    fn start(&self, every: &str) -> Running {
        let words = ["reconcile", "marks", "--data", "repo", "--no-validate-schemas", "--every", every];
        Running::of(&mut self.command(&[&words[..], &["--listen", "127.0.0.1:0"]].concat()))
    }

    fn single(&self, more: &[&str]) -> (i32, String) {
        self.run(&[&["reconcile", "marks", "--data", "repo", "--no-validate-schemas"], more].concat())
    }

    fn marks(&self) -> usize {
        std::fs::read_dir(self.scratch.path().join("marks")).unwrap().count()
    }
}

fn address(line: &str) -> String {
    line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

fn metric(address: &str, name: &str) -> String {
    let metrics = get(address, "/metrics");
    let line = metrics.lines().find(|line| line.starts_with(&format!("qontract_reconcile_{name}")));
    line.unwrap_or_default().rsplit(' ').next().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_paused_loop_changes_nothing_until_it_is_resumed() {
    let platform = Platform::new(None);
    let mut running = platform.start("1s");
    let address = address(&running.until("listening on http://"));
    running.until("changes=1");
    let told = platform.order(&["pause", "marks", "--reason", "INC-7: disk full"]);
    assert_eq!(
        told,
        "the loops of `marks` that use the journal `runs/journal` pause within a second, until they are resumed\n"
    );
    let line = running.until("paused by ann@");
    assert!(line.contains(" until it is resumed: INC-7: disk full"), "{line}");
    platform.scratch.write("wanted", "2");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(platform.marks(), 1);
    assert_eq!(metric(&address, "paused{"), "1");
    let status = get(&address, "/status");
    let status: Value = serde_json::from_str(status.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(status["loops"][0]["activity"], "paused");
    assert!(status["loops"][0]["paused"].as_str().unwrap().contains("INC-7"), "{status}");
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));

    // Neither a single run nor a process that starts now writes anything; a dry run shows what is to be done.
    let (code, text) = platform.single(&[]);
    assert_eq!((code, platform.marks()), (75, 1), "{text}");
    assert!(text.contains("`marks` was not run, because it is paused by ann@"), "{text}");
    let (code, text) = platform.single(&["--dry-run"]);
    assert!(code == 0 && text.contains("1 to add"), "{text}");
    running.signal(Signal::KILL);
    running.wait();
    let mut running = platform.start("1s");
    running.until("paused by ann@");
    let listed = platform.order(&["list"]);
    assert!(
        listed.starts_with("marks: paused by ann@") && listed.contains("pause: INC-7: disk full"),
        "{listed}"
    );
    let listed: Value = serde_json::from_str(&platform.order(&["list", "--json"])).unwrap();
    assert_eq!(
        (&listed["pauses"][0]["integration"], &listed["orders"][0]["action"]),
        (&"marks".into(), &"pause".into())
    );

    platform.order(&["resume", "marks"]);
    running.until("the pause ended");
    running.until("changes=1");
    assert_eq!(platform.marks(), 2);
    running.until("changes=0");

    // A running loop keeps its pause if the journal is lost; a resume ends it nevertheless.
    platform.order(&["pause", "marks", "--reason", "INC-9"]);
    running.until("paused by ann@");
    std::fs::remove_dir_all(platform.scratch.path().join("runs/journal")).unwrap();
    running.until("the last ones remain in effect: they are missing from the journal");
    platform.scratch.write("wanted", "3");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(platform.marks(), 2);
    platform.order(&["resume", "marks"]);
    running.until("the pause ended");
    running.until("changes=1");
    running.until("changes=0");
    running.signal(Signal::TERM);
    running.wait();
    let (code, text) = platform.single(&[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON and QONTRACT_PROMTOOL; run by `cargo xtask test`"]
fn the_alert_rules_are_valid_and_a_loop_exports_their_metrics() {
    let alerts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/alerts");
    let promtool = std::env::var("QONTRACT_PROMTOOL").unwrap();
    for words in [["check", "rules", "qontract.yaml"], ["test", "rules", "qontract.test.yaml"]] {
        let checked = Command::new(&promtool).current_dir(&alerts).args(words).output().unwrap();
        let text = String::from_utf8(checked.stdout).unwrap() + &String::from_utf8(checked.stderr).unwrap();
        assert!(checked.status.success() && text.contains("SUCCESS"), "{text}");
    }

    let rules = std::fs::read_to_string(alerts.join("qontract.yaml")).unwrap();
    let platform = Platform::new(None);
    let mut running = platform.start("1h");
    let address = address(&running.until("listening on http://"));
    running.until("run ended: ok");
    let metrics = get(&address, "/metrics");
    let words = rules.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let names: Vec<&str> = words.filter(|word| word.starts_with("qontract_reconcile_")).collect();
    assert!(names.len() >= 9, "{names:?}");
    // The data is not in a Git repository, so that it has no commit.
    for name in names.into_iter().filter(|name| !name.contains("commit_timestamp")) {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name}: {metrics}");
    }
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_drain_ends_when_the_step_in_progress_is_finished_and_no_other_starts() {
    let platform = Platform::new(None);
    platform.scratch.write("wanted", "4");
    platform.scratch.write("slow", "1");
    let mut running = platform.start("1s");
    running.until("listening on http://");
    qontract_testkit::eventually("the first step is in progress", || (platform.marks() == 1).then_some(()));
    let told = platform.order(&["drain", "--all", "--reason", "upgrade", "--for", "1h"]);
    assert!(
        told.contains("all loops that use the journal `runs/journal` pause within a second, until 20")
            && told.ends_with("no run is in progress\n"),
        "{told}"
    );
    let drained = platform.marks();
    assert!((1..4).contains(&drained), "{drained}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(platform.marks(), drained, "no step starts");
    platform.order(&["resume", "--all"]);
    running.until(&format!("changes={}", 4 - drained));
    running.until("changes=0");
    assert_eq!(platform.marks(), 4);
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn an_order_to_a_journal_that_no_loop_uses_is_a_warning_and_a_drain_of_it_fails() {
    let platform = Platform::new(None);
    let text = "no such loop has used this journal so far: check `--runs`, `--sandbox` and `--config`";
    assert!(platform.order(&["pause", "marks", "--reason", "x"]).contains(text));
    let (code, told) = platform.run(&["loop", "drain", "marks", "--reason", "x"]);
    assert!(code == 1 && told.contains(text), "{told}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_drain_names_the_run_that_does_not_end() {
    let platform = Platform::new(None);
    platform.scratch.write("slow", "20");
    let mut running = platform.start("1s");
    running.until("listening on http://");
    qontract_testkit::eventually("the first step is in progress", || (platform.marks() == 1).then_some(()));
    let (code, text) = platform.run(&["loop", "drain", "marks", "--reason", "upgrade", "--timeout", "1s"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("runs are still in progress, on 1 shard, and the loops stay paused: app=a: "),
        "{text}"
    );
    running.signal(Signal::KILL);
    running.wait();
    // The process is gone, so its lease is free.
    let told = platform.order(&["drain", "marks", "--reason", "upgrade"]);
    assert!(told.ends_with("no run is in progress\n"), "{told}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn an_order_to_run_is_heard_at_once() {
    let platform = Platform::new(None);
    let mut running = platform.start("1h");
    running.until("changes=1");
    platform.scratch.write("wanted", "2");
    let started = Instant::now();
    platform.order(&["run", "marks"]);
    running.until("an operator ordered a run");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    running.until("changes=1");
    assert_eq!(platform.marks(), 2);
    for (words, expect) in [
        (&["run", "mark"][..], "did you mean `marks`?"),
        (&["resume", "marks"], "the loops of `marks` are not paused"),
        (&["pause", "marks", "--reason", " "], "`--reason` needs a text of one line"),
        (&["pause", "marks", "--all", "--reason", "x"], "cannot be used with"),
    ] {
        let (code, text) = platform.run(&[&["loop"], words].concat());
        assert!(code == 2 && text.contains(expect), "{text}");
    }
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn orders_in_a_bucket_are_heard_and_survive_its_outage() {
    let platform = Platform::new(Some(TestAws::start()));
    let aws = platform.aws.as_ref().unwrap();
    let (code, text) = platform.run(&["journal", "init"]);
    assert_eq!(code, 0, "{text}");
    platform.order(&["pause", "--all", "--reason", "INC-8"]);
    let mut running = platform.start("1s");
    running.until("paused by ann@");
    aws.suspend();
    running.until("cannot read the orders to loops; the last ones remain in effect");
    assert_eq!(platform.marks(), 0);
    aws.resume();
    platform.order(&["resume", "--all"]);
    running.until("the pause ended");
    running.until("changes=1");
    running.until("changes=0");
    running.signal(Signal::TERM);
    running.wait();
}
