//! Approvals that are bound to a plan, or for a single use.

use super::*;
use crate::plan::PlanDigest;

const TODAY: Date = Date::constant(2026, 3, 31);

/// An approval of Namespace `n`.
#[derive(Clone)]
struct ApprovalCase {
    path: &'static str,
    integration: &'static str,
    expiration: &'static str,
    once: bool,
    plan: Option<&'static str>,
}

const PLAIN: ApprovalCase =
    ApprovalCase { path: "/a.yml", integration: "x", expiration: "2026-04-07", once: false, plan: None };
const ONCE: ApprovalCase = ApprovalCase { once: true, ..PLAIN };

fn guard_with(approvals: &[ApprovalCase]) -> RemovalGuard {
    let approvals = approvals.iter().map(|given| Approval {
        path: given.path.to_owned(),
        integration: given.integration.to_owned(),
        expiration: given.expiration.to_owned(),
        once: given.once.then_some(true),
        removals: vec![ApprovedRemoval {
            object: ObjectRef::from(&thing("Namespace", "n")),
            plan: given.plan.map(PlanDigest::from),
        }],
    });
    RemovalGuard { approvals: Approvals::valid_on(TODAY, approvals.collect()), ..guard() }
}

/// A plan that removes Namespace `n`, of this incarnation.
fn removing(incarnation: Option<&str>, plans: ShardPlans) -> [Proposal; 1] {
    let mut steps = changes("-Namespace:n");
    steps[0][0].incarnation = incarnation.map(str::to_owned);
    [proposal(&ShardFacts { plans, ..facts(5) }, &steps)]
}

fn plan(name: &str) -> PlanDigest {
    PlanDigest::from(name)
}

/// Judges the proposals and returns whether the removal is permitted, with the ledger after the run.
fn run(guard: &RemovalGuard, run: &str, proposals: &[Proposal], before: &LedgerState) -> (bool, LedgerState) {
    let judged = guard.judge(proposals, Ok(before));
    let after = guard.settle(&judged, run, before);
    let is_permitted = judged[0].steps().all(|step| step.refusal().is_none());
    (is_permitted, after)
}

#[test]
fn no_approval_releases_an_object_that_is_kept() {
    let refusal = |incarnation: &str| {
        let mut proposals = removing(Some(incarnation), ShardPlans::default());
        proposals[0].facts.kept = [("uid-1".to_owned(), "kept: it has another name".to_owned())].into();
        let judged = guard_with(&[PLAIN]).judge(&proposals, Ok(&LedgerState::default())).remove(0);
        refusals(&judged).remove(0)
    };
    assert_eq!(refusal("uid-1"), Some(Refusal::Blocked("kept: it has another name".to_owned())));
    assert_eq!(refusal("uid-2"), None);
}

#[test]
fn an_approval_that_is_bound_to_a_plan_approves_only_this_plan() {
    let check = |given: ApprovalCase, plans: ShardPlans, expect: Clearance| {
        let proposals = removing(None, plans);
        let judged = guard_with(&[given]).judge(&proposals, Ok(&LedgerState::default())).remove(0);
        let step = judged.steps().next().unwrap();
        assert_eq!(step.judged_changes().next().unwrap().clearance, &expect);
        assert_eq!(step.refusal().is_some(), expect.is_counted());
    };
    let counted = |text: &str| Clearance::Counted { mismatch: Some(text.to_owned()) };
    let bound = ApprovalCase { plan: Some("p1"), ..PLAIN };
    let same: BTreeSet<ObjectKey> = [thing("Namespace", "n")].into();
    let other = "approval `data/a.yml` is for another plan (p1); the current one is p2";
    check(bound.clone(), ShardPlans::first(plan("p1")), Clearance::Approved);
    check(bound.clone(), ShardPlans::first(plan("p2")), counted(other));
    check(bound.clone(), ShardPlans::default(), counted("approval `data/a.yml` is for another plan (p1)"));
    // In a later round, a removal that has not changed is judged by the plan of the first round.
    check(bound.clone(), ShardPlans::later(plan("p2"), plan("p1"), same.clone()), Clearance::Approved);
    check(bound.clone(), ShardPlans::later(plan("p2"), plan("p1"), BTreeSet::new()), counted(other));
    check(bound.clone(), ShardPlans::later(plan("p1"), plan("p0"), BTreeSet::new()), Clearance::Approved);
    check(bound.clone(), ShardPlans::later(plan("p2"), plan("p0"), same), counted(other));
    // Approvals for other integrations, and approvals that are not valid.
    let none = Clearance::Counted { mismatch: None };
    check(ApprovalCase { integration: "y", ..bound.clone() }, ShardPlans::first(plan("p1")), none.clone());
    check(ApprovalCase { expiration: "2026-03-30", ..bound }, ShardPlans::first(plan("p1")), none);
    check(PLAIN, ShardPlans::first(plan("p2")), Clearance::Approved);
}

#[test]
fn one_approval_that_applies_is_enough() {
    let bound = ApprovalCase { plan: Some("p1"), ..PLAIN };
    let check = |given: &[ApprovalCase], expect: bool| {
        let proposals = removing(None, ShardPlans::first(plan("p2")));
        let (permitted, after) = run(&guard_with(given), "r1", &proposals, &LedgerState::default());
        assert_eq!(permitted, expect);
        after.used_approvals.len()
    };
    assert_eq!(check(&[bound.clone(), PLAIN], true), 0);
    // An approval for a single use is not used if another approval applies.
    assert_eq!(check(&[ONCE, PLAIN], true), 0);
    assert_eq!(check(&[bound.clone(), ONCE], true), 1);
    assert_eq!(check(&[bound], false), 0);
}

#[test]
fn an_approval_for_a_single_use_is_used_once() {
    let guard = guard_with(&[ONCE]);
    let removing = |incarnation: &str| removing(Some(incarnation), ShardPlans::default());
    let (permitted, first) = run(&guard, "r1", &removing("uid-1"), &LedgerState::default());
    assert!(permitted);
    let [used] = &first.used_approvals[..] else { panic!("one: {first:?}") };
    assert_eq!((used.run.as_str(), used.approval.as_str(), used.is_gone), ("r1", "/a.yml", false));
    assert!(first.removals.is_empty(), "an approved removal uses no budget");
    // If the run is killed between the reservation and the removal, the next run removes the same object, and
    // the ledger does not change.
    let (permitted, again) = run(&guard, "r2", &removing("uid-1"), &first);
    assert!(permitted);
    assert_eq!(again, first);
    // The object was created again, before or after a run observed that it did not exist.
    let (permitted, _) = run(&guard, "r3", &removing("uid-2"), &again);
    assert!(!permitted);
    let (_, gone) = run(&guard, "r4", &[proposal(&facts(4), &[])], &again);
    assert!(gone.used_approvals[0].is_gone);
    for incarnation in ["uid-1", "uid-2"] {
        let (permitted, after) = run(&guard, "r5", &removing(incarnation), &gone);
        assert!(!permitted, "{incarnation}");
        assert_eq!(after.used_approvals, gone.used_approvals);
    }
    let proposals = removing("uid-2");
    let judged = guard.judge(&proposals, Ok(&gone)).remove(0);
    let mismatch =
        judged.steps().flat_map(JudgedStep::judged_changes).find_map(|one| one.clearance.mismatch());
    assert_eq!(
        mismatch,
        Some(
            "approval `data/a.yml` is for a single use, and run r1 used it; approve it again in a new file, with another expiration"
        )
    );
}

#[test]
fn an_object_without_an_incarnation_may_be_removed_until_it_is_gone() {
    let guard = guard_with(&[ONCE]);
    let removing = || removing(None, ShardPlans::default());
    let (_, first) = run(&guard, "r1", &removing(), &LedgerState::default());
    let (permitted, again) = run(&guard, "r2", &removing(), &first);
    assert!(permitted && again == first);
    // If a scope was not read or contains an unresolved object, the run does not conclude that the object no longer
    // exists.
    let mut blocked = facts(5);
    blocked.blocked.insert(scope(), "not read".to_owned());
    for unread in [ShardFacts::default(), blocked] {
        assert!(!run(&guard, "r3", &[proposal(&unread, &[])], &first).1.used_approvals[0].is_gone);
    }
    let other_shard = Proposal { key: ShardKey::new([("n", "other")]), ..proposal(&facts(5), &[]) };
    assert!(!run(&guard, "r3", &[other_shard], &first).1.used_approvals[0].is_gone);
    let (_, gone) = run(&guard, "r4", &[proposal(&facts(4), &[])], &first);
    assert!(!run(&guard, "r5", &removing(), &gone).0);
}

#[test]
fn a_used_approval_cannot_be_replayed() {
    let (_, used) = run(
        &guard_with(&[ONCE]),
        "r1",
        &removing(Some("uid-1"), ShardPlans::default()),
        &LedgerState::default(),
    );
    let again = |given: ApprovalCase, before: &LedgerState| {
        run(&guard_with(&[given]), "r2", &removing(Some("uid-2"), ShardPlans::first(plan("p1"))), before).0
    };
    assert!(!again(ONCE, &used));
    // A new name alone or a new date alone does not make it another approval, but both together do.
    assert!(!again(ApprovalCase { path: "/renamed.yml", ..ONCE }, &used));
    assert!(!again(ApprovalCase { expiration: "2026-05-01", ..ONCE }, &used));
    assert!(again(ApprovalCase { path: "/new.yml", expiration: "2026-05-01", ..ONCE }, &used));
    assert!(
        again(ApprovalCase { path: "/new.yml", plan: Some("p1"), ..ONCE }, &used),
        "bound to another plan"
    );
    assert!(
        !again(ApprovalCase { path: "", expiration: "2026-05-01", ..ONCE }, &used),
        "a file without a name"
    );
    // After the file is deleted, the use is kept as long as the file could be restored; after that time, the use is
    // dropped.
    let none = |approvals: &[ApprovalCase], today: Date, before: &LedgerState| {
        let mut guard = guard_with(approvals);
        if approvals.is_empty() {
            guard.approvals = Approvals::valid_on(today, Vec::new());
        }
        run(&guard, "r3", &[proposal(&facts(4), &[])], before).1.used_approvals.len()
    };
    assert_eq!(none(&[], TODAY, &used), 1);
    assert_eq!(none(&[], Date::constant(2026, 4, 8), &used), 1, "a day longer");
    assert_eq!(none(&[], Date::constant(2026, 4, 9), &used), 0);
    let mut expired = used.clone();
    expired.used_approvals[0].expiration = "2026-01-01".to_owned();
    assert_eq!(none(&[ONCE], TODAY, &expired), 1, "its file is still there");
    assert!(!again(ONCE, &expired), "with a later date");
}

#[test]
fn a_single_use_that_cannot_be_stored_holds_the_removal() {
    let error = LedgerError::Unavailable("no disk".to_owned());
    let proposals = removing(None, ShardPlans::default());
    let guard = guard_with(&[ONCE]);
    let why = "removing a Namespace always needs an approval";
    assert_eq!(refusals(&guard.judge(&proposals, Err(&error))[0]), [Some(Refusal::unapproved(why))]);
    let mut judged = guard.judge(&proposals, Ok(&LedgerState::default()));
    assert_eq!(refusals(&judged[0]), [None]);
    RemovalGuard::hold_unreserved(&mut judged, &error);
    assert_eq!(refusals(&judged[0]), [Some(Refusal::unapproved(error.to_string()))]);
    // Approvals that can be used repeatedly do not need the ledger.
    let mut judged = guard_with(&[PLAIN]).judge(&proposals, Err(&error));
    RemovalGuard::hold_unreserved(&mut judged, &error);
    assert_eq!(refusals(&judged[0]), [None]);
}

#[test]
fn a_held_removal_does_not_use_its_approval() {
    let mut proposals = removing(None, ShardPlans::default());
    proposals[0].facts.blocked.insert(scope(), "not read".to_owned());
    let (permitted, after) = run(&guard_with(&[ONCE]), "r1", &proposals, &LedgerState::default());
    assert!(!permitted && after.used_approvals.is_empty());
}

#[test]
fn a_ledger_of_an_earlier_version_has_no_uses() {
    let old: LedgerState = serde_json::from_str(r#"{"removals": [], "held": [], "counts": {}}"#).unwrap();
    assert_eq!(old, LedgerState::default());
    assert!(!serde_json::to_string(&old).unwrap().contains("used_approvals"));
    let (_, used) =
        run(&guard_with(&[ONCE]), "r1", &removing(Some("u"), ShardPlans::default()), &LedgerState::default());
    let text = serde_json::to_string(&used).unwrap();
    assert_eq!(serde_json::from_str::<LedgerState>(&text).unwrap(), used);
}
