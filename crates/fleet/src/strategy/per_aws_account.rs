//! The strategy `per-aws-account`: one shard for each AWS account.

use super::per_key::{KeySharding, ShardingKey};
use super::{ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::commands::ACCOUNT_NAME;
use crate::finding::Finding;
use crate::model::ShardSpecOverride;

/// One shard for each AWS account for which the integration is not disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerAwsAccount {
    /// The settings of single shards.
    pub overrides: Vec<ShardSpecOverride>,
}

impl PerAwsAccount {
    fn sharding(&self) -> KeySharding<'_> {
        let strategy = "per-aws-account";
        KeySharding { strategy, flag: ACCOUNT_NAME, object: "AWS account", overrides: &self.overrides }
    }
}

/// The accounts as keys.
fn keys(context: &ShardingContext<'_>) -> Vec<ShardingKey> {
    let key = |account: &crate::model::InventoryItem| ShardingKey {
        name: account.name.clone(),
        key: account.name.clone(),
        name_in_objects: account.name.clone(),
        is_disabled: account.disables(context.integration),
    };
    context.inventory.aws_accounts.iter().map(key).collect()
}

impl ShardingStrategy for PerAwsAccount {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        self.sharding().shards(context, &keys(context))
    }

    fn findings(&self, context: &ShardingContext<'_>) -> Vec<Finding> {
        self.sharding().findings(context, &keys(context))
    }
}
