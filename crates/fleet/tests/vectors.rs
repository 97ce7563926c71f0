//! Replays what qontract-reconcile made of small fleets: shards, values of its Helm chart, template parameters, and
//! the flags of its commands.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};

use qontract_fleet::chart_values::{FleetSelection, chart_values};
use qontract_fleet::commands::{ACCOUNT_NAME, CLUSTER_NAME, ORG_ID};
use qontract_fleet::model::{Environment, IntegrationDefinition, Inventory, ManagedEntry, ShardSpecOverride};
use qontract_fleet::parameters::{ParameterSources, TemplateParameters};
use qontract_fleet::{Commands, ShardSpec, ShardingContext, ShardingError, Shards, strategy_of};
use qontract_testkit::vector_file;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Reads a recording; `None` if it does not exist.
fn recording<T: for<'de> Deserialize<'de>>(name: &str) -> Option<T> {
    let text = std::fs::read_to_string(vector_file(&format!("fleet/{name}"))?).unwrap();
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Compares all cases, and reports every difference.
fn check_all(file: &str, cases: impl Iterator<Item = (Value, Value)>) {
    let mut count = 0;
    let different: Vec<String> = cases
        .enumerate()
        .inspect(|_| count += 1)
        .filter(|(_, (actual, expected))| actual != expected)
        .map(|(index, (actual, expected))| {
            format!("{file} #{index}\n  expected {expected}\n  actual   {actual}")
        })
        .collect();
    assert!(count > 0, "{file} has no cases");
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}

#[derive(Deserialize)]
struct ShardCases {
    cases: Vec<ShardCase>,
    integration_flags: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct ShardCase {
    integration: String,
    managed: ManagedEntry,
    inventory: Inventory,
    shards: Option<Vec<RecordedShard>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct RecordedShard {
    shards: String,
    shard_id: String,
    shard_key: String,
    shard_name_suffix: String,
    extra_args: String,
    shard_spec_overrides: Option<ShardSpecOverride>,
}

impl From<RecordedShard> for ShardSpec {
    fn from(shard: RecordedShard) -> Self {
        let RecordedShard {
            shards,
            shard_id,
            shard_key,
            shard_name_suffix,
            extra_args,
            shard_spec_overrides,
        } = shard;
        Self { shards, shard_id, shard_key, shard_name_suffix, extra_args, shard_spec_overrides }
    }
}

/// The error of qontract-reconcile for ours.
fn peer_error(error: &ShardingError) -> String {
    match error {
        ShardingError::MissingFlag { integration, flag, strategy } => format!(
            "ValueError: integration {integration} does not support the provided argument.  {flag} is required by \
             the '{strategy}' sharding strategy."
        ),
        other => other.to_string(),
    }
}

#[test]
fn shards_equal_the_recorded_ones() {
    let Some(ShardCases { cases, integration_flags }) = recording("shard_specs.json") else { return };
    let commands: Commands = integration_flags.into_iter().collect();
    check_all(
        "shard_specs.json",
        cases.into_iter().map(|case| {
            let ShardCase { integration, managed, inventory, shards, error } = case;
            let context = ShardingContext {
                integration: &integration,
                spec: &managed.spec,
                inventory: &inventory,
                commands: &commands,
            };
            let strategy = strategy_of(&managed.spec, managed.sharding.as_ref());
            let actual = match strategy.and_then(|strategy| strategy.shards(&context)) {
                Ok(Shards::Fixed(shards)) => json!(shards),
                Ok(Shards::Measured(_)) => json!("measured"),
                Err(error) => peer_error(&error).into(),
            };
            let shards = shards.map(|shards| shards.into_iter().map(ShardSpec::from).collect::<Vec<_>>());
            (actual, error.map_or_else(|| json!(shards), Value::from))
        }),
    );
}

#[derive(Deserialize)]
struct ValuesCases {
    cases: Vec<ValuesCase>,
    integration_flags: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct ValuesCase {
    integrations: Vec<IntegrationDefinition>,
    inventory: Inventory,
    upstream: Option<String>,
    environment_name: Option<String>,
    namespaces: Vec<RecordedNamespace>,
}

#[derive(Deserialize)]
struct RecordedNamespace {
    path: String,
    helm_values: Value,
}

#[test]
fn chart_values_equal_the_recorded_ones() {
    let Some(ValuesCases { cases, integration_flags }) = recording("helm_values.json") else { return };
    let commands: Commands = integration_flags.into_iter().collect();
    check_all(
        "helm_values.json",
        cases.into_iter().map(|case| {
            let selection = FleetSelection {
                upstream: case.upstream.as_deref(),
                environment: case.environment_name.as_deref(),
            };
            let values = chart_values(&case.integrations, &case.inventory, &commands, selection);
            let actual = values.map_or_else(
                |error| peer_error(&error).into(),
                |values| values.into_iter().map(|one| json!([one.path, one.values])).collect(),
            );
            let expected = case.namespaces.into_iter().map(|one| json!([one.path, one.helm_values]));
            (actual, expected.collect())
        }),
    );
}

#[derive(Deserialize)]
struct ParameterCases {
    cases: Vec<ParameterCase>,
}

#[derive(Deserialize)]
struct ParameterCase {
    environment: Environment,
    image: String,
    image_tag_from_ref: Option<BTreeMap<String, String>>,
    os_env: BTreeMap<String, String>,
    parameters: Map<String, Value>,
    template_parameter_names: BTreeSet<String>,
    upstream: String,
}

#[test]
fn template_parameters_equal_the_recorded_ones() {
    let Some(ParameterCases { cases }) = recording("template_parameters.json") else { return };
    check_all(
        "template_parameters.json",
        cases.into_iter().map(|case| {
            let sources = ParameterSources {
                names: case.template_parameter_names,
                variables: case.os_env,
                upstream: &case.upstream,
                image: &case.image,
                tag_from_ref: case.image_tag_from_ref.unwrap_or_default(),
            };
            let TemplateParameters { mut values, tag_of_ref } =
                TemplateParameters::of(Some(&case.environment), &sources);
            let tag = tag_of_ref.map(|tag| format!("tag({}@{})", tag.git_ref, tag.repository));
            values.extend(tag.map(|tag| ("IMAGE_TAG".to_owned(), tag.into())));
            (values.into(), case.parameters.into())
        }),
    );
}

#[derive(Deserialize)]
struct FlagCases {
    flags: BTreeMap<String, BTreeSet<String>>,
}

#[test]
fn the_flags_of_commands_equal_the_recorded_ones() {
    let Some(FlagCases { flags }) = recording("cli_shard_flags.json") else { return };
    let commands = Commands::of_peer();
    check_all(
        "cli_shard_flags.json",
        flags.into_iter().map(|(command, flags)| {
            let accepted = [ACCOUNT_NAME, CLUSTER_NAME, ORG_ID].map(|flag| commands.accepts(&command, flag));
            let expected = [ACCOUNT_NAME, CLUSTER_NAME, ORG_ID].map(|flag| flags.contains(flag));
            (json!([command, accepted]), json!([command, expected]))
        }),
    );
}
