//! Guards: nothing is deleted by accident.
//!
//! Every plan passes them, in dry run too. What they refuse is held; adds and changes go on. They decide from values:
//! what would be removed, what is there, what the data approves, what was removed before.

mod approval;
mod budget;
mod ledger;

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{Scope, ShardKey};
use crate::plan::{Change, ChangeKind, Thing};

pub use approval::{Approval, Approvals, Date};
pub use budget::{Budget, Budgets};
pub use ledger::{Ledger, NoLedger, Removed};

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
    /// How many of them each group has, in order.
    pub groups: Vec<usize>,
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
    /// How many things were removed from each shard before, for the same bundle, and in earlier rounds.
    pub spent: Removed,
    /// Why that is not known, if it is not: nothing goes without an approval then.
    pub unknown: Option<String>,
}

impl Judge {
    /// What is held, per shard and step.
    pub fn judge(&self, proposals: &[Proposal<'_>]) -> Vec<Vec<Option<Refusal>>> {
        let whole = Whole::of(proposals);
        let mut verdicts: Vec<Vec<Option<Refusal>>> = proposals
            .iter()
            .map(|one| one.steps.iter().map(|step| self.step(&whole, step)).collect())
            .collect();
        self.emptied(proposals, &whole, &mut verdicts);
        for (one, verdict) in proposals.iter().zip(&mut verdicts) {
            let open = self.open(&whole, one, verdict);
            let spent = self.spent.get(&one.key.to_string()).copied().unwrap_or_default();
            let allowed = self.budgets.shard.of(one.facts.counts.values().sum());
            if open > 0 && open + spent > allowed {
                self.hold(&whole, one, verdict, &exceeded("shard", open, spent, allowed));
            }
        }
        let open: usize =
            proposals.iter().zip(&verdicts).map(|(one, verdict)| self.open(&whole, one, verdict)).sum();
        let (spent, allowed) = (self.spent.values().sum(), self.budgets.run.of(whole.counts.values().sum()));
        if open > 0 && open + spent > allowed {
            for (one, verdict) in proposals.iter().zip(&mut verdicts) {
                self.hold(&whole, one, verdict, &exceeded("run", open, spent, allowed));
            }
        }
        for (one, verdict) in proposals.iter().zip(&mut verdicts) {
            follow(one, verdict);
        }
        verdicts
    }

    /// Whether a single change, made after `removed` others without approval, is held.
    pub fn single(&self, change: &Change, removed: usize) -> Option<String> {
        if !change.kind.removes() || self.approvals.allow(&self.integration, &change.thing) {
            return None;
        }
        if let Some(why) = &self.unknown {
            return Some(why.clone());
        }
        if precious(change) {
            return Some(needs_approval(change));
        }
        let (open, spent, allowed) = (removed + 1, self.spent.values().sum(), self.budgets.shard.of(0));
        (open + spent > allowed).then(|| exceeded("run", open, spent, allowed))
    }

    /// Whether a change counts against the budgets.
    pub fn counts(&self, deletes: &BTreeSet<Thing>, change: &Change) -> bool {
        change.kind.removes()
            && !deletes.contains(&change.thing)
            && !self.approvals.allow(&self.integration, &change.thing)
    }

    fn step(&self, whole: &Whole, changes: &[Change]) -> Option<Refusal> {
        changes.iter().filter(|change| change.kind.removes()).find_map(|change| {
            let scope = &change.thing.scope;
            if let Some(why) = whole.blocked.get(scope) {
                return Some(Refusal::Blocked(why.clone()));
            }
            if !whole.counts.contains_key(scope) {
                return Some(Refusal::Blocked(format!("`{scope}` was not read")));
            }
            if !self.counts(&whole.deletes, change) {
                return None;
            }
            if let Some(why) = &self.unknown {
                return Some(Refusal::Unapproved(why.clone()));
            }
            precious(change).then(|| Refusal::Unapproved(needs_approval(change)))
        })
    }

    /// Holds what would leave a scope empty, whichever shards it is in.
    fn emptied(&self, proposals: &[Proposal<'_>], whole: &Whole, verdicts: &mut [Vec<Option<Refusal>>]) {
        let mut under_way: BTreeMap<&Scope, UnderWay> = BTreeMap::new();
        for (number, (one, verdict)) in proposals.iter().zip(&*verdicts).enumerate() {
            for (nth, (step, _)) in
                one.steps.iter().zip(verdict).enumerate().filter(|(_, step)| step.1.is_none())
            {
                for change in *step {
                    let here = under_way.entry(&change.thing.scope).or_default();
                    here.count(change, 1);
                    here.steps.push((number, nth));
                }
            }
        }
        for (scope, there) in &whole.counts {
            let Some(here) = under_way.get_mut(scope) else { continue };
            if here.removed == 0 || here.removed < there + here.added {
                continue;
            }
            let why = format!("it would empty `{scope}`, which needs an approval");
            for (number, nth) in std::mem::take(&mut here.steps) {
                let (step, held) = (proposals[number].steps[nth], &mut verdicts[number][nth]);
                let is_here =
                    |change: &Change| change.thing.scope == *scope && self.counts(&whole.deletes, change);
                if held.is_some() || !step.iter().any(is_here) {
                    continue;
                }
                *held = Some(Refusal::Unapproved(why.clone()));
                // What is held neither comes nor goes, in other scopes neither.
                for change in step {
                    if let Some(other) = under_way.get_mut(&change.thing.scope) {
                        other.count(change, -1);
                    }
                }
            }
        }
    }

    /// How many things would go without an approval.
    fn open(&self, whole: &Whole, proposal: &Proposal<'_>, verdict: &[Option<Refusal>]) -> usize {
        let steps = proposal.steps.iter().zip(verdict).filter(|(_, held)| held.is_none());
        steps.flat_map(|(step, _)| step.iter()).filter(|change| self.counts(&whole.deletes, change)).count()
    }

    /// Holds every step that removes something without an approval.
    fn hold(&self, whole: &Whole, proposal: &Proposal<'_>, verdict: &mut [Option<Refusal>], why: &str) {
        for (step, held) in proposal.steps.iter().zip(verdict) {
            if held.is_none() && step.iter().any(|change| self.counts(&whole.deletes, change)) {
                *held = Some(Refusal::Unapproved(why.to_owned()));
            }
        }
    }
}

/// What is under way in a scope.
#[derive(Default)]
struct UnderWay {
    removed: usize,
    added: usize,
    /// By which steps: of which proposal, and which of its steps.
    steps: Vec<(usize, usize)>,
}

impl UnderWay {
    /// Counts a change, or takes it back.
    fn count(&mut self, change: &Change, times: isize) {
        let counted = match change.kind {
            ChangeKind::Remove => &mut self.removed,
            ChangeKind::Add => &mut self.added,
            ChangeKind::Change | ChangeKind::Replace => return,
        };
        *counted = counted.saturating_add_signed(times);
    }
}

/// What is known of all shards together: a scope may belong to several of them.
#[derive(Default)]
struct Whole {
    deletes: BTreeSet<Thing>,
    blocked: BTreeMap<Scope, String>,
    counts: BTreeMap<Scope, usize>,
}

impl Whole {
    fn of(proposals: &[Proposal<'_>]) -> Self {
        let mut whole = Self::default();
        for Facts { deletes, blocked, counts } in proposals.iter().map(|one| one.facts) {
            whole.deletes.extend(deletes.iter().cloned());
            whole.blocked.extend(blocked.iter().map(|(scope, why)| (scope.clone(), why.clone())));
            for (scope, count) in counts {
                *whole.counts.entry(scope.clone()).or_default() += count;
            }
        }
        whole
    }
}

/// What follows a held step in its group is held with it: it was planned to come after.
fn follow(proposal: &Proposal<'_>, verdict: &mut [Option<Refusal>]) {
    let mut rest = verdict;
    for length in &proposal.groups {
        let (group, others) = rest.split_at_mut((*length).min(rest.len()));
        if let Some(first) = group.iter().position(Option::is_some) {
            for held in group[first..].iter_mut().filter(|held| held.is_none()) {
                *held = Some(Refusal::Blocked("it comes after a step that is held".to_owned()));
            }
        }
        rest = others;
    }
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
