//! Changes that count as removals because objects lose keys.

use super::*;
use crate::plan::FieldLoss;

/// A change by which the object loses this many of its keys.
fn change(kind: &str, name: &str, [lost, of]: [usize; 2]) -> Vec<Change> {
    let mut change = Change::new(ChangeKind::Change, thing(kind, name), "change");
    change.loss = Some(FieldLoss { lost, of, lists: 0, depends_on_secret: false });
    vec![change]
}

fn judge(
    guard: &RemovalGuard,
    facts: &ShardFacts,
    steps: &[Vec<Change>],
    ledger: Result<&LedgerState, &LedgerError>,
) -> Vec<Option<Refusal>> {
    super::judge(guard, proposal(facts, steps), ledger)
}

/// Number of held steps.
fn held_steps(guard: &RemovalGuard, facts: &ShardFacts, steps: &[Vec<Change>]) -> usize {
    judge(guard, facts, steps, Ok(&LedgerState::default())).iter().flatten().count()
}

fn many(count: usize, loss: [usize; 2]) -> Vec<Vec<Change>> {
    (0..count).map(|number| change("ConfigMap", &format!("a{number}"), loss)).collect()
}

#[test]
fn changes_that_lose_much_are_counted_like_removals() {
    let facts = facts(20);
    assert_eq!(held_steps(&guard(), &facts, &many(10, [5, 100])), 0, "within the budget of a shard");
    assert_eq!(held_steps(&guard(), &facts, &many(11, [5, 100])), 11);
    assert_eq!(held_steps(&guard(), &facts, &many(11, [4, 100])), 0, "four of a hundred keys are not much");
    assert_eq!(held_steps(&guard(), &facts, &many(11, [1, 2])), 11, "half of them are");
    let mut mixed = many(10, [5, 100]);
    mixed.extend(changes("-z"));
    assert_eq!(held_steps(&guard(), &facts, &mixed), 11, "removals and losses share a budget");
}

#[test]
fn a_refusal_names_the_loss() {
    let verdict = judge(&guard(), &facts(20), &many(11, [5, 9]), Ok(&LedgerState::default()));
    let why = verdict[0].as_ref().map(Refusal::why).unwrap_or_default();
    assert!(why.starts_with("it loses 5 of 9 keys, which counts as a removal: 11 removals exceed"), "{why}");
}

#[test]
fn an_object_that_stays_needs_no_approval_for_its_kind_or_its_scope() {
    let steps = [change("Namespace", "n", [1, 1])];
    assert_eq!(held_steps(&guard(), &facts(5), &steps), 0);
    let mut blocked = facts(5);
    blocked.blocked.insert(Scope::new([("cluster", "c")]), "not known".to_owned());
    assert_eq!(held_steps(&guard(), &blocked, &steps), 0);
    let two = [change("ConfigMap", "a", [1, 1]), change("ConfigMap", "b", [1, 1])];
    assert_eq!(held_steps(&guard(), &facts(2), &two), 0, "nothing is emptied");
}

#[test]
fn without_a_ledger_only_approved_objects_may_lose_many_keys() {
    let error = LedgerError::Unavailable("gone".to_owned());
    let steps = [change("ConfigMap", "a", [5, 9])];
    let held = |guard: &RemovalGuard| judge(guard, &facts(5), &steps, Err(&error)).remove(0);
    let why = held(&guard()).map(|refusal| refusal.why()).unwrap_or_default();
    assert!(why.starts_with("it loses 5 of 9 keys") && why.ends_with("gone"), "{why}");
    let approved = RemovalGuard { approvals: approvals("ConfigMap", "a", "2026-03-31"), ..guard() };
    assert_eq!(held(&approved), None);
}

#[test]
fn a_change_that_is_held_because_of_lost_keys_stays_held() {
    let steps = many(11, [5, 9]);
    let facts = facts(20);
    let proposals = [proposal(&facts, &steps)];
    let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
    let after = guard().settle(&judged, "run", &LedgerState::default());
    assert_eq!((after.held.len(), after.removals.len()), (11, 0));
    let one = judge(&guard(), &facts, &steps[..1], Ok(&after)).remove(0);
    let why = one.map(|refusal| refusal.why()).unwrap_or_default();
    let begins = "held since 2026-03-31 12:00 until it is approved: it loses 5 of 9 keys, which counts as a removal: 11 ";
    assert!(why.starts_with(begins), "{why}");
    let whole = judge(&guard(), &facts, &changes("-a0"), Ok(&after)).remove(0);
    assert_eq!(
        whole.map(|refusal| refusal.why()).unwrap_or_default(),
        "held since 2026-03-31 12:00 until it is approved: its loss of keys was held before and is not approved"
    );
    let proposals = [proposal(&facts, &many(2, [5, 9]))];
    let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
    let after = guard().settle(&judged, "run", &LedgerState::default());
    assert_eq!((after.held.len(), after.removals.len()), (0, 2), "allowed changes are reserved");
}
