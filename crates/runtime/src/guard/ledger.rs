//! What was removed before: budgets are summed over all runs on one bundle.

use std::collections::BTreeMap;
use std::fmt;

/// How many things were removed without an approval, per shard.
pub type Removed = BTreeMap<String, usize>;

/// Where removals are written down. Removals that cannot be are not made.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// What an integration removed before, for a bundle.
    fn spent(&self, integration: &str, sha: &str) -> Result<Removed, String>;

    /// Writes down what a run is about to remove, in all of its rounds so far, before it does.
    fn spend(&self, integration: &str, sha: &str, run: &str, removed: &Removed) -> Result<(), String>;
}

/// No ledger: every run stands for itself.
#[derive(Clone, Copy, Debug)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn spent(&self, _: &str, _: &str) -> Result<Removed, String> {
        Ok(Removed::new())
    }

    fn spend(&self, _: &str, _: &str, _: &str, _: &Removed) -> Result<(), String> {
        Ok(())
    }
}
