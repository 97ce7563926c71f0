//! Shards that exist only in base: determines whether they were removed from the data or may be missing because of an
//! error in head.
//!
//! **Invariant:** an error is not a removal. Nothing is removed from a shard that exists only in base while an error
//! in head may concern the shard (`nothing_is_removed_because_of_an_error_in_the_file_that_declared_a_shard`).

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::type_erasure::AnyDeclaredState;

/// A shard that exists only in base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanedShard {
    /// The key of the shard.
    pub key: ShardKey,
    /// The error in head that may concern the shard, if any. If it is set, the removals of the shard are postponed.
    pub suspect: Option<SuspectError>,
}

/// An error in head that may be the reason why a shard is missing in head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspectError {
    /// The error in head.
    pub fault: Fault,
    /// Whether the run reports the error for the shard of head to which it belongs. The run does not report the error
    /// if the flags or the slot of the process exclude that shard.
    pub is_reported: bool,
}

impl SuspectError {
    /// The reason why the removals of a shard are postponed.
    pub fn reason(&self) -> String {
        let Fault { text, places, .. } = &self.fault;
        let file = places.first().map(|place| format!(" in `{}`", place.path)).unwrap_or_default();
        format!("an error{file} may be the reason why the data no longer declares it: {text}")
    }
}

/// The errors of head's declarations that base does not have.
pub struct HeadErrors<'a> {
    base: Option<&'a dyn AnyDeclaredState>,
    /// The files of all shards in base, including the invalid ones.
    base_files: BTreeSet<&'a str>,
    errors: Vec<SuspectError>,
}

impl<'a> HeadErrors<'a> {
    /// Collects the errors in `head`. `is_reported` returns whether the run reports the errors of a shard.
    pub fn new(
        head: &dyn AnyDeclaredState,
        base: Option<&'a dyn AnyDeclaredState>,
        is_reported: &dyn Fn(&ShardKey) -> bool,
    ) -> Self {
        // An error that base also has did not prevent base from declaring the shard.
        let is_old = |key: &ShardKey, fault: &Fault| {
            let known = base.and_then(|base| base.faults().get(key));
            !fault.places.is_empty() && known.is_some_and(|known| known.contains(fault))
        };
        let mut errors = Vec::new();
        for (key, faults) in head.faults() {
            for fault in faults.iter().filter(|fault| !is_old(key, fault)) {
                errors.push(SuspectError { fault: fault.clone(), is_reported: is_reported(key) });
            }
        }
        let base_files =
            if errors.is_empty() { BTreeSet::new() } else { base.map_or_else(BTreeSet::new, all_files) };
        Self { base, base_files, errors }
    }

    /// The shard, with the first error that may concern it.
    pub fn orphan(&self, key: ShardKey) -> OrphanedShard {
        let files = self.base.map(|base| base.files(&key)).unwrap_or_default();
        let suspect = self.errors.iter().find(|error| self.may_concern(&error.fault, &files)).cloned();
        OrphanedShard { key, suspect }
    }

    /// Whether an error may concern a shard that these files of base declare. It may if it is in one of these files,
    /// in a file that declares nothing in base (the shard may have moved to it), or at an unknown location.
    fn may_concern(&self, error: &Fault, files: &BTreeSet<&str>) -> bool {
        let is_suspect = |file: &str| files.contains(file) || !self.base_files.contains(file);
        files.is_empty()
            || error.places.is_empty()
            || error.places.iter().any(|place| is_suspect(&place.path))
    }
}

/// The files of all shards, including the invalid ones.
fn all_files(declared: &dyn AnyDeclaredState) -> BTreeSet<&str> {
    let faults = declared.faults().values().flatten().flat_map(|fault| &fault.places);
    let mut files: BTreeSet<&str> = faults.map(|place| &*place.path).collect();
    files.extend(declared.keys().into_iter().flat_map(|key| declared.files(key)));
    files
}
