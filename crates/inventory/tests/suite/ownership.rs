//! Ownership rules and the resulting verdicts: each test is one rule, each line of it one row.

use std::collections::BTreeSet;

use qontract_inventory::{
    Callers, DesiredBody, Disclosure, LiveBody, ObjectIntent, Owner, PresentIntent, PreviousOwner,
    Replacement, Verdict, decide, to_write,
};
use serde_json::{Value, json};

const NOW: &str = "2024-05-01T12:00:00";

/// The intent of the data.
#[derive(Clone, Copy)]
enum Intent {
    Present,
    Moved,
    Delete,
    Nothing,
}
use Intent::{Delete, Moved, Nothing, Present};

fn body() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}})
}

fn owner(integration: &str, caller: &str) -> Owner {
    Owner::of(integration, Some(caller.to_owned()).filter(|it| !it.is_empty())).unwrap()
}

/// The object as this integration wrote it for this caller.
fn written(integration: &str, caller: &str) -> Value {
    to_write(&DesiredBody::new(body()).unwrap(), None, &owner(integration, caller), NOW)
}

/// The object with another value at a pointer.
fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
    object
}

/// Prints a verdict in one line.
fn describe(verdict: Verdict) -> String {
    let (word, differences) = match verdict {
        Verdict::Keep => return "keep".to_owned(),
        Verdict::Create => return "create".to_owned(),
        Verdict::Recreate => return "recreate".to_owned(),
        Verdict::Remove => return "remove".to_owned(),
        Verdict::Leave(why) => return format!("leave: {why}"),
        Verdict::Wait(text) => return format!("wait: {text}"),
        Verdict::Refuse(text) => return format!("refuse: {text}"),
        Verdict::Change { differences } => ("change".to_owned(), differences),
        Verdict::Adopt { differences } => ("adopt".to_owned(), differences),
        Verdict::TakeOver { from: PreviousOwner::Caller(name), differences } => {
            (format!("take over from caller {name}"), differences)
        }
        Verdict::TakeOver { from: PreviousOwner::Integration(name), differences } => {
            (format!("take over from {name}"), differences)
        }
        Verdict::Replace { fields, differences } => {
            (format!("replace for {}", fields.join(" ")), differences)
        }
    };
    format!("{word}: {}", differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn decided(owner: &Owner, callers: &Callers, say: Intent, desired: Value, live: Option<Value>) -> String {
    let desired = DesiredBody::new(desired).unwrap();
    let from: BTreeSet<String> = match say {
        Moved => [String::from("openshift_resources")].into(),
        Present | Delete | Nothing => BTreeSet::new(),
    };
    let wanted = match say {
        Present | Moved => ObjectIntent::Present(PresentIntent {
            body: &desired,
            moved_from: &from,
            disclosure: Disclosure::Everything,
            replacement: Replacement::WithoutPods,
        }),
        Delete => ObjectIntent::Delete,
        Nothing => ObjectIntent::Absent,
    };
    describe(decide(owner, callers, wanted, live.map(LiveBody::new).as_ref()))
}

fn whole() -> Callers {
    Callers::Whole(["one".to_owned(), "two".to_owned()].into())
}

/// Checks the verdict of `openshift-saas-deploy` for caller `one`, while `one` and `two` are in the data.
fn check(say: Intent, live: Option<Value>, expect: &str) {
    let found = decided(&owner("openshift-saas-deploy", "one"), &whole(), say, body(), live);
    assert!(found.starts_with(expect), "`{found}` does not begin with `{expect}`");
}

const SAAS: &str = "openshift-saas-deploy";

#[test]
fn a_missing_object_is_created_if_it_is_desired() {
    check(Present, None, "create");
    check(Delete, None, "keep");
    check(Nothing, None, "keep");
}

#[test]
fn our_object_is_updated_or_removed() {
    check(Present, Some(written(SAAS, "one")), "keep");
    check(Present, Some(with(written(SAAS, "one"), "/data/x", json!("2"))), "change: data.x: \"2\" → \"1\"");
    check(Delete, Some(written(SAAS, "one")), "remove");
    check(Nothing, Some(written(SAAS, "one")), "remove");
}

#[test]
fn the_object_of_another_living_caller_is_never_touched() {
    let text = "refuse: ConfigMap `a` belongs to caller `two` of `openshift-saas-deploy` and is in the data of \
                caller `one` of `openshift-saas-deploy`: keep it in one of the two";
    check(Present, Some(written(SAAS, "two")), text);
    check(Moved, Some(written(SAAS, "two")), text);
    check(Present, Some(with(written(SAAS, "two"), "/data/x", json!("2"))), text);
    check(Delete, Some(written(SAAS, "two")), text);
    check(Nothing, Some(written(SAAS, "two")), "leave: it belongs to caller `two`");
}

#[test]
fn the_object_of_a_caller_that_is_gone_is_taken_over_only_if_it_is_desired() {
    let gone = || Some(written(SAAS, "old"));
    check(Present, gone(), "take over from caller old: qontract.caller_name: \"old\" → \"one\"");
    check(Delete, gone(), "remove");
    check(Nothing, gone(), "leave: it belongs to caller `old`");
}

#[test]
fn an_integration_that_no_longer_names_callers_is_told_what_to_do() {
    let found = decided(&owner(SAAS, ""), &Callers::Unknown, Present, body(), Some(written(SAAS, "shop")));
    assert!(found.starts_with("refuse: ConfigMap `a` belongs to caller `shop`"), "{found}");
    let hint = "without a caller: name the caller `shop` again, or remove the annotation `qontract.caller_name` from the object";
    assert!(found.ends_with(hint), "{found}");
}

#[test]
fn a_part_of_the_data_does_not_show_that_a_caller_is_gone() {
    for caller in ["two", "old"] {
        for say in [Present, Delete] {
            let found =
                decided(&owner(SAAS, "one"), &Callers::Unknown, say, body(), Some(written(SAAS, caller)));
            assert!(found.starts_with("refuse: ConfigMap `a` belongs to caller"), "{found}");
            assert!(found.ends_with("can only be determined by a run over the whole data"), "{found}");
        }
        let found =
            decided(&owner(SAAS, "one"), &Callers::Unknown, Nothing, body(), Some(written(SAAS, caller)));
        assert_eq!(found, format!("leave: it belongs to caller `{caller}`"));
    }
    assert_eq!(
        decided(&owner(SAAS, "one"), &Callers::Unknown, Nothing, body(), Some(written(SAAS, "one"))),
        "remove"
    );
}

#[test]
fn an_object_without_a_caller_is_claimed_by_the_one_that_declares_it() {
    let unclaimed = || Some(written(SAAS, ""));
    check(Present, unclaimed(), "change: qontract.caller_name: absent → \"one\"");
    check(Delete, unclaimed(), "remove");
    check(Nothing, unclaimed(), "leave: it has no caller");
}

#[test]
fn an_owner_without_a_caller_respects_callers() {
    let check = |say, caller, expect: &str| {
        let found = decided(&owner(SAAS, ""), &whole(), say, body(), Some(written(SAAS, caller)));
        assert!(found.starts_with(expect), "`{found}` does not begin with `{expect}`");
    };
    check(Present, "two", "refuse: ConfigMap `a` belongs to caller `two`");
    check(Present, "old", "take over from caller old: qontract.caller_name: \"old\" → absent");
    check(Nothing, "two", "leave");
    check(Nothing, "old", "leave");
}

#[test]
fn callers_of_another_integration_are_not_ours() {
    let theirs = || Some(written("openshift-resources", "one"));
    check(
        Present,
        theirs(),
        "refuse: ConfigMap `a` belongs to `openshift_resources` and is in the data of caller `one` of `openshift-saas-deploy`",
    );
    check(Nothing, theirs(), "leave: it belongs to `openshift_resources`");
}

#[test]
fn the_object_of_another_integration_is_taken_over_only_if_the_data_moved_it() {
    let theirs = || Some(written("openshift-resources", ""));
    check(Present, theirs(), "refuse: ConfigMap `a` belongs to `openshift_resources`");
    check(
        Moved,
        theirs(),
        "take over from openshift_resources: qontract.integration: \"openshift_resources\" → \"openshift-saas-deploy\"; \
         qontract.integration_version: \"1.9.3\" → \"0.1.0\"; qontract.caller_name: absent → \"one\"",
    );
    check(
        Moved,
        Some(written("openshift-routes", "")),
        "refuse: ConfigMap `a` belongs to `openshift-routes`",
    );
    check(Delete, theirs(), "refuse: ConfigMap `a` belongs to `openshift_resources`");
    check(Nothing, theirs(), "leave: it belongs to `openshift_resources`");
}

#[test]
fn an_unmarked_object_is_adopted_if_it_is_desired() {
    check(Present, Some(body()), "adopt: qontract.sha256sum: absent → ");
    check(Present, Some(with(body(), "/data/x", json!("2"))), "adopt: data.x: \"2\" → \"1\"");
    check(Delete, Some(body()), "remove");
    check(Nothing, Some(body()), "leave: it is unmarked");
    let half =
        with(body(), "/metadata/annotations", json!({"qontract.sha256sum": "x", "qontract.recycle": "true"}));
    check(Nothing, Some(half), "leave: it is unmarked");
}

#[test]
fn an_object_with_a_controller_is_left_to_it() {
    let owners = json!([{"kind": "Operator", "name": "b", "controller": true}]);
    let controlled = |object: Value| Some(with(object, "/metadata/ownerReferences", owners.clone()));
    check(
        Present,
        controlled(body()),
        "refuse: ConfigMap `a` is controlled by Operator `b` and is in the data of caller `one`",
    );
    check(Delete, controlled(body()), "refuse: ConfigMap `a` is controlled by Operator `b`");
    check(Nothing, controlled(body()), "leave: it is controlled by Operator `b`");
    check(Nothing, controlled(written(SAAS, "one")), "leave: it is controlled by Operator `b`");
    check(Present, controlled(written(SAAS, "one")), "keep");
    let owned = with(body(), "/metadata/ownerReferences", json!([{"kind": "Operator", "name": "b"}]));
    check(Present, Some(owned), "adopt");
}

#[test]
fn the_object_of_another_major_version_is_updated_and_not_removed() {
    let version = |version: &str| {
        Some(with(written(SAAS, "one"), "/metadata/annotations/qontract.integration_version", json!(version)))
    };
    check(Present, version("0.9.0"), "keep");
    check(Present, version("1.0.0"), "change: qontract.integration_version: \"1.0.0\" → \"0.1.0\"");
    check(Present, version("odd"), "change: qontract.integration_version: \"odd\" → \"0.1.0\"");
    check(Nothing, version("1.0.0"), "leave: it was written by version 1.0.0");
    check(Delete, version("1.0.0"), "remove");
}

#[test]
fn an_object_without_a_hash_is_updated_and_not_removed() {
    let bare = || Some(with(written(SAAS, "one"), "/metadata/annotations/qontract.sha256sum", Value::Null));
    check(Present, bare(), "change: qontract.sha256sum: absent → ");
    check(Nothing, bare(), "leave: it was written by version 0.1.0");
    check(Delete, bare(), "remove");
}

#[test]
fn an_object_that_is_being_removed_is_waited_for() {
    let going = |object: Value| Some(with(object, "/metadata/deletionTimestamp", json!(NOW)));
    for object in [body(), written(SAAS, "one"), written(SAAS, "two"), written("openshift-resources", "")] {
        check(Present, going(object.clone()), "wait: ConfigMap `a` is being removed");
        check(Delete, going(object), "wait: ConfigMap `a` is being removed");
    }
    check(Nothing, going(written(SAAS, "one")), "wait");
    check(Nothing, going(body()), "leave");
}

/// Whether the removal of a workload is waited for within the step that creates it again.
#[test]
fn a_workload_that_is_being_replaced_is_created_again_in_one_step() {
    let object =
        |kind: &str| json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {}});
    let check = |kind: &str, caller: &str, replacement: Replacement, expect: &str| {
        let (desired, owner) = (DesiredBody::new(object(kind)).unwrap(), owner(SAAS, "one"));
        let live = to_write(&desired, None, &self::owner(SAAS, caller), NOW);
        let live = LiveBody::new(with(live, "/metadata/deletionTimestamp", json!(NOW)));
        let (disclosure, moved_from) = (Disclosure::Everything, BTreeSet::new());
        let intent = PresentIntent { body: &desired, moved_from: &moved_from, disclosure, replacement };
        let found = describe(decide(&owner, &whole(), ObjectIntent::Present(intent), Some(&live)));
        assert!(found.starts_with(expect), "{kind} of {caller}: {found}");
    };
    check("Deployment", "one", Replacement::WithPods, "recreate");
    check("StatefulSet", "one", Replacement::WithPods, "recreate");
    check("Deployment", "one", Replacement::WithoutPods, "wait");
    check("Deployment", "two", Replacement::WithPods, "wait");
    check("DaemonSet", "one", Replacement::WithPods, "wait");
}

#[test]
fn an_object_of_argo_is_left_to_it() {
    let argo = |object: Value| {
        Some(with(object, "/metadata/labels", json!({"app.kubernetes.io/part-of": "argocd"})))
    };
    check(
        Present,
        argo(body()),
        "refuse: ConfigMap `a` belongs to Argo CD and is in the data of caller `one`",
    );
    check(Present, argo(written(SAAS, "one")), "refuse: ConfigMap `a` belongs to Argo CD");
    check(Delete, argo(body()), "refuse: ConfigMap `a` belongs to Argo CD");
    check(Delete, argo(written(SAAS, "one")), "remove");
    check(Nothing, argo(written(SAAS, "one")), "leave: it belongs to Argo CD");
    check(Nothing, argo(body()), "leave: it belongs to Argo CD");
    let ours = argo(body()).unwrap();
    let found = decided(&owner(SAAS, "one"), &whole(), Present, ours.clone(), Some(ours));
    assert!(found.starts_with("adopt"), "{found}");
}

/// Checks the verdict if the same caller declares another object than it wrote.
fn check_change(kind: [&str; 2], before: Value, after: Value, expect: &str) {
    let object = |more: Value| {
        let mut object = json!({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let owner = owner(SAAS, "one");
    let written = to_write(&DesiredBody::new(object(before)).unwrap(), None, &owner, NOW);
    let found = decided(&owner, &whole(), Present, object(after), Some(written));
    assert!(found.starts_with(expect), "`{found}` does not begin with `{expect}`");
}

#[test]
fn changes_of_immutable_fields_are_replaced_or_refused() {
    let role = |name: &str| json!({"roleRef": {"name": name}});
    check_change(
        ["rbac.authorization.k8s.io/v1", "RoleBinding"],
        role("a"),
        role("b"),
        "replace for roleRef: roleRef.name: \"a\" → \"b\"",
    );
    check_change(
        ["v1", "Secret"],
        json!({"type": "a"}),
        json!({"type": "b"}),
        "replace for type: type: changed",
    );
    let selector = |label: &str| json!({"spec": {"selector": {"matchLabels": {"app": label}}}});
    check_change(
        ["apps/v1", "Deployment"],
        selector("a"),
        selector("b"),
        "refuse: Deployment `a` has immutable fields that differ from the declaration of caller `one`",
    );
    check_change(
        ["custom/v1", "Deployment"],
        selector("a"),
        selector("b"),
        "change: spec.selector.matchLabels.app",
    );
}

#[test]
fn an_unmarked_object_is_not_replaced() {
    let secret =
        |kind: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": kind});
    let found = decided(&owner(SAAS, "one"), &whole(), Present, secret("a"), Some(secret("b")));
    assert!(
        found.starts_with("refuse: Secret `a` is unmarked and has immutable fields that differ"),
        "{found}"
    );
}

#[test]
fn the_hash_shows_that_a_field_is_no_longer_declared() {
    check_change(
        ["v1", "ConfigMap"],
        json!({"data": {"x": "1", "y": "2"}}),
        json!({"data": {"x": "1"}}),
        "change: qontract.sha256sum: \"",
    );
}
