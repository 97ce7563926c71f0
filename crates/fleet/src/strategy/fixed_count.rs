//! The strategy `static`: a fixed number of shards, which divide the work by hash.

use super::{ShardSpec, ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::finding::Finding;

/// Maximum number of shards of one deployment.
pub const MAX_SHARDS: i64 = 10_000;

/// A fixed number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedCount {
    /// Number of shards.
    pub shards: i64,
}

impl ShardingStrategy for FixedCount {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        let count = self.shards.clamp(0, MAX_SHARDS);
        let suffix = |id: i64| if count == 1 { String::new() } else { format!("-{id}") };
        let shard = |id: i64| ShardSpec {
            shards: count.to_string(),
            shard_id: id.to_string(),
            shard_name_suffix: suffix(id),
            extra_args: context.arguments(""),
            ..ShardSpec::default()
        };
        Ok(Shards::Fixed((0..count).map(shard).collect()))
    }

    fn findings(&self, _: &ShardingContext<'_>) -> Vec<Finding> {
        check_count(self.shards, "/sharding/shards").into_iter().collect()
    }
}

/// Checks a number of shards.
pub(super) fn check_count(count: i64, pointer: &str) -> Option<Finding> {
    let is_valid = (1..=MAX_SHARDS).contains(&count);
    let text = || format!("`shards` is {count}, but must be from 1 to {MAX_SHARDS}");
    (!is_valid).then(|| {
        Finding::error(pointer, text()).hint("to stop an integration, remove its entry from `managed`")
    })
}
