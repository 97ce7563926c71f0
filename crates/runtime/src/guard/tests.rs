//! The guards, on things with short names.

use super::*;
use crate::key::{Scope, ShardKey};

/// `-a +b -Namespace:c`: what goes, what comes, what goes of another kind.
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

fn thing(kind: &str, name: &str) -> Thing {
    Thing { scope: Scope::new([("cluster", "c")]), kind: kind.to_owned(), name: name.to_owned() }
}

fn facts(there: usize) -> Facts {
    Facts { counts: BTreeMap::from([(Scope::new([("cluster", "c")]), there)]), ..Facts::default() }
}

/// The names whose removal is held, with the reason's first words.
fn held(judge: &Judge, facts: &Facts, words: &str) -> Vec<String> {
    let (key, steps) = (ShardKey::default(), changes(words));
    let groups = vec![1; steps.len()];
    let proposal = Proposal { key: &key, facts, steps: steps.iter().map(Vec::as_slice).collect(), groups };
    let verdict = judge.judge(&[proposal]).remove(0);
    let held = steps.iter().zip(verdict).filter_map(|(step, why)| Some((step, why?)));
    held.map(|(step, why)| format!("{}: {}", step[0].thing.name, why.why())).collect()
}

fn judge() -> Judge {
    Judge { integration: "x".to_owned(), ..Judge::default() }
}

#[test]
fn ten_removals_are_fine_and_eleven_are_all_held() {
    let names = |count: usize| (0..count).map(|name| format!("-{name}")).collect::<Vec<_>>().join(" ");
    assert_eq!(held(&judge(), &facts(50), &names(10)), [""; 0]);
    let eleven = held(&judge(), &facts(50), &(names(11) + " +new ~old"));
    assert_eq!(eleven.len(), 11);
    assert_eq!(eleven[0], "0: 11 removals are more than the 10 that a shard may make without approval");
    assert_eq!(held(&judge(), &facts(200), &names(20)), [""; 0], "10 % of 200");
    let mut spent = judge();
    spent.spent.insert(ShardKey::default().to_string(), 9);
    assert_eq!(held(&spent, &facts(50), &names(2)).len(), 2, "summed per bundle");
    assert_eq!(held(&spent, &facts(50), &names(1)).len(), 0);
}

#[test]
fn a_run_has_a_budget_too() {
    let steps: Vec<Vec<Vec<Change>>> = (0..4)
        .map(|shard| changes(&(0..9).map(|name| format!("-{shard}{name}")).collect::<Vec<_>>().join(" ")))
        .collect();
    let (keys, facts) = (["a", "b", "c", "d"].map(|name| ShardKey::new([("name", name)])), facts(20));
    let proposals: Vec<Proposal<'_>> = keys
        .iter()
        .zip(&steps)
        .map(|(key, steps)| Proposal {
            key,
            facts: &facts,
            steps: steps.iter().map(Vec::as_slice).collect(),
            groups: vec![1; steps.len()],
        })
        .collect();
    let all = judge().judge(&proposals);
    assert!(
        all.iter().flatten().all(|held| held.as_ref().is_some_and(|held| held.why().contains("a run may")))
    );
    assert!(judge().judge(&proposals[..3]).iter().flatten().all(Option::is_none));
}

#[test]
fn a_namespace_or_an_emptied_scope_needs_an_approval() {
    assert_eq!(
        held(&judge(), &facts(5), "-Namespace:n -a"),
        ["n: removing a Namespace always needs an approval"]
    );
    assert_eq!(
        held(&judge(), &facts(2), "-a -b"),
        [
            "a: it would empty `cluster=c`, which needs an approval",
            "b: it would empty `cluster=c`, which needs an approval"
        ]
    );
    assert_eq!(held(&judge(), &facts(2), "-a -b +c"), [""; 0], "something comes in its place");
    assert_eq!(held(&judge(), &facts(2), "±Namespace:n").len(), 1, "replacing removes");
}

#[test]
fn the_data_approves_by_name_until_a_day() {
    let approval = |last: &str| Approval {
        integration: "x".to_owned(),
        expiration: last.to_owned(),
        removals: vec![approval::Removal {
            target: "cluster=c".to_owned(),
            kind: "Namespace".to_owned(),
            name: "n".to_owned(),
        }],
    };
    let today = jiff::civil::date(2026, 3, 31);
    let with = |last: &str| Judge { approvals: Approvals::on(today, vec![approval(last)]), ..judge() };
    assert_eq!(held(&with("2026-03-31"), &facts(5), "-Namespace:n"), [""; 0]);
    assert_eq!(held(&with("2026-03-30"), &facts(5), "-Namespace:n").len(), 1, "over");
    assert_eq!(held(&with("soon"), &facts(5), "-Namespace:n").len(), 1, "no day");
    assert_eq!(held(&with("2026-03-31"), &facts(5), "-Namespace:m").len(), 1, "another name");
    let deletes = Facts { deletes: [thing("Namespace", "n")].into(), ..facts(1) };
    assert_eq!(held(&judge(), &deletes, "-Namespace:n"), [""; 0], "`delete: true` approves");
    let text = Approvals::text("x", &[&thing("Namespace", "n")], today);
    assert!(text.contains("expiration: \"2026-04-07\"") && text.contains("name: \"n\""), "{text}");
}

#[test]
fn nothing_goes_from_a_scope_that_is_not_known_even_if_it_is_approved() {
    let mut facts = facts(5);
    facts.blocked.insert(Scope::new([("cluster", "c")]), "it could not be read".to_owned());
    facts.deletes.insert(thing("ConfigMap", "a"));
    assert_eq!(held(&judge(), &facts, "-a +b"), ["a: it could not be read"]);
}

#[test]
fn things_are_counted_not_steps() {
    let (key, facts) = (ShardKey::default(), facts(50));
    let one: Vec<Change> =
        changes(&(0..11).map(|name| format!("-{name}")).collect::<Vec<_>>().join(" ")).concat();
    let proposal = Proposal { key: &key, facts: &facts, steps: vec![&one], groups: vec![1] };
    assert!(judge().judge(&[proposal])[0][0].is_some());
}

#[test]
fn nothing_goes_from_a_scope_that_was_not_read() {
    assert_eq!(held(&judge(), &Facts::default(), "-a +b"), ["a: `cluster=c` was not read"]);
}

#[test]
fn what_one_shard_does_not_know_of_a_scope_counts_for_the_others() {
    let (keys, mut blind) = (["a", "b"].map(|name| ShardKey::new([("name", name)])), Facts::default());
    blind.blocked.insert(Scope::new([("cluster", "c")]), "it could not be read".to_owned());
    let (seeing, steps) = (facts(5), changes("-x"));
    let steps: Vec<&[Change]> = steps.iter().map(Vec::as_slice).collect();
    let proposals = [
        Proposal { key: &keys[0], facts: &blind, steps: Vec::new(), groups: Vec::new() },
        Proposal { key: &keys[1], facts: &seeing, steps, groups: vec![1] },
    ];
    assert!(judge().judge(&proposals)[1][0].is_some());
}

#[test]
fn what_follows_a_held_step_in_its_group_is_held_too() {
    let (key, facts, steps) = (ShardKey::default(), facts(5), changes("+before -Namespace:n +after +other"));
    let steps: Vec<&[Change]> = steps.iter().map(Vec::as_slice).collect();
    let proposal = Proposal { key: &key, facts: &facts, steps, groups: vec![3, 1] };
    let held: Vec<bool> = judge().judge(&[proposal])[0].iter().map(Option::is_some).collect();
    assert_eq!(held, [false, true, true, false]);
}

#[test]
fn without_the_ledger_nothing_goes_unapproved() {
    let blind = Judge { unknown: Some("earlier removals are not known".to_owned()), ..judge() };
    assert_eq!(held(&blind, &facts(5), "-a +b"), ["a: earlier removals are not known"]);
}
