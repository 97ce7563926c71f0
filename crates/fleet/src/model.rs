//! The definitions of integrations in the data, as far as they concern their deployment, and the inventory that
//! key-based strategies shard by. The fields are named as in the GraphQL types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An integration of the data, with the namespaces that it is deployed to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntegrationDefinition {
    /// The name.
    pub name: String,
    /// The repository with the source code of the integration.
    pub upstream: Option<String>,
    /// The deployments.
    pub managed: Option<Vec<ManagedEntry>>,
}

/// An entry of `managed`: the deployment of an integration to one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagedEntry {
    /// The namespace.
    pub namespace: FleetNamespace,
    /// The settings of the pods.
    pub spec: IntegrationSpec,
    /// The sharding strategy; one shard if it is missing.
    pub sharding: Option<Sharding>,
}

/// A namespace to which integrations are deployed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetNamespace {
    /// The path of the datafile.
    pub path: String,
    /// The environment.
    pub environment: Option<Environment>,
}

/// An environment, whose parameters configure all pods of its namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The name.
    pub name: String,
    /// The parameters, as a JSON object.
    pub parameters: Option<Value>,
}

/// The settings of the pods of an integration (`integration-spec-1.yml`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IntegrationSpec {
    /// Whether the integration has a persistent cache.
    pub cache: Option<bool>,
    /// The command that `run-integration` starts.
    pub command: Option<String>,
    /// Whether the integration ignores feature toggles.
    pub disable_unleash: Option<bool>,
    /// Whether the integration needs the settings of its environment.
    pub environment_aware: Option<bool>,
    /// Arguments of the integration.
    pub extra_args: Option<String>,
    /// Additional environment variables.
    pub extra_env: Option<Vec<ExtraEnv>>,
    /// Whether the integration needs internal certificates.
    pub internal_certificates: Option<bool>,
    /// The destinations of the logs.
    pub logs: Option<Logs>,
    /// The compute resources of the integration.
    pub resources: Option<Resources>,
    /// The compute resources of the sidecar that ships the logs.
    pub fluentd_resources: Option<Resources>,
    /// The interval between two runs in seconds.
    pub sleep_duration_secs: Option<String>,
    /// Whether the integration has state in a bucket.
    pub state: Option<bool>,
    /// The size of the cache.
    pub storage: Option<String>,
    /// The storage class of the cache.
    pub storage_class_name: Option<String>,
    /// Whether the integration triggers deployments, which are logged to a channel of their own.
    pub trigger: Option<bool>,
    /// The schedule of an integration that does not run in a loop.
    pub cron: Option<String>,
    /// Whether the integration uses dashdotdb.
    pub dashdotdb: Option<bool>,
    /// The handling of concurrent executions of a cron job.
    pub concurrency_policy: Option<String>,
    /// The restart policy of a cron job.
    pub restart_policy: Option<String>,
    /// Number of successful executions of a cron job that are kept.
    pub successful_job_history_limit: Option<i64>,
    /// Number of failed executions of a cron job that are kept.
    pub failed_job_history_limit: Option<i64>,
    /// The tag of the image.
    pub image_ref: Option<String>,
    /// Whether metrics are pushed at the end of a run.
    pub enable_pushgateway: Option<bool>,
    /// Number of static shards: an older form of `sharding`.
    #[serde(skip_serializing)]
    pub shards: Option<i64>,
    /// The sharding strategy: an older form of `sharding`.
    #[serde(skip_serializing)]
    pub sharding_strategy: Option<String>,
}

impl IntegrationSpec {
    /// The schedule of a cron job; `None` for an integration that runs in a loop.
    pub fn schedule(&self) -> Option<&str> {
        self.cron.as_deref().filter(|cron| !cron.is_empty())
    }
}

/// An environment variable: a value, or a key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraEnv {
    /// The name of the Secret.
    pub secret_name: Option<String>,
    /// The key in the Secret, which is also the name of the variable.
    pub secret_key: Option<String>,
    /// The name of the variable.
    pub name: Option<String>,
    /// The value.
    pub value: Option<String>,
}

/// The destinations of the logs of an integration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Logs {
    /// A Slack channel.
    pub slack: Option<bool>,
    /// A Google Chat space, for errors.
    pub google_chat: Option<bool>,
    /// A Slack channel, for errors.
    pub slack_error_filter: Option<bool>,
    /// A Slack workspace for governments.
    pub gov_slack: Option<bool>,
}

/// Compute resources of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The minimum.
    pub requests: Option<ResourceQuantities>,
    /// The maximum.
    pub limits: Option<ResourceQuantities>,
}

/// Quantities of compute resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceQuantities {
    /// CPU time.
    pub cpu: Option<String>,
    /// Memory.
    pub memory: Option<String>,
}

/// The sharding of a deployment (`integration-sharding-1.yml`, and the strategies of `integration-shards-1.yml`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sharding {
    /// The name of the strategy.
    pub strategy: String,
    /// Number of shards, of the strategy `static`.
    pub shards: Option<i64>,
    /// Settings of single shards, of key-based strategies.
    pub shard_spec_overrides: Option<Vec<ShardSpecOverride>>,
    /// The label of the strategy `per-namespace-label`.
    pub label: Option<String>,
    /// The settings of the strategy `auto`.
    pub auto: Option<AutoSettings>,
}

/// The settings of the strategy `auto`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoSettings {
    /// The objects whose names are the shard keys.
    pub keys: String,
    /// The run time of a shard in seconds at which the strategy aims.
    pub target_seconds: i64,
    /// Minimum number of shards.
    pub min_shards: Option<i64>,
    /// Maximum number of shards.
    pub max_shards: Option<i64>,
    /// Number of consecutive windows of measurements that must agree before the number of shards changes.
    pub windows: Option<i64>,
    /// The length of a window in minutes.
    pub window_minutes: Option<i64>,
    /// Maximum number of keys that move to another shard at a time, in addition to keys whose shard is removed.
    pub moves: Option<i64>,
}

/// Settings of one shard of a key-based strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShardSpecOverride {
    /// The object whose shard has these settings.
    pub shard: OverrideTarget,
    /// The tag of the image.
    pub image_ref: Option<String>,
    /// The compute resources.
    pub resources: Option<Resources>,
    /// Whether the shard does not run.
    pub disabled: Option<bool>,
    /// The shards into which the shard is split.
    pub sub_sharding: Option<SubSharding>,
}

/// The object that an override refers to: a cluster, an AWS account or an OCM organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideTarget {
    /// The name.
    pub name: String,
    /// The id of an OCM organization.
    pub org_id: Option<String>,
    /// The integrations that are disabled for the object.
    pub disable: Option<DisabledIntegrations>,
}

/// The sharding of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubSharding {
    /// The name of the strategy.
    pub strategy: String,
    /// Number of shards.
    pub shards: Option<i64>,
}

/// The integrations that are disabled for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisabledIntegrations {
    /// The names of the integrations.
    pub integrations: Option<Vec<String>>,
}

/// The objects of the data by which integrations are sharded, in the order of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    /// The clusters.
    pub clusters: Vec<InventoryItem>,
    /// The AWS accounts.
    pub aws_accounts: Vec<InventoryItem>,
    /// The OCM organizations.
    pub ocm_organizations: Vec<OcmOrganization>,
    /// The namespaces.
    pub namespaces: Vec<InventoryNamespace>,
}

/// A cluster or an AWS account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryItem {
    /// The name.
    pub name: String,
    /// The integrations that are disabled for the object.
    pub disable: Option<DisabledIntegrations>,
}

impl InventoryItem {
    /// Whether the data disables an integration for this object.
    pub fn disables(&self, integration: &str) -> bool {
        let disabled = self.disable.as_ref().and_then(|disable| disable.integrations.as_deref());
        disabled.unwrap_or_default().iter().any(|name| name == integration)
    }
}

/// An OCM organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OcmOrganization {
    /// The name.
    pub name: String,
    /// The id.
    pub org_id: String,
}

/// A namespace with the labels of its datafile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryNamespace {
    /// The name of the cluster.
    pub cluster: String,
    /// The name.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the data disables the integration for the cluster of the namespace.
    pub disable: Option<DisabledIntegrations>,
}
