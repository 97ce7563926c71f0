//! The shards of a recorded run that have to run again.

use std::collections::BTreeSet;

use qontract_runtime::record::{ChangeRecord, ShardRecord};
use qontract_runtime::{RunEnd, RunRecord, ShardKey, StepResult};

use crate::exit::UsageError;

/// The shards that failed in a run, or that have changes that were not made.
///
/// Fails if these shards might not be all shards that have to run again: the run was interrupted before all shards
/// were planned, or the run failed as a whole.
pub fn failed_shards(record: &RunRecord) -> Result<BTreeSet<ShardKey>, UsageError> {
    let wrong = |why: &str| UsageError(format!("the run `{}` {why}", record.run));
    match record.ended {
        RunEnd::Interrupted => {
            return Err(wrong(
                "was interrupted, so the shards that it did not reach are not known: run all shards",
            ));
        }
        RunEnd::Usage | RunEnd::NotDefined | RunEnd::Forbidden => {
            return Err(wrong("could not start: run all shards"));
        }
        RunEnd::Ok
        | RunEnd::EarlyExit
        | RunEnd::Held
        | RunEnd::Waiting
        | RunEnd::Degraded
        | RunEnd::NotKnown
        | RunEnd::Failed
        | RunEnd::Transient => {}
    }
    if !record.faults.is_empty() {
        return Err(wrong("failed as a whole: run all shards"));
    }
    let failed = record.shards.iter().filter(|(_, shard)| is_failed(shard));
    let keys = failed
        .map(|(key, _)| key.parse::<ShardKey>().map_err(|error| wrong(&format!("names a shard: {error}"))));
    let keys: BTreeSet<ShardKey> = keys.collect::<Result<_, UsageError>>()?;
    if keys.is_empty() { Err(wrong("has no failed shards")) } else { Ok(keys) }
}

/// Whether a shard has a fault or a change that was not made.
fn is_failed(shard: &ShardRecord) -> bool {
    let is_made = |change: &ChangeRecord| match change.result {
        StepResult::Planned | StepResult::Done => true,
        StepResult::Failed | StepResult::Interrupted | StepResult::NotTried => false,
    };
    !shard.faults.is_empty() || !shard.changes.iter().all(is_made)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(change: &Value, expect: Result<&[&str], &str>) {
        let shard = |faults: Value| json!({"state": "ran", "rounds": 1, "changes": [], "held": [], "waits": [], "faults": faults, "applied": 0, "removed": 0});
        let mut record = json!({
            "run": "r", "began": 1, "milliseconds": 2, "integration": "x", "mode": "real run",
            "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1",
            "decisions": [], "faults": [], "warnings": [], "approval": null, "ended": "failed", "exit": 1,
            "shards": {
                "cluster=a, namespace=b": shard(json!([{"text": "no"}])),
                "cluster=c, namespace=d": shard(json!([])),
            },
        });
        record.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let record: RunRecord = serde_json::from_value(record).unwrap();
        let keys =
            failed_shards(&record).map(|keys| keys.iter().map(ToString::to_string).collect::<Vec<_>>());
        match (keys, expect) {
            (Ok(keys), Ok(expect)) => assert_eq!(keys, expect),
            (Err(error), Err(expect)) => assert_eq!(error.0, expect),
            (keys, _) => panic!("{keys:?}"),
        }
    }

    #[test]
    fn only_failed_shards_run_again_and_only_if_nothing_else_failed() {
        check(&json!({}), Ok(&["cluster=a, namespace=b"]));
        check(&json!({"shards": {}}), Err("the run `r` has no failed shards"));
        check(&json!({"faults": [{"text": "no"}]}), Err("the run `r` failed as a whole: run all shards"));
        let interrupted =
            "the run `r` was interrupted, so the shards that it did not reach are not known: run all shards";
        check(&json!({"ended": "interrupted"}), Err(interrupted));
    }
}
