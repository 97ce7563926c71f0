//! Compares the removals of shards that exist only in base with the objects that the shards of head observe.
//!
//! If the data renames a target, such as a cluster, and changes its address at the same time, the old shard and the
//! new shard read the same objects under two target names. An object has one incarnation (such as a uid) in both
//! shards, so a removal by the old shard would also remove the object of the new shard.
//!
//! **Invariant:** an object that a shard of head observes is not removed by a shard that exists only in base
//! (`an_object_that_a_current_shard_observes_is_kept`). Until a new shard is observed completely, removals from the
//! shards that it may rename are postponed. An incomplete observation is a fault, so the run ends as failed, and the
//! next run compares again.

use std::collections::{BTreeMap, BTreeSet};

use super::planned_shard::PlannedShard;
use super::selection::ShardSelection;
use crate::key::ShardKey;
use crate::plan::ChangeKind;

/// The objects that a shard observed in one pass.
#[derive(Debug, Default)]
pub struct ObservedObjects {
    /// The incarnations of the observed objects.
    pub incarnations: BTreeSet<String>,
    /// Whether every scope of the shard was read.
    pub is_complete: bool,
}

/// The objects that the shards of head have observed in the passes of a run, for comparison with removals
/// from shards that exist only in base.
#[derive(Debug, Default)]
pub struct TargetComparison {
    /// Shards that exist only in base. If the set is empty, nothing is compared.
    orphans: BTreeSet<ShardKey>,
    /// Shards that exist only in head and that were not observed completely so far.
    unobserved: BTreeSet<ShardKey>,
    /// Maps each incarnation to the shard of head that observed it.
    observed: BTreeMap<String, ShardKey>,
}

impl TargetComparison {
    /// Creates the comparison before the first pass.
    pub fn new(work: &ShardSelection) -> Self {
        let ShardSelection { base, keys, orphans, .. } = work;
        let Some(base) = base.as_ref().filter(|_| !orphans.is_empty()) else { return Self::default() };
        let known: BTreeSet<&ShardKey> = base.keys().into_iter().collect();
        let unobserved = keys.iter().filter(|key| !known.contains(key)).cloned().collect();
        Self {
            orphans: orphans.iter().map(|orphan| orphan.key.clone()).collect(),
            unobserved,
            observed: BTreeMap::new(),
        }
    }

    /// Records the objects that the shards of a pass observed and marks the objects that must not be removed.
    pub fn mark_kept(&mut self, planned: &mut [PlannedShard]) {
        if self.orphans.is_empty() {
            return;
        }
        for shard in planned.iter().filter(|shard| !self.orphans.contains(&shard.key)) {
            let ObservedObjects { incarnations, is_complete } = &shard.observed;
            self.observed.extend(incarnations.iter().map(|one| (one.clone(), shard.key.clone())));
            if *is_complete {
                self.unobserved.remove(&shard.key);
            }
        }
        for shard in planned.iter_mut().filter(|shard| self.orphans.contains(&shard.key)) {
            let changes =
                shard.plan.groups.iter().flat_map(|group| &group.steps).flat_map(|step| &step.changes);
            let removals = changes.filter(|change| change.kind == ChangeKind::Remove);
            let kept = removals.filter_map(|change| {
                let incarnation = change.incarnation.as_ref()?;
                Some((incarnation.clone(), self.reason_to_keep(&shard.key, incarnation)?))
            });
            shard.facts.kept = kept.collect();
        }
    }

    /// The reason why a shard that exists only in base does not remove an object.
    fn reason_to_keep(&self, orphan: &ShardKey, incarnation: &str) -> Option<String> {
        if let Some(shard) = self.observed.get(incarnation) {
            return Some(format!(
                "kept: the shard `{shard}` observes the same object (the target was renamed)"
            ));
        }
        let shard = self.unobserved.iter().find(|shard| may_rename(orphan, shard))?;
        Some(format!(
            "postponed: the new shard `{shard}` could not be read; it may be the same target, renamed"
        ))
    }
}

/// Whether a change to the data may rename one shard to the other: their keys differ in only one dimension.
fn may_rename(old: &ShardKey, new: &ShardKey) -> bool {
    old.parts().count() == new.parts().count()
        && old.parts().zip(new.parts()).filter(|(old, new)| old != new).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_changes_one_dimension() {
        let check = |old: &[(&str, &str)], new: &[(&str, &str)], expect: bool| {
            let [old, new] = [old, new].map(|parts| ShardKey::new(parts.iter().copied()));
            assert_eq!(may_rename(&old, &new), expect, "{old} {new}");
        };
        check(&[("cluster", "a")], &[("cluster", "b")], true);
        check(&[("cluster", "a"), ("namespace", "n")], &[("cluster", "b"), ("namespace", "n")], true);
        check(&[("cluster", "a"), ("namespace", "n")], &[("cluster", "b"), ("namespace", "m")], false);
        check(&[("cluster", "a"), ("namespace", "n")], &[("cluster", "b")], false);
    }
}
