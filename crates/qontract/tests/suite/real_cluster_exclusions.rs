//! Tests that fields which exclude declared ones are removed on a real API server if they were set by hand, and
//! are conflicts if a program owns them.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::web_deployment::{RESOURCES, WebFixture};

const CONTAINER: &str = "\
env:
- {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}
- {name: C, value: '2'}
- {name: D, valueFrom: {configMapKeyRef: {name: c, key: k}}}
livenessProbe: {httpGet: {path: /, port: 80}}
lifecycle: {preStop: {httpGet: {path: /, port: 80}}}
";
const POD: &str = "volumes:\n- {name: u, emptyDir: {}}\n- {name: v, configMap: {name: c}}\n";
const STRATEGY: &str = "strategy: {type: Recreate}\n";

/// The fields that [`manual_change`] adds, and the declared ones that they exclude.
const EXCLUSIONS: [[&str; 2]; 8] = [
    ["spec.strategy.rollingUpdate", "type: Recreate"],
    ["spec.template.spec.containers[web].env[B].value", "valueFrom"],
    ["spec.template.spec.containers[web].env[C].valueFrom", "value"],
    ["spec.template.spec.containers[web].env[D].valueFrom.fieldRef", "configMapKeyRef"],
    ["spec.template.spec.containers[web].lifecycle.preStop.exec", "httpGet"],
    ["spec.template.spec.containers[web].livenessProbe.exec", "httpGet"],
    ["spec.template.spec.volumes[u].secret", "emptyDir"],
    ["spec.template.spec.volumes[v].emptyDir", "configMap"],
];

/// A strategic merge patch that replaces declared fields by others.
fn manual_change() -> Value {
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let exec = json!({"httpGet": null, "exec": {"command": ["true"]}});
    let env = json!([
        {"name": "B", "valueFrom": null, "value": "manual"},
        {"name": "C", "value": null, "valueFrom": field},
        {"name": "D", "valueFrom": {"configMapKeyRef": null, "fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    let container = json!({"name": "web", "env": env, "livenessProbe": exec, "lifecycle": {"preStop": exec}});
    let volumes = json!([
        {"name": "u", "emptyDir": null, "secret": {"secretName": "s"}},
        {"name": "v", "configMap": null, "emptyDir": {}},
    ]);
    json!({"spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}},
        "template": {"spec": {"containers": [container], "volumes": volumes}},
    }})
}

/// The Deployment as declared, on the cluster.
fn declared() -> WebFixture {
    let fixture = WebFixture::new();
    fixture.declare_pod(CONTAINER, POD, STRATEGY);
    fixture.apply();
    fixture
}

fn patch(fixture: &WebFixture, manager: &str, patch: &Value) {
    let (manager, patch) = (format!("--field-manager={manager}"), patch.to_string());
    fixture.kubectl(&["patch", "deployment", "web", &manager, "-p", &patch], "");
}

/// Applies fields on the server as `kubectl`, also those of others.
fn apply_server_side(fixture: &WebFixture, fields: &Value) {
    let mut manifest = without_nulls(fields);
    (manifest["apiVersion"], manifest["kind"]) = (json!("apps/v1"), json!("Deployment"));
    manifest["metadata"] = json!({"name": "web"});
    let words = ["apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-"];
    fixture.kubectl(&words, &manifest.to_string());
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

/// Removes the owners of all fields.
fn remove_owners(fixture: &WebFixture) {
    let words = ["patch", "deployment", "web", "--type=merge", "-p"];
    fixture.kubectl(&[&words[..], &[r#"{"metadata":{"managedFields":[{}]}}"#]].concat(), "");
    assert_eq!(fixture.web()["metadata"].get("managedFields"), None);
}

/// The live Deployment as a manifest without marks, after it was removed.
fn remove(fixture: &WebFixture) -> String {
    let live = fixture.web();
    fixture.kubectl(&["delete", "deployment", "web"], "");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": live["spec"]})
        .to_string()
}

#[track_caller]
fn check_spec(fixture: &WebFixture) {
    let spec = fixture.web()["spec"].clone();
    let container = &spec["template"]["spec"]["containers"][0];
    let key = json!({"configMapKeyRef": {"name": "c", "key": "k"}});
    let env = json!([{"name": "B", "valueFrom": key}, {"name": "C", "value": "2"}, {"name": "D", "valueFrom": key}]);
    assert_eq!(container["env"], env);
    for handler in [&container["livenessProbe"], &container["lifecycle"]["preStop"]] {
        assert_eq!((handler.get("exec"), &handler["httpGet"]["port"]), (None, &json!(80)));
    }
    let volumes = &spec["template"]["spec"]["volumes"];
    assert_eq!((volumes[0].get("secret"), &volumes[0]["emptyDir"]), (None, &json!({})));
    assert_eq!((volumes[1].get("emptyDir"), &volumes[1]["configMap"]["name"]), (None, &json!("c")));
    assert_eq!(spec["strategy"], json!({"type": "Recreate"}));
}

/// Plans and applies the declaration. The plan names the removed fields, and who set them.
#[track_caller]
fn check(fixture: &WebFixture, origin: &str) {
    let (code, predicted) = fixture.run(RESOURCES, &["--dry-run"]);
    assert_eq!(code, 0, "{predicted}");
    let plan = fixture.apply();
    for text in [&predicted, &plan] {
        for [field, declared] in EXCLUSIONS {
            let note = format!("removes `{field}`, which {origin} excludes the declared `{declared}`");
            // Not every writer owns an empty map.
            let is_empty_map = field.ends_with("emptyDir");
            let of_any = format!("removes `{field}`, which ");
            let is_noted = text.contains(&note) || is_empty_map && text.contains(&of_any);
            assert!(is_noted, "{note}\n{text}");
        }
        assert!(text.contains("- spec.template.spec.containers[web].env[B].value"), "{text}");
    }
    check_spec(fixture);
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn fields_that_were_set_by_hand_are_removed_on_a_real_cluster() {
    let fixture = declared();
    fixture.kubectl(&["set", "env", "deployment/web", "B=manual"], "");
    let plan = fixture.apply();
    let text = "env[B].value`, which the field manager `kubectl-set` set and which excludes";
    assert!(plan.contains(text), "{plan}");
    assert!(!plan.contains("\"manual\""), "the value may be a secret: {plan}");
    check_spec(&fixture);
    patch(&fixture, "kubectl-edit", &manual_change());
    check(&fixture, "the field manager `kubectl-edit` set and which");
    // A strategy without its type.
    fixture.declare_pod(CONTAINER, POD, "strategy: {rollingUpdate: {maxSurge: 1}}\n");
    fixture.apply();
    let recreate = json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}});
    patch(&fixture, "kubectl-edit", &recreate);
    let plan = fixture.apply();
    let note = "removes `spec.strategy.type`, which the field manager `kubectl-edit` set and which excludes the \
                declared `rollingUpdate`";
    assert!(plan.contains(note), "{plan}");
    assert_eq!(fixture.web()["spec"]["strategy"]["type"], "RollingUpdate");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn fields_that_were_applied_on_the_server_by_hand_are_removed_on_a_real_cluster() {
    let fixture = declared();
    let strategy = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}});
    apply_server_side(&fixture, &json!({ "spec": strategy }));
    let plan = fixture.apply();
    let note =
        "removes `spec.strategy.rollingUpdate`, which the field manager `kubectl` set and which excludes";
    assert!(plan.contains(note), "{plan}");
    check_spec(&fixture);
    patch(&fixture, "kubectl-edit", &manual_change());
    apply_server_side(&fixture, &manual_change());
    check(&fixture, "the field managers `kubectl`, `kubectl-edit` set and which");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn fields_without_an_owner_that_exclude_declared_ones_are_removed_on_a_real_cluster() {
    let fixture = declared();
    patch(&fixture, "kubectl-edit", &manual_change());
    remove_owners(&fixture);
    check(&fixture, "has no field manager and");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn fields_of_adopted_objects_that_exclude_declared_ones_are_removed_on_a_real_cluster() {
    let fixture = declared();
    let creations = [
        (&["create", "-f", "-"][..], "the field manager `kubectl-create` set and which"),
        (&["apply", "--server-side", "-f", "-"], "the field manager `kubectl` set and which"),
    ];
    for (words, origin) in creations {
        patch(&fixture, "kubectl-edit", &manual_change());
        let manifest = remove(&fixture);
        fixture.kubectl(words, &manifest);
        check(&fixture, origin);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn fields_of_a_program_that_exclude_declared_ones_are_conflicts_on_a_real_cluster() {
    let fixture = declared();
    patch(&fixture, "env-operator", &manual_change());
    let before = fixture.web()["spec"].clone();
    for more in [&["--dry-run"][..], &[]] {
        let (code, text) = fixture.run(RESOURCES, more);
        assert_eq!(code, 1, "{text}");
        let owned = EXCLUSIONS.into_iter().filter(|[field, _]| !field.ends_with("emptyDir"));
        for [field, declared] in owned {
            assert!(
                text.contains(&format!("`{field}`")) && text.contains(&format!("`{declared}`")),
                "{text}"
            );
        }
        assert!(text.contains("`env-operator` owns"), "{text}");
        assert!(text.contains("which exclude the declared"), "{text}");
        assert!(!text.contains("may be partially applied"), "{text}");
        let command = text.split("from the object: `").nth(1).and_then(|rest| rest.split('`').next());
        let command = command.unwrap_or_else(|| panic!("no command: {text}"));
        assert!(command.starts_with("kubectl patch deployment.apps web --namespace "), "{command}");
        assert_eq!(fixture.web()["spec"], before, "nothing is written");
        if more.is_empty() {
            fixture.run_shell(command);
        }
    }
    let (code, plan) = fixture.run(RESOURCES, &[]);
    assert_eq!(code, 0, "{plan}");
    check_spec(&fixture);
    assert_eq!(fixture.run(RESOURCES, &[]), (0, String::new()));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_removal_of_manual_fields_that_is_killed_is_completed_on_a_real_cluster() {
    let fixture = declared();
    patch(&fixture, "kubectl-edit", &manual_change());
    let began = Instant::now();
    fixture.apply();
    let duration = began.elapsed() / 2;
    for percent in (40..100).step_by(8) {
        patch(&fixture, "kubectl-edit", &manual_change());
        fixture.kill_after(duration * percent / 100);
        let (code, plan) = fixture.run(RESOURCES, &[]);
        assert_eq!(code, 0, "{plan}");
        check_spec(&fixture);
        assert_eq!(fixture.run(RESOURCES, &[]), (0, String::new()), "the second run has nothing to do");
    }
    // The update of a run that was killed before the apply: the hash is the declared one already.
    patch(
        &fixture,
        "qontract",
        &json!({"spec": {"template": {"spec": {"containers": [{"name": "web",
        "livenessProbe": {"exec": null, "httpGet": {"path": "/", "port": 80}}}]}}}}),
    );
    assert_eq!(fixture.run(RESOURCES, &[]), (0, String::new()));
    let fields = CONTAINER.replace("value: '2'", "value: '3'");
    fixture.change(&fields, "");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_item_in_which_another_manager_changed_a_field_is_shown_as_removed_on_a_real_cluster() {
    for manager in ["kubectl-set", "my-operator"] {
        let fixture = WebFixture::new();
        fixture.declare_pod("env:\n- {name: KEPT, value: '1'}\n- {name: EXTRA, value: '1'}\n", "", "");
        fixture.apply();
        let changed = json!({"name": "web", "env": [{"name": "EXTRA", "value": "9"}]});
        patch(&fixture, manager, &json!({"spec": {"template": {"spec": {"containers": [changed]}}}}));
        fixture.declare_pod("env:\n- {name: KEPT, value: '1'}\n", "", "");
        let (code, predicted) = fixture.run(RESOURCES, &["--dry-run"]);
        assert_eq!(code, 0, "{predicted}");
        let plan = fixture.apply();
        for text in [&predicted, &plan] {
            assert!(text.contains("- spec.template.spec.containers[web].env[EXTRA]"), "{manager}: {text}");
        }
        let env = &fixture.web()["spec"]["template"]["spec"]["containers"][0]["env"];
        assert_eq!(*env, json!([{"name": "KEPT", "value": "1"}]), "{manager}");
        assert_eq!(fixture.run(RESOURCES, &[]), (0, String::new()), "the second run has nothing to do");
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_empty_map_that_was_replaced_is_restored_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.declare_pod("", "volumes:\n- {name: u, emptyDir: {}}\n", "");
    fixture.apply();
    let volumes = json!([{"name": "u", "emptyDir": null, "hostPath": {"path": "/x"}}]);
    patch(&fixture, "kubectl-edit", &json!({"spec": {"template": {"spec": {"volumes": volumes}}}}));
    let plan = fixture.apply();
    assert!(plan.contains("volumes[u].hostPath"), "{plan}");
    let volumes = &fixture.web()["spec"]["template"]["spec"]["volumes"];
    assert_eq!(*volumes, json!([{"name": "u", "emptyDir": {}}]));
    assert_eq!(fixture.run(RESOURCES, &[]), (0, String::new()), "the second run has nothing to do");
}
