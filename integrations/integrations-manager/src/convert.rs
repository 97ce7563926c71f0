//! Converts the response of the query to the model of `qontract-fleet`. Every field is named, so that the compiler
//! reports a field that the query has and the model lacks.

use qontract_fleet::model;
use qontract_objects::fragments::DisabledIntegrations;
use serde_json::Value;

use crate::optional::integration_shards::{AutoShards, IntegrationShards};
use crate::query;

/// A JSON value in the data. A value that is not JSON is absent.
pub fn json(text: Option<&str>) -> Option<Value> {
    serde_json::from_str(text?).ok()
}

impl From<query::Environment> for model::Environment {
    fn from(query::Environment { name, parameters }: query::Environment) -> Self {
        Self { name, parameters: json(parameters.as_deref()) }
    }
}

impl From<query::IntegrationSpec> for model::IntegrationSpec {
    fn from(spec: query::IntegrationSpec) -> Self {
        let query::IntegrationSpec {
            cache,
            command,
            disable_unleash,
            environment_aware,
            extra_args,
            extra_env,
            internal_certificates,
            logs,
            resources,
            fluentd_resources,
            sleep_duration_secs,
            state,
            storage,
            storage_class_name,
            trigger,
            cron,
            dashdotdb,
            concurrency_policy,
            restart_policy,
            successful_job_history_limit,
            failed_job_history_limit,
            image_ref,
            enable_pushgateway,
        } = spec;
        Self {
            cache,
            command,
            disable_unleash,
            environment_aware,
            extra_args,
            extra_env: extra_env.map(|all| all.into_iter().map(Into::into).collect()),
            internal_certificates,
            logs: logs.map(Into::into),
            resources: resources.map(Into::into),
            fluentd_resources: fluentd_resources.map(Into::into),
            sleep_duration_secs,
            state,
            storage,
            storage_class_name,
            trigger,
            cron,
            dashdotdb,
            concurrency_policy,
            restart_policy,
            successful_job_history_limit: successful_job_history_limit.map(i64::from),
            failed_job_history_limit: failed_job_history_limit.map(i64::from),
            image_ref,
            enable_pushgateway,
            shards: None,
            sharding_strategy: None,
        }
    }
}

impl From<query::IntegrationSpecExtraEnv> for model::ExtraEnv {
    fn from(extra: query::IntegrationSpecExtraEnv) -> Self {
        let query::IntegrationSpecExtraEnv { secret_name, secret_key, name, value } = extra;
        Self { secret_name, secret_key, name, value }
    }
}

impl From<query::IntegrationSpecLogs> for model::Logs {
    fn from(logs: query::IntegrationSpecLogs) -> Self {
        let query::IntegrationSpecLogs { slack, google_chat, slack_error_filter, gov_slack } = logs;
        Self { slack, google_chat, slack_error_filter, gov_slack }
    }
}

impl From<query::DeployResources> for model::Resources {
    fn from(query::DeployResources { requests, limits }: query::DeployResources) -> Self {
        let requests = requests.map(|query::ResourceRequestsRequirements { cpu, memory }| {
            model::ResourceQuantities { cpu: Some(cpu), memory: Some(memory) }
        });
        let limits = limits.map(|query::ResourceLimitsRequirements { cpu, memory }| {
            model::ResourceQuantities { cpu, memory: Some(memory) }
        });
        Self { requests, limits }
    }
}

impl From<query::IntegrationSharding> for model::Sharding {
    fn from(sharding: query::IntegrationSharding) -> Self {
        let query::IntegrationSharding { strategy, shards, accounts, clusters, organizations } = sharding;
        let accounts = accounts.map(|all| all.into_iter().map(Into::into).collect::<Vec<_>>());
        let clusters = clusters.map(|all| all.into_iter().map(Into::into).collect());
        let organizations = organizations.map(|all| all.into_iter().map(Into::into).collect());
        Self {
            strategy,
            shards: shards.map(i64::from),
            shard_spec_overrides: accounts.or(clusters).or(organizations),
            label: None,
            auto: None,
        }
    }
}

impl From<query::AWSAccountShardSpecOverride> for model::ShardSpecOverride {
    fn from(settings: query::AWSAccountShardSpecOverride) -> Self {
        let query::AWSAccountShardSpecOverride { shard, image_ref, resources, disabled } = settings;
        let shard = model::OverrideTarget { name: shard.name, ..model::OverrideTarget::default() };
        Self { shard, image_ref, resources: resources.map(Into::into), disabled, sub_sharding: None }
    }
}

impl From<query::OpenshiftClusterShardSpecOverride> for model::ShardSpecOverride {
    fn from(settings: query::OpenshiftClusterShardSpecOverride) -> Self {
        let query::OpenshiftClusterShardSpecOverride { shard, image_ref, resources, disabled, sub_sharding } =
            settings;
        let shard = model::OverrideTarget { name: shard.name, ..model::OverrideTarget::default() };
        let sub_sharding = sub_sharding.map(|query::SubSharding { strategy, shards }| model::SubSharding {
            strategy,
            shards: Some(shards.into()),
        });
        Self { shard, image_ref, resources: resources.map(Into::into), disabled, sub_sharding }
    }
}

impl From<query::OCMOrganizationShardSpecOverride> for model::ShardSpecOverride {
    fn from(settings: query::OCMOrganizationShardSpecOverride) -> Self {
        let query::OCMOrganizationShardSpecOverride { shard, image_ref, resources, disabled } = settings;
        let query::OpenShiftClusterManager { name, org_id } = shard;
        let shard = model::OverrideTarget { name, org_id: Some(org_id), disable: None };
        Self { shard, image_ref, resources: resources.map(Into::into), disabled, sub_sharding: None }
    }
}

/// The sharding of a datafile of its own.
pub fn own_sharding(shards: IntegrationShards) -> model::Sharding {
    let IntegrationShards { path: _, name: _, integration: _, namespace: _, strategy, label, auto } = shards;
    let auto = auto.map(|auto| {
        let AutoShards { keys, target_seconds, min_shards, max_shards, windows, window_minutes, moves } =
            auto;
        model::AutoSettings {
            keys,
            target_seconds: target_seconds.into(),
            min_shards: min_shards.map(i64::from),
            max_shards: max_shards.map(i64::from),
            windows: windows.map(i64::from),
            window_minutes: window_minutes.map(i64::from),
            moves: moves.map(i64::from),
        }
    });
    model::Sharding { strategy, label, auto, ..model::Sharding::default() }
}

/// A cluster as a key.
pub fn cluster_item(
    query::FleetClustersV1 { disabled_integrations, name }: query::FleetClustersV1,
) -> model::InventoryItem {
    model::InventoryItem { name, disable: disabled(disabled_integrations) }
}

/// The integrations that the data disables for a cluster.
pub fn disabled(
    DisabledIntegrations { disable }: DisabledIntegrations,
) -> Option<model::DisabledIntegrations> {
    disable.map(|disable| model::DisabledIntegrations { integrations: disable.integrations })
}

/// An AWS account as a key.
pub fn account_item(
    query::FleetAwsaccountsV1 { name, disable }: query::FleetAwsaccountsV1,
) -> model::InventoryItem {
    let disable = disable.map(|query::DisableClusterAutomations { integrations }| {
        model::DisabledIntegrations { integrations }
    });
    model::InventoryItem { name, disable }
}

/// An OCM organization as a key.
pub fn organization(
    query::OpenShiftClusterManager { name, org_id }: query::OpenShiftClusterManager,
) -> model::OcmOrganization {
    model::OcmOrganization { name, org_id }
}
