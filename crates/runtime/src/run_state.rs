//! The state of a run as one word, for lists, logs and tables.

use serde::{Deserialize, Serialize};

use crate::outcome::RunEnd;
use crate::record::RunRecord;

/// The state of a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The target matches the data, or will match it when operations in progress are complete.
    Ok,
    /// The run did not fail, but an operation is in progress in the target; the next run observes the operation
    /// again.
    Waiting,
    /// The run did not fail, but an object does not work as declared.
    Degraded,
    /// The run did not fail, but a guard holds a removal until it is approved.
    Held,
    /// The command of a foreign integration succeeded; its changes are not known.
    #[serde(rename = "plan not known")]
    NotKnown,
    /// A step or a phase failed.
    Failed,
    /// The run was stopped before its end.
    Interrupted,
    /// The run is in progress.
    Running,
}

impl RunState {
    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Ok => "ok",
            RunState::Waiting => "waiting",
            RunState::Degraded => "degraded",
            RunState::NotKnown => "plan not known",
            RunState::Held => "held",
            RunState::Failed => "failed",
            RunState::Interrupted => "interrupted",
            RunState::Running => "running",
        }
    }
}

impl RunRecord {
    /// The state of the run. Records of version 1 do not distinguish *held* from *failed*; a record of this version
    /// that has an approval and no errors counts as held. Records before version 3, and dry runs, do not distinguish
    /// *waiting* from *ok*.
    pub fn state(&self) -> RunState {
        if self.in_progress {
            return RunState::Running;
        }
        let has_faults =
            !self.faults.is_empty() || self.shards.values().any(|shard| !shard.faults.is_empty());
        let waits = self.shards.values().any(|shard| !shard.waits.is_empty());
        match self.ended {
            RunEnd::Ok | RunEnd::EarlyExit | RunEnd::Degraded if waits => RunState::Waiting,
            RunEnd::Ok | RunEnd::EarlyExit => RunState::Ok,
            RunEnd::Waiting => RunState::Waiting,
            RunEnd::Degraded => RunState::Degraded,
            RunEnd::NotKnown => RunState::NotKnown,
            RunEnd::Held => RunState::Held,
            RunEnd::Failed if self.version < 2 && self.approval.is_some() && !has_faults => RunState::Held,
            RunEnd::Failed | RunEnd::Usage | RunEnd::NotDefined | RunEnd::Forbidden | RunEnd::Transient => {
                RunState::Failed
            }
            RunEnd::Interrupted => RunState::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(change: &Value, expect: RunState) {
        let mut record = json!({
            "run": "r", "began": 1, "milliseconds": 2, "integration": "x", "mode": "real run",
            "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1",
            "decisions": [], "shards": {}, "faults": [], "warnings": [], "approval": null, "ended": "ok", "exit": 0,
        });
        let fields = change.as_object().unwrap().clone();
        record.as_object_mut().unwrap().extend(fields);
        let record: RunRecord = serde_json::from_value(record).unwrap();
        assert_eq!(record.state(), expect, "{change}");
    }

    #[test]
    fn the_state_of_a_run_follows_from_its_record() {
        let shard = |waits: Value| json!({"a": {"state": "ran", "rounds": 1, "changes": [], "held": [], "waits": waits, "faults": [], "applied": 0, "removed": 0}});
        let fault = json!([{"text": "wrong"}]);
        check(&json!({}), RunState::Ok);
        check(&json!({"ended": "early exit"}), RunState::Ok);
        check(&json!({"shards": shard(json!([]))}), RunState::Ok);
        check(&json!({"shards": shard(fault.clone())}), RunState::Waiting);
        check(&json!({"ended": "waiting", "version": 3}), RunState::Waiting);
        check(&json!({"ended": "degraded", "version": 3}), RunState::Degraded);
        check(&json!({"ended": "held", "version": 2}), RunState::Held);
        check(&json!({"ended": "failed", "approval": "x"}), RunState::Held);
        check(&json!({"ended": "failed", "approval": "x", "faults": fault}), RunState::Failed);
        check(&json!({"ended": "failed", "approval": "x", "version": 2}), RunState::Failed);
        check(&json!({"ended": "failed"}), RunState::Failed);
        check(&json!({"ended": "failed for now"}), RunState::Failed);
        check(&json!({"ended": "not defined"}), RunState::Failed);
        check(&json!({"ended": "forbidden"}), RunState::Failed);
        check(&json!({"ended": "interrupted"}), RunState::Interrupted);
        check(&json!({"ended": "interrupted", "in_progress": true}), RunState::Running);
    }
}
