//! Rollout status of workloads, computed from the age of their files. Pure: the status is never written.

use std::time::Duration;

use serde_json::{Value, json};

/// The annotation that configures the rollout of a workload.
pub(super) const ROLLOUT: &str = "sandbox.qontract.dev/rollout";

/// The progress of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RolloutProgress {
    Done,
    InProgress,
    Failed,
}

/// The status of a workload whose file has this age; `None` for other kinds.
pub(super) fn status(kind: &str, body: &Value, age: Duration) -> Option<Value> {
    let progress = progress(body["metadata"]["annotations"][ROLLOUT].as_str(), age);
    let replicas = body["spec"]["replicas"].as_u64().unwrap_or(1);
    let ready = if progress == RolloutProgress::Done { replicas } else { 0 };
    let mut status = match kind {
        "Deployment" | "DeploymentConfig" => json!({
            "replicas": replicas, "updatedReplicas": ready, "readyReplicas": ready, "availableReplicas": ready,
            "unavailableReplicas": replicas - ready, "conditions": deployment(progress),
        }),
        "StatefulSet" => json!({
            "replicas": replicas, "updatedReplicas": ready, "readyReplicas": ready, "currentReplicas": ready,
            "availableReplicas": ready, "updateRevision": "new",
            "currentRevision": if progress == RolloutProgress::Done { "new" } else { "old" },
        }),
        "DaemonSet" => {
            let ready = u8::from(progress == RolloutProgress::Done);
            json!({
                "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": ready,
                "numberReady": ready, "numberAvailable": ready, "numberUnavailable": 1 - ready, "numberMisscheduled": 0,
            })
        }
        "Job" => job(progress, body["spec"]["completions"].as_u64().unwrap_or(1)),
        _ => return None,
    };
    if let Some(generation) = body["metadata"]["generation"].as_u64() {
        status["observedGeneration"] = generation.into();
    }
    Some(status)
}

fn progress(setting: Option<&str>, age: Duration) -> RolloutProgress {
    match setting {
        Some("never") => RolloutProgress::InProgress,
        Some("fails") => RolloutProgress::Failed,
        Some(text) if duration(text).is_some_and(|needed| age < needed) => RolloutProgress::InProgress,
        Some(_) | None => RolloutProgress::Done,
    }
}

/// Parses `500ms`, `5s`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|one: char| !one.is_ascii_digit())?;
    let number = text[..digits].parse().ok()?;
    match &text[digits..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

fn deployment(progress: RolloutProgress) -> Value {
    let (available, progressing, reason) = match progress {
        RolloutProgress::Done => ("True", "True", "NewReplicaSetAvailable"),
        RolloutProgress::InProgress => ("False", "True", "ReplicaSetUpdated"),
        RolloutProgress::Failed => ("False", "False", "ProgressDeadlineExceeded"),
    };
    json!([
        {"type": "Available", "status": available},
        {"type": "Progressing", "status": progressing, "reason": reason},
    ])
}

fn job(progress: RolloutProgress, completions: u64) -> Value {
    match progress {
        RolloutProgress::Done => {
            json!({"succeeded": completions, "conditions": [{"type": "Complete", "status": "True"}]})
        }
        RolloutProgress::InProgress => json!({"active": 1}),
        RolloutProgress::Failed => {
            json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]})
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::status;

    #[track_caller]
    fn check(kind: &str, setting: Option<&str>, pointer: &str, expect: &serde_json::Value) {
        let mut body = json!({"metadata": {}, "spec": {"replicas": 3}});
        if let Some(setting) = setting {
            body["metadata"]["annotations"] = json!({"sandbox.qontract.dev/rollout": setting});
        }
        let status = status(kind, &body, Duration::from_secs(4)).unwrap();
        assert_eq!(status.pointer(pointer), Some(expect), "{status}");
    }

    #[test]
    fn workloads_are_ready_at_once() {
        for kind in ["Deployment", "StatefulSet"] {
            check(kind, None, "/updatedReplicas", &json!(3));
        }
        check("DaemonSet", None, "/numberReady", &json!(1));
        check("Job", None, "/conditions/0/type", &json!("Complete"));
    }

    #[test]
    fn workloads_may_be_slow() {
        check("Deployment", Some("5s"), "/updatedReplicas", &json!(0));
        check("Deployment", Some("3s"), "/updatedReplicas", &json!(3));
        check("Deployment", Some("5000ms"), "/readyReplicas", &json!(0));
        check("Job", Some("1m"), "/active", &json!(1));
    }

    #[test]
    fn workloads_may_be_stuck_or_fail() {
        check("Deployment", Some("never"), "/availableReplicas", &json!(0));
        check("StatefulSet", Some("never"), "/currentRevision", &json!("old"));
        check("Deployment", Some("fails"), "/conditions/1/reason", &json!("ProgressDeadlineExceeded"));
        check("Job", Some("fails"), "/conditions/0/type", &json!("Failed"));
    }

    #[test]
    fn other_kinds_have_no_status() {
        assert_eq!(status("ConfigMap", &json!({}), Duration::ZERO), None);
    }
}
