//! Datafiles that a reference reads as a type other than that of their schema.

use std::collections::BTreeSet;

/// Paths of datafiles that are the target of a reference whose type differs from the type of their schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MistypedTargets {
    paths: BTreeSet<Box<str>>,
}

impl MistypedTargets {
    /// Whether the datafile at `path` is a mistyped target.
    pub fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The paths, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &**path)
    }

    pub(crate) fn insert(&mut self, path: &str) {
        self.paths.insert(path.into());
    }
}
