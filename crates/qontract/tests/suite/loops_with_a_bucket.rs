//! Tests of loops whose journal is in a bucket: what goes from the data is cleaned up by whichever process runs the
//! loop next, on whatever machine.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::Command;

use crate::support::running::Running;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, example};
use rustix::process::Signal;

/// Keeps a file for each app in `marks`: it stands for a target system.
const PROGRAM: &str = r#"
import json, os, sys
phase, request = sys.argv[-1], json.load(sys.stdin)
if phase == "describe":
    queries = [{"name": "Apps", "text": "query Apps { apps_v1 { name } }"}]
    print(json.dumps({"name": "marks", "description": "keeps a file for each app", "queries": queries}))
elif phase == "declare":
    apps = [app["name"] for app in request["answers"]["Apps"]["apps_v1"]]
    print(json.dumps({"shards": [{"key": [["app", app]], "state": True, "may_remove": "any"} for app in apps]}))
elif phase == "plan":
    scope, app = request["key"], request["key"][0][1]
    is_there, thing = os.path.exists(f"marks/{app}"), {"scope": scope, "kind": "mark", "name": app}
    def step(kind):
        return [{"steps": [{"changes": [{"kind": kind, "what": f"{kind} mark", "thing": thing}], "action": [kind, app]}]}]
    groups = []
    if request["state"] is None and is_there:
        groups = step("remove")
    elif request["state"] is not None and not is_there:
        groups = step("add")
    print(json.dumps({"scopes": [{"scope": scope, "count": int(is_there)}], "groups": groups}))
else:
    kind, app = request["action"]
    os.remove(f"marks/{app}") if kind == "remove" else open(f"marks/{app}", "w").close()
    print("{}")
"#;

const APP: &str = "repo/data/services/observability-copy/app.yml";

/// Machines that share a journal in a bucket.
struct Machines {
    scratch: Scratch,
    aws: TestAws,
}

impl Machines {
    fn new() -> Self {
        let (scratch, aws) = (Scratch::new(), TestAws::start());
        scratch.copy(&example(), "repo");
        let app = scratch.read("repo/data/services/observability/app.yml");
        scratch.write(APP, app.replacen("name: observability", "name: temporary", 1));
        scratch.write("program.py", PROGRAM);
        std::fs::create_dir_all(scratch.path().join("marks")).unwrap();
        let python = std::env::var("QONTRACT_PYTHON").unwrap();
        scratch.write(
            "config.toml",
            format!(
                "[integrations.marks]\ncommand = [\"{python}\", \"program.py\"]\n[targets.journal]\nbucket = \"journal\"\nendpoint = \"{}\"\n",
                aws.url()
            ),
        );
        let machines = Self { scratch, aws };
        machines.new_bucket();
        machines
    }

    fn new_bucket(&self) {
        self.aws.bucket("journal");
        assert!(self.command(&["journal", "init"]).status().unwrap().success());
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.scratch.path()).args(words).args(["--config", "config.toml"]);
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b").env("NO_COLOR", "1");
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("QONTRACT_RECONCILE_LEASE_SECONDS", "60");
        // A machine has no state of its own.
        command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("QONTRACT_RUNS");
        command
    }

    /// Starts the loop on a machine.
    fn start(&self) -> Running {
        let words = ["reconcile", "marks", "--data", "repo", "--no-validate-schemas", "--every", "2s"];
        Running::of(&mut self.command(&words))
    }

    /// Runs the loop on a machine until a run ends like this, and kills it there.
    fn run_until(&self, line: &str) -> String {
        let mut running = self.start();
        let printed = running.collect_until(line);
        running.signal(Signal::KILL);
        running.wait();
        printed
    }

    fn remove_app(&self) {
        std::fs::remove_file(self.scratch.path().join(APP)).unwrap();
    }

    fn has_mark(&self) -> bool {
        Path::new(&self.scratch.path().join("marks/temporary")).exists()
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_shard_that_goes_while_no_process_runs_is_cleaned_up_on_another_machine() {
    let machines = Machines::new();
    machines.run_until("run ended: ok");
    assert!(machines.has_mark());
    machines.remove_app();
    let printed = machines.run_until("run ended: ok");
    assert!(!machines.has_mark(), "{printed}");
    let printed = machines.run_until("run ended: ok");
    assert!(printed.contains("changes=0"), "nothing is left to do: {printed}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_process_cleans_up_what_another_one_added_to_its_loop() {
    let machines = Machines::new();
    let app = machines.scratch.read(APP);
    machines.remove_app();
    let mut first = machines.start();
    first.until("run ended: ok");
    first.signal(Signal::STOP);
    // Another machine reconciles the shard while the first one is suspended.
    machines.scratch.write(APP, app);
    machines.run_until("run ended: ok");
    assert!(machines.has_mark());
    machines.remove_app();
    let team = "repo/data/escalation/platform.yml";
    machines.scratch.write(team, format!("{}# changed\n", machines.scratch.read(team)));
    // Only the first process is left, which has never seen the shard.
    first.signal(Signal::CONT);
    first.until("changes=1");
    assert!(!machines.has_mark());
    first.until("changes=0");
    first.signal(Signal::TERM);
    first.wait();
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn while_the_bucket_does_not_respond_nothing_is_forgotten() {
    let machines = Machines::new();
    machines.run_until("run ended: ok");
    machines.remove_app();
    machines.aws.suspend();
    let mut running = machines.start();
    let printed = running.collect_until("run ended");
    assert!(
        printed.contains("shards that were removed from the data since then are not cleaned up"),
        "{printed}"
    );
    assert!(machines.has_mark());
    machines.aws.resume();
    running.until("changes=1");
    assert!(!machines.has_mark());
    running.until("changes=0");
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_journal_that_was_lost_removes_nothing() {
    let machines = Machines::new();
    machines.run_until("run ended: ok");
    machines.remove_app();
    machines.aws.reset();
    machines.aws.bucket("journal");
    let printed = machines.run_until("run ended");
    assert!(machines.has_mark(), "{printed}");
}
