//! The shards that the data declares, for commands that show the fleet.

use std::collections::BTreeSet;

use qontract_fleet::Commands;
use qontract_fleet::manifest::Workload;
use qontract_objects::Cluster;
use qontract_runtime::{Data, Fault, Options, SourceLocation};

use crate::declare::declare;

/// A declared shard.
#[derive(Clone, Debug)]
pub struct DeclaredShard {
    /// The cluster of its namespace.
    pub cluster: Cluster,
    /// The namespace.
    pub namespace: String,
    /// The workload. The keys of a balanced shard are not known from the data.
    pub workload: Workload,
    /// Why the shard exists, as a clause.
    pub strategy: String,
    /// The value of the label `shard_id` of its metrics.
    pub shard_id: String,
    /// Whether the number of shards follows run times.
    pub is_balanced: bool,
    /// The deployment in the data.
    pub place: Option<SourceLocation>,
}

/// The declared shards, and what cannot be declared.
#[derive(Debug, Default)]
pub struct DeclaredShards {
    /// The shards, by namespace.
    pub shards: Vec<DeclaredShard>,
    /// The faults of deployments.
    pub faults: Vec<Fault>,
}

/// The shards that the data declares.
pub fn declared_shards(data: &Data, options: &Options, commands: &Commands) -> Result<DeclaredShards, Fault> {
    let declared = declare(data, options, commands)?;
    let mut all = DeclaredShards::default();
    all.faults.extend(declared.faults.into_values().flatten());
    for (key, shard) in declared.shards {
        let namespace = key.get("namespace").unwrap_or_default().to_owned();
        let place = |pointer: String| shard.place(&pointer).cloned();
        let new = |workload: Workload, strategy: String, place| DeclaredShard {
            cluster: shard.target.clone(),
            namespace: namespace.clone(),
            shard_id: shard_id(&workload),
            workload,
            strategy,
            is_balanced: false,
            place,
        };
        for (index, workload) in shard.state.workloads.iter().enumerate() {
            let place = place(format!("/workloads/{index}"));
            all.shards.push(new(workload.clone(), strategy(workload), place));
        }
        for (index, deployment) in shard.state.balanced.iter().enumerate() {
            let sharding = &deployment.sharding;
            let place = place(format!("/balanced/{index}"));
            let why = format!(
                "`auto` distributes {} over {} to {} shards by their run times",
                sharding.source.as_str(),
                sharding.min_shards,
                sharding.max_shards
            );
            for slot in 0..sharding.min_shards {
                let (integration, spec) = (&deployment.integration, &deployment.spec);
                let shard = sharding.shard(slot, sharding.keys.iter().map(String::as_str));
                let workload = Workload::of_shard(integration, spec, shard, deployment.grace_seconds);
                all.shards
                    .push(DeclaredShard { is_balanced: true, ..new(workload, why.clone(), place.clone()) });
            }
        }
        let reported: BTreeSet<String> = all.faults.iter().map(|fault| fault.text.clone()).collect();
        let broken = shard.state.broken.iter().map(|broken| broken.fault.clone());
        all.faults.extend(broken.filter(|fault| !reported.contains(&fault.text)));
    }
    Ok(all)
}

/// The value of the label `shard_id`, as `run-integration` sets it.
fn shard_id(workload: &Workload) -> String {
    let shard = &workload.shard;
    match (shard.shard_key.as_str(), shard.shard_id.as_str()) {
        ("", "") => "0-1".to_owned(),
        ("", id) => format!("{id}-{}", shard.shards),
        (key, _) => key.to_owned(),
    }
}

/// Why a shard of a fixed strategy exists, as a clause.
fn strategy(workload: &Workload) -> String {
    let shard = &workload.shard;
    let slot = match (shard.shard_id.as_str(), shard.shards.as_str()) {
        ("", _) | (_, "1") => String::new(),
        (id, count) => format!("slot {id} of {count}"),
    };
    match (shard.shard_key.as_str(), slot.as_str()) {
        ("", "") => "the deployment is not sharded".to_owned(),
        ("", slot) => format!("it is {slot} of the deployment"),
        (key, "") => format!("`{key}` has a shard"),
        (key, slot) => format!("`{key}` has a shard that is split: it is {slot}"),
    }
}
