//! The strategy `per-openshift-cluster`: one shard for each cluster.

use super::per_key::{KeySharding, ShardingKey};
use super::{ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::commands::CLUSTER_NAME;
use crate::finding::Finding;
use crate::model::ShardSpecOverride;

/// One shard for each cluster for which the integration is not disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerOpenshiftCluster {
    /// The settings of single shards.
    pub overrides: Vec<ShardSpecOverride>,
}

impl PerOpenshiftCluster {
    fn sharding(&self) -> KeySharding<'_> {
        let strategy = "per-openshift-cluster";
        KeySharding { strategy, flag: CLUSTER_NAME, object: "cluster", overrides: &self.overrides }
    }
}

/// The clusters as keys.
fn keys(context: &ShardingContext<'_>) -> Vec<ShardingKey> {
    let key = |cluster: &crate::model::InventoryItem| ShardingKey {
        name: cluster.name.clone(),
        key: cluster.name.clone(),
        name_in_objects: cluster.name.clone(),
        is_disabled: cluster.disables(context.integration),
    };
    context.inventory.clusters.iter().map(key).collect()
}

impl ShardingStrategy for PerOpenshiftCluster {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        self.sharding().shards(context, &keys(context))
    }

    fn findings(&self, context: &ShardingContext<'_>) -> Vec<Finding> {
        self.sharding().findings(context, &keys(context))
    }
}
