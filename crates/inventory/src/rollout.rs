//! Rollout status of a workload: whether the cluster has made its declared state effective. Pure.
//!
//! In `status.observedGeneration`, a controller reports the generation of the object that its status
//! describes. **Invariant:** a status that describes an older generation than the live object is never
//! complete (`an_older_generation_is_in_progress`).

use qontract_kinds::group_of;
use serde_json::Value;

/// The progress of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutStatus {
    /// The declared state is effective.
    Complete,
    /// The rollout is in progress, with a description of the progress.
    InProgress(String),
    /// The rollout failed, with the reason.
    Failed(String),
}

/// The rollout status of a live object; `None` for kinds that are not rolled out.
///
/// ```
/// use qontract_inventory::{RolloutStatus, rollout_status};
/// use serde_json::json;
///
/// let mut deployment = json!({
///     "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "generation": 2},
///     "spec": {"replicas": 3},
///     "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 3},
/// });
/// let in_progress = RolloutStatus::InProgress("1 of 3 replicas updated".to_owned());
/// assert_eq!(rollout_status(&deployment), Some(in_progress));
///
/// deployment["status"]["updatedReplicas"] = json!(3);
/// assert_eq!(rollout_status(&deployment), Some(RolloutStatus::Complete));
/// assert_eq!(rollout_status(&json!({"kind": "ConfigMap"})), None);
/// ```
pub fn rollout_status(live: &Value) -> Option<RolloutStatus> {
    let group = group_of(live["apiVersion"].as_str().unwrap_or_default());
    let of_kind = match (group, live["kind"].as_str().unwrap_or_default()) {
        ("apps" | "extensions", "Deployment") => deployment,
        ("apps.openshift.io", "DeploymentConfig") => deployment_config,
        ("apps", "StatefulSet") => stateful_set,
        ("apps" | "extensions", "DaemonSet") => daemon_set,
        ("batch", "Job") => job,
        _ => return None,
    };
    Some(awaited_generation(live).unwrap_or_else(|| of_kind(live)))
}

/// The status of an object whose controller has not observed its latest generation yet.
fn awaited_generation(live: &Value) -> Option<RolloutStatus> {
    // A Job has no `observedGeneration`, because its template cannot change.
    if live["kind"] == "Job" {
        return None;
    }
    let generation = live["metadata"]["generation"].as_i64()?;
    let observed = live["status"]["observedGeneration"].as_i64().unwrap_or(0);
    (observed < generation)
        .then(|| RolloutStatus::InProgress("the controller has not observed the change yet".to_owned()))
}

fn deployment(live: &Value) -> RolloutStatus {
    if let Some(reason) = condition(live, "Progressing", "False") {
        // In some versions, a paused Deployment also has `Progressing=False`, so the reason is checked.
        if reason == "ProgressDeadlineExceeded" {
            return RolloutStatus::Failed("the progress deadline was exceeded".to_owned());
        }
    }
    if let Some(reason) = condition(live, "ReplicaFailure", "True") {
        return RolloutStatus::InProgress(format!("replicas cannot be created ({reason})"));
    }
    replicas(live, live["spec"]["replicas"].as_u64().unwrap_or(1))
}

fn deployment_config(live: &Value) -> RolloutStatus {
    if let Some(reason) = condition(live, "Progressing", "False") {
        return RolloutStatus::Failed(format!("the deployment failed ({reason})"));
    }
    replicas(live, live["spec"]["replicas"].as_u64().unwrap_or(0))
}

/// The status of a workload that replaces its replicas step by step.
fn replicas(live: &Value, wanted: u64) -> RolloutStatus {
    let [total, updated, available] =
        ["replicas", "updatedReplicas", "availableReplicas"].map(|field| count(live, field));
    if updated < wanted {
        return RolloutStatus::InProgress(format!("{updated} of {wanted} replicas updated"));
    }
    if total > updated {
        return RolloutStatus::InProgress(format!("{} of {total} replicas are old", total - updated));
    }
    if available < wanted {
        return RolloutStatus::InProgress(format!("{available} of {wanted} replicas available"));
    }
    RolloutStatus::Complete
}

fn stateful_set(live: &Value) -> RolloutStatus {
    let wanted = live["spec"]["replicas"].as_u64().unwrap_or(1);
    let strategy = &live["spec"]["updateStrategy"];
    let (ready, updated) = (count(live, "readyReplicas"), count(live, "updatedReplicas"));
    if ready < wanted {
        return RolloutStatus::InProgress(format!("{ready} of {wanted} replicas ready"));
    }
    // With `OnDelete`, a pod is updated only after it was deleted manually.
    if strategy["type"] == "OnDelete" {
        return RolloutStatus::Complete;
    }
    // Pods with an ordinal below the partition keep the old revision, as the partition requests.
    let partition = strategy["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
    let to_update = wanted.saturating_sub(partition);
    if updated < to_update {
        return RolloutStatus::InProgress(format!("{updated} of {to_update} replicas updated"));
    }
    let revision = |field: &str| live["status"][field].as_str();
    if partition == 0 && revision("updateRevision") != revision("currentRevision") {
        return RolloutStatus::InProgress("old replicas still exist".to_owned());
    }
    RolloutStatus::Complete
}

fn daemon_set(live: &Value) -> RolloutStatus {
    let wanted = count(live, "desiredNumberScheduled");
    let (updated, available) = (count(live, "updatedNumberScheduled"), count(live, "numberAvailable"));
    if live["spec"]["updateStrategy"]["type"] != "OnDelete" && updated < wanted {
        return RolloutStatus::InProgress(format!("{updated} of {wanted} nodes updated"));
    }
    if available < wanted {
        return RolloutStatus::InProgress(format!("{available} of {wanted} nodes available"));
    }
    RolloutStatus::Complete
}

fn job(live: &Value) -> RolloutStatus {
    if let Some(reason) = condition(live, "Failed", "True") {
        return RolloutStatus::Failed(format!("the job failed ({reason})"));
    }
    if condition(live, "Complete", "True").is_some() {
        return RolloutStatus::Complete;
    }
    if live["spec"]["suspend"] == true {
        return RolloutStatus::InProgress("the job is suspended".to_owned());
    }
    let wanted = live["spec"]["completions"].as_u64().unwrap_or(1);
    RolloutStatus::InProgress(format!("{} of {wanted} completions", count(live, "succeeded")))
}

fn count(live: &Value, field: &str) -> u64 {
    live["status"][field].as_u64().unwrap_or(0)
}

/// The reason of a condition with this status, if the object has it.
fn condition<'a>(live: &'a Value, name: &str, status: &str) -> Option<&'a str> {
    let conditions = live["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == name && one["status"] == status)?;
    Some(found["reason"].as_str().unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{RolloutStatus, rollout_status};

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass literals")]
    fn check(kind: &str, spec: Value, status: Value, expect: &str) {
        let api_version = match kind {
            "Job" => "batch/v1",
            "DeploymentConfig" => "apps.openshift.io/v1",
            _ => "apps/v1",
        };
        let live = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 3},
            "spec": spec, "status": status,
        });
        let shown = match rollout_status(&live).expect("a workload") {
            RolloutStatus::Complete => "complete".to_owned(),
            RolloutStatus::InProgress(text) => text,
            RolloutStatus::Failed(text) => format!("failed: {text}"),
        };
        assert_eq!(shown, expect, "{live}");
    }

    fn status(mut fields: Value) -> Value {
        fields["observedGeneration"] = json!(3);
        fields
    }

    #[test]
    fn an_older_generation_is_in_progress() {
        let done = json!({"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1});
        for kind in ["Deployment", "DeploymentConfig", "StatefulSet", "DaemonSet"] {
            for observed in [json!(2), Value::Null] {
                let mut status = done.clone();
                status["observedGeneration"] = observed;
                check(kind, json!({}), status, "the controller has not observed the change yet");
            }
            check(kind, json!({"replicas": 1}), status(done.clone()), "complete");
        }
        check("Deployment", json!({}), json!({}), "the controller has not observed the change yet");
    }

    #[test]
    fn a_deployment_is_complete_once_all_replicas_are_updated_and_available() {
        let deployment = |replicas: u64, updated: u64, available: u64, expect: &str| {
            let fields =
                json!({"replicas": replicas, "updatedReplicas": updated, "availableReplicas": available});
            check("Deployment", json!({"replicas": 3}), status(fields), expect);
        };
        deployment(3, 3, 3, "complete");
        deployment(4, 2, 3, "2 of 3 replicas updated");
        deployment(4, 3, 3, "1 of 4 replicas are old");
        deployment(3, 3, 2, "2 of 3 replicas available");
        check("Deployment", json!({"replicas": 0}), status(json!({})), "complete");
        check("Deployment", json!({}), status(json!({})), "0 of 1 replicas updated");
        check("DeploymentConfig", json!({}), status(json!({})), "complete");
    }

    #[test]
    fn a_deployment_fails_when_its_deadline_is_exceeded() {
        let with = |name: &str, value: &str, reason: &str| {
            status(json!({"conditions": [{"type": name, "status": value, "reason": reason}]}))
        };
        let exceeded = with("Progressing", "False", "ProgressDeadlineExceeded");
        check("Deployment", json!({}), exceeded, "failed: the progress deadline was exceeded");
        let paused = with("Progressing", "False", "DeploymentPaused");
        check("Deployment", json!({}), paused, "0 of 1 replicas updated");
        let quota = with("ReplicaFailure", "True", "FailedCreate");
        check("Deployment", json!({}), quota, "replicas cannot be created (FailedCreate)");
        let fine = with("ReplicaFailure", "False", "FailedCreate");
        check("Deployment", json!({}), fine, "0 of 1 replicas updated");
        let failed = with("Progressing", "False", "ProgressDeadlineExceeded");
        check(
            "DeploymentConfig",
            json!({}),
            failed,
            "failed: the deployment failed (ProgressDeadlineExceeded)",
        );
    }

    #[test]
    fn a_stateful_set_is_complete_at_its_new_revision() {
        let set = |ready: u64, updated: u64, current: &str, spec: Value, expect: &str| {
            let fields = json!({
                "readyReplicas": ready, "updatedReplicas": updated, "updateRevision": "new", "currentRevision": current,
            });
            check("StatefulSet", spec, status(fields), expect);
        };
        set(3, 3, "new", json!({"replicas": 3}), "complete");
        set(2, 3, "new", json!({"replicas": 3}), "2 of 3 replicas ready");
        set(3, 2, "old", json!({"replicas": 3}), "2 of 3 replicas updated");
        set(3, 3, "old", json!({"replicas": 3}), "old replicas still exist");
        let partition = |partition: u64| json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": partition}}});
        set(3, 1, "old", partition(2), "complete");
        set(3, 0, "old", partition(2), "0 of 1 replicas updated");
        set(3, 0, "old", partition(5), "complete");
        let on_delete = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
        set(3, 0, "old", on_delete.clone(), "complete");
        set(2, 0, "old", on_delete, "2 of 3 replicas ready");
        set(0, 0, "new", json!({}), "0 of 1 replicas ready");
    }

    #[test]
    fn a_daemon_set_is_complete_on_all_nodes() {
        let set = |updated: u64, available: u64, spec: Value, expect: &str| {
            let fields = json!({
                "desiredNumberScheduled": 2, "updatedNumberScheduled": updated, "numberAvailable": available,
            });
            check("DaemonSet", spec, status(fields), expect);
        };
        set(2, 2, json!({}), "complete");
        set(1, 2, json!({}), "1 of 2 nodes updated");
        set(2, 1, json!({}), "1 of 2 nodes available");
        set(0, 2, json!({"updateStrategy": {"type": "OnDelete"}}), "complete");
    }

    #[test]
    fn a_job_is_complete_or_failed_by_its_conditions() {
        let job = |spec: Value, status: Value, expect: &str| check("Job", spec, status, expect);
        let with = |name: &str| json!({"succeeded": 1, "conditions": [{"type": name, "status": "True"}]});
        job(json!({}), with("Complete"), "complete");
        job(json!({}), with("Failed"), "failed: the job failed (no reason given)");
        job(json!({"completions": 2}), json!({"succeeded": 1}), "1 of 2 completions");
        job(json!({}), json!({}), "0 of 1 completions");
        job(json!({"suspend": true}), json!({}), "the job is suspended");
    }

    #[test]
    fn other_kinds_are_not_rolled_out() {
        let kind = |api_version: &str, kind: &str| {
            rollout_status(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 1}}))
        };
        assert_eq!(kind("v1", "ConfigMap"), None);
        assert_eq!(kind("example.com/v1", "Deployment"), None);
        assert_eq!(kind("v1", "Job"), None);
        assert!(kind("extensions/v1beta1", "Deployment").is_some());
    }
}
