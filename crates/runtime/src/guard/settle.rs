//! Computes the next state of the ledger after a plan was judged: records the allowed removals as reserved and the
//! refused removals as held, and stores the number of observed objects.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Clearance, HeldEntry, JudgedChange, JudgedShard, JudgedStep, LedgerEntry, LedgerState, MissingApproval,
    ObjectRef, PlannedSteps, Refusal, RemovalGuard, ShardCount, ShardFacts, SingleUse, UsedApproval,
};
use crate::plan::ChangeKind;

/// The reason why a run holds an object.
struct HoldReason<'a> {
    why: &'a str,
    change: ChangeKind,
}

impl RemovalGuard {
    /// The state of the ledger after these shards were judged. The result equals `before` if nothing has to be
    /// stored.
    pub fn settle<S: PlannedSteps>(
        &self,
        judged: &[JudgedShard<'_, S>],
        run: &str,
        before: &LedgerState,
    ) -> LedgerState {
        let mut after = before.clone();
        let mut reserved = Vec::new();
        for one in judged {
            let (shard, facts) = (one.shard().key().to_string(), one.shard().facts());
            let mut held: BTreeMap<ObjectRef, HoldReason<'_>> = BTreeMap::new();
            for step in one.steps() {
                for change in step.counted_changes() {
                    let object = ObjectRef::from(&change.object);
                    match step.refusal() {
                        None => {
                            let caller = change.object.scope.caller().map(str::to_owned);
                            let (run, shard) = (run.to_owned(), shard.clone());
                            let incarnation = change.incarnation.clone();
                            reserved.push(LedgerEntry {
                                at: self.now,
                                run,
                                shard,
                                caller,
                                object,
                                incarnation,
                            });
                        }
                        Some(Refusal::Unapproved(MissingApproval { reason, .. })) => {
                            held.insert(object, HoldReason { why: reason, change: change.kind });
                        }
                        Some(Refusal::Blocked(_) | Refusal::AfterHeld | Refusal::AfterBlocked) => {}
                    }
                }
            }
            let readable = readable_scopes(facts);
            // Removals that are still planned stay held, and so do removals in scopes that were not read.
            after.held.retain(|entry| {
                entry.shard != shard
                    || held.contains_key(&entry.object)
                    || !readable.contains(&entry.object.target)
            });
            // The entry has the reason of the last decision and the time of the first decision.
            for entry in &mut after.held {
                if let Some(HoldReason { why, change }) = held.remove(&entry.object) {
                    why.clone_into(&mut entry.why);
                    entry.change = Some(change);
                }
            }
            after.held.extend(held.into_iter().map(|(object, HoldReason { why, change })| HeldEntry {
                since: self.now,
                shard: shard.clone(),
                why: why.to_owned(),
                change: Some(change),
                object,
            }));
            self.settle_uses(one, run, &mut after);
            if facts.blocked.is_empty() {
                after.counts.insert(shard, count_objects(facts));
            }
        }
        after.used_approvals.retain(|used| used.is_relevant(&self.approvals));
        if !reserved.is_empty() {
            after.reserve(reserved);
            after.prune(self.budgets.window_start(self.now));
        }
        after
    }
}

impl RemovalGuard {
    /// Stores the uses of approvals for a single use and records which of the objects that were removed with these
    /// approvals no longer exist.
    fn settle_uses<S: PlannedSteps>(&self, judged: &JudgedShard<'_, S>, run: &str, after: &mut LedgerState) {
        let shard = judged.shard().key().to_string();
        let readable = readable_scopes(judged.shard().facts());
        let changes = judged.steps().flat_map(JudgedStep::changes);
        let removed: BTreeSet<ObjectRef> =
            changes.filter(|change| self.removes(change)).map(|change| (&change.object).into()).collect();
        for used in &mut after.used_approvals {
            let is_read = used.shard == shard && readable.contains(&used.object.target);
            used.is_gone |= is_read && !removed.contains(&used.object);
        }
        let permitted = judged.steps().filter(|step| step.refusal().is_none());
        for JudgedChange { change, clearance } in permitted.flat_map(JudgedStep::judged_changes) {
            let Clearance::SingleUse(SingleUse { approval, expiration, plan }) = clearance else { continue };
            let (object, incarnation) = (ObjectRef::from(&change.object), change.incarnation.clone());
            let is_stored = after.used_approvals.iter().any(|used| {
                used.approval == *approval && used.object == object && used.incarnation == incarnation
            });
            if is_stored {
                continue;
            }
            after.used_approvals.push(UsedApproval {
                approval: approval.clone(),
                expiration: expiration.clone(),
                plan: plan.clone(),
                at: self.now,
                run: run.to_owned(),
                shard: shard.clone(),
                object,
                incarnation,
                is_gone: false,
            });
        }
    }
}

/// The scopes that were read and contain no unresolved objects.
fn readable_scopes(facts: &ShardFacts) -> BTreeSet<String> {
    let readable = facts.counts.keys().filter(|scope| !facts.blocked.contains_key(scope));
    readable.map(ToString::to_string).collect()
}

fn count_objects(facts: &ShardFacts) -> ShardCount {
    let mut callers: BTreeMap<String, usize> = BTreeMap::new();
    for (scope, count) in &facts.counts {
        if let Some(caller) = scope.caller() {
            *callers.entry(caller.to_owned()).or_default() += count;
        }
    }
    ShardCount { total: facts.counts.values().sum(), callers }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::super::{Approvals, Budgets, Proposal};
    use super::*;
    use crate::key::{Scope, ShardKey};
    use crate::plan::{Change, ObjectKey, Plan};

    const NOW: Timestamp = Timestamp::constant(1_774_958_400, 0);

    fn guard() -> RemovalGuard {
        let (integration, approvals) = ("x".to_owned(), Approvals::default());
        RemovalGuard {
            protected: crate::guard::ProtectedKinds::default(),
            integration,
            budgets: Budgets::default(),
            approvals,
            other_shards: Vec::new(),
            now: NOW,
        }
    }

    fn scope(name: &str) -> Scope {
        Scope::new([("cluster", name), ("caller", "me")])
    }

    fn object(at: &str, name: &str) -> ObjectKey {
        ObjectKey { scope: scope(at), kind: "ConfigMap".to_owned(), name: name.to_owned() }
    }

    fn held_entry(shard: &str, at: &str, name: &str) -> HeldEntry {
        let since = NOW - SignedDuration::from_hours(1);
        HeldEntry {
            since,
            shard: shard.to_owned(),
            why: "before".to_owned(),
            change: Some(ChangeKind::Change),
            object: (&object(at, name)).into(),
        }
    }

    /// The ledger after a plan of shard `n=s` in scope `c`: `-a` is removed, `!b` is held, `?c` is blocked,
    /// `*d` is deleted by the data, `+e` is added.
    fn settle(before: &LedgerState, facts: &ShardFacts, words: &str) -> LedgerState {
        let (mut plan, mut facts) = (Plan::default(), facts.clone());
        let mut refused = BTreeMap::new();
        for word in words.split_whitespace() {
            let (sign, name) = word.split_at(1);
            let kind = if sign == "+" { ChangeKind::Add } else { ChangeKind::Remove };
            let object = object("c", name);
            if sign == "*" {
                facts.deletes.insert(object.clone());
            }
            match sign {
                "!" => refused.insert(object.clone(), Refusal::unapproved("now")),
                "?" => refused.insert(object.clone(), Refusal::Blocked("blocked".to_owned())),
                _ => None,
            };
            plan.add_step(Change::new(kind, object, "do"), ());
        }
        let proposal = Proposal { key: ShardKey::new([("n", "s")]), facts, groups: plan.groups };
        let clearance = |change: &Change| match change.kind {
            ChangeKind::Remove if proposal.facts.deletes.contains(&change.object) => Clearance::Approved,
            ChangeKind::Remove => Clearance::Counted { mismatch: None },
            ChangeKind::Add | ChangeKind::Change | ChangeKind::Replace => Clearance::NoRemoval,
        };
        let refusal = |changes: &[JudgedChange<'_>]| refused.get(&changes[0].change.object).cloned();
        let judged = JudgedShard::new(&proposal, clearance, refusal);
        guard().settle(&[judged], "run", before)
    }

    fn facts(there: usize) -> ShardFacts {
        ShardFacts { counts: [(scope("c"), there)].into(), ..ShardFacts::default() }
    }

    fn held(state: &LedgerState) -> Vec<(&str, &str)> {
        state.held.iter().map(|entry| (entry.object.name.as_str(), entry.why.as_str())).collect()
    }

    #[test]
    fn only_removals_without_approval_are_reserved() {
        let after = settle(&LedgerState::default(), &facts(5), "-a !b ?c *d +e");
        let [entry] = &after.removals[..] else { panic!("one: {after:?}") };
        assert_eq!((entry.at, entry.run.as_str(), entry.shard.as_str()), (NOW, "run", "n=s"));
        assert_eq!((entry.caller.as_deref(), entry.object.name.as_str()), (Some("me"), "a"));
        assert_eq!(held(&after), [("b", "now")]);
        let count = &after.counts["n=s"];
        assert_eq!((count.total, count.callers["me"]), (5, 5));
        assert_eq!(settle(&after, &facts(5), "!b"), after, "nothing to store");
    }

    #[test]
    fn a_hold_is_dropped_when_its_own_shard_no_longer_removes_the_object() {
        let entries = vec![
            held_entry("n=s", "c", "a"),
            held_entry("n=s", "c", "b"),
            held_entry("n=s", "d", "unread"),
            held_entry("n=other", "c", "other"),
        ];
        let before = LedgerState { held: entries, ..LedgerState::default() };
        let after = settle(&before, &facts(5), "!a");
        assert_eq!(held(&after), [("a", "now"), ("unread", "before"), ("other", "before")]);
        assert_eq!(after.held[0].since, before.held[0].since);
        let changes: Vec<_> = after.held.iter().filter_map(|entry| entry.change).collect();
        assert_eq!(changes, [ChangeKind::Remove, ChangeKind::Change, ChangeKind::Change]);
        let mut blocked = facts(5);
        blocked.blocked.insert(scope("c"), "not read".to_owned());
        let after = settle(&before, &blocked, "");
        assert_eq!(held(&after).len(), 4, "nothing is known of the scope");
        assert!(after.counts.is_empty(), "and it is not counted");
    }

    #[test]
    fn a_read_only_scope_is_not_known_if_it_is_blocked() {
        let mut facts = facts(1);
        facts.counts.insert(scope("d"), 2);
        facts.blocked.insert(scope("d"), "unresolved".to_owned());
        assert_eq!(readable_scopes(&facts), [scope("c").to_string()].into());
        assert_eq!(count_objects(&facts).total, 3);
    }

    #[test]
    fn expired_removals_are_pruned_only_when_something_is_reserved() {
        let old = |number: i64| LedgerEntry {
            at: NOW - SignedDuration::from_hours(48) + SignedDuration::from_secs(number),
            run: "old".to_owned(),
            shard: "n=s".to_owned(),
            caller: None,
            object: (&object("c", &format!("old{number}"))).into(),
            incarnation: None,
        };
        let before = LedgerState { removals: (0..1500).map(old).collect(), ..LedgerState::default() };
        assert_eq!(settle(&before, &facts(5), "").removals.len(), 1500);
        assert_eq!(settle(&before, &facts(5), "-a").removals.len(), 1001);
    }
}
