//! Tests that a plan shows every effect of a run on an object: removed, changed and added fields.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};
use serde_json::Value;

/// The example, reconciled once on a sandbox.
struct PlanFixture(Scratch);

impl PlanFixture {
    fn new(integrations: &[&str]) -> Self {
        let fixture = Self(Scratch::new());
        fixture.0.copy(&example(), "repo");
        for integration in ["openshift-namespaces"].iter().chain(integrations) {
            let (code, text) = fixture.run(integration, &[]);
            assert_eq!(code, 0, "{text}");
        }
        fixture
    }

    fn run(&self, integration: &str, more: &[&str]) -> (i32, String) {
        let words = ["--data", "repo", "--sandbox", "sandbox", "--runs", "runs", "--log-level", "WARNING"];
        let output = qontract(self.0.path(), &[&["reconcile", integration][..], &words, more].concat());
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn check(&self, integration: &str) -> String {
        let (code, text) = self.run(integration, &["--dry-run"]);
        assert_eq!(code, 0, "{text}");
        text
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.0.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    fn object(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join("sandbox/clusters").join(file)).unwrap()
    }
}

#[track_caller]
fn has_line(text: &str, line: &str) {
    assert!(text.lines().any(|one| one.trim() == line), "no line `{line}` in:\n{text}");
}

#[test]
fn a_limit_that_is_taken_off_a_quota_is_shown() {
    let fixture = PlanFixture::new(&["openshift-resourcequotas"]);
    fixture.edit("repo/data/platform/quotas/small.yml", "      memory: 8Gi\n", "");
    let text = fixture.check("openshift-resourcequotas");
    has_line(&text, "- spec.hard[\"limits.memory\"]: \"8Gi\"");
    assert!(!text.contains("sha256sum"), "{text}");
    let (code, _) = fixture.run("openshift-resourcequotas", &[]);
    assert_eq!(code, 0);
    let quota = fixture.object("cliffs-stage/billing-stage/ResourceQuota/compute.yaml");
    assert!(!quota.contains("limits.memory") && quota.contains("limits.cpu"), "{quota}");
    let again = fixture.check("openshift-resourcequotas");
    assert!(!again.contains("ResourceQuota"), "{again}");
}

#[test]
fn an_alert_that_is_taken_out_of_a_rule_is_shown() {
    let fixture = PlanFixture::new(&["openshift-prometheus-rules"]);
    let rule = "repo/resources/rules/catalog.prometheusrule.yaml";
    let text = std::fs::read_to_string(fixture.0.path().join(rule)).unwrap();
    let (before, _) = text.split_once("    - alert: CatalogErrors").unwrap();
    std::fs::write(fixture.0.path().join(rule), before).unwrap();
    let text = fixture.check("openshift-prometheus-rules");
    let line = text.lines().find(|line| line.contains("rules[CatalogErrors]")).unwrap_or_default();
    let expect = "- spec.groups[catalog.rules].rules[CatalogErrors]: {\"alert\":\"CatalogErrors\"";
    assert!(line.trim().starts_with(expect), "{text}");
    assert!(line.contains("\"severity\":\"high\""), "{text}");
}

#[test]
fn a_renamed_key_is_removed_and_added() {
    let fixture = PlanFixture::new(&["openshift-resources"]);
    fixture.edit("repo/resources/shop/app-config.configmap.yaml.j2", "REPLICAS:", "REPLICA_COUNT:");
    let text = fixture.check("openshift-resources");
    has_line(&text, "- data.REPLICAS: \"6\"");
    has_line(&text, "+ data.REPLICA_COUNT: \"6\"");
    let removed = text.find("- data.REPLICAS").unwrap();
    assert!(removed < text.find("+ data.REPLICA_COUNT").unwrap(), "what goes comes first\n{text}");
}

#[test]
fn a_multi_line_string_is_shown_line_by_line() {
    let fixture = PlanFixture::new(&["openshift-prometheus-rules"]);
    let rule = "repo/resources/rules/catalog.prometheusrule.yaml";
    fixture.edit(rule, "        / sum(rate(http_requests_total{service=\"catalog\"}[5m]))", "        / 2");
    let text = fixture.check("openshift-prometheus-rules");
    let line = "expr line 2: \"/ sum(rate(http_requests_total{service=\\\"catalog\\\"}[5m]))\" → \"/ 2\"";
    assert!(text.lines().any(|one| one.ends_with(line)), "{text}");
    assert!(!text.contains("5.."), "the line that stays is not shown\n{text}");
}

#[test]
fn a_created_object_shows_its_body_on_request() {
    let fixture = PlanFixture::new(&[]);
    let plain = fixture.check("openshift-resourcequotas");
    assert!(!plain.contains("spec.hard"), "{plain}");
    let (_, text) = fixture.run("openshift-resourcequotas", &["--dry-run", "--full"]);
    has_line(&text, "+ spec.hard[\"limits.memory\"]: \"8Gi\"");
    let (_, json) = fixture.run("openshift-resourcequotas", &["--dry-run", "--full", "--output", "json"]);
    let record: Value = serde_json::from_str(&json).unwrap();
    let is_limit = |entry: &Value| entry["path"] == "spec.hard[\"limits.memory\"]" && entry["after"] == "8Gi";
    let mut entries = Vec::new();
    collect(&record, &mut entries);
    assert!(entries.iter().any(|entry| is_limit(entry)), "{json}");
}

/// All objects of a JSON value that have a path.
fn collect<'v>(value: &'v Value, entries: &mut Vec<&'v Value>) {
    match value {
        Value::Object(map) => {
            entries.extend(map.contains_key("path").then_some(value));
            map.values().for_each(|value| collect(value, entries));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, entries)),
        _ => {}
    }
}

#[test]
fn bodies_of_secrets_show_no_value() {
    let fixture = PlanFixture::new(&[]);
    let secrets = std::fs::read_to_string(example().join("sandbox/secrets.toml")).unwrap();
    fixture.0.write("sandbox/secrets.toml", secrets);
    let (_, text) = fixture.run("openshift-vault-secrets", &["--dry-run", "--full"]);
    assert!(text.contains("+ create Secret"), "{text}");
    assert!(text.contains("that come") && !text.contains("+ data."), "{text}");
}

#[test]
fn an_object_that_loses_many_keys_counts_as_a_removal() {
    let fixture = PlanFixture::new(&["openshift-resourcequotas"]);
    let config = |guards: &str| {
        let text = format!("[guards]\nshard_removals = 0\nshard_percent = 0\n{guards}");
        fixture.0.write("config.toml", text);
    };
    let check = || fixture.run("openshift-resourcequotas", &["--dry-run", "--config", "config.toml"]);
    // One of four limits: not half of them.
    fixture.edit("repo/data/platform/quotas/small.yml", "      memory: 8Gi\n", "");
    config("");
    let (code, text) = check();
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("held"), "{text}");
    // Exactly as many as count as a removal.
    config("keys = { count = 1 }\n");
    let (code, text) = check();
    assert_eq!(code, 1, "{text}");
    let expect = "it loses 1 of 5 keys (`spec.hard[\"limits.memory\"]`), which counts as a removal: ";
    assert!(text.contains(expect), "{text}");
    assert!(
        text.contains("to approve the held changes") && text.contains("kind: \"ResourceQuota\""),
        "{text}"
    );
    config("keys = { count = 2, percent = 21 }\n");
    assert_eq!(check().0, 0);
    config("keys = { count = 2, percent = 20 }\n");
    assert_eq!(check().0, 1);
}

#[test]
fn a_held_change_is_not_made_until_it_is_approved() {
    let fixture = PlanFixture::new(&["openshift-resourcequotas"]);
    fixture.edit("repo/data/platform/quotas/small.yml", "      memory: 8Gi\n", "");
    fixture.edit("repo/data/platform/quotas/small.yml", "      memory: 4Gi\n", "");
    fixture.0.write("config.toml", "[guards]\nshard_removals = 0\nshard_percent = 0\nkeys = { count = 2 }\n");
    let (code, text) = fixture.run("openshift-resourcequotas", &["--config", "config.toml"]);
    assert_eq!(code, 1, "{text}");
    let quota = || fixture.object("cliffs-stage/billing-stage/ResourceQuota/compute.yaml");
    assert!(quota().contains("limits.memory"), "{}", quota());
    let (_, approval) = text.split_once("add this to the data:\n\n").unwrap();
    let approval: Vec<&str> = approval
        .lines()
        .map_while(|line| line.strip_prefix("    ").or((line.is_empty()).then_some("")))
        .collect();
    fixture.0.write("repo/data/approval.yml", approval.join("\n"));
    let (code, text) = fixture.run("openshift-resourcequotas", &["--config", "config.toml"]);
    assert_eq!(code, 0, "{text}");
    assert!(!quota().contains("limits.memory"), "{}", quota());
}
