//! Guards: nothing is deleted by accident.
//!
//! Every plan passes them, in dry run too. What they refuse is held; adds and changes go on. They decide from values:
//! what would be removed, what is there, what the data approves, what was removed before.

mod approval;
mod budget;

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{Scope, ShardKey};
use crate::plan::{Change, ChangeKind, Thing};

pub use approval::{Approval, Approvals, Date};
pub use budget::{Budget, Budgets};

/// Kinds whose removal always needs an approval: namespaces, volumes, databases.
const PRECIOUS: [&str; 12] = [
    "Namespace",
    "Project",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "aws_db_instance",
    "aws_dynamodb_table",
    "aws_ebs_volume",
    "aws_efs_file_system",
    "aws_elasticache_cluster",
    "aws_elasticache_replication_group",
    "aws_rds_cluster",
    "aws_s3_bucket",
];

/// What guards know of a shard.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Things that the data itself wants gone.
    pub deletes: BTreeSet<Thing>,
    /// Scopes in which nothing is removed, and why.
    pub blocked: BTreeMap<Scope, String>,
    /// How many things are in each scope.
    pub counts: BTreeMap<Scope, usize>,
}

/// The steps of a shard, each as its changes.
#[derive(Clone, Debug)]
pub struct Proposal<'p> {
    /// The shard.
    pub key: &'p ShardKey,
    /// What is known of it.
    pub facts: &'p Facts,
    /// Its steps.
    pub steps: Vec<&'p [Change]>,
}

/// Why a step is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The scope is not known well enough.
    Blocked(String),
    /// An approval is needed.
    Unapproved(String),
}

impl Refusal {
    /// Why, in words.
    pub fn why(&self) -> &str {
        match self {
            Refusal::Blocked(why) | Refusal::Unapproved(why) => why,
        }
    }
}

/// What decides about removals in one run.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// The integration.
    pub integration: String,
    /// How much may go without being asked for by name.
    pub budgets: Budgets,
    /// What the data approves.
    pub approvals: Approvals,
    /// How many things were removed from each shard before, for the same bundle.
    pub spent: BTreeMap<String, usize>,
}

impl Judge {
    /// What is held, per shard and step.
    pub fn judge(&self, proposals: &[Proposal<'_>]) -> Vec<Vec<Option<Refusal>>> {
        let mut verdicts: Vec<Vec<Option<Refusal>>> = proposals.iter().map(|one| self.shard(one)).collect();
        // What is left of removals without approval counts against the budget of the run.
        let open = |verdicts: &[Vec<Option<Refusal>>]| -> usize {
            let pairs = proposals.iter().zip(verdicts);
            pairs.map(|(one, verdict)| self.removals(one, verdict).len()).sum()
        };
        let spent: usize = self.spent.values().sum();
        let objects: usize = proposals.iter().map(|one| one.facts.counts.values().sum::<usize>()).sum();
        let (open, allowed) = (open(&verdicts), self.budgets.run.of(objects));
        if open > 0 && open + spent > allowed {
            let why = exceeded("run", open, spent, allowed);
            for (one, verdict) in proposals.iter().zip(&mut verdicts) {
                for step in self.removals(one, verdict) {
                    verdict[step] = Some(Refusal::Unapproved(why.clone()));
                }
            }
        }
        verdicts
    }

    /// Whether a single change, made after `removed` others, is held.
    pub fn single(&self, change: &Change, removed: usize) -> Option<String> {
        if !change.kind.removes() || self.approvals.allow(&self.integration, &change.thing) {
            return None;
        }
        if precious(change) {
            return Some(needs_approval(change));
        }
        let (open, spent, allowed) = (removed + 1, self.spent.values().sum(), self.budgets.shard.of(0));
        (open + spent > allowed).then(|| exceeded("run", open, spent, allowed))
    }

    fn shard(&self, proposal: &Proposal<'_>) -> Vec<Option<Refusal>> {
        let Proposal { key, facts, steps } = proposal;
        let mut verdict: Vec<Option<Refusal>> = steps.iter().map(|step| self.step(facts, step)).collect();
        for scope in facts.counts.keys() {
            if !empties(scope, proposal, &verdict) {
                continue;
            }
            for step in self.removals(proposal, &verdict) {
                if steps[step].iter().any(|change| change.thing.scope == *scope) {
                    let why = format!("it would empty `{scope}`, which needs an approval");
                    verdict[step] = Some(Refusal::Unapproved(why));
                }
            }
        }
        let open = self.removals(proposal, &verdict);
        let spent = self.spent.get(&key.to_string()).copied().unwrap_or_default();
        let allowed = self.budgets.shard.of(facts.counts.values().sum());
        if !open.is_empty() && open.len() + spent > allowed {
            let why = exceeded("shard", open.len(), spent, allowed);
            for step in open {
                verdict[step] = Some(Refusal::Unapproved(why.clone()));
            }
        }
        verdict
    }

    fn step(&self, facts: &Facts, changes: &[Change]) -> Option<Refusal> {
        changes.iter().filter(|change| change.kind.removes()).find_map(|change| {
            if let Some(why) = facts.blocked.get(&change.thing.scope) {
                return Some(Refusal::Blocked(why.clone()));
            }
            (precious(change) && !self.approved(facts, change))
                .then(|| Refusal::Unapproved(needs_approval(change)))
        })
    }

    /// Steps that remove something without an approval and are not held yet.
    fn removals(&self, proposal: &Proposal<'_>, verdict: &[Option<Refusal>]) -> Vec<usize> {
        let open = |changes: &[Change]| {
            changes.iter().any(|change| change.kind.removes() && !self.approved(proposal.facts, change))
        };
        let steps = proposal.steps.iter().zip(verdict).enumerate();
        steps.filter(|(_, (step, held))| held.is_none() && open(step)).map(|(index, _)| index).collect()
    }

    fn approved(&self, facts: &Facts, change: &Change) -> bool {
        facts.deletes.contains(&change.thing) || self.approvals.allow(&self.integration, &change.thing)
    }
}

/// Whether nothing would be left in a scope.
fn empties(scope: &Scope, proposal: &Proposal<'_>, verdict: &[Option<Refusal>]) -> bool {
    let going = proposal.steps.iter().zip(verdict).filter(|(_, held)| held.is_none());
    let (mut removed, mut added) = (0, 0);
    for change in going.flat_map(|(step, _)| step.iter()).filter(|change| change.thing.scope == *scope) {
        match change.kind {
            ChangeKind::Remove => removed += 1,
            ChangeKind::Add => added += 1,
            ChangeKind::Change | ChangeKind::Replace => {}
        }
    }
    let there = proposal.facts.counts.get(scope).copied().unwrap_or_default();
    removed > 0 && removed >= there + added
}

fn precious(change: &Change) -> bool {
    PRECIOUS.contains(&change.thing.kind.as_str())
}

fn needs_approval(change: &Change) -> String {
    format!("removing a {} always needs an approval", change.thing.kind)
}

fn exceeded(what: &str, open: usize, spent: usize, allowed: usize) -> String {
    let before = if spent > 0 { format!(" after {spent} before") } else { String::new() };
    format!("{open} removals{before} are more than the {allowed} that a {what} may make without approval")
}

#[cfg(test)]
mod tests;
