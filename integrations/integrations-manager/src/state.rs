//! The declared state of a namespace: the workloads of its integrations.

use std::collections::BTreeMap;

use qontract_fleet::AutoSharding;
use qontract_fleet::manifest::{self, Workload};
use qontract_fleet::model::IntegrationSpec;
use qontract_fleet::parameters::TemplateParameters;
use qontract_objects::{
    DeclaredObject, Kind, ManagedKind, ObjectShardView, ObjectState, Replacement, ScopeSpec, WriteVersion,
};
use qontract_runtime::{Fault, PlanHint};
use serde::{Serialize, Serializer};

/// The kinds that the integration manages, with their groups.
const KINDS: [(&str, &str); 6] = [
    ("ConfigMap", ""),
    ("CronJob", "batch"),
    ("Deployment", "apps"),
    ("PersistentVolumeClaim", ""),
    ("Service", ""),
    ("StatefulSet", "apps"),
];

/// The kinds that the integration manages.
pub fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.into_iter().map(|(name, group)| Kind {
        name: name.to_owned(),
        group: (!group.is_empty()).then(|| group.to_owned()),
    })
}

/// The workloads of a namespace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NamespaceFleet {
    /// The workloads, with their provenance under `/workloads/INDEX`.
    pub workloads: Vec<Workload>,
    /// The deployments whose shards follow from measurements, with their provenance under `/balanced/INDEX`.
    pub balanced: Vec<BalancedDeployment>,
    /// The deployments that cannot be declared.
    pub broken: Vec<BrokenDeployment>,
    /// The template parameters.
    pub parameters: TemplateParameters,
    /// The name of the environment.
    pub environment: Option<String>,
    /// The settings that pods of the manager itself get.
    pub manager: BTreeMap<String, String>,
    /// Whether this caller declares the Service of the namespace, which the pods of all callers share.
    pub owns_service: bool,
    /// Number of characters of a commit in image tags.
    pub hash_length: usize,
    /// Remarks about settings without effect.
    #[serde(skip)]
    pub hints: Vec<PlanHint>,
}

/// A deployment whose shards follow from measurements.
#[derive(Clone, Debug, Serialize)]
pub struct BalancedDeployment {
    /// The integration.
    pub integration: String,
    /// The settings of the pods.
    pub spec: IntegrationSpec,
    /// What is balanced, and how.
    pub sharding: AutoSharding,
    /// The time that a pod gets to end, in seconds.
    pub grace_seconds: u64,
}

/// A deployment, or a shard of it, that cannot be declared. Its objects are left as they are.
#[derive(Clone, Debug)]
pub struct BrokenDeployment {
    /// The name of the object that is not declared.
    pub name: String,
    /// The reason.
    pub fault: Fault,
}

/// **Invariant:** provenance is not part of the state.
impl Serialize for BrokenDeployment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.name, &self.fault.text).serialize(serializer)
    }
}

impl NamespaceFleet {
    /// Whether the Service is declared: it selects the pods of the namespace.
    pub fn has_service(&self) -> bool {
        self.owns_service && (!self.workloads.is_empty() || !self.balanced.is_empty())
    }
}

impl ObjectState for NamespaceFleet {
    fn scope_spec(shard: ObjectShardView<'_, Self>) -> ScopeSpec {
        ScopeSpec {
            namespace: shard.key.get("namespace").map(str::to_owned),
            kinds: kinds().map(ManagedKind::from).collect(),
            replacement: Replacement::WithPods,
            write_version: WriteVersion::Preferred,
            ..ScopeSpec::default()
        }
    }

    fn declared_objects(shard: ObjectShardView<'_, Self>) -> Vec<Option<DeclaredObject>> {
        let state = &shard.shard.state;
        let mut objects: Vec<_> = state
            .workloads
            .iter()
            .flat_map(manifest::object_names)
            .map(|(kind, name)| {
                kinds().find(|one| one.name == kind).map(|kind| DeclaredObject { kind, name })
            })
            .collect();
        // The shards of a balanced deployment are not known from the data.
        objects.extend(state.balanced.iter().map(|_| None));
        if state.has_service() {
            objects.push(DeclaredObject::of(&manifest::service()));
        }
        objects
    }
}
