//! Tests of the store of run records.

use std::fs;

use qontract_runtime::RunEnd;
use qontract_testkit::Scratch;

use super::*;

fn store(scratch: &Scratch) -> RunStore {
    RunStore::new(Some(scratch.path().to_owned())).unwrap()
}

fn record(run: &str, integration: &str) -> RunRecord {
    serde_json::from_value(serde_json::json!({
        "version": 2, "run": run, "began": 0, "milliseconds": 5, "integration": integration, "mode": "real run",
        "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1", "decisions": [],
        "shards": {}, "faults": [], "warnings": [], "approval": null, "ended": "failed", "exit": 1,
    }))
    .unwrap()
}

/// Writes a record in the form of an older version.
fn write_legacy(scratch: &Scratch, run: &str, integration: &str) {
    let text = serde_json::to_string(&record(run, integration)).unwrap();
    scratch.write(&format!("{run}.json"), text);
}

async fn ids(runs: &RunStore) -> Vec<String> {
    runs.ids(&RunFilter::default()).await.unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn the_audit_log_is_rotated_once_by_concurrent_writers() {
    for round in 0..100 {
        let scratch = Scratch::new();
        scratch.write("trail.jsonl", "before\n".repeat(10));
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (start, scratch) = (&start, &scratch);
                scope.spawn(move || {
                    let runs = RunStore { max_trail_bytes: 50, ..store(scratch) };
                    start.wait();
                    runs.append_audit(&number.to_string()).unwrap();
                });
            }
        });
        assert_eq!(scratch.read("trail.old.jsonl"), "before\n".repeat(10), "round {round}");
        let trail = scratch.read("trail.jsonl");
        let mut lines: Vec<&str> = trail.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["0", "1", "2", "3", "4", "5", "6", "7"], "round {round}");
    }
}

#[tokio::test]
async fn the_oldest_records_of_an_integration_are_pruned() {
    let scratch = Scratch::new();
    let runs = RunStore { max_records: 2, ..store(&scratch) };
    runs.store(&record("20270115T080000Z-b-00000", "b")).await.unwrap();
    for second in 1..=4 {
        runs.store(&record(&format!("20270115T08000{second}Z-a-00000"), "a")).await.unwrap();
    }
    let expect = ["20270115T080000Z-b-00000", "20270115T080003Z-a-00000", "20270115T080004Z-a-00000"];
    assert_eq!(ids(&runs).await, expect);
    // A run with nothing to do is counted and does not remove old records.
    let idle = RunRecord { ended: RunEnd::Ok, exit: 0, ..record("20270115T080005Z-a-00000", "a") };
    assert_eq!(runs.record_loop_run(&idle).await.unwrap(), RecordStorage::Counted);
    assert_eq!(ids(&runs).await.len(), 3);
    assert_eq!(runs.idle().unwrap()[0].count, 1);
}

#[tokio::test]
async fn records_of_an_older_version_are_listed_read_and_pruned_with_the_others() {
    let scratch = Scratch::new();
    for second in 1..=3 {
        write_legacy(&scratch, &format!("20260115T08000{second}Z-a-00000"), "a");
    }
    write_legacy(&scratch, "20260115T080000Z-b-00000", "b");
    scratch.write("20260115T080009Z-a-broken.json", "{");
    scratch.write("idle/a.json", "{}");
    let runs = RunStore { max_records: 3, ..store(&scratch) };
    let page = runs.list(&RunFilter::default(), 9).await.unwrap();
    assert_eq!((page.runs.len(), page.has_more), (4, false));
    assert_eq!(page.runs[3].run.as_str(), "20260115T080003Z-a-00000");
    let error = runs.resolve("a").await.unwrap_err().to_string();
    assert!(error.contains("cannot parse"), "{error}");
    assert_eq!(runs.resolve("20260115T080002Z").await.unwrap().run, "20260115T080002Z-a-00000");
    fs::remove_file(scratch.path().join("20260115T080009Z-a-broken.json")).unwrap();
    runs.store(&record("20270115T080000Z-a-00001", "a")).await.unwrap();
    let expect = [
        "20260115T080000Z-b-00000",
        "20260115T080002Z-a-00000",
        "20260115T080003Z-a-00000",
        "20270115T080000Z-a-00001",
    ];
    assert_eq!(ids(&runs).await, expect);
}

/// The record of a run of this slot that had nothing to do, with these degraded objects.
fn degraded(run: &str, slot: &str, texts: &[&str]) -> RunRecord {
    let texts: Vec<_> = texts.iter().map(|text| serde_json::json!({"text": text})).collect();
    let shard = serde_json::json!({
        "state": "ran", "rounds": 1, "changes": [], "held": [], "waits": [], "degraded": texts, "faults": [],
        "applied": 0, "removed": 0,
    });
    let mut record = record(&format!("20270115T080000Z-a-{run}"), "a");
    record.shards.insert("s".to_owned(), serde_json::from_value(shard).unwrap());
    (record.ended, record.exit, record.slot) = (RunEnd::Degraded, 0, slot.to_owned());
    record
}

/// Checks which runs of two slots are stored, some of which are degraded. The counters of the store are in memory or
/// in files.
async fn check_degraded_runs(runs: &RunStore) {
    for (run, slot, texts, expect) in [
        ("1", "0 of 2", &[][..], RecordStorage::Counted),
        ("2", "0 of 2", &["web"], RecordStorage::Stored),
        ("3", "0 of 2", &["web"], RecordStorage::Counted),
        ("4", "1 of 2", &["db"], RecordStorage::Stored),
        ("5", "0 of 2", &["web"], RecordStorage::Counted),
        ("6", "0 of 2", &["web", "db"], RecordStorage::Stored),
        // The run after a degradation is also recorded, so that the last record does not report the degradation
        // forever.
        ("7", "0 of 2", &[], RecordStorage::Stored),
        ("8", "0 of 2", &[], RecordStorage::Counted),
        ("9", "1 of 2", &["db"], RecordStorage::Counted),
    ] {
        assert_eq!(runs.record_loop_run(&degraded(run, slot, texts)).await.unwrap(), expect, "{run}");
    }
    let idle = &runs.idle().unwrap()[0];
    assert_eq!((idle.count, idle.degraded_runs, idle.degraded.len()), (2, 3, 1));
    assert_eq!(ids(runs).await.len(), 4);
}

#[tokio::test]
async fn a_degraded_run_of_a_loop_is_recorded_when_its_degradations_change() {
    check_degraded_runs(&store(&Scratch::new())).await;
    let (bucket, local) = (Scratch::new(), Scratch::new());
    check_degraded_runs(&in_bucket(&bucket, &local)).await;
    assert!(!local.path().join("idle").exists());
}

/// A store of run records in a bucket, which is simulated by a directory.
fn in_bucket(bucket: &Scratch, local: &Scratch) -> RunStore {
    let blobs = std::sync::Arc::new(Directory::new(bucket.path()));
    RunStore::in_bucket(RunRecords::new(blobs, "s3://b".to_owned()), Some(local.path().to_owned()))
}

#[tokio::test]
async fn real_runs_are_recorded_in_the_bucket_and_dry_runs_on_the_machine() {
    let (bucket, local) = (Scratch::new(), Scratch::new());
    let runs = in_bucket(&bucket, &local);
    runs.store(&record("20270115T080000Z-a-real", "a")).await.unwrap();
    let dry = RunRecord { mode: Mode::DryRun, ..record("20270115T080001Z-a-dry", "a") };
    runs.store(&dry).await.unwrap();
    runs.append_audit("x").unwrap();
    assert!(!local.path().join("trail.jsonl").exists());
    assert_eq!(ids(&runs).await, ["20270115T080000Z-a-real", "20270115T080001Z-a-dry"]);
    assert_eq!(runs.resolve("last").await.unwrap().mode, Mode::DryRun);
    // Other machines have only the real run.
    let other = Scratch::new();
    let runs = in_bucket(&bucket, &other);
    assert_eq!(ids(&runs).await, ["20270115T080000Z-a-real"]);
    let error = runs.resolve("20270115T080001Z-a-dry").await.unwrap_err().to_string();
    assert!(error.starts_with("no run `20270115T080001Z-a-dry` in `s3://b`"), "{error}");
}

#[tokio::test]
async fn a_recent_run_is_listed_although_there_are_many_old_ones() {
    let (bucket, local) = (Scratch::new(), Scratch::new());
    let runs = in_bucket(&bucket, &local);
    let now = Timestamp::now();
    let at = |hours: i64| now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
    for hours in [0, 1, 30, 2_000] {
        let run = RunId::new("a", at(hours), 1);
        runs.store(&record(run.as_str(), "a")).await.unwrap();
    }
    let listed = async |filter: RunFilter, last: usize| {
        let page = runs.list(&filter, last).await.unwrap();
        (page.runs.len(), page.has_more)
    };
    assert_eq!(listed(RunFilter::default(), 1).await, (1, true));
    assert_eq!(listed(RunFilter::default(), 3).await, (3, true));
    assert_eq!(listed(RunFilter::default(), 4).await, (4, false));
    let since = RunFilter { since: Some(at(2)), ..RunFilter::default() };
    assert_eq!(listed(since, 9).await, (2, false));
}

#[test]
fn an_audit_log_that_cannot_be_written_is_an_error() {
    let scratch = Scratch::new();
    scratch.write("trail.jsonl/in the way", "");
    let error = store(&scratch).append_audit("x").unwrap_err();
    assert!(error.to_string().contains("trail.jsonl"), "{error:#}");
}

#[test]
fn temporary_files_are_not_counters() {
    let scratch = Scratch::new();
    scratch.write("idle/.draft-x1", "{\"integ");
    scratch.write("idle/.draft-x2.json", "{\"integ");
    scratch.write("idle/a.json", r#"{"integration": "a", "first": 1, "last": 2, "count": 3}"#);
    assert_eq!(store(&scratch).idle().unwrap().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_stored_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let runs = store(&scratch);
    runs.append_audit("x").unwrap();
    // A file of an older version also becomes private.
    let old = scratch.path().join("idle/a.json");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "{}").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
    let idle = RunRecord { ended: RunEnd::Ok, exit: 0, ..record("20270115T080005Z-a-00000", "a") };
    runs.record_loop_run(&idle).await.unwrap();
    runs.store(&record("20270115T080006Z-a-00000", "a")).await.unwrap();
    let day = scratch.path().join("journal/runs/20270115");
    let stored = fs::read_dir(day).unwrap().map(|entry| entry.unwrap().path());
    let files = ["trail.jsonl", ".trail.lock", "idle/a.json"].map(|file| scratch.path().join(file));
    for file in files.into_iter().chain(stored) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn run_ids_do_not_lead_outside_the_directory() {
    let scratch = Scratch::new();
    for name in ["", "../x", "a/b", ".x"] {
        let error = store(&scratch).resolve(name).await.unwrap_err().to_string();
        assert!(error.ends_with("is not a valid run id"), "{name}: {error}");
    }
}
