//! Tests of the guards, on objects with short names.

mod approvals;
mod consent;
mod keys;

use super::*;
use crate::key::{Scope, ShardKey};
use crate::plan::{PlanStage, Step, StepGroup};

/// A group of steps, each of which is given by its changes.
fn group(steps: &[Vec<Change>]) -> StepGroup<()> {
    let steps = steps.iter().map(|changes| Step { changes: changes.clone(), action: () }).collect();
    StepGroup { name: String::new(), stage: PlanStage::default(), steps }
}

/// A shard with these steps, each in a separate group.
fn proposal(facts: &ShardFacts, steps: &[Vec<Change>]) -> Proposal {
    let groups = steps.chunks(1).map(group).collect();
    Proposal { key: ShardKey::default(), facts: facts.clone(), groups }
}

/// The refusal of each step.
fn refusals(judged: &JudgedShard<'_, Proposal>) -> Vec<Option<Refusal>> {
    judged.steps().map(|step| step.refusal().cloned()).collect()
}

/// The refusal of each step of a shard.
fn judge(
    guard: &RemovalGuard,
    proposal: Proposal,
    ledger: Result<&LedgerState, &LedgerError>,
) -> Vec<Option<Refusal>> {
    refusals(&guard.judge(&[proposal], ledger)[0])
}

/// Parses `-a +b -Namespace:c`: a removal, an addition, and a removal of an object of another kind.
fn changes(words: &str) -> Vec<Vec<Change>> {
    let one = |word: &str| {
        let mut rest = word.chars();
        let kind = match rest.next() {
            Some('+') => ChangeKind::Add,
            Some('~') => ChangeKind::Change,
            Some('±') => ChangeKind::Replace,
            _ => ChangeKind::Remove,
        };
        let rest = rest.as_str();
        let (thing_kind, name) = rest.split_once(':').unwrap_or(("ConfigMap", rest));
        vec![Change::new(kind, thing(thing_kind, name), "do")]
    };
    words.split_whitespace().map(one).collect()
}

fn thing(kind: &str, name: &str) -> ObjectKey {
    ObjectKey { scope: Scope::new([("cluster", "c")]), kind: kind.to_owned(), name: name.to_owned() }
}

fn facts(there: usize) -> ShardFacts {
    ShardFacts { counts: BTreeMap::from([(Scope::new([("cluster", "c")]), there)]), ..ShardFacts::default() }
}

/// The names whose removal is held, with the first words of the reason.
fn held(guard: &RemovalGuard, facts: &ShardFacts, words: &str) -> Vec<String> {
    held_after(guard, &LedgerState::default(), facts, words)
}

fn held_after(guard: &RemovalGuard, ledger: &LedgerState, facts: &ShardFacts, words: &str) -> Vec<String> {
    let proposals = [proposal(facts, &changes(words))];
    let judged = guard.judge(&proposals, Ok(ledger)).remove(0);
    let held =
        judged.steps().filter_map(|step| Some((&step.changes()[0].object.name, step.refusal()?.why())));
    held.map(|(name, why)| format!("{name}: {why}")).collect()
}

/// Noon on a day. Budget windows have 24 hours.
const NOW: Timestamp = Timestamp::constant(1_774_958_400, 0);

fn guard() -> RemovalGuard {
    RemovalGuard {
        integration: "x".to_owned(),
        protected: ProtectedKinds::new(["Namespace", "PersistentVolumeClaim"]),
        budgets: Budgets::default(),
        approvals: Approvals::default(),
        other_shards: Vec::new(),
        now: NOW,
    }
}

/// A ledger with removals that were made `ago` seconds ago. Each removal is written as `shard/name` or
/// `shard/name/caller`.
fn ledger(ago: i64, words: &str) -> LedgerState {
    let entry = |word: &str| {
        let mut parts = word.split('/').map(str::to_owned);
        let (shard, name) = (parts.next().unwrap(), parts.next().unwrap());
        let caller = parts.next();
        let scope = caller.as_ref().map_or_else(scope, |caller| caller_scope(caller));
        let thing = ObjectRef::from(&ObjectKey { scope, kind: "ConfigMap".to_owned(), name });
        LedgerEntry {
            at: NOW - jiff::SignedDuration::from_secs(ago),
            run: "before".to_owned(),
            shard,
            caller,
            object: thing,
            incarnation: None,
        }
    };
    LedgerState { removals: words.split_whitespace().map(entry).collect(), ..LedgerState::default() }
}

fn scope() -> Scope {
    Scope::new([("cluster", "c")])
}

fn caller_scope(caller: &str) -> Scope {
    Scope::new([("cluster", "c"), ("caller", caller)])
}

/// Writes this many removals, as `-0 -1 -2`.
fn removals(count: usize) -> String {
    (0..count).map(|name| format!("-{name}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn ten_removals_are_allowed_and_eleven_are_all_held() {
    assert_eq!(held(&guard(), &facts(50), &removals(10)), [""; 0]);
    let eleven = held(&guard(), &facts(50), &(removals(11) + " +new ~old"));
    assert_eq!(eleven.len(), 11);
    assert_eq!(eleven[0], "0: 11 removals exceed the limit of 10 for a shard without approval");
    assert_eq!(held(&guard(), &facts(200), &removals(20)), [""; 0], "10 % of 200");
    assert_eq!(held(&guard(), &facts(200), &removals(21)).len(), 21);
}

#[test]
fn removals_of_the_last_day_count_whichever_process_made_them() {
    let day = 24 * 3600;
    let nine = "all/a all/b all/c all/d all/e all/f all/g all/h all/i";
    assert_eq!(held_after(&guard(), &ledger(day - 1, nine), &facts(50), &removals(1)), [""; 0]);
    let held = held_after(&guard(), &ledger(day - 1, nine), &facts(50), &removals(2));
    assert_eq!(
        held,
        ["0", "1"].map(|name| format!(
            "{name}: 2 removals after 9 in the last 24 h exceed the limit of 10 for a shard without approval"
        ))
    );
    assert_eq!(
        held_after(&guard(), &ledger(day, nine), &facts(50), &removals(10)),
        [""; 0],
        "out of the window"
    );
    assert_eq!(
        held_after(&guard(), &ledger(-day, nine), &facts(50), &removals(2)).len(),
        2,
        "a clock that went back"
    );
    let others = nine.replace("all/", "other/");
    assert_eq!(
        held_after(&guard(), &ledger(1, &others), &facts(50), &removals(10)),
        [""; 0],
        "another shard's"
    );
}

#[test]
fn a_removal_that_was_reserved_and_not_made_is_not_counted_twice() {
    let ten = (0..10).map(|name| format!("all/{name}")).collect::<Vec<_>>().join(" ");
    assert_eq!(held_after(&guard(), &ledger(60, &ten), &facts(50), &removals(10)), [""; 0]);
    assert_eq!(held_after(&guard(), &ledger(60, &ten), &facts(50), &removals(11)).len(), 11);
}

/// Number of held removals of each shard.
fn held_per_shard(
    guard: &RemovalGuard,
    ledger: &LedgerState,
    facts: &ShardFacts,
    shards: &[(&str, &str)],
) -> Vec<usize> {
    let of = |(name, words): &(&str, &str)| {
        let key = ShardKey::new([("name", *name)]);
        Proposal { key, ..proposal(facts, &changes(words)) }
    };
    let proposals: Vec<Proposal> = shards.iter().map(of).collect();
    let judged = guard.judge(&proposals, Ok(ledger));
    judged.iter().map(|shard| refusals(shard).iter().flatten().count()).collect()
}

#[test]
fn an_integration_has_a_budget_too() {
    let nine = |shard: &str| (0..9).map(|name| format!("-{shard}{name}")).collect::<Vec<_>>().join(" ");
    let (a, b, c, d) = (nine("a"), nine("b"), nine("c"), nine("d"));
    let shards = [("a", a.as_str()), ("b", &b), ("c", &c), ("d", &d)];
    let empty = LedgerState::default();
    assert_eq!(held_per_shard(&guard(), &empty, &facts(20), &shards), [9, 9, 9, 9]);
    assert_eq!(held_per_shard(&guard(), &empty, &facts(20), &shards[..3]), [0, 0, 0]);
    // The budget allows exactly 30 removals, and refuses one more.
    assert_eq!(held_per_shard(&guard(), &ledger(1, "z/1 z/2 z/3"), &facts(20), &shards[..3]), [0, 0, 0]);
    assert_eq!(held_per_shard(&guard(), &ledger(1, "z/1 z/2 z/3 z/4"), &facts(20), &shards[..3]), [9, 9, 9]);
}

#[test]
fn a_share_is_of_all_shards_or_of_none() {
    let mut guard = guard();
    guard.budgets.shard = Budget { count: 1000, percent: 0 };
    guard.other_shards = vec!["b".to_owned(), "c".to_owned()];
    let count = |total| ShardCount { total, ..ShardCount::default() };
    let mut ledger = LedgerState { counts: [("b".to_owned(), count(150))].into(), ..LedgerState::default() };
    assert_eq!(held_after(&guard, &ledger, &facts(200), &removals(35)).len(), 35, "`c` was never counted");
    assert_eq!(held_after(&guard, &ledger, &facts(200), &removals(30)).len(), 0, "the absolute limit");
    ledger.counts.insert("c".to_owned(), count(0));
    ledger.counts.insert("gone".to_owned(), count(1000));
    assert_eq!(held_after(&guard, &ledger, &facts(200), &removals(35)).len(), 0, "10 % of 350");
    assert_eq!(held_after(&guard, &ledger, &facts(200), &removals(36)).len(), 36);
}

#[test]
fn a_caller_has_a_budget_over_all_its_shards() {
    let of = |caller: &str, count: usize| {
        let scope = caller_scope(caller);
        let thing = |name: usize| ObjectKey {
            scope: scope.clone(),
            kind: "ConfigMap".to_owned(),
            name: format!("{caller}{name}"),
        };
        (0..count).map(|name| vec![Change::new(ChangeKind::Remove, thing(name), "do")]).collect::<Vec<_>>()
    };
    let check = |guard: &RemovalGuard, ledger: &LedgerState, counts: [usize; 2], there: usize| {
        let counted = [("a", there), ("b", there / 2)].map(|(caller, there)| (caller_scope(caller), there));
        let facts = ShardFacts { counts: counted.into(), ..ShardFacts::default() };
        let steps = [of("a", counts[0]), of("b", counts[1])].concat();
        let verdict = judge(guard, proposal(&facts, &steps), Ok(ledger));
        let held = |part: &[Option<Refusal>]| part.iter().flatten().count();
        [held(&verdict[..counts[0]]), held(&verdict[counts[0]..])]
    };
    let mut wide = guard();
    wide.budgets.shard = Budget { count: 1000, percent: 0 };
    wide.budgets.integration = Budget { count: 1000, percent: 0 };
    let empty = LedgerState::default();
    assert_eq!(check(&wide, &empty, [20, 5], 100), [0, 0]);
    assert_eq!(check(&wide, &empty, [21, 5], 100), [21, 0], "only the caller that exceeds it");
    assert_eq!(check(&wide, &ledger(1, "z/x/a"), [20, 20], 100), [20, 0]);
    assert_eq!(check(&wide, &empty, [30, 0], 300), [0, 0], "10 % of its objects");
    assert_eq!(check(&wide, &empty, [31, 0], 300), [31, 0]);
    wide.other_shards = vec!["z".to_owned()];
    assert_eq!(check(&wide, &empty, [21, 0], 300), [21, 0], "another shard was never counted");
    let other = ShardCount { total: 900, callers: [("a".to_owned(), 100), ("b".to_owned(), 800)].into() };
    let counted = LedgerState { counts: [("z".to_owned(), other)].into(), ..LedgerState::default() };
    assert_eq!(check(&wide, &counted, [40, 0], 300), [0, 0], "10 % of 400");
    assert_eq!(check(&wide, &counted, [41, 0], 300), [41, 0]);
}

#[test]
fn a_removal_is_blocked_while_another_caller_declares_the_object() {
    let object = |caller: &str| ObjectKey { scope: caller_scope(caller), ..thing("ConfigMap", "x") };
    let remove = |caller: &str| vec![Change::new(ChangeKind::Remove, object(caller), "do")];
    let shard = |caller: &str, consent: RemovalConsent, steps: &[Vec<Change>]| {
        let counts = [(caller_scope(caller), 5)].into();
        let facts = ShardFacts { counts, consent, ..ShardFacts::default() };
        Proposal { key: ShardKey::new([("caller", caller)]), ..proposal(&facts, steps) }
    };
    let check = |declares: &[ObjectKey], consent: RemovalConsent, expect: Option<&str>| {
        let mut one = shard("one", RemovalConsent::Named, &[]);
        one.facts.declared.extend(declares.iter().map(ObjectKey::without_caller));
        let proposals = [one, shard("two", consent.clone(), &[remove("two")])];
        let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
        let why = refusals(&judged[1])[0].as_ref().map(|refusal| (refusal.why(), refusal.clone()));
        assert_eq!(why.as_ref().map(|(why, _)| why.as_str()), expect, "{declares:?} {consent:?}");
        assert!(
            why.is_none_or(|(_, refusal)| matches!(refusal, Refusal::Blocked(_))),
            "no approval lifts it"
        );
    };
    let blocked = Some("another caller declares it");
    check(&[object("one")], RemovalConsent::Named, blocked);
    check(&[object("one")], RemovalConsent::Any, blocked);
    check(&[], RemovalConsent::Named, None);
    // An object with another name, kind or scope is another object.
    let other = |key: ObjectKey| check(&[key], RemovalConsent::Named, None);
    other(ObjectKey { name: "y".to_owned(), ..object("one") });
    other(ObjectKey { kind: "Secret".to_owned(), ..object("one") });
    other(ObjectKey { scope: Scope::new([("cluster", "d"), ("caller", "one")]), ..object("one") });
    // A scope without a caller has only one owner.
    let facts = ShardFacts { declared: [thing("ConfigMap", "x")].into(), ..facts(5) };
    assert_eq!(held(&guard(), &facts, "-x"), [""; 0]);
}

#[test]
fn a_held_removal_stays_held_until_it_is_approved() {
    let thing = ObjectRef::from(&thing("ConfigMap", "a"));
    let (shard, why, change) = ("all".to_owned(), "too many".to_owned(), Some(ChangeKind::Remove));
    let held_before = HeldEntry { since: NOW, shard, why, change, object: thing };
    let ledger = LedgerState { held: vec![held_before], ..LedgerState::default() };
    assert_eq!(
        held_after(&guard(), &ledger, &facts(50), "-a -b"),
        ["a: held since 2026-03-31 12:00 until it is approved: too many"]
    );
    let approved = RemovalGuard { approvals: approvals("ConfigMap", "a", "2026-03-31"), ..guard() };
    assert_eq!(held_after(&approved, &ledger, &facts(50), "-a -b"), [""; 0]);
}

fn approvals(kind: &str, name: &str, last: &str) -> Approvals {
    approvals_of(&thing(kind, name), last)
}

fn approvals_of(object: &ObjectKey, last: &str) -> Approvals {
    let approval = Approval {
        path: String::new(),
        integration: "x".to_owned(),
        expiration: last.to_owned(),
        once: None,
        removals: vec![ObjectRef::from(object).into()],
    };
    Approvals::valid_on(jiff::civil::date(2026, 3, 31), vec![approval])
}

#[test]
fn a_namespace_or_an_emptied_scope_needs_an_approval() {
    assert_eq!(
        held(&guard(), &facts(5), "-Namespace:n -a"),
        ["n: removing a Namespace always needs an approval"]
    );
    assert_eq!(
        held(&guard(), &facts(2), "-a -b"),
        [
            "a: it would empty `cluster=c`, which needs an approval",
            "b: it would empty `cluster=c`, which needs an approval"
        ]
    );
    assert_eq!(held(&guard(), &facts(2), "-a -b +c"), [""; 0], "an addition replaces them");
    assert_eq!(held(&guard(), &facts(2), "±Namespace:n").len(), 1, "replacing removes");
}

fn namespace_scope(name: &str) -> Scope {
    Scope::new([("cluster", "c"), ("namespace", name)])
}

/// The reasons why removals are held if each of `there` namespaces has one object. Each change of `words` is made in
/// the namespace that has the name of the changed object.
fn held_in_namespaces(guard: &RemovalGuard, there: usize, words: &str) -> Vec<String> {
    let counts = (0..there).map(|name| (namespace_scope(&name.to_string()), 1)).collect();
    let facts = ShardFacts { counts, ..ShardFacts::default() };
    let mut steps = changes(words);
    for change in steps.iter_mut().flatten() {
        change.object.scope = namespace_scope(&change.object.name);
    }
    let verdict = judge(guard, proposal(&facts, &steps), Ok(&LedgerState::default()));
    verdict.into_iter().flatten().map(|refusal| refusal.why()).collect()
}

#[test]
fn removing_everything_that_an_integration_manages_needs_an_approval() {
    let why = "it would remove all 5 objects that `x` manages, which needs an approval";
    assert_eq!(held_in_namespaces(&guard(), 5, &removals(5)), [why; 5]);
    assert_eq!(held_in_namespaces(&guard(), 5, &removals(4)), [""; 0], "one is left");
    assert_eq!(held_in_namespaces(&guard(), 4, &removals(4)), [""; 0], "few objects");
    assert_eq!(held_in_namespaces(&guard(), 5, &(removals(5) + " +0")), [""; 0], "an addition");
    assert_eq!(held_in_namespaces(&guard(), 5, &(removals(5) + " ~0")), [why; 5], "a change adds nothing");
    let object = ObjectKey { scope: namespace_scope("3"), ..thing("ConfigMap", "3") };
    let approved = RemovalGuard { approvals: approvals_of(&object, "2026-03-31"), ..guard() };
    assert_eq!(held_in_namespaces(&approved, 5, &removals(5)), [why; 4], "the others are not approved");
    // If the objects of another process's shards were counted, they are part of the total; otherwise the
    // total is unknown.
    let shared = RemovalGuard { other_shards: vec!["other".to_owned()], ..guard() };
    assert_eq!(held_in_namespaces(&shared, 5, &removals(5)), [""; 0], "the other process may have more");
}

#[test]
fn the_data_approves_by_name_until_a_date() {
    let today = jiff::civil::date(2026, 3, 31);
    let with = |last: &str| RemovalGuard { approvals: approvals("Namespace", "n", last), ..guard() };
    assert_eq!(held(&with("2026-03-31"), &facts(5), "-Namespace:n"), [""; 0]);
    assert_eq!(held(&with("2026-03-30"), &facts(5), "-Namespace:n").len(), 1, "over");
    assert_eq!(held(&with("soon"), &facts(5), "-Namespace:n").len(), 1, "no day");
    assert_eq!(held(&with("2026-03-31"), &facts(5), "-Namespace:m").len(), 1, "another name");
    let deletes = ShardFacts { deletes: [thing("Namespace", "n")].into(), ..facts(1) };
    assert_eq!(held(&guard(), &deletes, "-Namespace:n"), [""; 0], "`delete: true` approves");
    let text = Approvals::datafile_text("x", &[&thing("Namespace", "n")], today);
    assert!(text.contains("expiration: \"2026-04-07\"") && text.contains("name: \"n\""), "{text}");
}

#[test]
fn nothing_is_removed_from_an_unknown_scope_even_if_it_is_approved() {
    let mut facts = facts(5);
    facts.blocked.insert(Scope::new([("cluster", "c")]), "it could not be read".to_owned());
    facts.deletes.insert(thing("ConfigMap", "a"));
    assert_eq!(held(&guard(), &facts, "-a +b"), ["a: it could not be read"]);
}

#[test]
fn objects_are_counted_not_steps() {
    let one = changes(&removals(11)).concat();
    let verdict = judge(&guard(), proposal(&facts(50), &[one]), Ok(&LedgerState::default()));
    assert!(verdict[0].is_some());
}

#[test]
fn nothing_is_removed_from_a_scope_that_was_not_read() {
    assert_eq!(held(&guard(), &ShardFacts::default(), "-a +b"), ["a: `cluster=c` was not read"]);
}

#[test]
fn a_scope_that_one_shard_could_not_read_is_blocked_for_all() {
    let mut blind = ShardFacts::default();
    blind.blocked.insert(Scope::new([("cluster", "c")]), "it could not be read".to_owned());
    let proposals = [
        Proposal { key: ShardKey::new([("name", "a")]), ..proposal(&blind, &[]) },
        Proposal { key: ShardKey::new([("name", "b")]), ..proposal(&facts(5), &changes("-x")) },
    ];
    let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
    assert_eq!(refusals(&judged[1]), [Some(Refusal::Blocked("it could not be read".to_owned()))]);
}

#[test]
fn steps_after_a_held_step_in_its_group_are_held_too() {
    let steps = changes("+before -Namespace:n +after +other");
    let groups = vec![group(&steps[..3]), group(&steps[3..])];
    let proposal = Proposal { groups, ..proposal(&facts(5), &[]) };
    let held = judge(&guard(), proposal, Ok(&LedgerState::default()));
    assert_eq!(held.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true, false]);
}

#[test]
fn a_judged_step_is_permitted_or_refused() {
    let proposals = [proposal(&facts(5), &changes("+a -Namespace:n +b"))];
    let judged = guard().judge(&proposals, Ok(&LedgerState::default())).remove(0);
    assert_eq!((judged.groups().len(), judged.shard().key()), (3, &ShardKey::default()));
    let planned = proposals[0].groups.iter().flat_map(|group| &group.steps);
    for (step, judged) in planned.zip(judged.steps()) {
        assert!(std::ptr::eq(step.changes.as_slice(), judged.changes()), "each step has its own verdict");
        assert_eq!(judged.permitted().is_some(), judged.refusal().is_none());
    }
}

#[test]
fn without_the_ledger_nothing_is_removed_without_approval() {
    let error = LedgerError::Unavailable("no disk".to_owned());
    let approved = RemovalGuard { approvals: approvals("ConfigMap", "c", "2026-03-31"), ..guard() };
    let held = judge(&approved, proposal(&facts(5), &changes("-a +b -c")), Err(&error));
    let why = "the removal ledger cannot be used: no disk";
    assert_eq!(held, [Some(Refusal::unapproved(why)), None, None]);
}

#[test]
fn a_removal_that_cannot_be_reserved_is_held_with_the_steps_that_follow() {
    let steps = changes("+before -a +after +other");
    let groups = vec![group(&steps[..3]), group(&steps[3..])];
    let proposals = [Proposal { groups, ..proposal(&facts(5), &[]) }];
    let mut judged = guard().judge(&proposals, Ok(&LedgerState::default()));
    assert_eq!(refusals(&judged[0]), [None, None, None, None]);
    let error = LedgerError::Unavailable("no disk".to_owned());
    RemovalGuard::hold_unreserved(&mut judged, &error);
    let why = Refusal::unapproved("the removal ledger cannot be used: no disk");
    assert_eq!(refusals(&judged[0]), [None, Some(why), Some(Refusal::AfterHeld), None]);
}

#[test]
fn emptying_a_scope_of_two_or_more_objects_needs_an_approval() {
    assert_eq!(held(&guard(), &facts(1), "-a"), [""; 0], "a single object counts against the budget only");
    assert_eq!(
        held(&guard(), &facts(1), "-PersistentVolumeClaim:a").len(),
        1,
        "unless its kind is protected"
    );
    assert_eq!(held(&guard(), &facts(2), "-a"), [""; 0]);
    assert_eq!(held(&guard(), &facts(2), "-a -b").len(), 2);
    assert_eq!(held(&guard(), &facts(2), "-a -b ~c").len(), 2, "changes in it are not held");
}

#[test]
fn a_held_step_fills_no_other_scope() {
    // The step that would add to scope `d` is held because it empties scope `c`, so the removals also empty `d`.
    let other = |kind, name: &str| {
        let scope = Scope::new([("cluster", "d")]);
        Change::new(kind, ObjectKey { scope, kind: "ConfigMap".to_owned(), name: name.to_owned() }, "do")
    };
    let mut moved = changes("-a -b").concat();
    moved.push(other(ChangeKind::Add, "new"));
    let steps = [moved, vec![other(ChangeKind::Remove, "y")], vec![other(ChangeKind::Remove, "z")]];
    let mut facts = facts(2);
    facts.counts.insert(Scope::new([("cluster", "d")]), 2);
    let held = judge(&guard(), proposal(&facts, &steps), Ok(&LedgerState::default()));
    assert!(held.iter().all(Option::is_some));
}

#[test]
fn no_removal_accompanies_a_refused_write_that_may_replace_it() {
    let mut facts = facts(50);
    facts.refused.insert(thing("Service", "api"));
    let why = "Service `api`, which may replace it, cannot be written";
    // The keys of these tests have no kind in their scope, so every object is in the scope of the Service.
    assert_eq!(held(&guard(), &facts, "-a +b ±c"), [format!("a: {why}"), format!("c: {why}")]);
    facts.deletes.insert(thing("ConfigMap", "a"));
    assert_eq!(held(&guard(), &facts, "-a"), [""; 0], "the data deletes it");
    let approved = RemovalGuard { approvals: approvals("ConfigMap", "c", "2026-03-31"), ..guard() };
    assert_eq!(held(&approved, &facts, "-c"), [format!("c: {why}")], "an approval does not replace it");
    assert!(held(&guard(), &facts, "-Namespace:n")[0].ends_with("always needs an approval"), "it stays held");

    facts.refused = [ObjectKey { scope: Scope::new([("cluster", "d")]), ..thing("Service", "api") }].into();
    assert_eq!(held(&guard(), &facts, "-a -Route:api"), [format!("api: {why}")], "or it has the same name");
}
