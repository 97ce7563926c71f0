//! The Kubernetes objects of shards, as JSON values.
//!
//! The environment variables, volumes and sidecars are those of the established Helm chart, so that a pod can run either
//! implementation. Unlike the chart, every setting applies to all kinds of workloads, each workload has its own
//! selector, and pods have probes and a restricted security context.

mod environment;
mod fluentd;
mod pod;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::chart_values::without_nulls;
use crate::commands::Commands;
use crate::model::{IntegrationSpec, Resources};
use crate::names::{
    MAX_CRON_JOB_NAME, MAX_DEPLOYMENT_NAME, MAX_LABEL_VALUE, MAX_STATEFUL_SET_NAME, app_name, shard_name,
    shorten,
};
use crate::parameters::TemplateParameters;
use crate::strategy::ShardSpec;

/// The label with the name of the workload, which distinguishes the shards of an integration.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// The label value that all pods of the fleet share.
const COMPONENT: &str = "qontract-reconcile";

/// The name of the Service in front of all pods of a namespace.
const SERVICE: &str = "qontract-reconcile";

/// Number of old `ReplicaSets` or revisions that are kept.
const REVISION_HISTORY_LIMIT: u32 = 5;

/// The kind of object that runs a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum WorkloadKind {
    /// A loop.
    Deployment,
    /// A loop with a persistent cache.
    StatefulSet,
    /// Scheduled runs.
    CronJob,
}

impl WorkloadKind {
    /// The kind that runs the shards of a deployment.
    pub fn of(spec: &IntegrationSpec) -> Self {
        match (spec.schedule(), spec.cache) {
            (Some(_), _) => Self::CronJob,
            (None, Some(true)) => Self::StatefulSet,
            (None, Some(false) | None) => Self::Deployment,
        }
    }

    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::CronJob => "CronJob",
        }
    }

    /// Maximum length of the name.
    fn max_name(self) -> usize {
        match self {
            Self::Deployment => MAX_DEPLOYMENT_NAME,
            Self::StatefulSet => MAX_STATEFUL_SET_NAME,
            Self::CronJob => MAX_CRON_JOB_NAME,
        }
    }
}

/// The object that runs one shard of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// The integration.
    pub integration: String,
    /// The kind of object.
    pub kind: WorkloadKind,
    /// The name of the object.
    pub name: String,
    /// The settings of the pods.
    pub spec: IntegrationSpec,
    /// The shard.
    pub shard: ShardSpec,
    /// The time that a pod gets to end, in seconds.
    pub grace_seconds: u64,
    /// Annotations of the object, which do not restart its pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
    /// Further environment variables of the integration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

impl Workload {
    /// The workload of a shard.
    pub fn new(integration: &str, spec: &IntegrationSpec, shard: ShardSpec, commands: &Commands) -> Self {
        Self::of_shard(integration, spec, shard, commands.grace_seconds(integration))
    }

    /// The workload of a shard whose pods get this time to end.
    pub fn of_shard(integration: &str, spec: &IntegrationSpec, shard: ShardSpec, grace_seconds: u64) -> Self {
        let kind = WorkloadKind::of(spec);
        let name = shorten(&shard_name(integration, &shard.shard_name_suffix), kind.max_name());
        let (integration, spec) = (integration.to_owned(), spec.clone());
        Self {
            integration,
            kind,
            name,
            spec,
            shard,
            grace_seconds,
            annotations: BTreeMap::new(),
            pod_annotations: BTreeMap::new(),
            variables: BTreeMap::new(),
        }
    }

    /// The metadata of the object.
    fn metadata(&self) -> Value {
        let mut metadata = json!({"name": self.name, "labels": self.labels()});
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        metadata
    }

    /// The compute resources of the integration: those of the shard, else those of the deployment.
    fn resources(&self, settings: &PodSettings) -> Option<Resources> {
        let of_shard = self.shard.shard_spec_overrides.as_ref().and_then(|one| one.resources.clone());
        of_shard.or_else(|| settings.resources(&self.integration, self.spec.resources.as_ref(), ""))
    }

    /// Whether the workload has a persistent cache.
    fn has_cache(&self) -> bool {
        self.spec.cache == Some(true)
    }

    /// The labels of the workload and of its pods.
    fn labels(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("app", shorten(&app_name(&self.integration), MAX_LABEL_VALUE)),
            (INSTANCE_LABEL, shorten(&self.name, MAX_LABEL_VALUE)),
        ])
    }

    /// The name of the claim of a scheduled workload, whose pods cannot have claim templates.
    fn claim(&self) -> String {
        format!("{}-cache", self.name)
    }

    /// The storage of the cache.
    fn claim_spec(&self) -> Value {
        let size = self.spec.storage.as_deref().unwrap_or("1Gi");
        let class = self.spec.storage_class_name.as_deref().unwrap_or("gp2");
        json!({
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": {"requests": {"storage": size}},
        })
    }
}

/// The settings that all pods of a namespace share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSettings {
    /// The template parameters.
    pub parameters: TemplateParameters,
    /// The tag of the image, if it is the commit of a ref.
    pub tag: Option<String>,
    /// The name of the environment.
    pub environment: Option<String>,
    /// The settings of the manager, which pods of the manager itself also get.
    pub manager: BTreeMap<String, String>,
}

impl PodSettings {
    /// The image of a workload. A tag of its own excludes the digest, which belongs to the tag of the parameters.
    fn image(&self, workload: &Workload) -> String {
        let parameters = &self.parameters;
        let image = parameters.text_or("IMAGE", "quay.io/app-sre/qontract-reconcile");
        let of_shard = workload.shard.shard_spec_overrides.as_ref().and_then(|one| one.image_ref.as_deref());
        let own = of_shard.or(workload.spec.image_ref.as_deref()).or(self.tag.as_deref());
        match own {
            Some(tag) => format!("{image}:{tag}"),
            None => with_digest(parameters, "IMAGE", &image),
        }
    }

    /// The image of a sidecar, whose parameters begin with `name`.
    fn sidecar_image(&self, name: &str, default: &str) -> String {
        with_digest(&self.parameters, name, &self.parameters.text_or(name, default))
    }

    /// Compute resources. A parameter replaces a quantity that the data sets.
    fn resources(&self, integration: &str, resources: Option<&Resources>, infix: &str) -> Option<Resources> {
        let mut resources = resources?.clone();
        let prefix = format!("{}{infix}", integration.to_uppercase().replace('-', "_"));
        let replace = |quantity: &mut Option<String>, name: &str| {
            if quantity.is_some()
                && let Some(value) = self.parameters.text(&format!("{prefix}_{name}"))
            {
                *quantity = Some(value);
            }
        };
        if let Some(limits) = &mut resources.limits {
            replace(&mut limits.cpu, "CPU_LIMIT");
            replace(&mut limits.memory, "MEMORY_LIMIT");
        }
        if let Some(requests) = &mut resources.requests {
            replace(&mut requests.cpu, "CPU_REQUEST");
            replace(&mut requests.memory, "MEMORY_REQUEST");
        }
        Some(resources)
    }
}

/// An image with the tag and the digest of its parameters.
fn with_digest(parameters: &TemplateParameters, name: &str, image: &str) -> String {
    let tag = parameters.text_or(&format!("{name}_TAG"), "latest");
    match parameters.text(&format!("{name}_DIGEST")).filter(|digest| !digest.is_empty()) {
        Some(digest) => format!("{image}:{tag}@{digest}"),
        None => format!("{image}:{tag}"),
    }
}

/// The objects of a workload: the workload itself, and what its pods need.
///
/// The API versions are the newest ones; a client replaces them by those that the cluster serves.
pub fn objects(workload: &Workload, settings: &PodSettings) -> Vec<Value> {
    let mut objects = vec![without_nulls(match workload.kind {
        WorkloadKind::Deployment => deployment(workload, settings),
        WorkloadKind::StatefulSet => stateful_set(workload, settings),
        WorkloadKind::CronJob => cron_job(workload, settings),
    })];
    objects.extend(fluentd::config_map(workload, settings));
    if workload.kind == WorkloadKind::CronJob && workload.has_cache() {
        let metadata = json!({"name": workload.claim(), "labels": workload.labels()});
        let spec = workload.claim_spec();
        let kind = "PersistentVolumeClaim";
        objects.push(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}));
    }
    objects
}

/// The kinds and names of the objects of a workload.
pub fn object_names(workload: &Workload) -> Vec<(&'static str, String)> {
    let mut names = vec![(workload.kind.as_str(), workload.name.clone())];
    names.extend(fluentd::config_map_name(workload).map(|name| ("ConfigMap", name)));
    if workload.kind == WorkloadKind::CronJob && workload.has_cache() {
        names.push(("PersistentVolumeClaim", workload.claim()));
    }
    names
}

/// The Service in front of all pods of a namespace, for scraping metrics.
pub fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "labels": {"app": SERVICE}},
        "spec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": pod::PORT}],
            "selector": {"component": COMPONENT},
        },
    })
}

fn deployment(workload: &Workload, settings: &PodSettings) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": workload.metadata(),
        "spec": {
            "replicas": replicas(workload),
            "revisionHistoryLimit": REVISION_HISTORY_LIMIT,
            // The old pod ends before the new one starts, so that a shard never has two pods.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": workload.labels()},
            "template": pod::template(workload, settings),
        },
    })
}

fn stateful_set(workload: &Workload, settings: &PodSettings) -> Value {
    let claim = json!({"metadata": {"name": "cache"}, "spec": workload.claim_spec()});
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": workload.metadata(),
        "spec": {
            "replicas": replicas(workload),
            "revisionHistoryLimit": REVISION_HISTORY_LIMIT,
            "serviceName": SERVICE,
            "selector": {"matchLabels": workload.labels()},
            "template": pod::template(workload, settings),
            "volumeClaimTemplates": [claim],
        },
    })
}

fn cron_job(workload: &Workload, settings: &PodSettings) -> Value {
    let spec = &workload.spec;
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": workload.metadata(),
        "spec": {
            "schedule": spec.cron,
            "suspend": workload.shard.is_disabled(),
            "concurrencyPolicy": spec.concurrency_policy.as_deref().unwrap_or("Allow"),
            "successfulJobsHistoryLimit": spec.successful_job_history_limit.unwrap_or(3),
            "failedJobsHistoryLimit": spec.failed_job_history_limit.unwrap_or(1),
            "jobTemplate": {"spec": {"template": pod::template(workload, settings)}},
        },
    })
}

fn replicas(workload: &Workload) -> u32 {
    u32::from(!workload.shard.is_disabled())
}
