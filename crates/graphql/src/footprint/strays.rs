//! Datafiles that some reference takes for what they are not.

use std::collections::BTreeSet;

/// Paths of datafiles that are referred to as something else than their schema says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    paths: BTreeSet<Box<str>>,
}

impl Strays {
    /// Whether the datafile at `path` is one.
    pub fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Their paths, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &**path)
    }

    pub(crate) fn insert(&mut self, path: &str) {
        self.paths.insert(path.into());
    }
}
