//! The values of the established Helm chart for the integrations of a data repo, for comparing a fleet with one that
//! the chart deploys.

use serde::Serialize;
use serde_json::Value;

use crate::commands::Commands;
use crate::model::{IntegrationDefinition, IntegrationSpec, Inventory, ManagedEntry};
use crate::strategy::{ShardSpec, ShardingContext, ShardingError, Shards, strategy_of};

/// The integrations that one manager deploys.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetSelection<'s> {
    /// The repository with the source code of the integrations; all integrations by default.
    pub upstream: Option<&'s str>,
    /// The environment of the namespaces; all environments by default.
    pub environment: Option<&'s str>,
}

impl FleetSelection<'_> {
    /// Whether an integration is selected.
    pub fn includes(&self, integration: &IntegrationDefinition) -> bool {
        self.upstream.is_none() || integration.upstream.as_deref() == self.upstream
    }

    /// Whether a deployment of an integration is selected.
    pub fn includes_entry(&self, entry: &ManagedEntry) -> bool {
        let environment = entry.namespace.environment.as_ref().map(|environment| environment.name.as_str());
        self.environment.is_none() || environment == self.environment
    }
}

/// The values of the chart for one namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceValues {
    /// The path of the namespace.
    pub path: String,
    /// The values: `integrations` and `cronjobs`, without nulls.
    pub values: Value,
}

#[derive(Serialize, Default)]
struct ChartValues<'v> {
    integrations: Vec<ChartIntegration<'v>>,
    cronjobs: Vec<ChartIntegration<'v>>,
}

#[derive(Serialize)]
struct ChartIntegration<'v> {
    name: &'v str,
    #[serde(flatten)]
    spec: &'v IntegrationSpec,
    shard_specs: Vec<ShardSpec>,
}

/// The values of the chart for each namespace, in order of first use.
pub fn chart_values(
    integrations: &[IntegrationDefinition],
    inventory: &Inventory,
    commands: &Commands,
    selection: FleetSelection<'_>,
) -> Result<Vec<NamespaceValues>, ShardingError> {
    let mut namespaces: Vec<(&str, ChartValues<'_>)> = Vec::new();
    for integration in integrations.iter().filter(|integration| selection.includes(integration)) {
        let entries = integration.managed.iter().flatten();
        for entry in entries.filter(|entry| selection.includes_entry(entry)) {
            let (name, spec) = (integration.name.as_str(), &entry.spec);
            let context = ShardingContext { integration: name, spec, inventory, commands };
            let shards = match strategy_of(spec, entry.sharding.as_ref())?.shards(&context)? {
                Shards::Fixed(shards) => shards,
                // The chart has no such strategy.
                Shards::Measured(_) => Vec::new(),
            };
            let value = ChartIntegration { name, spec, shard_specs: shards };
            let path = entry.namespace.path.as_str();
            let position = namespaces.iter().position(|(other, _)| *other == path).unwrap_or_else(|| {
                namespaces.push((path, ChartValues::default()));
                namespaces.len() - 1
            });
            let values = &mut namespaces[position].1;
            match spec.schedule() {
                Some(_) => values.cronjobs.push(value),
                None => values.integrations.push(value),
            }
        }
    }
    let namespace = |(path, values): (&str, ChartValues<'_>)| {
        let values = serde_json::to_value(values).expect("the keys of all maps are strings");
        NamespaceValues { path: path.to_owned(), values: without_nulls(values) }
    };
    Ok(namespaces.into_iter().map(namespace).collect())
}

/// Removes null values from maps, at any depth.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map = map.into_iter().filter(|(_, value)| !value.is_null());
            map.map(|(key, value)| (key, without_nulls(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
