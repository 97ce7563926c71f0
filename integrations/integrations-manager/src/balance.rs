//! Deployments whose shards scale themselves: from measured run times and the live objects to workloads.
//!
//! The live Deployments are the memory: an annotation of each has the keys that are assigned to it, another one, in its
//! pod template, the keys that its pods run. A key that moves is first removed from the pods of its shard. It is added
//! to another shard when no pod that has it is left.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::Object;
use qontract_client_prometheus::{Prometheus, QueryRange};
use qontract_fleet::AutoSharding;
use qontract_fleet::balance::{
    Assignment, BalancePolicy, CostHistory, CostWindow, Handover, HandoverStep, Placement, PolicyInput,
    SlotConfiguration, balance,
};
use qontract_fleet::manifest::{INSTANCE_LABEL, Workload};
use qontract_fleet::names::{app_name, shard_name};
use qontract_objects::{Kind, ResolveContext};
use qontract_runtime::{Fault, ReadContext};
use serde_json::Value;

use crate::state::BalancedDeployment;

/// The annotation of a Deployment with the keys that are assigned to its shard.
pub const ASSIGNMENT: &str = "qontract.shard-assignment";
/// The annotation of a pod with the keys that it runs.
pub const KEYS: &str = "qontract.shard-keys";
/// The variable with the dimension by which an integration measures its run times.
const BALANCED_BY: &str = "QONTRACT_BALANCED_BY";

/// The API version of the Deployments that are declared.
const DEPLOYMENT_VERSION: &str = "apps/v1";

/// The source of the run times of balanced integrations.
#[derive(Clone, Debug, Default)]
pub enum RunTimes {
    /// There are none, as in a sandbox.
    #[default]
    None,
    /// The operator has not configured a server.
    NotConfigured,
    /// A Prometheus server.
    Server(Prometheus),
}

/// A workload of a balanced deployment.
#[derive(Debug)]
pub struct BalancedWorkload {
    /// The workload.
    pub workload: Workload,
    /// Whether a key waits until the pods of the workload have ended.
    pub is_draining: bool,
}

/// The workloads of a balanced deployment, with remarks.
#[derive(Debug, Default)]
pub struct BalancedWorkloads {
    /// The workloads.
    pub workloads: Vec<BalancedWorkload>,
    /// Remarks, such as a key that cannot be balanced.
    pub remarks: Vec<String>,
}

/// The workloads of a balanced deployment.
pub async fn workloads(
    context: ResolveContext<'_>,
    run_times: &RunTimes,
    deployment: &BalancedDeployment,
) -> Result<BalancedWorkloads, Fault> {
    let sharding = &deployment.sharding;
    let policy = policy(sharding)?;
    let kind = Kind { name: "Deployment".to_owned(), group: Some("apps".to_owned()) };
    let deployments = context.live_objects(&kind, Some(DEPLOYMENT_VERSION)).await?;
    let pods = context.live_objects(&Kind::named("Pod"), None).await?;
    let live = LiveSlots::of(&deployment.integration, &deployments, &pods);
    let keys: BTreeSet<String> = sharding.keys.iter().cloned().collect();
    let mut remarks = Vec::new();
    let history = match history(context.read, run_times, deployment, &policy).await {
        Ok(history) => history,
        Err(why) => {
            remarks.push(format!("the shards of `{}` keep their keys: {why}", deployment.integration));
            CostHistory::default()
        }
    };
    let previous = live.assignment(policy.min_slots())?;
    let decision = balance(&previous, &keys, &history, &policy);
    remarks.extend(decision.plan.too_heavy.iter().map(|key| format!("`{}`: {key}", deployment.integration)));
    let wanted = decision.plan.assignment;
    let mut handover = Handover::from_observation(live.configurations());
    let steps = handover.advance(&wanted);
    let draining: BTreeSet<u32> = steps
        .iter()
        .filter_map(|step| match step {
            HandoverStep::Waiting { draining, .. } => Some(*draining),
            HandoverStep::Drained { .. } | HandoverStep::Started { .. } => None,
        })
        .collect();
    let removable = handover.removable_slots(&wanted);
    let none = SlotConfiguration::default();
    let slots = (0..wanted.slots()).chain(handover.configurations().keys().copied());
    let slots: BTreeSet<u32> = slots.filter(|slot| !removable.contains(slot)).collect();
    let workload = |slot: u32| {
        let keys = &handover.configurations().get(&slot).unwrap_or(&none).keys;
        let workload = slot_workload(deployment, slot, keys, &wanted);
        BalancedWorkload { workload, is_draining: draining.contains(&slot) }
    };
    Ok(BalancedWorkloads { workloads: slots.into_iter().map(workload).collect(), remarks })
}

/// The policy of the data.
fn policy(sharding: &AutoSharding) -> Result<BalancePolicy, Fault> {
    let input = PolicyInput {
        target: f64::from(sharding.target_seconds),
        min_slots: sharding.min_shards,
        max_slots: sharding.max_shards,
        windows: sharding.windows,
        move_budget: sharding.moves,
        ..PolicyInput::default()
    };
    BalancePolicy::new(input).map_err(|error| Fault::author(error.to_string()))
}

/// The run time of each key in the last windows; empty without a Prometheus server.
async fn history(
    read: &ReadContext,
    run_times: &RunTimes,
    deployment: &BalancedDeployment,
    policy: &BalancePolicy,
) -> Result<CostHistory, String> {
    let prometheus = match run_times {
        RunTimes::None => return Ok(CostHistory::default()),
        RunTimes::NotConfigured => {
            return Err("no Prometheus server is configured (`targets.prometheus.url`)".to_owned());
        }
        RunTimes::Server(prometheus) => prometheus,
    };
    let sharding = &deployment.sharding;
    let minutes = sharding.window_minutes;
    let name = &deployment.integration;
    let query = format!(
        "max by (key) (avg_over_time(qontract_reconcile_key_seconds{{integration=\"{name}\"}}[{minutes}m]))"
    );
    let step = std::time::Duration::from_secs(u64::from(minutes) * 60);
    let steps = policy.history_windows() as u64;
    let end = u64::try_from(read.now.as_second()).unwrap_or_default();
    let start = end.saturating_sub(step.as_secs() * (steps - 1));
    let range = QueryRange { start, step, steps };
    let windows = prometheus.run_seconds_by_window(&read.permit, &query, "key", range).await;
    let windows = windows.map_err(|error| qontract_diagnostics::error_chain(&error))?;
    let windows: Result<Vec<CostWindow>, _> = windows.iter().map(CostWindow::from_seconds).collect();
    Ok(CostHistory::new(windows.map_err(|error| error.to_string())?))
}

/// The workload of a slot that runs these keys.
fn slot_workload(
    deployment: &BalancedDeployment,
    slot: u32,
    keys: &BTreeSet<String>,
    wanted: &Assignment,
) -> Workload {
    let BalancedDeployment { integration, spec, sharding, grace_seconds } = deployment;
    let shard = sharding.shard(slot, keys.iter().map(String::as_str));
    let mut workload = Workload::of_shard(integration, spec, shard, *grace_seconds);
    let own = wanted.placements().iter().filter(|(_, placement)| placement.slot == slot);
    let own: BTreeMap<String, Placement> = own.map(|(key, placement)| (key.clone(), *placement)).collect();
    let own = Assignment::new(wanted.slots().max(slot + 1), own)
        .expect("the slot is smaller than the number of slots");
    workload.annotations.insert(ASSIGNMENT.to_owned(), own.to_json());
    let keys = serde_json::to_string(keys).expect("a set of strings is JSON");
    workload.pod_annotations.insert(KEYS.to_owned(), keys);
    workload.variables.insert(BALANCED_BY.to_owned(), sharding.source.dimension().to_owned());
    workload
}

/// The live slots of a balanced deployment.
#[derive(Debug, Default, PartialEq)]
struct LiveSlots {
    /// The assignment of each slot.
    assigned: BTreeMap<u32, Assignment>,
    /// The keys in the pod template of each slot.
    configured: BTreeMap<u32, BTreeSet<String>>,
    /// The keys that pods of each slot run.
    running: BTreeMap<u32, BTreeSet<String>>,
}

impl LiveSlots {
    fn of(integration: &str, deployments: &[Object], pods: &[Object]) -> Self {
        let mut live = Self::default();
        let slot_of = |body: &Value| {
            let labels = &body["metadata"]["labels"];
            let is_own = labels["app"] == app_name(integration).as_str();
            let name = labels[INSTANCE_LABEL].as_str().filter(|_| is_own)?;
            name.strip_prefix(&shard_name(integration, "-"))?.parse::<u32>().ok()
        };
        for Object { body, .. } in deployments {
            let Some(slot) = slot_of(body) else { continue };
            let assignment = body["metadata"]["annotations"][ASSIGNMENT].as_str();
            // A damaged annotation is like a missing one: its keys are assigned again.
            live.assigned.extend(
                assignment
                    .and_then(|text| Assignment::from_json(text).ok())
                    .map(|assignment| (slot, assignment)),
            );
            live.configured.insert(slot, keys_of(&body["spec"]["template"]));
        }
        for Object { body, .. } in pods {
            let has_ended = ["Succeeded", "Failed"].iter().any(|phase| body["status"]["phase"] == *phase);
            if let Some(slot) = slot_of(body).filter(|_| !has_ended) {
                live.running.entry(slot).or_default().extend(keys_of(body));
            }
        }
        live
    }

    /// The assignment of the last run. A key that several slots claim belongs to the first one.
    fn assignment(&self, min_slots: u32) -> Result<Assignment, Fault> {
        let slots = self.assigned.values().map(Assignment::slots).max().unwrap_or(min_slots);
        let mut keys: BTreeMap<String, Placement> = BTreeMap::new();
        for (slot, assignment) in &self.assigned {
            for (key, placement) in assignment.placements().iter().filter(|(_, one)| one.slot == *slot) {
                keys.entry(key.clone()).or_insert(*placement);
            }
        }
        Assignment::new(slots, keys).map_err(|error| Fault::internal(error.to_string()))
    }

    /// What each slot has to run, and what its pods may still run.
    fn configurations(&self) -> BTreeMap<u32, SlotConfiguration> {
        let slots: BTreeSet<u32> = self.configured.keys().chain(self.running.keys()).copied().collect();
        let configuration = |slot: u32| {
            let keys = self.configured.get(&slot).cloned().unwrap_or_default();
            let running = self.running.get(&slot).into_iter().flatten();
            let draining = running.filter(|key| !keys.contains(*key)).map(|key| (key.clone(), 1)).collect();
            (slot, SlotConfiguration { generation: 1, keys, draining })
        };
        slots.into_iter().map(configuration).collect()
    }
}

/// The keys in the annotation of a pod or of a pod template.
fn keys_of(pod: &Value) -> BTreeSet<String> {
    let text = pod["metadata"]["annotations"][KEYS].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use qontract_client_kubernetes::{
        FieldOwnership, Kind, ManagedFields, Object, ObjectAddress, ObjectVersion,
    };
    use qontract_fleet::balance::{Assignment, Handover, HandoverStep, Placement, PlacementReason};
    use serde_json::{Value, json};

    use super::{ASSIGNMENT, KEYS, LiveSlots};

    fn object(kind: &str, body: Value) -> Object {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Object {
            address: ObjectAddress { kind: Kind::named(kind), namespace: None, name },
            version: ObjectVersion { uid: None, resource_version: String::new() },
            field_ownership: FieldOwnership::Ours,
            managed_fields: ManagedFields::from_json("{}"),
            body,
        }
    }

    fn labels(slot: u32) -> Value {
        json!({
            "app": "qontract-reconcile-quotas",
            "app.kubernetes.io/instance": format!("qontract-reconcile-quotas-{slot}"),
        })
    }

    fn deployment(slot: u32, keys: &[&str]) -> Object {
        let placement = |slot| Placement { slot, from: None, reason: PlacementReason::NewKey };
        let assigned = keys.iter().map(|key| ((*key).to_owned(), placement(slot))).collect();
        let assignment = Assignment::new(2, assigned).expect("two slots").to_json();
        let template = json!({"metadata": {"annotations": {KEYS: json!(keys).to_string()}}});
        let metadata = json!({"labels": labels(slot), "annotations": {ASSIGNMENT: assignment}});
        object("Deployment", json!({"metadata": metadata, "spec": {"template": template}}))
    }

    fn pod(slot: u32, keys: &[&str], phase: &str) -> Object {
        let metadata = json!({"labels": labels(slot), "annotations": {KEYS: json!(keys).to_string()}});
        object("Pod", json!({"metadata": metadata, "status": {"phase": phase}}))
    }

    #[test]
    fn a_key_that_a_pod_still_runs_does_not_start_elsewhere() {
        let deployments = [deployment(0, &["a"]), deployment(1, &["c"])];
        let pods = [pod(0, &["a", "b"], "Running"), pod(1, &["c"], "Running"), pod(1, &["x"], "Failed")];
        let live = LiveSlots::of("quotas", &deployments, &pods);
        let keys = [("a", 0), ("b", 1), ("c", 1)];
        let placement = |slot| Placement { slot, from: None, reason: PlacementReason::Balance };
        let keys = keys.map(|(key, slot)| (key.to_owned(), placement(slot))).into();
        let wanted = Assignment::new(2, keys).expect("two slots");
        let mut handover = Handover::from_observation(live.configurations());
        let waiting = HandoverStep::Waiting { key: "b".to_owned(), slot: 1, draining: 0 };
        assert_eq!(handover.advance(&wanted), [waiting]);

        let live = LiveSlots::of("quotas", &deployments, &[pod(0, &["a"], "Running")]);
        let mut handover = Handover::from_observation(live.configurations());
        let started = HandoverStep::Started { key: "b".to_owned(), slot: 1 };
        assert_eq!(handover.advance(&wanted), [started]);
    }

    #[test]
    fn the_assignment_is_read_from_the_deployments() {
        let mut other = deployment(0, &["z"]);
        other.body["metadata"]["labels"]["app"] = "qontract-reconcile-other".into();
        let mut damaged = deployment(1, &["c"]);
        damaged.body["metadata"]["annotations"][ASSIGNMENT] = "{".into();
        let live = LiveSlots::of("quotas", &[deployment(0, &["a", "b"]), damaged, other], &[]);
        let assignment = live.assignment(1).expect("an assignment");
        let keys: BTreeSet<_> = assignment.placements().keys().map(String::as_str).collect();
        assert_eq!((assignment.slots(), keys), (2, BTreeSet::from(["a", "b"])));
        let none = LiveSlots::default().assignment(3).expect("an assignment");
        assert_eq!((none.slots(), none.placements().len()), (3, 0));
    }
}
