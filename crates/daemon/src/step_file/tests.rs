//! Tests of the file of steps in progress.

use super::*;
use qontract_runtime::{ObjectKey, Scope};
use qontract_testkit::Scratch;

fn change(name: &str) -> Change {
    let (scope, kind) = (Scope::new([("app", "a")]), "card".to_owned());
    Change::new(ChangeKind::Add, ObjectKey { scope, kind, name: name.to_owned() }, "write card")
}

/// The run that is killed.
const RUN: &str = "20270115T080000Z-x-a";

fn start(runs: &RunStore, run: &str) -> StepFile {
    let head = BundleRecord { sha: "s".to_owned(), commit: None, modified: false };
    let info =
        RunInfo { run: run.to_owned(), integration: "x".to_owned(), began: Timestamp::constant(1, 0), head };
    StepFile::new(runs, info)
}

async fn reported(runs: &RunStore) -> Vec<String> {
    report(runs, "x", Timestamp::UNIX_EPOCH).await
}

/// Simulates `SIGKILL`: the lock is released, and the file stays.
fn kill(mut file: StepFile) {
    file.state = Mutex::default();
    drop(file);
}

#[tokio::test]
async fn a_finished_run_is_not_reported() {
    let scratch = Scratch::new();
    let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
    drop(start(&runs, "idle"));
    let file = start(&runs, RUN);
    file.begin("s".to_owned(), &[change("one")]).unwrap();
    assert_eq!(reported(&runs).await, Vec::<String>::new(), "the run is still in progress");
    file.end("s".to_owned(), &[change("one")]).unwrap();
    drop(file);
    assert_eq!(reported(&runs).await, Vec::<String>::new());
    assert_eq!(fs::read_dir(scratch.path().join("unfinished")).unwrap().count(), 0);
    assert!(runs.resolve(RUN).await.is_err());
}

#[tokio::test]
async fn a_killed_run_is_reported_once_with_the_steps_whose_result_is_not_known() {
    let scratch = Scratch::new();
    let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
    let file = start(&runs, RUN);
    for name in ["one", "two", "two", "three"] {
        file.begin("s".to_owned(), &[change(name)]).unwrap();
    }
    file.end("s".to_owned(), &[change("one")]).unwrap();
    file.end("s".to_owned(), &[change("two")]).unwrap();
    kill(file);
    assert_eq!(report(&runs, "y", Timestamp::UNIX_EPOCH).await, Vec::<String>::new());
    assert_eq!(
        reported(&runs).await,
        [
            "run 20270115T080000Z-x-a did not finish: it was killed or stalled; may be partially applied: + write card \
          `two` (app=a); + write card `three` (app=a); see `qontract runs show 20270115T080000Z-x-a`"
        ]
    );
    assert_eq!(reported(&runs).await, Vec::<String>::new());
    let record = runs.resolve(RUN).await.unwrap();
    let shard = &record.shards["s"];
    assert_eq!((record.ended, record.exit, shard.changes.len()), (RunEnd::Interrupted, KILLED_EXIT_CODE, 2));
    assert_eq!(shard.changes[0].result, StepResult::Interrupted);
    assert_eq!(shard.faults[1].text, "interrupted: + write card `three` (app=a) may be partially applied");
    assert_eq!(scratch.read("trail.jsonl").lines().count(), 2);
}

#[test]
fn warnings_name_a_few_changes() {
    let check = |count: usize, expect: &str| {
        let info = start(&RunStore::new(Some(PathBuf::from("/nowhere"))).unwrap(), "a").info.clone();
        let names: Vec<Change> = (0..count).map(|name| change(&name.to_string())).collect();
        let steps = vec![RecordedStep::new("s".to_owned(), &names)];
        let warning = UnfinishedRun { info, steps, milliseconds: 0 }.warning();
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

#[test]
fn lines_are_read_up_to_an_incomplete_one() {
    let info = r#"{"run":{"run":"a","integration":"x","began":1,"head":{"sha":"s","commit":null}}}"#;
    let step = r#"{"began":{"shard":"s","changes":[]}}"#;
    let check = |text: &str, expect: Option<usize>| {
        assert_eq!(UnfinishedRun::parse(text).map(|run| run.steps.len()), expect, "{text}");
    };
    check("", None);
    check(step, None);
    check("{", None);
    check(info, Some(0));
    check(&format!("{info}\n{step}\n{{\"began\":"), Some(1));
    check(&format!("{info}\n{step}\n{}\n", step.replace("began", "ended")), Some(0));
}

#[tokio::test]
async fn a_run_with_a_record_has_finished() {
    let scratch = Scratch::new();
    let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
    let file = start(&runs, RUN);
    file.begin("s".to_owned(), &[change("one")]).unwrap();
    file.end("s".to_owned(), &[change("one")]).unwrap();
    kill(file);
    // First as a run without a record, then as a run with one.
    scratch.copy(&scratch.path().join("unfinished"), "again");
    assert_eq!(reported(&runs).await.len(), 1);
    scratch.copy(&scratch.path().join("again"), "unfinished");
    assert_eq!(reported(&runs).await, Vec::<String>::new());
}
