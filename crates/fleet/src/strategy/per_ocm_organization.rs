//! The strategy `per-ocm-organization`: one shard for each OCM organization.

use super::per_key::{KeySharding, ShardingKey};
use super::{ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::commands::ORG_ID;
use crate::finding::Finding;
use crate::model::{OcmOrganization, ShardSpecOverride};

/// One shard for each OCM organization. Organizations do not disable integrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerOcmOrganization {
    /// The settings of single shards. They refer to organizations by name, although the key is the id.
    pub overrides: Vec<ShardSpecOverride>,
}

impl PerOcmOrganization {
    fn sharding(&self) -> KeySharding<'_> {
        let strategy = "per-ocm-organization";
        KeySharding { strategy, flag: ORG_ID, object: "OCM organization", overrides: &self.overrides }
    }
}

/// The organizations as keys. Ids contain upper-case letters, which names of objects cannot have.
fn keys(context: &ShardingContext<'_>) -> Vec<ShardingKey> {
    let key = |organization: &OcmOrganization| ShardingKey {
        name: organization.name.clone(),
        key: organization.org_id.clone(),
        name_in_objects: organization.org_id.to_lowercase(),
        is_disabled: false,
    };
    context.inventory.ocm_organizations.iter().map(key).collect()
}

impl ShardingStrategy for PerOcmOrganization {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        self.sharding().shards(context, &keys(context))
    }

    fn findings(&self, context: &ShardingContext<'_>) -> Vec<Finding> {
        self.sharding().findings(context, &keys(context))
    }
}
