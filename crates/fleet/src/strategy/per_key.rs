//! The common part of key-based strategies: one shard for each key, which a flag of the command selects.

use std::collections::BTreeMap;

use super::fixed_count::check_count;
use super::{ShardSpec, ShardingContext, ShardingError, Shards};
use crate::finding::Finding;
use crate::model::ShardSpecOverride;

/// A key of a key-based strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardingKey {
    /// The name to which overrides refer.
    pub name: String,
    /// The value of the flag.
    pub key: String,
    /// The key in the names of objects.
    pub name_in_objects: String,
    /// Whether the data disables the integration for the key.
    pub is_disabled: bool,
}

/// A key-based strategy.
#[derive(Clone, Copy, Debug)]
pub struct KeySharding<'s> {
    /// The name of the strategy.
    pub strategy: &'static str,
    /// The flag that selects a key.
    pub flag: &'static str,
    /// The kind of object that a key names, in messages.
    pub object: &'static str,
    /// The settings of single shards.
    pub overrides: &'s [ShardSpecOverride],
}

impl KeySharding<'_> {
    /// One shard for each enabled key, or as many as its override requests.
    pub fn shards(
        &self,
        context: &ShardingContext<'_>,
        keys: &[ShardingKey],
    ) -> Result<Shards, ShardingError> {
        context.require(self.flag, self.strategy)?;
        let overrides = self.by_name();
        let enabled = keys.iter().filter(|key| !key.is_disabled);
        Ok(Shards::Fixed(enabled.flat_map(|key| self.shards_of(context, key, &overrides)).collect()))
    }

    /// The overrides by the name of their object. The last one takes precedence.
    fn by_name(&self) -> BTreeMap<&str, &ShardSpecOverride> {
        self.overrides.iter().map(|settings| (settings.shard.name.as_str(), settings)).collect()
    }

    fn shards_of(
        &self,
        context: &ShardingContext<'_>,
        key: &ShardingKey,
        overrides: &BTreeMap<&str, &ShardSpecOverride>,
    ) -> Vec<ShardSpec> {
        let settings = overrides.get(key.name.as_str()).copied();
        let base = ShardSpec {
            shard_key: key.key.clone(),
            shard_name_suffix: format!("-{}", key.name_in_objects),
            extra_args: context.arguments(&format!(" {} {}", self.flag, key.key)),
            shard_spec_overrides: settings
                .map(|settings| ShardSpecOverride { sub_sharding: None, ..settings.clone() }),
            ..ShardSpec::default()
        };
        let Some(count) = settings.and_then(|one| one.sub_sharding.as_ref()?.shards) else {
            return vec![base];
        };
        let sub_shard = |id: i64| ShardSpec {
            shards: count.to_string(),
            shard_id: id.to_string(),
            shard_name_suffix: format!("{}-{id}", base.shard_name_suffix),
            ..base.clone()
        };
        (0..count.min(super::MAX_SHARDS)).map(sub_shard).collect()
    }

    /// Findings about overrides.
    pub fn findings(&self, context: &ShardingContext<'_>, keys: &[ShardingKey]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (index, settings) in self.overrides.iter().enumerate() {
            let pointer = format!("/sharding/shardSpecOverrides/{index}");
            let name = &settings.shard.name;
            let object = self.object;
            match keys.iter().find(|key| key.name == *name) {
                None => {
                    let text = format!("the override has no effect: {object} `{name}` does not exist");
                    findings.push(Finding::warning(pointer.clone(), text));
                }
                Some(key) if key.is_disabled => {
                    let integration = context.integration;
                    let text = format!(
                        "the override has no effect: {object} `{name}` disables the integration `{integration}`"
                    );
                    findings.push(Finding::warning(pointer.clone(), text));
                }
                Some(_) if self.overrides[index + 1..].iter().any(|other| other.shard.name == *name) => {
                    let text =
                        format!("the override has no effect: a later one refers to {object} `{name}`, too");
                    findings.push(Finding::warning(pointer.clone(), text));
                }
                Some(_) => {}
            }
            if let Some(sub) = &settings.sub_sharding {
                let pointer = format!("{pointer}/subSharding");
                if sub.strategy != "static" {
                    let text = format!("`{}` is not a strategy of `subSharding`", sub.strategy);
                    findings.push(Finding::error(format!("{pointer}/strategy"), text).hint("write `static`"));
                }
                findings.extend(check_count(sub.shards.unwrap_or(0), &format!("{pointer}/shards")));
            }
        }
        findings
    }
}
