//! The strategy `auto`: the number of shards and the keys of each shard follow the measured run time of each key.
//! [`balance`](crate::balance) decides on the numbers; this file states what is balanced, and names the shards.

use std::fmt::Write as _;

use serde::Serialize;

use super::fixed_count::check_count;
use super::{ShardSpec, ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::commands::{ACCOUNT_NAME, CLUSTER_NAME, ORG_ID};
use crate::finding::Finding;
use crate::model::{AutoSettings, InventoryItem, ShardSpecOverride};
use crate::names::is_argument;

const STRATEGY: &str = "auto";

/// Default for the maximum number of shards.
const DEFAULT_MAX_SHARDS: i64 = 20;

/// Default number of windows that must agree.
const DEFAULT_WINDOWS: i64 = 5;

/// Default for the maximum number of keys that move at a time.
const DEFAULT_MOVES: i64 = 8;

/// The objects of the data whose names are the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// Clusters.
    Clusters,
    /// AWS accounts.
    AwsAccounts,
    /// OCM organizations.
    OcmOrganizations,
}

impl KeySource {
    /// All sources.
    pub const ALL: [Self; 3] = [Self::Clusters, Self::AwsAccounts, Self::OcmOrganizations];

    /// The name in the data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::AwsAccounts => "aws-accounts",
            Self::OcmOrganizations => "ocm-organizations",
        }
    }

    /// The flag that selects a key.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Clusters => CLUSTER_NAME,
            Self::AwsAccounts => ACCOUNT_NAME,
            Self::OcmOrganizations => ORG_ID,
        }
    }

    /// The dimension of shard keys whose value is the key.
    pub fn dimension(self) -> &'static str {
        match self {
            Self::Clusters => "cluster",
            Self::AwsAccounts => "account",
            Self::OcmOrganizations => "organization",
        }
    }

    fn keys(self, context: &ShardingContext<'_>) -> Vec<String> {
        let enabled = |items: &[InventoryItem]| {
            let items = items.iter().filter(|item| !item.disables(context.integration));
            items.map(|item| item.name.clone()).collect()
        };
        match self {
            Self::Clusters => enabled(&context.inventory.clusters),
            Self::AwsAccounts => enabled(&context.inventory.aws_accounts),
            Self::OcmOrganizations => {
                context.inventory.ocm_organizations.iter().map(|one| one.org_id.clone()).collect()
            }
        }
    }
}

/// Keys to be balanced over shards, with the limits of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AutoSharding {
    /// The objects whose names are the keys.
    pub source: KeySource,
    /// The keys.
    pub keys: Vec<String>,
    /// The arguments of all shards.
    pub extra_args: String,
    /// The run time of a shard in seconds at which the strategy aims.
    pub target_seconds: u32,
    /// Minimum number of shards.
    pub min_shards: u32,
    /// Maximum number of shards.
    pub max_shards: u32,
    /// Number of consecutive windows that must agree.
    pub windows: u32,
    /// The length of a window in minutes.
    pub window_minutes: u32,
    /// Maximum number of keys that move at a time.
    pub moves: u32,
}

impl AutoSharding {
    /// The shard with index `slot`, which runs these keys. A shard without keys does not run, because a command without
    /// selection would run all of them. The label in metrics does not depend on the number of shards, so that pods are
    /// not restarted when it changes.
    pub fn shard<'k>(&self, slot: u32, keys: impl IntoIterator<Item = &'k str>) -> ShardSpec {
        let mut extra_args = self.extra_args.clone();
        let mut is_empty = true;
        for key in keys {
            let _ = write!(extra_args, " {} {key}", self.source.flag());
            is_empty = false;
        }
        let disabled = ShardSpecOverride { disabled: Some(true), ..ShardSpecOverride::default() };
        ShardSpec {
            shard_key: format!("slot-{slot}"),
            shard_name_suffix: format!("-{slot}"),
            extra_args,
            shard_spec_overrides: is_empty.then_some(disabled),
            ..ShardSpec::default()
        }
    }
}

/// A number of shards that follows measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auto {
    /// The settings.
    pub settings: AutoSettings,
}

impl Auto {
    fn source(&self) -> Option<KeySource> {
        KeySource::ALL.into_iter().find(|source| source.as_str() == self.settings.keys)
    }

    fn min_shards(&self) -> i64 {
        self.settings.min_shards.unwrap_or(1)
    }

    fn max_shards(&self) -> i64 {
        self.settings.max_shards.unwrap_or_else(|| DEFAULT_MAX_SHARDS.max(self.min_shards()))
    }
}

impl ShardingStrategy for Auto {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        let missing = ShardingError::MissingSetting { strategy: STRATEGY, setting: "keys" };
        let source = self.source().ok_or(missing)?;
        context.require(source.flag(), STRATEGY)?;
        let AutoSettings { target_seconds, windows, window_minutes, moves, .. } = &self.settings;
        let keys = source.keys(context);
        if let Some(key) = keys.iter().find(|key| !is_argument(key)) {
            return Err(ShardingError::InvalidKey(key.clone()));
        }
        let number = |value: i64| u32::try_from(value.max(0)).unwrap_or(u32::MAX);
        Ok(Shards::Measured(AutoSharding {
            source,
            keys,
            extra_args: context.arguments(""),
            target_seconds: number(*target_seconds),
            min_shards: number(self.min_shards()),
            max_shards: number(self.max_shards()),
            windows: number(windows.unwrap_or(DEFAULT_WINDOWS)),
            window_minutes: number(window_minutes.unwrap_or(60)),
            moves: number(moves.unwrap_or(DEFAULT_MOVES)),
        }))
    }

    fn findings(&self, _: &ShardingContext<'_>) -> Vec<Finding> {
        let AutoSettings { keys, target_seconds, windows, window_minutes, moves, .. } = &self.settings;
        let mut findings = Vec::new();
        if self.source().is_none() {
            let names = KeySource::ALL.map(|source| format!("`{}`", source.as_str())).join(", ");
            let text = format!("`{keys}` cannot be balanced");
            findings.push(Finding::error("/sharding/auto/keys", text).hint(format!("write one of {names}")));
        }
        let (min, max) = (self.min_shards(), self.max_shards());
        findings.extend(check_count(min, "/sharding/auto/minShards"));
        findings.extend(check_count(max, "/sharding/auto/maxShards"));
        if min > max {
            let text = format!("`minShards` is {min}, but `maxShards` is {max}");
            findings.push(Finding::error("/sharding/auto/minShards", text));
        }
        let limits = [
            ("targetSeconds", Some(*target_seconds), 1),
            ("windows", *windows, 3),
            ("windowMinutes", *window_minutes, 1),
            ("moves", *moves, 0),
        ];
        for (field, value, least) in limits {
            if let Some(value) = value.filter(|value| *value < least) {
                let text = format!("`{field}` is {value}, but must be at least {least}");
                findings.push(Finding::error(format!("/sharding/auto/{field}"), text));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::Auto;
    use crate::commands::Commands;
    use crate::model::{AutoSettings, IntegrationSpec, Inventory, InventoryItem};
    use crate::strategy::{ShardingContext, ShardingError, ShardingStrategy, Shards};

    #[test]
    fn a_shard_without_keys_does_not_run() {
        let item = |name: &str| InventoryItem { name: name.to_owned(), disable: None };
        let inventory = Inventory { clusters: vec![item("c1"), item("c2")], ..Inventory::default() };
        let commands = Commands::of_peer();
        let spec = IntegrationSpec::default();
        let context = ShardingContext {
            integration: "openshift-resources",
            spec: &spec,
            inventory: &inventory,
            commands: &commands,
        };
        let settings =
            AutoSettings { keys: "clusters".to_owned(), target_seconds: 60, ..AutoSettings::default() };
        let auto = Auto { settings };
        assert_eq!(auto.findings(&context), []);
        let Ok(Shards::Measured(sharding)) = auto.shards(&context) else { panic!("measured shards") };
        assert_eq!(sharding.keys, ["c1", "c2"]);
        let shard = sharding.shard(0, ["c1", "c2"]);
        assert_eq!(shard.extra_args, " --cluster-name c1 --cluster-name c2");
        assert_eq!((shard.shard_name_suffix.as_str(), shard.is_disabled()), ("-0", false));
        assert!(sharding.shard(1, []).is_disabled());
    }

    #[test]
    fn a_key_cannot_add_arguments() {
        let name = "c1 --no-dry-run".to_owned();
        let clusters = vec![InventoryItem { name: name.clone(), disable: None }];
        let inventory = Inventory { clusters, ..Inventory::default() };
        let (commands, spec) = (Commands::of_peer(), IntegrationSpec::default());
        let integration = "openshift-resources";
        let context =
            ShardingContext { integration, spec: &spec, inventory: &inventory, commands: &commands };
        let settings =
            AutoSettings { keys: "clusters".to_owned(), target_seconds: 60, ..AutoSettings::default() };
        assert_eq!(Auto { settings }.shards(&context), Err(ShardingError::InvalidKey(name)));
    }

    #[test]
    fn settings_out_of_range_are_errors() {
        let settings = AutoSettings {
            keys: "pods".to_owned(),
            target_seconds: 0,
            min_shards: Some(5),
            max_shards: Some(2),
            windows: Some(1),
            ..AutoSettings::default()
        };
        let (inventory, commands, spec) = Default::default();
        let context =
            ShardingContext { integration: "x", spec: &spec, inventory: &inventory, commands: &commands };
        let findings = Auto { settings }.findings(&context);
        let pointers: Vec<_> = findings.iter().map(|finding| &*finding.pointer).collect();
        let expect = ["keys", "minShards", "targetSeconds", "windows"];
        assert_eq!(pointers, expect.map(|field| format!("/sharding/auto/{field}")));
    }
}
