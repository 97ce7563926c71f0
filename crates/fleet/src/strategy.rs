//! Sharding strategies: from the sharding of a deployment to its shards.
//!
//! To add a strategy, add a file with an implementation of [`ShardingStrategy`], and a line to [`strategy_of`].

mod auto;
mod fixed_count;
mod per_aws_account;
mod per_key;
mod per_namespace_label;
mod per_ocm_organization;
mod per_openshift_cluster;

use serde::Serialize;

use crate::commands::Commands;
use crate::finding::Finding;
use crate::model::{IntegrationSpec, Inventory, ShardSpecOverride, Sharding};

pub use auto::{Auto, AutoSharding, KeySource};
pub use fixed_count::{FixedCount, MAX_SHARDS};
pub use per_aws_account::PerAwsAccount;
pub use per_namespace_label::PerNamespaceLabel;
pub use per_ocm_organization::PerOcmOrganization;
pub use per_openshift_cluster::PerOpenshiftCluster;

/// One shard of a deployment. The fields are named as in the values of the established Helm chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShardSpec {
    /// Number of hash slots that share the work; empty if the work is not divided by hash.
    pub shards: String,
    /// The hash slot; empty if the work is not divided by hash.
    pub shard_id: String,
    /// The key; empty if the shard has none.
    pub shard_key: String,
    /// The suffix of the name of the shard's objects.
    pub shard_name_suffix: String,
    /// The arguments of the integration.
    pub extra_args: String,
    /// The settings of this shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_spec_overrides: Option<ShardSpecOverride>,
}

impl ShardSpec {
    /// Whether the shard does not run.
    pub fn is_disabled(&self) -> bool {
        self.shard_spec_overrides.as_ref().is_some_and(|settings| settings.disabled == Some(true))
    }
}

/// The shards of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shards {
    /// Shards that follow from the data alone.
    Fixed(Vec<ShardSpec>),
    /// Shards whose number and keys follow from measurements.
    Measured(AutoSharding),
}

/// The input of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct ShardingContext<'c> {
    /// The name of the integration.
    pub integration: &'c str,
    /// The settings of the pods.
    pub spec: &'c IntegrationSpec,
    /// The objects by which integrations are sharded.
    pub inventory: &'c Inventory,
    /// The commands that pods can run.
    pub commands: &'c Commands,
}

impl ShardingContext<'_> {
    /// The arguments of a shard: those of all shards, and those that select it.
    pub(crate) fn arguments(&self, selection: &str) -> String {
        let all = self.spec.extra_args.as_deref().unwrap_or_default();
        format!("{all}{selection}")
    }

    /// Checks that the command of the integration accepts the flag that a strategy requires.
    pub(crate) fn require(&self, flag: &'static str, strategy: &'static str) -> Result<(), ShardingError> {
        if self.commands.accepts(self.integration, flag) {
            return Ok(());
        }
        let integration = self.integration.to_owned();
        Err(ShardingError::MissingFlag { integration, flag, strategy })
    }
}

/// A sharding strategy, with its settings from the data.
pub trait ShardingStrategy {
    /// The shards, in the order of the inventory.
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError>;

    /// Findings about the settings. A finding that is an error prevents the deployment.
    fn findings(&self, context: &ShardingContext<'_>) -> Vec<Finding>;
}

/// The reason why a deployment has no shards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardingError {
    /// The strategy does not exist.
    #[error("`{0}` is not a sharding strategy")]
    UnknownStrategy(String),
    /// The command of the integration cannot select a shard.
    #[error("the command `{integration}` does not accept `{flag}`, which the strategy `{strategy}` requires")]
    MissingFlag {
        /// The integration.
        integration: String,
        /// The flag.
        flag: &'static str,
        /// The strategy.
        strategy: &'static str,
    },
    /// A key of the data would change the arguments of the command.
    #[error("`{0}` cannot be an argument of a command")]
    InvalidKey(String),
    /// A setting of the strategy is missing.
    #[error("the strategy `{strategy}` requires `{setting}`")]
    MissingSetting {
        /// The strategy.
        strategy: &'static str,
        /// The setting.
        setting: &'static str,
    },
}

/// The names of all strategies.
pub const STRATEGIES: [&str; 7] = [
    "static",
    "generic-static",
    "per-aws-account",
    "per-openshift-cluster",
    "per-ocm-organization",
    "per-namespace-label",
    "auto",
];

/// The strategy of a deployment: `sharding`, else `spec.shardingStrategy`, else `spec.shards`, else one shard.
///
/// ```
/// use qontract_fleet::model::{IntegrationSpec, Inventory};
/// use qontract_fleet::{Commands, Shards, ShardingContext, strategy_of};
///
/// let spec = IntegrationSpec { shards: Some(3), ..IntegrationSpec::default() };
/// let (inventory, commands) = (Inventory::default(), Commands::of_peer());
/// let context =
///     ShardingContext { integration: "github", spec: &spec, inventory: &inventory, commands: &commands };
/// let Shards::Fixed(shards) = strategy_of(&spec, None)?.shards(&context)? else { panic!() };
/// let suffixes: Vec<_> = shards.iter().map(|shard| &*shard.shard_name_suffix).collect();
/// assert_eq!(suffixes, ["-0", "-1", "-2"]);
/// # Ok::<_, qontract_fleet::ShardingError>(())
/// ```
pub fn strategy_of(
    spec: &IntegrationSpec,
    sharding: Option<&Sharding>,
) -> Result<Box<dyn ShardingStrategy>, ShardingError> {
    let older = spec.sharding_strategy.as_ref().map(|strategy| Sharding {
        strategy: strategy.clone(),
        shards: spec.shards,
        ..Sharding::default()
    });
    let Some(sharding) = sharding.cloned().or(older) else {
        return Ok(Box::new(FixedCount { shards: spec.shards.unwrap_or(1) }));
    };
    let Sharding { strategy, shards, shard_spec_overrides, label, auto } = sharding;
    let overrides = shard_spec_overrides.unwrap_or_default();
    Ok(match strategy.as_str() {
        "static" | "generic-static" => Box::new(FixedCount { shards: shards.unwrap_or(1) }),
        "per-aws-account" => Box::new(PerAwsAccount { overrides }),
        "per-openshift-cluster" => Box::new(PerOpenshiftCluster { overrides }),
        "per-ocm-organization" => Box::new(PerOcmOrganization { overrides }),
        "per-namespace-label" => Box::new(PerNamespaceLabel { label: label.unwrap_or_default() }),
        "auto" => {
            let missing = ShardingError::MissingSetting { strategy: "auto", setting: "auto" };
            Box::new(Auto { settings: auto.ok_or(missing)? })
        }
        _ => return Err(ShardingError::UnknownStrategy(strategy)),
    })
}
