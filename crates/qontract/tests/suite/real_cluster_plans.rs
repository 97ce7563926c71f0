//! Tests that a plan on a real API server shows exactly what the write changes, and that the second run has nothing
//! to do.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use serde_json::{Value, json};

use crate::support::web_deployment::{RESOURCES, WebFixture};

const POLICY: &str = "apiVersion: networking.k8s.io/v1\n";
const BUDGET: &str = "apiVersion: policy/v1beta1\n";

/// The labels of a selector that is replaced as a whole.
const LABELS: &str = "matchLabels: {a: '1', b: '2', c: '3', d: '4', e: '5', f: '6'}";

/// Checks the fields that a dry run and a real run show, and that the second run has nothing to do; returns the plan.
#[track_caller]
fn check(fixture: &WebFixture, expect: &[&str]) -> String {
    let (code, predicted) = fixture.run(RESOURCES, &["--dry-run"]);
    assert_eq!(code, 0, "{predicted}");
    let plan = fixture.apply();
    for text in [&predicted, &plan] {
        let is_field = |line: &&str| ["- ", "+ ", "~ "].iter().any(|sign| line.starts_with(sign));
        let fields = text.lines().filter_map(|line| line.strip_prefix("    ")).filter(is_field);
        assert_eq!(fields.collect::<Vec<_>>(), expect, "{text}");
    }
    plan
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn keys_that_are_removed_from_a_selector_are_shown_and_counted() {
    let fixture = WebFixture::new();
    let policy =
        |selector: &str| format!("{POLICY}spec: {{podSelector: {selector}, policyTypes: [Ingress]}}");
    let budget = |selector: &str| format!("{BUDGET}spec: {{minAvailable: 1, selector: {selector}}}");
    let declare = |[one, other]: [&str; 2]| {
        let (policy, budget) = (policy(one), budget(other));
        fixture.declare_also(&[["NetworkPolicy", &policy], ["PodDisruptionBudget", &budget]]);
    };
    let labels = format!("{{{LABELS}}}");
    declare([&labels, &labels]);
    fixture.apply();
    declare([&labels, "{matchLabels: {a: '1', b: '2', c: '3', d: '4', e: '5'}}"]);
    check(&fixture, &["- spec.selector.matchLabels.f: \"6\""]);
    fixture.guard("keys = { count = 3 }\nshard_removals = 0\n");
    declare([
        "{matchLabels: {a: '1', b: '2', c: '3'}}",
        "{matchLabels: {a: '1', b: '2', c: '3', d: '4', e: '5'}}",
    ]);
    let (code, plan) = fixture.run(RESOURCES, &[]);
    assert_eq!(code, 1, "{plan}");
    assert!(plan.contains("it loses 3 of 7 keys (`spec.podSelector.matchLabels.d`"), "{plan}");
    fixture.guard("keys = { count = 100, percent = 100 }\n");
    declare(["{}", "{matchLabels: {a: '1', b: '2', c: '3', d: '4', e: '5'}}"]);
    let removed: Vec<String> = "abcdef"
        .chars()
        .zip(1..)
        .map(|(key, value)| format!("- spec.podSelector.matchLabels.{key}: \"{value}\""))
        .collect();
    check(&fixture, &removed.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(fixture.object("NetworkPolicy")["spec"]["podSelector"], json!({}));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_empty_selector_that_is_removed_is_shown_and_restored() {
    let fixture = WebFixture::new();
    let declare = |peer: &str| {
        let policy = format!(
            "{POLICY}spec: {{podSelector: {{}}, policyTypes: [Ingress], ingress: [{{from: [{peer}]}}]}}"
        );
        fixture.declare_also(&[["NetworkPolicy", &policy]]);
    };
    let both = "{podSelector: {matchLabels: {a: b}}, namespaceSelector: {}}";
    declare(both);
    fixture.apply();
    let patch = r#"[{"op": "remove", "path": "/spec/ingress/0/from/0/namespaceSelector"}]"#;
    let words = [
        "patch",
        "networkpolicy",
        "networkpolicy",
        "--type=json",
        "--field-manager=kubectl-edit",
        "-p",
        patch,
    ];
    fixture.kubectl(&words, "");
    check(&fixture, &["+ spec.ingress[0].from[0].namespaceSelector: {}"]);
    let peer = fixture.object("NetworkPolicy")["spec"]["ingress"][0]["from"][0].clone();
    assert_eq!(peer["namespaceSelector"], json!({}));
    declare("{podSelector: {matchLabels: {a: b}}}");
    check(&fixture, &["- spec.ingress[0].from[0].namespaceSelector: {}"]);
    let peer = fixture.object("NetworkPolicy")["spec"]["ingress"][0]["from"][0].clone();
    assert_eq!(peer.get("namespaceSelector"), None);
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn declared_zero_values_need_one_write() {
    let fixture = WebFixture::new();
    let container = "tty: false\nworkingDir: \"\"\nargs: []\nresources: {limits: {}}\n\
                     securityContext: {privileged: false, capabilities: {}}\n\
                     livenessProbe: {exec: {command: ['true']}, initialDelaySeconds: 0, timeoutSeconds: 0}\n";
    let pod = "hostNetwork: false\nnodeSelector: {}\nnodeName: \"\"\ntolerations: []\naffinity: {}\n\
               securityContext: {runAsNonRoot: false}\nvolumes: [{name: v, emptyDir: {}}]\n";
    let spec = "paused: false\nminReadySeconds: 0\n";
    fixture.declare_pod(container, pod, spec);
    fixture.apply();
    // A write for another reason does not show them either.
    fixture.declare_pod(container, pod, &format!("{spec}revisionHistoryLimit: 3\n"));
    check(&fixture, &["~ spec.revisionHistoryLimit: 10 → 3"]);
    // A zero value that the server stores is restored.
    let patch = json!([
        {"op": "remove", "path": "/spec/template/spec/securityContext/runAsNonRoot"},
        {"op": "remove", "path": "/spec/template/spec/containers/0/securityContext/privileged"},
    ]);
    let words = ["patch", "deployment", "web", "--type=json", "--field-manager=kubectl-edit", "-p"];
    fixture.kubectl(&[&words[..], &[&patch.to_string()]].concat(), "");
    check(
        &fixture,
        &[
            "+ spec.template.spec.containers[web].securityContext.privileged: false",
            "+ spec.template.spec.securityContext.runAsNonRoot: false",
        ],
    );
    // A zero value that was set to another value is restored as well.
    let patch = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe/timeoutSeconds", "value": 5}]);
    fixture.kubectl(&[&words[..], &[&patch.to_string()]].concat(), "");
    let plan = fixture.apply();
    assert!(
        plan.contains("~ spec.template.spec.containers[web].livenessProbe.timeoutSeconds: 5 → 0"),
        "{plan}"
    );
    let container: Value = fixture.container();
    assert_eq!(container["livenessProbe"]["timeoutSeconds"], json!(1));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_dropped_key_that_was_changed_by_hand_is_named() {
    let fixture = WebFixture::new();
    let declare = |data: &str| {
        let map = format!("apiVersion: v1\ndata: {data}");
        fixture.declare_also(&[["ConfigMap", &map]]);
    };
    declare("{a: '1', b: '2', c: '3'}");
    fixture.apply();
    let patch = r#"{"data": {"a": "manual"}}"#;
    fixture.kubectl(&["patch", "configmap", "configmap", "--field-manager=kubectl-edit", "-p", patch], "");
    declare("{b: '2'}");
    let plan = check(&fixture, &["- data.c: \"3\""]);
    let note = "keeps `data.a`, which the field manager `kubectl-edit` set and the data does not declare";
    assert!(plan.contains(note), "{plan}");
    assert_eq!(fixture.object("ConfigMap")["data"], json!({"a": "manual", "b": "2"}));
}
