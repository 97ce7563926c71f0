//! Decides whether a change is approved, independently of the other changes. Pure.

use super::{Approvals, CombinedFacts, LedgerState, ObjectRef, RemovalGuard, ShardFacts, UsedApproval};
use crate::guard::approval::Grant;
use crate::plan::{Change, PlanDigest};

/// Whether a change is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// The change removes nothing.
    NoRemoval,
    /// The change is a removal without approval, which counts against the budgets.
    Counted {
        /// The reason why an approval of the object does not apply.
        mismatch: Option<String>,
    },
    /// The removal is approved by name: by `delete: true`, by an approval, or by an observation of the
    /// integration.
    Approved,
    /// The declaration of the shard approves the removal as a whole.
    Consented,
    /// An approval for a single use approves the removal. The use is stored in the ledger together with the
    /// reservations, before the removal is applied.
    SingleUse(SingleUse),
}

/// The use of an approval for a single use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleUse {
    /// The path of the approval in the data.
    pub approval: String,
    /// The last day of its validity.
    pub expiration: String,
    /// The plan to which the approval is bound.
    pub plan: Option<PlanDigest>,
}

impl Clearance {
    /// Whether the change counts against the budgets.
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Counted { .. })
    }

    /// The reason why an approval of the object does not apply.
    pub fn mismatch(&self) -> Option<&str> {
        match self {
            Self::Counted { mismatch } => mismatch.as_deref(),
            Self::NoRemoval | Self::Approved | Self::Consented | Self::SingleUse(_) => None,
        }
    }

    /// Whether the change may be applied only after the ledger has stored it.
    pub(super) fn needs_ledger(&self) -> bool {
        match self {
            Self::Counted { .. } | Self::SingleUse(_) => true,
            Self::NoRemoval | Self::Approved | Self::Consented => false,
        }
    }
}

/// The facts on which the clearance of a change depends.
#[derive(Clone, Copy)]
pub(super) struct ClearanceContext<'a> {
    /// The facts of all shards.
    pub whole: &'a CombinedFacts<'a>,
    /// The facts of the shard that makes the change.
    pub facts: &'a ShardFacts,
    /// The ledger; `None` if it cannot be used. Without a ledger, approvals for a single use do not apply.
    pub ledger: Option<&'a LedgerState>,
}

impl RemovalGuard {
    /// The clearance of a change.
    pub(super) fn clearance(&self, context: ClearanceContext<'_>, change: &Change) -> Clearance {
        let ClearanceContext { whole, facts, ledger } = context;
        if !self.removes(change) {
            return Clearance::NoRemoval;
        }
        if whole.deletes.contains(&change.object) || facts.approved.contains(&change.object) {
            return Clearance::Approved;
        }
        if facts.consent.covers(change, &self.protected) && whole.consents_to(change, &self.protected) {
            return Clearance::Consented;
        }
        let mut mismatch = None;
        let mut single_use = None;
        for grant in self.approvals.grants(&self.integration, &ObjectRef::from(&change.object)) {
            match grant.applies(facts, change, ledger) {
                Ok(None) => return Clearance::Approved,
                Ok(Some(found)) => single_use = single_use.or(Some(found)),
                Err(why) => mismatch = mismatch.or(Some(why)),
            }
        }
        single_use.map_or(Clearance::Counted { mismatch }, Clearance::SingleUse)
    }
}

impl Grant {
    /// Decides whether the approval applies to a change of its object: without limits, for a single use, or not at
    /// all (with the reason).
    fn applies(
        &self,
        facts: &ShardFacts,
        change: &Change,
        ledger: Option<&LedgerState>,
    ) -> Result<Option<SingleUse>, String> {
        if let Some(plan) = self.plan.as_ref().filter(|plan| !facts.plans.allow(plan, change)) {
            let current = facts.plans.current().map(|plan| format!("; the current one is {plan}"));
            let current = current.unwrap_or_default();
            return Err(format!("approval `{}` is for another plan ({plan}){current}", self.file()));
        }
        if !self.once {
            return Ok(None);
        }
        let Some(ledger) = ledger else {
            let text = "is for a single use, which needs the removal ledger";
            return Err(format!("approval `{}` {text}", self.file()));
        };
        if let Some(UsedApproval { run, .. }) = ledger.use_of(self, change) {
            let text = format!("approval `{}` is for a single use, and run {run} used it", self.file());
            return Err(format!("{text}; approve it again in a new file, with another expiration"));
        }
        let Self { path, expiration, plan, once: _ } = self.clone();
        Ok(Some(SingleUse { approval: path, expiration, plan }))
    }
}

impl LedgerState {
    /// The earlier use of an approval that prevents its use for this change, if any. The removal of the same object
    /// may be repeated until a run observes that the object no longer exists, because a run may have been killed
    /// after it stored the use.
    fn use_of(&self, grant: &Grant, change: &Change) -> Option<&UsedApproval> {
        let object = ObjectRef::from(&change.object);
        self.used_approvals.iter().find(|used| {
            used.object == object
                && used.is_of(grant)
                && (used.is_gone || used.incarnation != change.incarnation)
        })
    }
}

impl UsedApproval {
    /// Whether this is a use of the approval `grant`. An approval that was renamed without a new date or plan counts
    /// as the same approval.
    fn is_of(&self, grant: &Grant) -> bool {
        let is_same_file = self.approval == grant.path || self.approval.is_empty() || grant.path.is_empty();
        is_same_file || (self.expiration == grant.expiration && self.plan == grant.plan)
    }

    /// Whether the use must stay in the ledger because its approval is still in the data or has not expired.
    pub(super) fn is_relevant(&self, approvals: &Approvals) -> bool {
        approvals.contains_file(&self.approval) || approvals.is_current(&self.expiration)
    }
}
