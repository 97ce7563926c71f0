//! Guards, which prevent accidental removals: removal budgets (for each shard, each caller and the integration),
//! protected kinds and approvals.
//!
//! Guards check every plan, also in dry runs. Removals that they refuse are held; additions and changes proceed.
//! Guards are pure: they decide from the planned removals, the observed object counts, the approvals in the data and
//! the state of the removal ledger.

mod approval;
mod budget;
mod clearance;
mod consent;
mod judged;
mod keys;
mod ledger;
mod mismatch;
mod refusal;
mod settle;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::key::{Scope, ShardKey};
use crate::plan::{Change, ChangeKind, ObjectKey};
use clearance::ClearanceContext;

pub use crate::state::RemovalConsent;
pub use approval::{
    Approval, ApprovalFile, Approvals, ApprovedRemoval, DEFAULT_APPROVAL_DAYS, Date, ObjectRef, Validity,
};
pub use budget::{Budget, Budgets};
pub use clearance::{Clearance, SingleUse};
pub use judged::{
    JudgedChange, JudgedGroup, JudgedShard, JudgedStep, PlannedSteps, Proposal, ShardFacts, ShardPlans,
};
pub use keys::KeyLimits;
use ledger::RemovedObject;
pub use ledger::{
    HeldEntry, Ledger, LedgerEntry, LedgerError, LedgerSnapshot, LedgerState, MemoryLedger, ShardCount,
    StoreResult, UsedApproval,
};
pub use refusal::{MissingApproval, Refusal};

/// Kinds whose removal always needs an approval: namespaces, volumes and databases. The caller provides the kinds,
/// because they depend on the target systems.
#[derive(Clone, Debug, Default)]
pub struct ProtectedKinds(BTreeSet<String>);

impl ProtectedKinds {
    /// Creates a set of kinds, spelled as in [`ObjectKey::kind`].
    pub fn new<K: Into<String>>(kinds: impl IntoIterator<Item = K>) -> Self {
        Self(kinds.into_iter().map(Into::into).collect())
    }

    /// Whether a kind is protected.
    pub fn contains(&self, kind: &str) -> bool {
        self.0.contains(kind)
    }
}

/// A scope with at least this many objects needs an approval to be emptied. A smaller scope may be emptied
/// within the budgets, unless the kind is protected.
const MIN_PROTECTED_SCOPE: usize = 2;

/// If an integration manages at least this many objects, removing all of them needs an approval, even if each scope
/// has only one object.
const MIN_PROTECTED_INTEGRATION: usize = 5;

/// Judges the removals of one run.
///
/// ```
/// use qontract_runtime::guard::{Approvals, Budget, Budgets, LedgerState, Proposal};
/// use qontract_runtime::guard::{ProtectedKinds, RemovalGuard, ShardFacts};
/// use qontract_runtime::{Change, ChangeKind, ObjectKey, Plan, Scope, ShardKey};
/// let guard = RemovalGuard {
///     integration: "groups".to_owned(),
///     protected: ProtectedKinds::new(["Namespace"]),
///     budgets: Budgets { shard: Budget { count: 1, percent: 0 }, ..Budgets::default() },
///     approvals: Approvals::default(),
///     other_shards: Vec::new(),
///     now: jiff::Timestamp::UNIX_EPOCH,
/// };
/// let scope = Scope::new([("cluster", "c1")]);
/// let facts = ShardFacts { counts: [(scope.clone(), 40)].into(), ..ShardFacts::default() };
/// let held = |kinds: &[&str]| {
///     let mut plan = Plan::default();
///     for kind in kinds {
///         let (kind, name) = ((*kind).to_owned(), kind.to_lowercase());
///         let object = ObjectKey { scope: scope.clone(), kind, name };
///         plan.add_step(Change::new(ChangeKind::Remove, object, "remove"), ());
///     }
///     let proposals = [Proposal { key: ShardKey::default(), facts: facts.clone(), groups: plan.groups }];
///     let judged = guard.judge(&proposals, Ok(&LedgerState::default())).remove(0);
///     judged.steps().filter_map(|step| Some(step.refusal()?.why())).collect::<Vec<_>>()
/// };
/// assert_eq!(held(&["ConfigMap"]), [""; 0], "the removal is within the budget");
/// assert_eq!(held(&["Namespace"]), ["removing a Namespace always needs an approval"]);
/// let why = "2 removals exceed the limit of 1 for a shard without approval";
/// assert_eq!(held(&["ConfigMap", "Secret"]), [why, why]);
/// ```
#[derive(Clone, Debug)]
pub struct RemovalGuard {
    /// The integration whose removals are judged.
    pub integration: String,
    /// Kinds whose removal always needs an approval.
    pub protected: ProtectedKinds,
    /// The budgets for removals without approval.
    pub budgets: Budgets,
    /// The approvals in the data.
    pub approvals: Approvals,
    /// Shards that the data declares and that other processes reconcile.
    pub other_shards: Vec<String>,
    /// The start time of the run.
    pub now: Timestamp,
}

impl RemovalGuard {
    /// Decides for the steps of all shards together which steps are held. Without a ledger, every removal that counts
    /// against a budget is held.
    pub fn judge<'p, S: PlannedSteps>(
        &self,
        shards: &'p [S],
        ledger: Result<&LedgerState, &LedgerError>,
    ) -> Vec<JudgedShard<'p, S>> {
        let whole = CombinedFacts::of(shards);
        let by_itself = |shard: &'p S| {
            let context = ClearanceContext { whole: &whole, facts: shard.facts(), ledger: ledger.ok() };
            let clearance = |change: &Change| self.clearance(context, change);
            JudgedShard::new(shard, clearance, |changes| {
                if let Some(why) = &shard.facts().postponed {
                    return Some(Refusal::Blocked(why.clone()));
                }
                let refusal = self.judge_step(&whole, shard.facts(), changes, ledger);
                refusal.or_else(|| postponement(shard.facts(), changes))
            })
        };
        let mut judged: Vec<JudgedShard<'p, S>> = shards.iter().map(by_itself).collect();
        Self::hold_emptied_scopes(&whole, &mut judged);
        if let Ok(ledger) = ledger {
            let context = LimitContext { whole: &whole, ledger };
            self.hold_emptied_integration(&context, &mut judged);
            for shard in shards {
                self.enforce_budget(&context, BudgetLevel::Shard(shard.key(), shard.facts()), &mut judged);
            }
            for caller in whole.callers() {
                self.enforce_budget(&context, BudgetLevel::Caller(caller), &mut judged);
            }
            self.enforce_budget(&context, BudgetLevel::Integration, &mut judged);
        }
        for shard in &mut judged {
            shard.hold_successors();
        }
        judged
    }

    /// Holds the removals that could not be stored in the ledger, and the steps that depend on them: every removal
    /// that counts against a budget, and every removal that uses an approval for a single use.
    pub(crate) fn hold_unreserved<S: PlannedSteps>(judged: &mut [JudgedShard<'_, S>], error: &LedgerError) {
        for shard in judged {
            for step in shard.steps_mut() {
                if step.judged_changes().any(|one| one.clearance.needs_ledger()) {
                    step.hold(Refusal::unapproved(error.to_string()));
                }
            }
            shard.hold_successors();
        }
    }

    /// Whether a change is a removal or counts as one because of the fields that the object loses.
    pub fn removes(&self, change: &Change) -> bool {
        self.budgets.keys.removes(change)
    }

    fn judge_step(
        &self,
        whole: &CombinedFacts<'_>,
        facts: &ShardFacts,
        changes: &[JudgedChange<'_>],
        ledger: Result<&LedgerState, &LedgerError>,
    ) -> Option<Refusal> {
        let loss = || keys::describe_loss(changes.iter().map(|one| one.change), self.budgets.keys);
        let removals = changes.iter().filter(|one| *one.clearance != Clearance::NoRemoval);
        removals.into_iter().find_map(|JudgedChange { change, clearance }| {
            let scope = &change.object.scope;
            // An object that stays is declared, even if its scope was not read completely.
            let is_whole = change.kind.removes();
            if let Some(why) = whole.blocked.get(scope).filter(|_| is_whole) {
                return Some(Refusal::Blocked(why.clone()));
            }
            if change.kind == ChangeKind::Remove
                && scope.caller().is_some()
                && whole.declared.contains(&change.object.without_caller())
            {
                return Some(Refusal::Blocked("another caller declares it".to_owned()));
            }
            // No approval releases such a step.
            if let Some(why) = change.incarnation.as_ref().and_then(|one| facts.kept.get(one)) {
                return Some(Refusal::Blocked(why.clone()));
            }
            if is_whole && !whole.counts.contains_key(scope) {
                return Some(Refusal::Blocked(format!("`{scope}` was not read")));
            }
            if !clearance.is_counted() {
                return None;
            }
            if is_whole && self.protected.contains(&change.object.kind) {
                return Some(Refusal::unapproved(needs_approval(change)));
            }
            match ledger {
                Err(why) => Some(MissingApproval { since: None, loss: loss(), reason: why.to_string() }),
                Ok(ledger) => ledger.held(&ObjectRef::from(&change.object)).map(|held| MissingApproval {
                    since: Some(held.since),
                    loss: loss(),
                    reason: held.reason_for(change.kind),
                }),
            }
            .map(Refusal::Unapproved)
        })
    }

    /// Holds removals that would leave a scope empty, across all shards.
    fn hold_emptied_scopes<S: PlannedSteps>(whole: &CombinedFacts<'_>, judged: &mut [JudgedShard<'_, S>]) {
        let mut under_way: BTreeMap<&Scope, ScopeChanges> = BTreeMap::new();
        for (shard, of_shard) in judged.iter().enumerate() {
            for (group, of_group) in of_shard.groups.iter().enumerate() {
                for (step, of_step) in of_group.steps.iter().enumerate() {
                    for change in of_step.permitted().into_iter().flat_map(|step| &step.changes) {
                        let here = under_way.entry(&change.object.scope).or_default();
                        here.count(change, 1);
                        here.steps.push(StepIndex { shard, group, step });
                    }
                }
            }
        }
        for (scope, there) in &whole.counts {
            let Some(here) = under_way.get_mut(scope) else { continue };
            if *there < MIN_PROTECTED_SCOPE || here.removed < there + here.added {
                continue;
            }
            let why = format!("it would empty `{scope}`, which needs an approval");
            for StepIndex { shard, group, step } in std::mem::take(&mut here.steps) {
                let step = &mut judged[shard].groups[group].steps[step];
                let is_here = |change: &Change| change.object.scope == *scope && change.kind.removes();
                if step.refusal().is_some() || !step.counted_changes().any(is_here) {
                    continue;
                }
                step.hold(Refusal::unapproved(why.as_str()));
                // A held step has no effect in other scopes either.
                for change in step.changes() {
                    if let Some(other) = under_way.get_mut(&change.object.scope) {
                        other.count(change, -1);
                    }
                }
            }
        }
    }

    /// Holds removals without an approval if they would remove every object that the integration manages. The rule
    /// does not apply while another process has not counted its objects, because some of those objects may remain.
    fn hold_emptied_integration<S: PlannedSteps>(
        &self,
        context: &LimitContext<'_>,
        judged: &mut [JudgedShard<'_, S>],
    ) {
        let Some(total) = self.integration_objects(context) else { return };
        let (mut removed, mut added) = (BTreeSet::new(), 0);
        for change in judged.iter().flat_map(JudgedShard::permitted_changes) {
            match change.kind {
                ChangeKind::Add => added += 1,
                ChangeKind::Remove => {
                    removed.insert(&change.object);
                }
                ChangeKind::Change | ChangeKind::Replace => {}
            }
        }
        if total < MIN_PROTECTED_INTEGRATION || removed.len() < total + added {
            return;
        }
        let why = format!(
            "it would remove all {total} objects that `{}` manages, which needs an approval",
            self.integration
        );
        for step in judged.iter_mut().flat_map(JudgedShard::steps_mut) {
            if step.counted_changes().any(|change| change.kind.removes()) {
                step.hold(Refusal::unapproved(why.as_str()));
            }
        }
    }

    /// Number of objects that the integration manages, across all processes; `None` if another process has never
    /// counted the objects of its shards.
    fn integration_objects(&self, context: &LimitContext<'_>) -> Option<usize> {
        let counts = &context.ledger.counts;
        let others: Option<usize> =
            self.other_shards.iter().map(|shard| counts.get(shard).map(|count| count.total)).sum();
        Some(context.whole.counts.values().sum::<usize>() + others?)
    }

    /// Holds the removals at a level if they exceed its budget. A removal that was already reserved is counted only
    /// once.
    fn enforce_budget<S: PlannedSteps>(
        &self,
        context: &LimitContext<'_>,
        level: BudgetLevel<'_>,
        judged: &mut [JudgedShard<'_, S>],
    ) {
        let LimitContext { whole, ledger } = *context;
        let mut open = BTreeSet::new();
        for one in &*judged {
            let steps = one.steps().filter(|step| step.permitted().is_some());
            let changes = steps.flat_map(JudgedStep::counted_changes);
            let changes = changes.filter(|change| level.has(one.shard().key(), change));
            open.extend(
                changes.map(|change| (ObjectRef::from(&change.object), change.incarnation.as_deref())),
            );
        }
        let start = self.budgets.window_start(self.now);
        let reserved = ledger.reserved(start, |entry| level.has_entry(entry));
        let is_reserved = |object, incarnation| reserved.contains(&RemovedObject { object, incarnation });
        let added = open.iter().filter(|(object, which)| !is_reserved(object, *which)).count();
        let allowed = self.max_removals(whole, ledger, level);
        if added == 0 || reserved.len() + added <= allowed {
            return;
        }
        let reason = budget_exceeded(level, added, reserved.len(), allowed, self.budgets.window.as_hours());
        for one in judged {
            let shard = one.shard();
            for step in one.steps_mut().filter(|step| step.refusal().is_none()) {
                if step.counted_changes().any(|change| level.has(shard.key(), change)) {
                    let loss = keys::describe_loss(step.changes(), self.budgets.keys);
                    let reason = reason.clone();
                    step.hold(Refusal::Unapproved(MissingApproval { since: None, loss, reason }));
                }
            }
        }
    }

    /// Maximum number of removals at a level. Percentages refer to the objects that this process read plus the last
    /// counts of other processes; if the objects of a shard of another process were never counted, only the absolute
    /// limit applies.
    fn max_removals(&self, whole: &CombinedFacts<'_>, ledger: &LedgerState, level: BudgetLevel<'_>) -> usize {
        let others = |of: &dyn Fn(&ShardCount) -> usize| -> Option<usize> {
            self.other_shards.iter().map(|shard| ledger.counts.get(shard).map(of)).sum()
        };
        let share = |own: usize, others: Option<usize>| others.map_or(0, |others| own + others);
        match level {
            BudgetLevel::Shard(_, facts) => self.budgets.shard.max_removals(facts.counts.values().sum()),
            BudgetLevel::Caller(caller) => {
                let own = whole.counts.iter().filter(|(scope, _)| scope.caller() == Some(caller));
                let others = others(&|count| count.callers.get(caller).copied().unwrap_or_default());
                self.budgets.caller.max_removals(share(own.map(|(_, count)| count).sum(), others))
            }
            BudgetLevel::Integration => {
                let own = whole.counts.values().sum();
                self.budgets.integration.max_removals(share(own, others(&|count| count.total)))
            }
        }
    }
}

/// The inputs for enforcing budgets.
struct LimitContext<'a> {
    whole: &'a CombinedFacts<'a>,
    ledger: &'a LedgerState,
}

/// The level at which a budget applies: a shard, a caller or the integration.
#[derive(Clone, Copy)]
enum BudgetLevel<'a> {
    Shard(&'a ShardKey, &'a ShardFacts),
    Caller(&'a str),
    Integration,
}

impl BudgetLevel<'_> {
    fn has(self, shard: &ShardKey, change: &Change) -> bool {
        match self {
            BudgetLevel::Shard(key, _) => key == shard,
            BudgetLevel::Caller(caller) => change.object.scope.caller() == Some(caller),
            BudgetLevel::Integration => true,
        }
    }

    fn has_entry(self, entry: &LedgerEntry) -> bool {
        match self {
            BudgetLevel::Shard(key, _) => key.to_string() == entry.shard,
            BudgetLevel::Caller(caller) => entry.caller.as_deref() == Some(caller),
            BudgetLevel::Integration => true,
        }
    }
}

/// The planned changes in a scope.
#[derive(Default)]
struct ScopeChanges {
    removed: usize,
    added: usize,
    /// The steps that make these changes.
    steps: Vec<StepIndex>,
}

/// The position of a step among all steps that are judged.
#[derive(Clone, Copy)]
struct StepIndex {
    shard: usize,
    group: usize,
    step: usize,
}

impl ScopeChanges {
    /// Adds a change to the counts, or subtracts it.
    fn count(&mut self, change: &Change, times: isize) {
        let counted = match change.kind {
            ChangeKind::Remove => &mut self.removed,
            ChangeKind::Add => &mut self.added,
            ChangeKind::Change | ChangeKind::Replace => return,
        };
        *counted = counted.saturating_add_signed(times);
    }
}

/// The combined facts of all shards. They are combined because a scope may belong to several shards.
#[derive(Default)]
struct CombinedFacts<'a> {
    deletes: BTreeSet<ObjectKey>,
    blocked: BTreeMap<Scope, String>,
    counts: BTreeMap<Scope, usize>,
    declared: BTreeSet<ObjectKey>,
    /// The consent of each shard that has read the scope.
    consents: BTreeMap<&'a Scope, Vec<&'a RemovalConsent>>,
}

impl<'a> CombinedFacts<'a> {
    /// Whether every shard that has read the scope of a removal approves the removal as a whole. All of these shards
    /// must approve it, because an object in the scope may be managed by any of them.
    fn consents_to(&self, change: &Change, protected: &ProtectedKinds) -> bool {
        let mut consents = self.consents.get(&change.object.scope).into_iter().flatten();
        consents.all(|consent| consent.covers(change, protected))
    }

    fn callers(&self) -> BTreeSet<&str> {
        self.counts.keys().filter_map(Scope::caller).collect()
    }

    fn of<S: PlannedSteps>(shards: &'a [S]) -> Self {
        let mut whole = Self::default();
        for facts in shards.iter().map(PlannedSteps::facts) {
            let ShardFacts {
                deletes,
                blocked,
                counts,
                declared,
                approved: _,
                consent,
                plans: _,
                refused: _,
                kept: _,
                postponed,
            } = facts;
            if let Some(why) = postponed {
                whole.blocked.extend(counts.keys().map(|scope| (scope.clone(), why.clone())));
            }
            for scope in counts.keys().chain(blocked.keys()) {
                whole.consents.entry(scope).or_default().push(consent);
            }
            whole.declared.extend(declared.iter().cloned());
            whole.deletes.extend(deletes.iter().cloned());
            whole.blocked.extend(blocked.iter().map(|(scope, why)| (scope.clone(), why.clone())));
            for (scope, count) in counts {
                *whole.counts.entry(scope.clone()).or_default() += count;
            }
        }
        whole
    }
}

/// Postpones the removal of an object whose replacement may be a desired object that cannot be written; a write that
/// fails when the plan is applied has the same effect. This rule is applied after the refusals that need an approval,
/// so that a held removal stays held.
fn postponement(facts: &ShardFacts, changes: &[JudgedChange<'_>]) -> Option<Refusal> {
    let removals = changes.iter().map(|judged| judged.change).filter(|change| change.kind.removes());
    removals.filter(|change| !facts.deletes.contains(&change.object)).find_map(|change| {
        let may_replace = |refused: &&ObjectKey| refused.may_replace(&change.object);
        let ObjectKey { kind, name, .. } = facts.refused.iter().find(may_replace)?;
        Some(Refusal::Blocked(format!("{kind} `{name}`, which may replace it, cannot be written")))
    })
}

fn needs_approval(change: &Change) -> String {
    format!("removing a {} always needs an approval", change.object.kind)
}

fn budget_exceeded(
    level: BudgetLevel<'_>,
    added: usize,
    reserved: usize,
    allowed: usize,
    hours: i64,
) -> String {
    let before =
        if reserved > 0 { format!(" after {reserved} in the last {hours} h") } else { String::new() };
    let what = match level {
        BudgetLevel::Shard(..) => "a shard".to_owned(),
        BudgetLevel::Caller(caller) => format!("the caller `{caller}`"),
        BudgetLevel::Integration => "the integration".to_owned(),
    };
    let (removals, exceed) = if added == 1 { ("removal", "exceeds") } else { ("removals", "exceed") };
    format!("{added} {removals}{before} {exceed} the limit of {allowed} for {what} without approval")
}

#[cfg(test)]
mod tests;
