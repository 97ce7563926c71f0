//! Tests of runs that did not finish.

use std::sync::Arc;

use qontract_journal::RoundOwner;
use qontract_runtime::audit::{IntendedRound, IntendedStep, RoundNumber};
use qontract_runtime::record::BundleRecord;
use qontract_runtime::{Change, ObjectKey, PlanDigest, RunState, Scope, ShardKey};
use qontract_testkit::Scratch;

use super::*;
use crate::lease_host::this_process;
use crate::run_rounds::RunRounds;
use crate::run_store::RunFilter;

/// The id of a run.
const RUN: &str = "20270115T080000Z-x-a";

fn change(name: &str) -> Change {
    let (scope, kind) = (Scope::new([("app", "a")]), "card".to_owned());
    Change::new(ChangeKind::Add, ObjectKey { scope, kind, name: name.to_owned() }, "write card")
}

fn done(name: &str) -> Change {
    Change { result: StepResult::Done, ..change(name) }
}

fn intended(names: &[&str]) -> IntendedRound {
    let step = |name: &&str| IntendedStep {
        digest: PlanDigest::from("d"),
        changes: vec![IntendedChange::from(&change(name))],
    };
    IntendedRound {
        shard: ShardKey::new([("app", "a")]),
        steps: names.iter().map(step).collect(),
        places: Vec::new(),
    }
}

fn store(scratch: &Scratch) -> Arc<RunStore> {
    Arc::new(RunStore::new(Some(scratch.path().to_owned())).unwrap())
}

/// The rounds of a run of a process: of this process, or of a process that has ended.
fn rounds(runs: &Arc<RunStore>, is_gone: bool) -> RunRounds {
    let mut process = this_process();
    process.started -= u64::from(is_gone);
    let head = BundleRecord { sha: "s".to_owned(), commit: None, modified: false };
    let began = Timestamp::now();
    let owner = RoundOwner { run: RunId::new("x", began, 1), began, head, process };
    RunRounds::new(Arc::clone(runs), owner)
}

async fn begin(rounds: &RunRounds, names: &[&str]) -> RoundNumber {
    let (number, stored) = rounds.begin(&intended(names)).await;
    stored.unwrap();
    number
}

async fn reported(runs: &RunStore) -> Vec<String> {
    report(runs, "x", Timestamp::now()).await
}

async fn states(runs: &RunStore) -> Vec<RunState> {
    let page = runs.list(&RunFilter::default(), 9).await.unwrap();
    page.runs.iter().map(|listed| listed.summary.state).collect()
}

#[tokio::test]
async fn a_run_in_progress_is_listed_and_not_reported() {
    let scratch = Scratch::new();
    let rounds = rounds(&store(&scratch), false);
    let number = begin(&rounds, &["one"]).await;
    let other = store(&scratch);
    assert_eq!((reported(&other).await.len(), states(&other).await), (0, vec![RunState::Running]));
    let page = other.list(&RunFilter::default(), 9).await.unwrap();
    let summary = &page.runs[0].summary;
    assert_eq!((summary.changes.add, summary.errors, summary.not_made), (1, 0, 0));
    // A run in progress is looked up again, because it may be killed later.
    rounds.end(number, &[done("one")]).await.unwrap();
    assert_eq!(reported(&other).await.len(), 0);
}

#[tokio::test]
async fn a_killed_run_is_reported_once_with_the_steps_whose_results_are_not_known() {
    let scratch = Scratch::new();
    let killed = rounds(&store(&scratch), true);
    let number = begin(&killed, &["zero"]).await;
    killed.end(number, &[done("zero")]).await.unwrap();
    begin(&killed, &["one", "two"]).await;
    let runs = store(&scratch);
    assert_eq!(states(&runs).await, [RunState::Interrupted]);
    assert_eq!(report(&runs, "y", Timestamp::now()).await, [""; 0]);
    let warnings = reported(&runs).await;
    let expect = "did not finish: it was killed or stalled; may be partially applied: + write card `one` (app=a); \
                  + write card `two` (app=a); see `qontract runs show ";
    assert!(warnings.len() == 1 && warnings[0].contains(expect), "{warnings:?}");
    assert_eq!(reported(&store(&scratch)).await, [""; 0]);
    let record = runs.resolve("last").await.unwrap();
    let shard = &record.shards["app=a"];
    assert_eq!((record.ended, record.exit, shard.changes.len()), (RunEnd::Interrupted, KILLED_EXIT_CODE, 3));
    let results: Vec<StepResult> = shard.changes.iter().map(|change| change.result).collect();
    assert_eq!(results, [StepResult::Done, StepResult::Interrupted, StepResult::Interrupted]);
    assert_eq!(shard.faults[1].text, "interrupted: + write card `two` (app=a) may be partially applied");
    assert_eq!(scratch.read("trail.jsonl").lines().count(), 2);
    assert_eq!(states(&runs).await, [RunState::Interrupted]);
}

#[tokio::test]
async fn a_run_that_this_process_abandoned_is_reported_by_its_next_run() {
    let scratch = Scratch::new();
    let runs = store(&scratch);
    assert_eq!(reported(&runs).await, [""; 0], "this process has looked");
    let stalled = rounds(&runs, false);
    begin(&stalled, &["one"]).await;
    drop(stalled);
    assert_eq!(reported(&runs).await.len(), 1);
    assert_eq!(reported(&runs).await, [""; 0]);
}

#[test]
fn a_run_of_another_machine_is_in_progress_until_it_is_silent() {
    let at: Timestamp = "2027-01-15T08:00:00Z".parse().unwrap();
    let mut process = this_process();
    process.machine = Some("another".to_owned());
    let other = owner(process);
    let found = |owner: &RoundOwner, hours: i64| {
        let rounds = vec![owner.round(1, &intended(&["one"]), at)];
        UnfinishedRun::new(owner.run.clone(), rounds, at + SignedDuration::from_hours(hours)).unwrap()
    };
    assert!(found(&other, 1).is_in_progress());
    assert!(!found(&other, 3).is_in_progress());
    assert!(!found(&other, 1).abandoned().is_in_progress());
    // A process on this machine can be checked directly, so a long step does not make the run count as killed.
    assert!(found(&owner(this_process()), 30).is_in_progress());
    let record = found(&other, 1).record().unwrap();
    assert_eq!((record.state(), record.milliseconds), (RunState::Running, 3_600_000));
}

/// Describes a run of a process that started at a fixed time.
fn owner(process: LeaseProcess) -> RoundOwner {
    let began = "2027-01-15T08:00:00Z".parse().unwrap();
    let head = BundleRecord { sha: "s".to_owned(), commit: None, modified: false };
    RoundOwner { run: RunId::parse(RUN).unwrap(), began, head, process }
}

#[test]
fn warnings_name_a_few_changes() {
    let check = |count: usize, expect: &str| {
        let names: Vec<String> = (0..count).map(|name| name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (owner, now) = (owner(this_process()), Timestamp::now());
        let rounds = vec![owner.round(1, &intended(&names), now)];
        let warning = UnfinishedRun::new(owner.run, rounds, now).unwrap().warning();
        assert!(warning.contains(expect), "{warning}");
    };
    check(0, "stalled; no step was in progress; see");
    check(1, "stalled; may be partially applied: + write card `0` (app=a); see");
    check(MAX_NAMED_STEPS, "; + write card `2` (app=a); see");
    check(
        MAX_NAMED_STEPS + 1,
        "4 changes may be partially applied: + write card `0` (app=a); + write card `1` (app=a); + write card `2` (app=a); …; see",
    );
}
