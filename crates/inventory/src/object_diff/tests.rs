//! Tests the diff of a write and the parts of it that are shown.

use qontract_testkit::SeededRng;
use serde_json::{Value, json};

use super::{KeyLoss, LiveWriter, ObjectWrite, body_differences, diff};
use crate::compare::compare;
use crate::difference::{DifferenceSide, Disclosure, FieldDifference};
use crate::items::tests::IDENTIFY_CALLS;
use crate::mark::SENSITIVE;
use crate::object::{DesiredBody, LiveBody};

fn object(kind: &str, more: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn lines(differences: &[FieldDifference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

/// The printed diff, and the lost keys, if we own everything in `before`.
fn changed(kind: &str, before: &Value, after: &Value, disclosure: Disclosure<'_>) -> (Vec<String>, KeyLoss) {
    let [before, after] = [before, after].map(|side| object(kind, side));
    let (desired, live) = (DesiredBody::new(after.clone()).unwrap(), LiveBody::new(before));
    let (desired, live) = (&desired, &live);
    let (ours, declared) = (live.body(), &after);
    let write = ObjectWrite { desired, live, after: &after, ours, declared, writer: LiveWriter::Us };
    let diff = diff(&write, disclosure);
    (lines(&diff.differences), diff.loss)
}

#[track_caller]
fn check(before: Value, after: Value, expect: &[&str]) {
    let [before, after] = [before, after].map(|spec| json!({ "spec": spec }));
    assert_eq!(changed("Widget", &before, &after, Disclosure::Everything).0, expect);
}

#[track_caller]
fn check_loss(before: Value, after: Value, expect: [usize; 3]) {
    let [before, after] = [before, after].map(|spec| json!({ "spec": spec }));
    let KeyLoss { lost, of, lists } = changed("Widget", &before, &after, Disclosure::Everything).1;
    assert_eq!([lost, of, lists], expect);
}

#[test]
fn removed_changed_and_added_fields_are_shown_and_removed_ones_first() {
    check(
        json!({"hard": {"limits.memory": "8Gi", "pods": 5}, "b": 1}),
        json!({"hard": {"pods": 6}, "a": true, "b": 1}),
        &["spec.hard[\"limits.memory\"]: \"8Gi\" → absent", "spec.a: absent → true", "spec.hard.pods: 5 → 6"],
    );
    check(json!({"a": {"b": {"c": 1}}}), json!({"d": 1}), &["spec.a.b.c: 1 → absent", "spec.d: absent → 1"]);
    check(json!({"a": 1}), json!({"a": {"b": 2}}), &["spec.a: 1 → {\"b\":2}"]);
    check(json!({"a": 1.0}), json!({"a": 1}), &[]);
    check(json!({"requests": {"cpu": "1000m"}}), json!({"requests": {"cpu": 1}}), &[]);
}

#[test]
fn a_null_does_not_differ_from_an_absent_value() {
    for nothing in [json!(null), json!({"a": {"b": null}})] {
        check(json!({"a": nothing, "b": 1}), json!({"b": 1}), &[]);
        check(json!({"b": 1}), json!({"a": nothing, "b": 1}), &[]);
    }
}

#[test]
fn empty_maps_and_lists_are_values() {
    for empty in [json!({}), json!([])] {
        let removed = format!("spec.a.b: {empty} → absent");
        check(json!({"a": {"b": empty}, "c": 1}), json!({"c": 1}), &[&removed]);
        check(json!({"a": {"b": empty, "c": 1}}), json!({"a": {"c": 1}}), &[&removed]);
        let added = format!("spec.a.b: absent → {empty}");
        check(json!({"c": 1}), json!({"a": {"b": empty}, "c": 1}), &[&added]);
        check_loss(json!({"a": {"b": empty}, "c": 1}), json!({"c": 1}), [1, 2, 0]);
        check(json!({"a": empty}), json!({"a": empty}), &[]);
    }
    check(json!({"a": {"b": {}}}), json!({"a": {}}), &["spec.a.b: {} → absent"]);
    check(json!({"a": {"b": 1}}), json!({"a": {}}), &["spec.a.b: 1 → absent"]);
    check(json!({"a": {}}), json!({"a": {"b": {"c": 1}}}), &["spec.a.b.c: absent → 1"]);
    let peers = |peer: Value| json!({"ingress": [{"from": [peer]}]});
    check(
        peers(json!({"podSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}})),
        peers(json!({"podSelector": {"matchLabels": {"a": "b"}}})),
        &["spec.ingress[0].from[0].namespaceSelector: {} → absent"],
    );
    let before = json!({"metadata": {"name": "a", "annotations": {SENSITIVE: "false"}}, "spec": {"a": 1}});
    assert!(changed("Widget", &before, &json!({"spec": {"a": 1}}), Disclosure::Everything).0.is_empty());
}

#[test]
fn items_are_identified_by_their_names() {
    check(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        json!({"env": [{"name": "C", "value": "3"}, {"name": "B", "value": "4"}]}),
        &[
            "spec.env[A]: {\"name\":\"A\",\"value\":\"1\"} → absent",
            "spec.env[B].value: \"2\" → \"4\"",
            "spec.env[C]: absent → {\"name\":\"C\",\"value\":\"3\"}",
        ],
    );
    check(
        json!({"rules": [{"alert": "A", "expr": "1"}, {"record": "b", "expr": "2"}]}),
        json!({"rules": [{"record": "b", "expr": "3"}]}),
        &["spec.rules[A]: {\"alert\":\"A\",\"expr\":\"1\"} → absent", "spec.rules[b].expr: \"2\" → \"3\""],
    );
    let two = |one: &str, other: &str| json!({"steps": [{"name": one}, {"name": other}]});
    check(two("a", "b"), two("b", "a"), &["spec.steps: [\"a\",\"b\"] → [\"b\",\"a\"]"]);
    check(two("a", "b"), two("a", "b"), &[]);
}

#[test]
fn items_without_names_are_aligned() {
    check(json!({"args": ["a", "b", "c"]}), json!({"args": ["b", "c"]}), &["spec.args[0]: \"a\" → absent"]);
    check(
        json!({"args": ["a", "b"]}),
        json!({"args": ["a", "c", "d"]}),
        &["spec.args[1]: \"b\" → \"c\"", "spec.args[2]: absent → \"d\""],
    );
    check(json!({"l": [{"a": 1, "b": 2}]}), json!({"l": [{"a": 1}]}), &["spec.l[0].b: 2 → absent"]);
    check(json!({"l": [{}, {"a": 1}]}), json!({"l": [{"a": 1}]}), &["spec.l[0]: {} → absent"]);
}

#[test]
fn a_whole_list_is_shown_item_by_item() {
    check(
        json!({"args": ["a", "b"], "x": 1}),
        json!({"x": 1}),
        &["spec.args[0]: \"a\" → absent", "spec.args[1]: \"b\" → absent"],
    );
    check(
        json!({"env": [{"name": "A"}]}),
        json!({"env": [], "x": 1}),
        &["spec.env[A]: {\"name\":\"A\",\"value\":\"\"} → absent", "spec.x: absent → 1"],
    );
    check(json!({"x": 1}), json!({"x": 1, "l": ["a"]}), &["spec.l[0]: absent → \"a\""]);
}

#[test]
fn texts_are_whole() {
    check(json!({"t": "a\nb\n"}), json!({"t": "a\nc\n"}), &["spec.t: \"a\\nb\\n\" → \"a\\nc\\n\""]);
    let [long, other] = ["a", "b"].map(|letter| letter.repeat(500));
    check(json!({"t": long}), json!({"t": other}), &[&format!("spec.t: \"{long}\" → \"{other}\"")]);
    check(json!({"t": "a"}), json!({"t": "b"}), &["spec.t: \"a\" → \"b\""]);
    check(json!({"t": "a\nb\n"}), json!({"u": 1}), &["spec.t: \"a\\nb\\n\" → absent", "spec.u: absent → 1"]);
}

#[test]
fn lost_keys_are_counted() {
    check_loss(json!({"a": 1, "b": 2, "c": {"d": 3}}), json!({"a": 2, "e": 5}), [2, 3, 0]);
    check_loss(json!({"l": [1, 2, 3]}), json!({"l": [1, 3]}), [1, 3, 0]);
    check_loss(json!({"l": [1]}), json!({}), [1, 1, 1]);
    check_loss(json!({"l": [1], "m": [{"a": 1, "b": 2}, {}]}), json!({}), [4, 4, 2]);
    check_loss(
        json!({"l": [{"name": "a", "in": [1, 2]}, {"name": "b"}]}),
        json!({"l": [{"name": "b"}]}),
        [3, 4, 0],
    );
    check_loss(json!({"a": {"b": 1, "c": 2}}), json!({"a": "text"}), [2, 2, 0]);
    check_loss(json!({"a": [1, 2]}), json!({"a": "text"}), [2, 2, 1]);
    check_loss(json!({"a": "text"}), json!({"a": {"b": 1, "c": 2}}), [1, 1, 0]);
    check_loss(json!({"a": "text"}), json!({"a": "other"}), [0, 1, 0]);
}

#[test]
fn marks_and_server_fields_are_not_counted() {
    let marked = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "1", "annotations": {
        "qontract.integration": "x", "qontract.sha256sum": "y", "qontract.sensitive": "false", "qontract.recycle_pending": "z"}},
        "data": {"a": "1"}, "status": {"b": 1}});
    let after =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}});
    let desired = DesiredBody::new(after.clone()).unwrap();
    let write = ObjectWrite {
        desired: &desired,
        live: &LiveBody::new(marked.clone()),
        after: &after,
        ours: &marked,
        declared: &after,
        writer: LiveWriter::Us,
    };
    let diff = diff(&write, Disclosure::Everything);
    assert_eq!(diff.differences, []);
    assert_eq!(diff.loss, KeyLoss { lost: 0, of: 1, lists: 0 });
}

#[test]
fn server_defaults_are_not_shown() {
    let before = json!({"spec": {"ports": [{"name": "a", "port": 80, "protocol": "TCP", "targetPort": 80}], "type": "ClusterIP", "x": 1}});
    let after = json!({"spec": {"ports": [{"name": "a", "port": 80}]}});
    let (lines, loss) = changed("Service", &before, &after, Disclosure::Everything);
    assert_eq!((lines, loss.lost), (vec!["spec.x: 1 → absent".to_owned()], 1));
}

#[test]
fn a_default_depends_on_the_fields_beside_it_after_the_write() {
    let check = |before: Value, after: Value, expect: &[&str]| {
        let [before, after] = [before, after].map(|spec| json!({ "spec": spec }));
        let (lines, loss) = changed("Service", &before, &after, Disclosure::Everything);
        assert_eq!(lines, expect);
        assert_eq!((loss.lost, loss.lists), (lines.iter().filter(|it| it.ends_with("absent")).count(), 0));
    };
    let port = |port: Value| json!({"ports": [port]});
    check(
        port(json!({"name": "a", "port": 80, "targetPort": 8080})),
        port(json!({"name": "a", "port": 80})),
        &["spec.ports[a].targetPort: 8080 → absent"],
    );
    check(
        port(json!({"name": "a", "port": 80, "targetPort": 80})),
        port(json!({"name": "a", "port": 81})),
        &["spec.ports[a].targetPort: 80 → absent", "spec.ports[a].port: 80 → 81"],
    );
    check(
        json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "x": 1}),
        json!({"x": 1}),
        &[],
    );
}

#[test]
fn only_paths_of_a_secret_are_shown() {
    let (before, after) =
        (json!({"data": {"a": "MQ==", "b": "Mg=="}}), json!({"data": {"b": "Mw==", "c": "NA=="}}));
    let expect = ["data.a: removed", "data.b: changed", "data.c: added"];
    for disclosure in [Disclosure::Everything, Disclosure::Paths] {
        assert_eq!(changed("Secret", &before, &after, disclosure).0, expect);
    }
    assert_eq!(changed("ConfigMap", &before, &after, Disclosure::Paths).0, expect);
    let nothing = changed("ConfigMap", &before, &after, Disclosure::Nothing);
    assert_eq!(nothing.0, ["object: content that depends on a secret differs"]);
    assert_eq!(nothing.1.lost, 1);
    assert_eq!(changed("ConfigMap", &before, &before, Disclosure::Nothing).0, [""; 0]);
}

#[test]
fn names_of_fields_that_may_come_from_a_secret_are_counted() {
    let (before, after) =
        (json!({"data": {"a": "1", "b": "2"}, "x": 1}), json!({"data": {"b": "3", "c": "4"}, "x": 2}));
    let declared = object("ConfigMap", &json!({"data": {"b": "?"}, "x": 2}));
    let expect = ["data: 2 fields that come from a secret differ", "data.b: changed", "x: changed"];
    assert_eq!(changed("ConfigMap", &before, &after, Disclosure::PathsOf(&declared)).0, expect);
}

#[test]
fn names_of_removed_fields_are_not_shown_if_a_secret_was_used() {
    let marked = |data: Value| json!({"data": data, "metadata": {"name": "a", "annotations": {"qontract.sensitive": "true"}}});
    let (before, after) = (marked(json!({"hunter2": "1", "b": "x\ny"})), json!({"data": {"b": "x\nz"}}));
    let expect = ["data.b: changed", "data: 1 field that comes from a secret differs"];
    assert_eq!(changed("ConfigMap", &before, &after, Disclosure::Everything).0, expect);
}

#[test]
fn values_that_another_tool_wrote_are_not_shown() {
    let (before, after) = (
        object("ConfigMap", &json!({"data": {"a": "1", "b": "2", "t": "x\nhunter2\n"}})),
        object("ConfigMap", &json!({"data": {"b": "3", "c": "4", "t": "x\nz\n"}})),
    );
    let (desired, live) = (DesiredBody::new(after.clone()).unwrap(), LiveBody::new(before));
    let sides = |writer: LiveWriter<'_>| {
        let (desired, live, after) = (&desired, &live, &after);
        let write = ObjectWrite { desired, live, after, ours: live.body(), declared: after, writer };
        diff(&write, Disclosure::Everything).differences
    };
    let one = |path: &str, before: DifferenceSide, after: DifferenceSide| FieldDifference {
        path: path.to_owned(),
        before,
        after,
    };
    let shown = |text: &str| DifferenceSide::Shown(json!(text));
    assert_eq!(
        sides(LiveWriter::Others),
        [
            one("data.a", DifferenceSide::Hidden, DifferenceSide::Absent),
            one("data.b", DifferenceSide::Hidden, shown("3")),
            one("data.c", DifferenceSide::Absent, shown("4")),
            one("data.t", DifferenceSide::Hidden, shown("x\nz\n")),
        ]
    );
    let others = object("ConfigMap", &json!({"data": {"a": "1"}}));
    assert_eq!(
        lines(&sides(LiveWriter::UsAndOthers { others: &others })),
        [
            "data.a: removed",
            "data.b: \"2\" → \"3\"",
            "data.c: absent → \"4\"",
            "data.t: \"x\\nhunter2\\n\" → \"x\\nz\\n\""
        ]
    );
}

#[test]
fn removed_values_are_shown_only_if_they_have_no_other_owner() {
    let check = |before: Value, others: Value, expect: &[&str]| {
        let [live, others] = [before, others].map(|spec| object("Widget", &json!({ "spec": spec })));
        let after = object("Widget", &json!({"spec": {"x": 1}}));
        let (desired, live) = (DesiredBody::new(after.clone()).unwrap(), LiveBody::new(live));
        let write = ObjectWrite {
            desired: &desired,
            live: &live,
            after: &after,
            ours: live.body(),
            declared: &after,
            writer: LiveWriter::UsAndOthers { others: &others },
        };
        assert_eq!(lines(&diff(&write, Disclosure::Everything).differences), expect);
    };
    check(json!({"x": 1, "l": ["a"]}), json!({}), &["spec.l[0]: \"a\" → absent"]);
    check(
        json!({"x": 1, "m": {"a": 1, "b": 2}}),
        json!({"m": {"b": 2}}),
        &["spec.m.a: 1 → absent", "spec.m.b: removed"],
    );
    // Positions do not identify the owner of each of these items.
    check(
        json!({"x": 1, "l": ["a", "b"]}),
        json!({"l": ["b"]}),
        &["spec.l[0]: removed", "spec.l[1]: removed"],
    );
}

#[test]
fn a_body_is_shown_within_its_disclosure() {
    let desired = |kind: &str| {
        DesiredBody::new(object(kind, &json!({"data": {"a": "1"}, "list": [{"name": "x"}]}))).unwrap()
    };
    assert_eq!(
        lines(&body_differences(&desired("ConfigMap"), Disclosure::Everything)),
        ["data.a: absent → \"1\"", "list[x]: absent → {\"name\":\"x\"}",]
    );
    assert_eq!(
        lines(&body_differences(&desired("Secret"), Disclosure::Everything)),
        ["data.a: added", "list[x]: added"]
    );
    let declared = object("Secret", &json!({"list": []}));
    let expect = [
        "object: 1 field that comes from a secret differs",
        "list: 1 field that comes from a secret differs",
    ];
    assert_eq!(lines(&body_differences(&desired("Secret"), Disclosure::PathsOf(&declared))), expect);
    assert_eq!(
        lines(&body_differences(&desired("ConfigMap"), Disclosure::Nothing)),
        ["object: content that depends on a secret differs"]
    );
}

#[test]
fn a_body_has_all_fields_of_large_items() {
    let env: Vec<Value> = (0..20).map(|number| json!({"name": format!("E{number}"), "value": "x"})).collect();
    let spec = json!({"containers": [{"name": "web", "image": "web:1", "env": env}]});
    let desired = DesiredBody::new(object("Pod", &json!({ "spec": spec }))).unwrap();
    let shown = lines(&body_differences(&desired, Disclosure::Everything));
    assert_eq!(shown.len(), 22);
    assert_eq!(shown[19], "spec.containers[web].env[E19]: absent → {\"name\":\"E19\",\"value\":\"x\"}");
    assert_eq!(shown[21], "spec.containers[web].name: absent → \"web\"");
    assert_eq!(lines(&body_differences(&desired, Disclosure::Paths)), ["spec.containers[web]: added"]);
}

#[test]
fn a_small_item_of_a_body_and_an_added_item_of_any_size_are_one_field() {
    let container = |variables: usize| {
        let env: Vec<Value> =
            (0..variables).map(|number| json!({"name": format!("E{number}"), "value": "x"})).collect();
        json!({"name": "web", "image": "web:1", "env": env})
    };
    let body = |variables: usize| {
        let spec = json!({"containers": [container(variables)]});
        let desired = DesiredBody::new(object("Pod", &json!({ "spec": spec }))).unwrap();
        lines(&body_differences(&desired, Disclosure::Everything)).len()
    };
    // An item with 16 values is shown as one field, and an item with 18 values is not.
    assert_eq!((body(7), body(8)), (1, 10));
    let side = |containers: Value| json!({"spec": {"containers": containers}});
    let other = json!({"name": "side", "image": "side:1"});
    let (before, after) = (side(json!([other])), side(json!([other, container(20)])));
    assert_eq!(changed("Pod", &before, &after, Disclosure::Everything).0.len(), 1);
}

#[test]
fn declared_keys_of_another_owner_count() {
    let before = object("Widget", &json!({"spec": {"l": [1, 2, 3, 4], "x": 1}}));
    let after = object("Widget", &json!({"spec": {"l": [1, 2, 3], "x": 1, "new": 2}}));
    let (desired, live) = (DesiredBody::new(after.clone()).unwrap(), LiveBody::new(before.clone()));
    let write = ObjectWrite {
        desired: &desired,
        live: &live,
        after: &after,
        ours: &before,
        declared: &after,
        writer: LiveWriter::Us,
    };
    assert_eq!(diff(&write, Disclosure::Everything).loss, KeyLoss { lost: 1, of: 5, lists: 0 });
}

#[test]
fn defaults_that_are_removed_with_a_field_are_not_lost_keys() {
    let probe = json!({"httpGet": {"path": "/health", "port": 80}});
    let live_probe = json!({"httpGet": {"path": "/health", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
        "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
    let side = json!({"name": "side", "image": "s"});
    let live_side = json!({"name": "side", "image": "s", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"});
    let pod = |containers: Value| object("Pod", &json!({"spec": {"containers": containers}}));
    let web = |probe: &Value| json!({"name": "web", "image": "w", "livenessProbe": probe});
    let (live, ours) = (pod(json!([web(&live_probe), live_side])), pod(json!([web(&probe), side])));
    let after = pod(json!([{"name": "web", "image": "w"}]));
    let (desired, live) = (DesiredBody::new(after.clone()).unwrap(), LiveBody::new(live));
    let (desired, live, after) = (&desired, &live, &after);
    let write = ObjectWrite { desired, live, after, ours: &ours, declared: after, writer: LiveWriter::Us };
    let diff = diff(&write, Disclosure::Everything);
    assert_eq!(diff.loss, KeyLoss { lost: 4, of: 6, lists: 0 });
    assert_eq!(diff.differences.len(), 8, "{:?}", lines(&diff.differences));
}

/// Random items `{name, value}` with unique names, in random order.
fn named_items(chance: &mut SeededRng) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    for name in 0..8 {
        if chance.percent(60) {
            items.insert(chance.below(items.len() + 1), (name, chance.below(2)));
        }
    }
    items
}

#[test]
fn lists_with_names_are_compared_as_if_each_name_were_looked_up_by_a_scan() {
    for seed in 0..300 {
        let chance = &mut SeededRng::new(seed);
        let (before, after) = (named_items(chance), named_items(chance));
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let find = |items: &[(usize, usize)], name: usize| items.iter().position(|item| item.0 == name);
        let (mut removed, mut others, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in &before {
            match find(&after, *name) {
                None => removed.push(format!("spec.items[n{name}]")),
                Some(position) => {
                    order.push(position);
                    if after[position].1 != *value {
                        others.push(format!("spec.items[n{name}].value"));
                    }
                }
            }
        }
        let added = after.iter().filter(|(name, _)| find(&before, *name).is_none());
        others.extend(added.map(|(name, _)| format!("spec.items[n{name}]")));
        others.extend((!order.is_sorted()).then(|| "spec.items".to_owned()));
        removed.extend(others);
        let body = |items: &[(usize, usize)]| {
            let item = |(name, value): &(usize, usize)| json!({"name": format!("n{name}"), "value": value});
            json!({"spec": {"items": items.iter().map(item).collect::<Vec<_>>()}})
        };
        let (lines, _) = changed("Widget", &body(&before), &body(&after), Disclosure::Paths);
        let paths: Vec<&str> = lines.iter().filter_map(|line| Some(line.rsplit_once(": ")?.0)).collect();
        assert_eq!(paths, removed, "seed {seed}");
    }
}

#[test]
fn the_work_grows_with_the_length_of_a_list_and_not_with_its_square() {
    let count = 1_000;
    let body = |range: std::ops::Range<usize>, value: usize| {
        let item = |number: usize| json!({"name": format!("n{number}"), "value": value});
        json!({"spec": {"env": range.map(item).collect::<Vec<_>>()}})
    };
    let (before, after) = (body(0..count, 1), body(count / 2..count * 3 / 2, 2));
    let declared = object("Widget", &body(0..count, 0));
    let check = |disclosure: Disclosure<'_>, most: usize| {
        IDENTIFY_CALLS.set(0);
        let (lines, loss) = changed("Widget", &before, &after, disclosure);
        assert_eq!((lines.len() > count / 2, loss.lost), (true, count));
        assert!(IDENTIFY_CALLS.get() <= most, "{} names for {count} items", IDENTIFY_CALLS.get());
    };
    check(Disclosure::Everything, 4 * count);
    check(Disclosure::PathsOf(&declared), 9 * count);
    IDENTIFY_CALLS.set(0);
    let (desired, live) =
        (DesiredBody::new(object("Widget", &after)).unwrap(), LiveBody::new(object("Widget", &before)));
    let found = compare(&desired, &live, Disclosure::PathsOf(&declared)).differences();
    assert_eq!(found.len(), count / 2 + 1, "half of the items are not visible");
    assert!(IDENTIFY_CALLS.get() <= 8 * count, "{} names for {count} items", IDENTIFY_CALLS.get());
}
