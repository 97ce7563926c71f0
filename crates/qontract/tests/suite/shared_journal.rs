//! Tests of many processes that share one journal, in a bucket (moto) or in a directory: removals of all of them
//! together stay within one budget, and their records are listed together.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::command::qontract;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, chaos_count, example, free_port};
use serde_json::Value;

/// Number of objects of each shard.
const OBJECTS: usize = 4;

/// Maximum number of processes that run at a time where their number does not matter.
const WAVE: usize = 16;

/// Maximum number of removals of an integration without approval, of this number of objects.
fn budget(objects: usize) -> usize {
    usize::max(30, objects / 10)
}

/// Keeps files in `things/SHARD/`: those in the file `keep` of the shard are desired. With the file `crash`, it kills
/// the process that runs it before it removes the first one.
const PROGRAM: &str = r#"
import json, os, signal, sys
request, phase = json.load(sys.stdin), sys.argv[-1]
shards = sorted(os.listdir("things"))
if phase == "describe":
    print(json.dumps({"name": "files", "description": "keeps files"}))
elif phase == "declare":
    keep = {shard: open(f"keep/{shard}").read().split() for shard in shards}
    print(json.dumps({"shards": [{"key": [["app", shard]], "state": keep[shard]} for shard in shards]}))
elif phase == "plan":
    shard, keep = request["key"][0][1], request["state"]
    scope = [["app", shard]]
    there = sorted(os.listdir(f"things/{shard}"))
    def step(name):
        thing = {"scope": scope, "kind": "file", "name": name}
        change = {"kind": "remove", "thing": thing, "what": "remove file"}
        return {"steps": [{"action": f"{shard}/{name}", "changes": [change]}]}
    groups = [step(name) for name in there if name not in keep]
    print(json.dumps({"scopes": [{"scope": scope, "count": len(there)}], "groups": groups}))
elif phase == "apply":
    if os.path.exists("crash"):
        os.kill(os.getppid(), signal.SIGKILL)
        sys.exit(1)
    os.remove("things/" + request["action"])
    print("{}")
"#;

/// Processes that run one shard each, and share a journal.
struct Fleet {
    scratch: Scratch,
    shards: usize,
    aws: Option<TestAws>,
    /// The binary of every second process, beginning with the first one.
    every_second: PathBuf,
}

/// This version.
fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_qontract"))
}

impl Fleet {
    /// A fleet whose journal is in a bucket, or in the directory next to its run records.
    fn new(shards: usize, aws: Option<TestAws>) -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        scratch.write("program.py", PROGRAM);
        let python = std::env::var("QONTRACT_PYTHON").unwrap();
        let mut config = format!("[integrations.files]\ncommand = [\"{python}\", \"program.py\"]\n");
        if let Some(aws) = &aws {
            aws.bucket("journal");
            config += &format!("[targets.journal]\nbucket = \"journal\"\nendpoint = \"{}\"\n", aws.url());
        }
        scratch.write("config.toml", config);
        for shard in 0..shards {
            for number in 0..OBJECTS {
                scratch.write(&format!("things/s{shard:03}/t{number}"), "");
            }
        }
        let fleet = Self { scratch, shards, aws, every_second: binary() };
        fleet.keep(OBJECTS);
        fleet
    }

    /// Declares the first `count` objects of each shard.
    fn keep(&self, count: usize) {
        for shard in 0..self.shards {
            let names: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
            self.scratch.write(&format!("keep/s{shard:03}"), names.join(" "));
        }
    }

    fn command_of(&self, binary: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command.current_dir(self.scratch.path()).args(words).args(["--config", "config.toml"]);
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", self.scratch.path());
        if self.aws.is_none() {
            command.env("QONTRACT_RUNS", "runs");
        } else {
            // No directory of this machine is needed.
            command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("QONTRACT_RUNS");
        }
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        self.run_of(&binary(), words)
    }

    fn run_of(&self, binary: &Path, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command_of(binary, words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    }

    /// The process of one shard, or of several if there are fewer processes than shards.
    fn slot(&self, id: usize, of: usize) -> Command {
        let binary = if id.is_multiple_of(2) { self.every_second.clone() } else { binary() };
        let words = ["reconcile", "files", "--data", "repo", "--no-validate-schemas", "--no-validate"];
        let mut command = self.command_of(&binary, &words);
        command.args(["--shards", &of.to_string(), "--shard-id", &id.to_string()]);
        command
    }

    /// Starts the processes of all slots at once, and waits for them. Returns the exit codes and messages of those that
    /// did not succeed.
    fn run_all(&self, processes: usize) -> Vec<String> {
        self.run_slots(0..processes, processes)
    }

    /// Runs the processes of all slots, some at a time: one test server does not respond in time to hundreds at once.
    fn run_in_waves(&self, processes: usize) -> Vec<String> {
        let starts = (0..processes).step_by(WAVE);
        starts.flat_map(|start| self.run_slots(start..processes.min(start + WAVE), processes)).collect()
    }

    fn run_slots(&self, slots: Range<usize>, processes: usize) -> Vec<String> {
        let first = slots.start;
        let start = |id| {
            let mut command = self.slot(id, processes);
            let messages = File::create(self.scratch.path().join(format!("messages-{id}"))).unwrap();
            command.stdout(Stdio::null()).stderr(messages).spawn().unwrap()
        };
        let running: Vec<Child> = slots.map(start).collect();
        let codes: Vec<_> = running.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
        let failed = codes.into_iter().enumerate().filter(|(_, code)| *code != Some(0));
        let messages = |index| self.scratch.read(&format!("messages-{}", first + index));
        failed.map(|(index, code)| format!("{code:?}: {}", messages(index))).collect()
    }

    fn left(&self) -> usize {
        let folder = |shard: usize| self.scratch.path().join(format!("things/s{shard:03}"));
        (0..self.shards).map(|shard| std::fs::read_dir(folder(shard)).unwrap().count()).sum()
    }

    /// Publishes a bundle that differs in something else.
    fn publish_unrelated(&self, number: usize) {
        let file = "repo/data/escalation/shop.yml";
        let text = self.scratch.read(file).replace("description: ", "description: x");
        self.scratch.write(file, format!("{text}# {number}\n"));
    }
}

/// All removals of `processes` processes stay within the budget of their integration, whatever crashes, and although
/// bundles are published in between.
fn check_budget(aws: Option<TestAws>, processes: usize) {
    let fleet = Fleet::new(processes, aws);
    let (code, text) = fleet.run(&["journal", "init"]);
    assert_eq!(code, Some(0), "{text}");
    let all = fleet.left();
    assert!(all > 2 * budget(all), "{all}");
    assert_eq!(fleet.run_in_waves(processes), [""; 0], "nothing to do");
    // Every shard loses half of its objects. The first round of processes dies while it removes them.
    fleet.keep(OBJECTS / 2);
    fleet.scratch.write("crash", "");
    fleet.run_all(processes);
    assert_eq!(fleet.left(), all, "every process died before its first removal");
    let (_, listed) = fleet.run(&["runs", "list", "--last", "100000"]);
    assert!(listed.contains("interrupted"), "{listed}");
    fleet.scratch.remove("crash");
    for round in 0..2 {
        fleet.publish_unrelated(round);
        fleet.run_all(processes);
        let removed = all - fleet.left();
        assert!(removed > 0 && removed <= budget(all), "round {round}: {removed} removed");
    }
    // The records of all processes are in one list, and no two runs have the same id.
    let (code, text) = fleet.run(&["runs", "list", "--last", "100000", "-o", "json"]);
    assert_eq!(code, Some(0), "{text}");
    let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
    let held = listed.iter().filter(|run| run["state"] == "held").count();
    assert!(held > 0 && listed.len() >= processes, "{} runs, {held} held", listed.len());
    // With the data as before, no process has anything to do.
    fleet.keep(OBJECTS);
    assert_eq!(fleet.run_in_waves(processes), [""; 0], "nothing to do");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn processes_that_share_a_bucket_share_one_budget() {
    check_budget(Some(TestAws::start()), usize::try_from(chaos_count(16)).unwrap());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn processes_that_share_a_directory_share_one_budget() {
    check_budget(None, usize::try_from(chaos_count(16)).unwrap());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn without_the_bucket_nothing_is_removed_and_afterwards_the_rest_is_done() {
    let fleet = Fleet::new(1, Some(TestAws::start()));
    assert_eq!(fleet.run(&["journal", "init"]).0, Some(0));
    fleet.keep(OBJECTS - 1);
    // Nothing listens at this address.
    let config = fleet.scratch.read("config.toml");
    let away = format!("http://127.0.0.1:{}", free_port());
    fleet.scratch.write("config.toml", config.replace(&fleet.aws.as_ref().unwrap().url(), &away));
    let (code, text) = fleet.run_one();
    assert_eq!((code, fleet.left()), (Some(1), OBJECTS), "{text}");
    assert!(text.contains("the removal ledger cannot be used"), "{text}");
    assert!(text.contains("cannot store the run record"), "{text}");
    fleet.scratch.write("config.toml", config);
    let (code, text) = fleet.run_one();
    assert_eq!((code, fleet.left()), (Some(0), OBJECTS - 1), "{text}");
    let (code, text) = fleet.run_one();
    assert_eq!((code, text.contains("0 to add")), (Some(0), false), "nothing to do: {text}");
}

/// Processes of this and of the previous version (`QONTRACT_PREVIOUS_BINARY`; without it, of this version only) share
/// a journal.
fn check_versions(aws: Option<TestAws>, processes: usize) {
    let previous = std::env::var_os("QONTRACT_PREVIOUS_BINARY").map_or_else(binary, PathBuf::from);
    let fleet = Fleet { every_second: previous.clone(), ..Fleet::new(processes, aws) };
    let (code, text) = fleet.run_of(&previous, &["journal", "init"]);
    assert_eq!(code, Some(0), "{text}");
    let all = fleet.left();
    assert_eq!(fleet.run_in_waves(processes), [""; 0], "nothing to do");
    fleet.keep(OBJECTS / 2);
    fleet.scratch.write("crash", "");
    fleet.run_all(processes);
    fleet.scratch.remove("crash");
    for round in 0..2 {
        fleet.publish_unrelated(round);
        fleet.run_all(processes);
        let removed = all - fleet.left();
        assert!(removed > 0 && removed <= budget(all), "round {round}: {removed} removed");
    }
    // Each version reads the journal, with the runs of both.
    for version in [&previous, &binary()] {
        assert_eq!(fleet.run_of(version, &["journal", "check"]).0, Some(0), "{}", version.display());
        let (code, text) = fleet.run_of(version, &["runs", "list", "--last", "100000", "-o", "json"]);
        assert_eq!(code, Some(0), "{text}");
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(listed.len() >= processes, "{}: {} runs", version.display(), listed.len());
    }
    fleet.keep(OBJECTS);
    assert_eq!(fleet.run_in_waves(processes), [""; 0], "nothing to do");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn two_versions_share_a_journal_in_a_bucket() {
    check_versions(Some(TestAws::start()), usize::try_from(chaos_count(12)).unwrap());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn two_versions_share_a_journal_in_a_directory() {
    check_versions(None, usize::try_from(chaos_count(12)).unwrap());
}

impl Fleet {
    fn run_one(&self) -> (Option<i32>, String) {
        let output = self.slot(0, 1).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_journal_is_checked_exported_imported_and_pruned() {
    let fleet = Fleet::new(1, Some(TestAws::start()));
    let (code, text) = fleet.run(&["journal", "check"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is not initialised; if it is new, run `qontract journal init`"), "{text}");
    assert_eq!(fleet.run(&["journal", "init"]).0, Some(0));
    fleet.keep(OBJECTS - 1);
    assert_eq!(fleet.run_one().0, Some(0));
    let (code, text) = fleet.run(&["journal", "check"]);
    assert_eq!(
        (code, text.contains("is intact: removal ledgers of 1 integration")),
        (Some(0), true),
        "{text}"
    );
    let (code, text) = fleet.run(&["journal", "export", "backup"]);
    assert_eq!((code, text.starts_with("copied ")), (Some(0), true), "{text}");
    assert_eq!(fleet.run(&["journal", "export", "backup"]).0, Some(1), "the directory is not empty");
    // The directory is a journal: a copy of it can be used in place of the bucket.
    std::fs::create_dir_all(fleet.scratch.path().join("other")).unwrap();
    fleet.scratch.copy(&fleet.scratch.path().join("backup"), "other/journal");
    let listed = qontract(fleet.scratch.path(), &["runs", "list", "--runs", "other"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("-files-") && listed.contains("real run"), "{listed}");
    // A new bucket gets the copy back.
    let aws = fleet.aws.as_ref().unwrap();
    assert_eq!(fleet.run(&["journal", "import", "backup"]).0, Some(1), "the bucket is not empty");
    aws.reset();
    aws.bucket("journal");
    let (code, text) = fleet.run(&["journal", "import", "backup"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = fleet.run(&["journal", "check"]);
    assert_eq!(code, Some(0), "{text}");
    let runs = || fleet.run(&["runs", "list", "-o", "json"]).1;
    assert!(runs().contains("\"files\""));
    let (_, text) = fleet.run(&["journal", "prune", "--keep", "0", "--dry-run"]);
    assert!(text.contains("1 run record would be removed"), "{text}");
    assert!(runs().contains("\"files\""));
    let (_, text) = fleet.run(&["journal", "prune", "--keep", "0"]);
    assert!(text.contains("removed 1 run record"), "{text}");
    assert_eq!(runs(), "[]\n");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_bucket_lists_the_last_day_with_four_requests() {
    let fleet = Fleet::new(1, Some(TestAws::start()));
    let aws = fleet.aws.as_ref().unwrap();
    let script = r#"
import boto3, sys
from datetime import datetime, timedelta, timezone
now = datetime.now(timezone.utc) - timedelta(minutes=1)
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1",
                  aws_access_key_id="a", aws_secret_access_key="b")
for number in range(300):
    name = f"{now:%Y%m%dT%H%M%SZ}-files-{number:016x}~1.{number}.real.ok.1.0.0.0.0.0.0.5."
    s3.put_object(Bucket="journal", Key=f"journal/runs/{now:%Y%m%d}/{name}", Body=b"{}")
"#;
    aws.script(script);
    let before = aws.requests().len();
    let (code, text) = fleet.run(&["runs", "list", "--since", "24h", "--last", "3"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("-files-")).count(), 3, "{text}");
    let sent = aws.requests().split_off(before);
    // Records and rounds, of today and of yesterday; each further thousand of records is one more page.
    assert_eq!(sent.len(), 4, "{sent:#?}");
}

/// A directory with many records.
fn write_records(folder: &Path, count: usize) -> PathBuf {
    let runs = folder.join("runs");
    let day = runs.join("journal/runs/20261118");
    std::fs::create_dir_all(&day).unwrap();
    for number in 0..count {
        let (hour, minute, second) = (number / 3600 % 24, number / 60 % 60, number % 60);
        let name = format!(
            "20261118T{hour:02}{minute:02}{second:02}Z-files-{number:016x}~1.{number}.real.ok.1.0.0.0.0.0.0.5..blob"
        );
        std::fs::write(day.join(name), "{}").unwrap();
    }
    runs
}

#[test]
fn listing_reads_no_records() {
    let scratch = Scratch::new();
    // None of them is a valid record.
    write_records(scratch.path(), usize::try_from(chaos_count(2_000)).unwrap());
    let output = qontract(scratch.path(), &["runs", "list", "--runs", "runs", "--last", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("-files-")).count(), 3, "{text}");
}
