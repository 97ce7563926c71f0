//! Tests that two processes on one journal never apply the steps of one shard at the same time, also if one of
//! them is paused or killed.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use qontract_testkit::{Scratch, eventually, example};
use rustix::process::{Pid, Signal, kill_process};

/// A program that writes the cards `one` and `two`, one after the other, and logs each step with its process. The
/// first step after a file `hold` was written hangs until a file `gate` exists.
const PROGRAM: &str = r#"
scope='[["app", "a"]]'
case $1 in
describe) echo '{"name": "cards", "description": "writes cards"}' ;;
declare) echo "{\"shards\": [{\"key\": $scope, \"state\": 1}]}" ;;
plan)
    steps=
    for name in one two; do
        [ -e "cards/$name" ] && continue
        change="{\"kind\": \"add\", \"thing\": {\"scope\": $scope, \"kind\": \"card\", \"name\": \"$name\"}, \"what\": \"write card\"}"
        steps="$steps${steps:+, }{\"action\": \"$name\", \"changes\": [$change]}"
    done
    echo "{\"scopes\": [{\"scope\": $scope, \"count\": $(ls cards | wc -l)}], \"groups\": [${steps:+{\"steps\": [$steps]\}}]}" ;;
apply)
    name=$(sed 's/.*"action": *"\([a-z]*\)".*/\1/')
    echo "$PPID $name" >> steps.log
    if mv hold held 2> /dev/null; then
        while [ ! -e gate ]; do sleep 0.02; done
    fi
    touch "cards/$name"; echo '{}' ;;
esac
"#;

/// The setup of the program, whose first step hangs.
fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", PROGRAM);
    scratch.write("config.toml", "[integrations.cards]\ncommand = [\"sh\", \"program.sh\"]\n");
    scratch.write("cards/.keep", "");
    scratch.write("hold", "");
    scratch
}

/// A run, whose output goes to the file `NAME.txt`.
fn start(scratch: &Scratch, name: &str, lease_seconds: u32, options: &[&str]) -> Child {
    let output = File::create(scratch.path().join(format!("{name}.txt"))).unwrap();
    let words =
        "reconcile cards --data repo --config config.toml --runs runs --no-validate-schemas --no-validate";
    Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(scratch.path())
        .env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap())
        .env("QONTRACT_LEASE_SECONDS", lease_seconds.to_string())
        .env("NO_COLOR", "1")
        .args(words.split(' '))
        .args(options)
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap()
}

/// The exit code and the output of a run.
fn ended(scratch: &Scratch, name: &str, mut child: Child) -> (i32, String) {
    let status = child.wait().unwrap();
    (status.code().unwrap(), scratch.read(&format!("{name}.txt")))
}

/// Waits until a step hangs, and returns its process.
fn holder(scratch: &Scratch) -> u32 {
    eventually("a step hangs", || scratch.path().join("held").exists().then_some(()));
    steps(scratch)[0].0
}

/// The steps that were started, with their processes.
fn steps(scratch: &Scratch) -> Vec<(u32, String)> {
    let log = std::fs::read_to_string(scratch.path().join("steps.log")).unwrap_or_default();
    let step = |line: &str| {
        let (pid, name) = line.split_once(' ').unwrap();
        (pid.parse().unwrap(), name.to_owned())
    };
    log.lines().map(step).collect()
}

/// Asserts that a further run has nothing to do.
#[track_caller]
fn assert_converged(scratch: &Scratch) {
    let before = steps(scratch);
    let (code, output) = ended(scratch, "again", start(scratch, "again", 60, &[]));
    assert_eq!(code, 0, "{output}");
    assert_eq!(steps(scratch), before, "{output}");
    assert!(["one", "two"].iter().all(|name| scratch.path().join("cards").join(name).exists()));
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_run_that_was_paused_longer_than_its_lease_starts_no_further_step() {
    let scratch = stage();
    let paused = start(&scratch, "paused", 5, &[]);
    let pid = paused.id();
    assert_eq!(holder(&scratch), pid);
    signal(pid, Signal::STOP);
    let other = start(&scratch, "other", 5, &[]);
    let (other_pid, (code, output)) = (other.id(), ended(&scratch, "other", other));
    assert_eq!(code, 0, "{output}");
    let expect =
        [(pid, "one"), (other_pid, "one"), (other_pid, "two")].map(|(pid, name)| (pid, name.to_owned()));
    assert_eq!(steps(&scratch), expect);
    scratch.write("gate", "");
    signal(pid, Signal::CONT);
    let (code, output) = ended(&scratch, "paused", paused);
    assert_eq!(code, 75, "{output}");
    assert!(output.contains("the lease of `app=a` was lost: "), "{output}");
    assert!(output.contains("; the next run plans it again"), "{output}");
    assert_eq!(steps(&scratch), expect, "the paused run started another step");
    assert_converged(&scratch);
}

#[test]
fn the_lease_of_a_run_that_was_killed_on_the_same_machine_is_free_at_once() {
    let scratch = stage();
    let mut killed = start(&scratch, "killed", 60, &[]);
    assert_eq!(holder(&scratch), killed.id());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let began = Instant::now();
    let (code, output) = ended(&scratch, "next", start(&scratch, "next", 60, &[]));
    assert_eq!(code, 0, "{output}");
    assert!(began.elapsed() < Duration::from_secs(40), "it waited for the lease to expire");
    assert_converged(&scratch);
}

#[test]
fn of_two_concurrent_runs_one_applies_and_the_other_names_it() {
    let scratch = stage();
    let mut runs = BTreeMap::from(["one", "two"].map(|name| {
        let child = start(&scratch, name, 5, &[]);
        (child.id(), (name, child))
    }));
    let holder = holder(&scratch);
    let (name, holding) = runs.remove(&holder).unwrap();
    let (_, (other, refused)) = runs.pop_first().unwrap();
    let (code, output) = ended(&scratch, other, refused);
    assert_eq!(code, 75, "{output}");
    let text = "the steps of `app=a` were not applied: another run holds its lease (run `";
    assert!(output.contains(text) && output.contains(&format!("pid {holder}")), "{output}");
    scratch.write("gate", "");
    let (code, output) = ended(&scratch, name, holding);
    assert_eq!(code, 0, "{output}");
    assert_eq!(steps(&scratch), ["one", "two"].map(|name| (holder, name.to_owned())));
    assert_converged(&scratch);
}

/// All files below a directory, with their content and their times of modification.
fn files(folder: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let modified = path.metadata().unwrap().modified().unwrap();
                files.insert(path.display().to_string(), (std::fs::read(&path).unwrap(), modified));
            }
        }
    }
    files
}

#[test]
fn dry_runs_and_idle_runs_touch_no_lease() {
    let scratch = stage();
    scratch.remove("hold");
    let journal = scratch.path().join("runs/journal");
    let (code, output) = ended(&scratch, "dry", start(&scratch, "dry", 60, &["--dry-run"]));
    let of_leases = || -> BTreeMap<_, _> {
        files(&journal).into_iter().filter(|(file, _)| file.contains("/lease/")).collect()
    };
    assert_eq!((code, of_leases()), (0, BTreeMap::new()), "{output}");
    let (code, output) = ended(&scratch, "first", start(&scratch, "first", 60, &[]));
    assert_eq!(code, 0, "{output}");
    let before = of_leases();
    let leases: Vec<_> = before.keys().filter(|file| file.contains("/lease/cards/")).collect();
    assert_eq!(leases.len(), 1, "{before:?}");
    assert!(String::from_utf8_lossy(&before[leases[0]].0).contains("\"released\""), "{before:?}");
    assert_converged(&scratch);
    assert_eq!(of_leases(), before);
}

#[test]
fn a_journal_that_cannot_be_written_delays_no_addition() {
    let scratch = stage();
    scratch.remove("hold");
    scratch.write("runs/journal/lease", "not a directory");
    let (code, output) = ended(&scratch, "run", start(&scratch, "run", 60, &[]));
    assert_eq!(code, 0, "{output}");
    let warning = "steps were applied without a lease, because the journal cannot be used: ";
    assert_eq!(output.matches(warning).count(), 1, "{output}");
    assert_converged(&scratch);
}

#[test]
fn a_wrong_lease_duration_is_a_usage_error() {
    let scratch = stage();
    let (code, output) = ended(&scratch, "run", start(&scratch, "run", 4, &[]));
    assert_eq!(code, 2, "{output}");
    assert!(output.contains("`QONTRACT_LEASE_SECONDS` is not between 5 and 600: `4`"), "{output}");
}
