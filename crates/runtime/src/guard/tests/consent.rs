//! Removals that the declaration of a shard approves as a whole, and removals whose approval an integration
//! observed.

use super::*;
use crate::plan::FieldLoss;

fn consenting(consent: &RemovalConsent, there: usize) -> ShardFacts {
    ShardFacts { consent: consent.clone(), ..facts(there) }
}

#[test]
fn consent_approves_removals_past_the_budgets_but_not_of_protected_kinds() {
    let check = |consent: RemovalConsent, words: &str, expect: usize| {
        assert_eq!(held(&guard(), &consenting(&consent, 50), words).len(), expect, "{consent:?} {words}");
    };
    let many = removals(11);
    check(RemovalConsent::Named, &many, 11);
    check(RemovalConsent::Any, &many, 0);
    check(RemovalConsent::kinds(["ConfigMap"]), &many, 0);
    check(RemovalConsent::kinds(["Secret"]), &many, 11);
    // A protected kind must be named, even if the object is only replaced.
    check(RemovalConsent::Any, "-Namespace:n", 1);
    check(RemovalConsent::Any, "±Namespace:n", 1);
    check(RemovalConsent::kinds(["ConfigMap"]), "-Namespace:n", 1);
    check(RemovalConsent::kinds(["Namespace"]), "-Namespace:n ±Namespace:m", 0);
    // Approved removals do not count against the budget for removals without approval.
    let mixed =
        format!("{} {}", many, (0..10).map(|name| format!("-Secret:s{name}")).collect::<Vec<_>>().join(" "));
    check(RemovalConsent::kinds(["ConfigMap"]), &mixed, 0);
    check(RemovalConsent::kinds(["ConfigMap"]), &format!("{mixed} -Secret:one-more"), 11);
}

#[test]
fn a_scope_may_be_emptied_with_consent() {
    assert_eq!(held(&guard(), &consenting(&RemovalConsent::Any, 2), "-a -b"), [""; 0]);
    let part = consenting(&RemovalConsent::kinds(["Secret"]), 2);
    assert_eq!(held(&guard(), &part, "-Secret:a -b").len(), 1, "only what is not approved is held");
}

#[test]
fn consent_does_not_lift_what_is_unknown() {
    let mut blocked = consenting(&RemovalConsent::Any, 5);
    blocked.blocked.insert(scope(), "it could not be read".to_owned());
    assert_eq!(held(&guard(), &blocked, "-a"), ["a: it could not be read"]);
    let unread = ShardFacts { consent: RemovalConsent::Any, ..ShardFacts::default() };
    assert_eq!(held(&guard(), &unread, "-a"), ["a: `cluster=c` was not read"]);
}

#[test]
fn a_scope_of_several_shards_needs_the_consent_of_each() {
    let check = |consents: [RemovalConsent; 2], expect: usize| {
        let shard = |name: &str, consent: &RemovalConsent, words: &str| Proposal {
            key: ShardKey::new([("name", name)]),
            ..proposal(&consenting(consent, 1), &changes(words))
        };
        let proposals = [shard("a", &consents[0], "-x -y"), shard("b", &consents[1], "")];
        let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
        assert_eq!(refusals(&judged[0]).iter().flatten().count(), expect, "{consents:?}");
    };
    check([RemovalConsent::Any, RemovalConsent::Any], 0);
    check([RemovalConsent::Any, RemovalConsent::kinds(["ConfigMap"])], 0);
    check([RemovalConsent::Any, RemovalConsent::Named], 2);
    check([RemovalConsent::Named, RemovalConsent::Any], 2);
    check([RemovalConsent::Any, RemovalConsent::kinds(["Secret"])], 2);
}

#[test]
fn a_loss_of_keys_is_approved_only_for_kinds_that_are_named() {
    let check = |consent: RemovalConsent, expect: usize| {
        let loss = |name: usize| {
            let mut change = Change::new(ChangeKind::Change, thing("ConfigMap", &name.to_string()), "change");
            change.loss = Some(FieldLoss { lost: 5, of: 9, lists: 0, depends_on_secret: false });
            vec![change]
        };
        let steps: Vec<_> = (0..11).map(loss).collect();
        let verdict =
            judge(&guard(), proposal(&consenting(&consent, 50), &steps), Ok(&LedgerState::default()));
        assert_eq!(verdict.iter().flatten().count(), expect, "{consent:?}");
    };
    check(RemovalConsent::Any, 11);
    check(RemovalConsent::kinds(["ConfigMap"]), 0);
}

#[test]
fn a_removal_that_was_observed_to_be_approved_is_named() {
    let observed = |kind: &str, name: &str| ShardFacts { approved: [thing(kind, name)].into(), ..facts(5) };
    assert_eq!(held(&guard(), &observed("Namespace", "n"), "-Namespace:n"), [""; 0]);
    assert_eq!(held(&guard(), &observed("Namespace", "n"), "-Namespace:m").len(), 1);
    let mut blocked = observed("ConfigMap", "a");
    blocked.blocked.insert(scope(), "not read".to_owned());
    assert_eq!(held(&guard(), &blocked, "-a"), ["a: not read"]);
    // The consent approves only the removals of its own shard.
    let proposals = [
        Proposal { key: ShardKey::new([("name", "a")]), ..proposal(&observed("Namespace", "n"), &[]) },
        Proposal { key: ShardKey::new([("name", "b")]), ..proposal(&facts(5), &changes("-Namespace:n")) },
    ];
    let judged = guard().judge(&proposals, Ok(&LedgerState::default()));
    assert_eq!(refusals(&judged[1]).iter().flatten().count(), 1);
}
