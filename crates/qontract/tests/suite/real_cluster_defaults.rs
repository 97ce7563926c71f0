//! Tests that everyday changes of a Deployment are applied on a real API server, and reverted: the defaults
//! that the API server added to a field are removed together with it.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::web_deployment::{RESOURCES, WebFixture};

const PROBE: &str = "livenessProbe: {httpGet: {path: /, port: 80}}\n";
const EXEC: &str = "livenessProbe: {exec: {command: ['true']}}\n";
const VALUE: &str = "env: [{name: B, value: '2'}]\n";
const FIELD: &str = "env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n";
const KEY: &str = "env: [{name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}]\n";

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn everyday_changes_of_a_deployment_are_applied_and_reverted_on_a_real_cluster() {
    let fixture = WebFixture::new();
    let first = [PROBE, VALUE].concat();
    fixture.change(&first, "");
    let plan = fixture.change(VALUE, "");
    for field in ["httpGet.path: \"/\"", "httpGet.port: 80", "httpGet.scheme: \"HTTP\"", "timeoutSeconds: 1"]
    {
        let line = format!("- spec.template.spec.containers[web].livenessProbe.{field}");
        assert!(plan.contains(&line), "{line}\n{plan}");
    }
    assert_eq!(fixture.container().get("livenessProbe"), None);
    fixture.change(&first, "");
    fixture.change(&[EXEC, FIELD].concat(), "");
    assert_eq!(fixture.container()["livenessProbe"].get("httpGet"), None);
    for container in [&first, &[PROBE, KEY].concat(), &first] {
        fixture.change(container, "");
    }
    assert_eq!(fixture.container()["env"], json!([{"name": "B", "value": "2"}]));
    fixture.change(&first, "strategy: {type: Recreate}\n");
    assert_eq!(fixture.web()["spec"]["strategy"], json!({"type": "Recreate"}));
    fixture.change(&first, "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n");
    fixture.change("", "strategy: {type: Recreate}\n");
    assert_eq!(fixture.web()["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_adopted_deployment_changes_like_our_own_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.declare(&[PROBE, KEY].concat(), "");
    let text = fixture.repo.0.read("repo/resources/web.yaml");
    fixture.kubectl(&["apply", "-f", "-"], &text);
    fixture.change(VALUE, "strategy: {type: Recreate}\n");
    let container = fixture.container();
    assert_eq!(container.get("livenessProbe"), None);
    assert_eq!(container["env"], json!([{"name": "B", "value": "2"}]));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_rewrite_that_is_killed_is_completed_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.change(PROBE, "");
    // The update of a run that was killed before the apply.
    let updated = json!({"spec": {"template": {"spec": {"containers": [{"name": "web",
        "image": "example.com/i:1", "livenessProbe": {"exec": {"command": ["true"]}}}]}}}});
    let patch = updated.to_string();
    let words = ["patch", "deployment", "web", "--type=merge", "--field-manager=qontract", "-p", &patch];
    fixture.kubectl(&words, "");
    fixture.declare(EXEC, "");
    let plan = fixture.apply();
    assert!(plan.contains("Deployment `web`"), "the marks are not written yet: {plan}");
    assert_eq!(fixture.container()["livenessProbe"].get("httpGet"), None);

    let began = Instant::now();
    fixture.declare(PROBE, "");
    assert_eq!(fixture.run(RESOURCES, &[]).0, 0);
    let duration = began.elapsed();
    for (percent, container) in (50..100).step_by(8).zip([EXEC, PROBE].into_iter().cycle()) {
        fixture.declare(container, "");
        let patience = Duration::from_millis(u64::try_from(duration.as_millis()).unwrap() * percent / 100);
        fixture.kill_after(patience);
        fixture.apply();
        assert_eq!(fixture.container()["livenessProbe"].get("exec").is_some(), container == EXEC);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn defaults_of_a_removed_field_are_not_lost_keys_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.change(&[PROBE, VALUE].concat(), "");
    // The probe has two declared keys, and five defaults.
    fixture.guard("shard_removals = 0\nshard_percent = 0\nkeys = { count = 2 }\n");
    fixture.declare(VALUE, "");
    let (code, text) = fixture.run(RESOURCES, &["--dry-run"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("it loses 2 of "), "{text}");
    fixture.guard("shard_removals = 0\nshard_percent = 0\nkeys = { count = 3 }\n");
    let plan = fixture.change(VALUE, "");
    assert!(plan.contains("livenessProbe.httpGet.scheme: \"HTTP\""), "{plan}");
}
