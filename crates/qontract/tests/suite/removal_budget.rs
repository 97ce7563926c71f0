//! Tests that many processes, many bundles, crashes and a lost ledger never exceed one removal budget.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::clock::SteppedClock;
use crate::support::command;
use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, Signal, kill_process};

/// Number of objects in each of ten namespaces: each shard stays within its budget of 10.
const OBJECTS_PER_NAMESPACE: usize = 9;
/// Maximum number of removals of an integration without approval.
const BUDGET: usize = 30;

/// The example on a sandbox, with many more objects in the data and in the sandbox.
struct BudgetFixture {
    scratch: Scratch,
    namespaces: Vec<(PathBuf, String)>,
}

impl BudgetFixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        let mut namespaces = Vec::new();
        for app in ["billing", "catalog", "checkout", "observability", "qontract"] {
            let folder = scratch.path().join(format!("repo/data/services/{app}/namespaces"));
            for entry in std::fs::read_dir(folder).unwrap() {
                let file = entry.unwrap().path();
                let text = std::fs::read_to_string(&file).unwrap();
                if text.contains("- ConfigMap\n") && text.contains("openshiftResources:\n") {
                    namespaces.push((file, text));
                }
            }
        }
        assert!(namespaces.len() >= 10, "{namespaces:?}");
        for number in 0..OBJECTS_PER_NAMESPACE {
            let object = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: surplus-{number}\ndata:\n  number: \"{number}\"\n"
            );
            scratch.write(&format!("repo/resources/surplus/{number}.yaml"), object);
        }
        let entry = |number| format!("- provider: resource\n  path: /surplus/{number}.yaml\n");
        let entries = (0..OBJECTS_PER_NAMESPACE).map(entry).collect::<Vec<_>>().concat();
        for (file, text) in &namespaces {
            std::fs::write(
                file,
                text.replace("openshiftResources:\n", &format!("openshiftResources:\n{entries}")),
            )
            .unwrap();
        }
        let fleet = Self { scratch, namespaces };
        fleet.run("openshift-namespaces", &[]);
        fleet.run("openshift-resources", &[]);
        fleet
    }

    /// Removes the surplus from the data.
    fn drop_surplus(&self) {
        self.drop_surplus_of(0..self.namespaces.len());
    }

    /// Removes the surplus of some namespaces from the data.
    fn drop_surplus_of(&self, namespaces: Range<usize>) {
        for (file, text) in &self.namespaces[namespaces] {
            std::fs::write(file, text).unwrap();
        }
    }

    fn command(&self, integration: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.scratch.path());
        let words = "--data repo --sandbox sandbox --runs runs --log-level WARNING";
        command.args(["reconcile", integration]).args(words.split(' '));
        command
    }

    fn run(&self, integration: &str, more: &[&str]) -> String {
        let output = self.command(integration).args(more).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    /// One slot of ten.
    fn slot(&self, id: usize) -> Command {
        let mut command = self.command("openshift-resources");
        command.args(["--shards", "10", "--shard-id", &id.to_string()]);
        command
    }

    /// Number of surplus objects in the sandbox.
    fn surplus(&self) -> usize {
        let mut count = 0;
        let mut open = vec![self.scratch.path().join("sandbox/clusters")];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                count += usize::from(name.starts_with("surplus-"));
                open.extend(path.is_dir().then_some(path));
            }
        }
        count
    }
}

#[test]
fn ten_processes_at_once_and_ten_slots_over_four_bundles_share_one_budget() {
    let fleet = BudgetFixture::new();
    let all = fleet.surplus();
    assert!(all > 2 * BUDGET, "{all}");
    fleet.drop_surplus();
    for round in 0..2 {
        let running: Vec<_> = (0..10)
            .map(|id| fleet.slot(id).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
            .collect();
        for mut child in running {
            child.wait().unwrap();
        }
        let removed = all - fleet.surplus();
        assert!(removed <= BUDGET, "round {round}: {removed} removed");
        assert!(removed > 0, "what is within the budget goes");
    }
    let left = fleet.surplus();
    let unrelated = "repo/data/escalation/shop.yml";
    for bundle in 0..4 {
        let text = fleet.scratch.read(unrelated);
        fleet
            .scratch
            .write(unrelated, format!("{text}# {bundle}\n").replace("description: ", "description: x"));
        for id in [bundle, bundle + 3, bundle + 6] {
            fleet.slot(id).output().unwrap();
        }
    }
    assert_eq!(fleet.surplus(), left, "a new bundle grants nothing");
    let output = fleet.command("openshift-resources").args(["-o", "json"]).output().unwrap();
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(record.to_string().contains("until it is approved"), "{record}");
    assert_eq!(fleet.surplus(), left, "what was held stays held");
    fleet.scratch.write("repo/data/approvals/surplus.yml", record["approval"].as_str().unwrap());
    let shown = fleet.run("openshift-resources", &[]);
    assert_eq!(fleet.surplus(), 0, "approved: {shown}");
    let again = fleet.command("openshift-resources").output().unwrap();
    assert_eq!(again.status.code(), Some(0), "nothing left to do");
}

/// The clock is stepped from outside: removals that were reserved in the future count after a step back.
#[test]
#[ignore = "needs QONTRACT_FAKETIME; run by `cargo xtask test`"]
fn a_step_of_the_clock_grants_no_second_budget() {
    let fleet = BudgetFixture::new();
    let (clock, all) = (SteppedClock::new(&fleet.scratch), fleet.surplus());
    let run = |offset: &str| {
        clock.step(offset);
        clock.apply(&mut fleet.command("openshift-resources")).args(["-o", "json"]).output().unwrap()
    };
    fleet.drop_surplus_of(0..3);
    let output = run("+30h");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fleet.surplus(), all - 3 * OBJECTS_PER_NAMESPACE, "within the budget");
    fleet.drop_surplus_of(3..6);
    for offset in ["+0", "-30h", "+1h"] {
        let output = run(offset);
        assert_eq!(output.status.code(), Some(1), "{offset}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(all - fleet.surplus() <= BUDGET, "{offset}: {} removed", all - fleet.surplus());
    }
    let record: serde_json::Value = serde_json::from_slice(&run("+0").stdout).unwrap();
    fleet.scratch.write("repo/data/approvals/surplus.yml", record["approval"].as_str().unwrap());
    assert_eq!(run("+0").status.code(), Some(0));
    assert_eq!(fleet.surplus(), all - 6 * OBJECTS_PER_NAMESPACE);
    let output = run("+0");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{record}");
    assert_eq!(fleet.surplus(), all - 6 * OBJECTS_PER_NAMESPACE, "nothing left to do");
}

/// A program with an object per file in `things/`; those in `keep` are desired. `apply` waits as long as a
/// file `hold` exists.
const PROGRAM: &str = r#"
scope='[["app", "a"]]'
case $1 in
describe) echo '{"name": "files", "description": "keeps files"}' ;;
declare) echo "{\"shards\": [{\"key\": [[\"app\", \"a\"]], \"state\": 1}]}" ;;
plan)
    steps=
    for name in $(ls things); do
        grep -qx "$name" keep && continue
        change="{\"kind\": \"remove\", \"thing\": {\"scope\": $scope, \"kind\": \"file\", \"name\": \"$name\"}, \"what\": \"remove file\"}"
        steps="$steps${steps:+, }{\"steps\": [{\"action\": \"$name\", \"changes\": [$change]}]}"
    done
    echo "{\"scopes\": [{\"scope\": $scope, \"count\": $(ls things | wc -l)}], \"groups\": [$steps]}" ;;
apply)
    name=$(sed 's/.*"action": *"\([a-z0-9]*\)".*/\1/')
    echo "$$" > begun
    while [ -e hold ]; do sleep 0.02; done
    rm -f "things/$name"; echo '{}' ;;
esac
"#;

/// The setup of a program that removes all files but those in `keep`.
fn files(keep: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("program.sh", PROGRAM);
    scratch.write("config.toml", "[integrations.files]\ncommand = [\"sh\", \"program.sh\"]\n");
    for number in 0..14 {
        scratch.write(&format!("things/t{number:02}"), "");
    }
    scratch.write("keep", keep);
    scratch
}

const FILES: [&str; 10] = [
    "reconcile",
    "files",
    "--data",
    "repo",
    "--config",
    "config.toml",
    "--runs",
    "runs",
    "--no-validate-schemas",
    "--no-validate",
];

fn reconcile(scratch: &Scratch) -> (Option<i32>, String) {
    let output = command::qontract(scratch.path(), &FILES);
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
    )
}

fn things(scratch: &Scratch) -> usize {
    std::fs::read_dir(scratch.path().join("things")).unwrap().count()
}

fn init(scratch: &Scratch) -> String {
    let output = command::qontract(scratch.path(), &["journal", "init", "--runs", "runs"]);
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_killed_between_reservation_and_removal_converges_within_one_budget() {
    let scratch = files("t00\nt01\nt02\nt03\n");
    init(&scratch);
    scratch.write("hold", "");
    let mut child = Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(scratch.path())
        .args(FILES)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let program = qontract_testkit::eventually("a removal is under way", || {
        std::fs::read_to_string(scratch.path().join("begun")).ok().filter(|pid| pid.ends_with('\n'))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let program = Pid::from_raw(program.trim().parse().unwrap()).unwrap();
    let _ = kill_process(program, Signal::KILL);
    assert_eq!(things(&scratch), 14, "nothing was removed yet");
    scratch.remove("hold");
    let (code, shown) = reconcile(&scratch);
    assert_eq!((code, things(&scratch)), (Some(0), 4), "what was reserved is not counted twice: {shown}");
    scratch.write("keep", "t00\nt01\nt02\n");
    let (code, shown) = reconcile(&scratch);
    assert_eq!((code, things(&scratch)), (Some(1), 4), "{shown}");
    assert!(
        shown.contains("1 removal after 10 in the last 24 h exceeds the limit of 10 for a shard"),
        "{shown}"
    );
    scratch.write("keep", "t00\nt01\nt02\nt03\n");
    assert_eq!(reconcile(&scratch).0, Some(0), "nothing left to do");
}

#[test]
fn without_its_ledger_nothing_is_removed_until_it_is_initialised() {
    let scratch = files("t00\nt01\nt02\nt03\nt04\nt05\nt06\nt07\nt08\nt09\nt10\n");
    let (code, shown) = reconcile(&scratch);
    assert_eq!((code, things(&scratch)), (Some(1), 14), "never initialised");
    assert!(
        shown.contains("is not initialised; if it is new, run `qontract journal init --runs runs`"),
        "{shown}"
    );
    assert_eq!(init(&scratch), "initialised: removals count from now on\n");
    assert_eq!((reconcile(&scratch).0, things(&scratch)), (Some(0), 11));
    assert_eq!(init(&scratch), "already initialised: nothing changed\n");

    scratch.write("keep", "t00\nt01\nt02\nt03\nt04\nt05\nt06\nt07\nt08\nt09\n");
    let ledger = scratch.path().join("runs/journal/ledger/files.blob");
    let whole = std::fs::read(&ledger).unwrap();
    for damage in ["truncated", "changed", "gone"] {
        let text = String::from_utf8(whole.clone()).unwrap();
        match damage {
            "truncated" => std::fs::write(&ledger, &text[..text.len() / 2]),
            "changed" => std::fs::write(&ledger, text.replace("t11", "t99")),
            _ => std::fs::remove_file(&ledger),
        }
        .unwrap();
        let (code, shown) = reconcile(&scratch);
        assert_eq!((code, things(&scratch)), (Some(1), 11), "{damage}: {shown}");
        assert!(
            shown.contains("start a new one with `qontract journal init --runs runs`"),
            "{damage}: {shown}"
        );
    }
    // A link or FIFO in its place is not followed and does not block.
    let lock = scratch.path().join("runs/journal/.lock");
    scratch.write("victim", "untouched");
    for (path, kind) in [(&ledger, "fifo"), (&ledger, "link"), (&lock, "fifo"), (&lock, "link")] {
        std::fs::write(&ledger, &whole).unwrap();
        let _ = std::fs::remove_file(path);
        let mut put = match kind {
            "fifo" => Command::new("mkfifo"),
            _ => Command::new("ln"),
        };
        put.current_dir(scratch.path());
        if kind == "link" {
            put.args(["-s", "../../victim"]);
        }
        assert!(put.arg(path).status().unwrap().success());
        let (code, shown) = reconcile(&scratch);
        assert_eq!((code, things(&scratch)), (Some(1), 11), "{kind}: {shown}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(scratch.read("victim"), "untouched");
    std::fs::remove_dir_all(scratch.path().join("runs/journal")).unwrap();
    assert_eq!((reconcile(&scratch).0, things(&scratch)), (Some(1), 11), "all of it");
    init(&scratch);
    assert_eq!((reconcile(&scratch).0, things(&scratch)), (Some(0), 10));
}
