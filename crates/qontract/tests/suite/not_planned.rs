//! Tests of what a plan leaves out, through the binary: what is not planned and what is no longer managed is
//! reported, counted, and never shown as "no changes".
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Output;

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};
use serde_json::Value;

const STAGE: &str = "data/services/catalog/namespaces/catalog-stage.yml";
const CLUSTER: &str = "data/clusters/cliffs-stage.yml";
const TEMPLATE: &str = "resources/shop/app-config.configmap.yaml.j2";
const HERE: [&str; 4] = ["--sandbox", "sandbox", "--runs", "runs"];

/// The example as a Git repository of one commit, and a sandbox in which it is applied.
fn applied_example() -> Scratch {
    let scratch = Scratch::copy_of(&example());
    scratch.write(".gitignore", "/sandbox/\n/runs/\n");
    scratch.commit_all("as it is");
    apply(&scratch);
    scratch
}

fn apply(scratch: &Scratch) {
    let up = qontract(scratch.path(), &[&["up", ".", "--once"], &HERE[..]].concat());
    assert!(up.status.success(), "{}", text(&up));
}

fn edit(scratch: &Scratch, file: &str, from: &str, to: &str) {
    let text = scratch.read(file);
    assert!(text.contains(from), "{file} has no {from}");
    scratch.write(file, text.replacen(from, to, 1));
}

/// The number of the first line of a file that contains a string.
fn line_of(scratch: &Scratch, file: &str, text: &str) -> String {
    let line = scratch.read(file).lines().position(|line| line.contains(text)).unwrap();
    format!("{file}:{}", line + 1)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A plan of the working tree in each format, which has something to report: the text, the Markdown and the JSON.
struct Plans {
    text: String,
    markdown: String,
    json: Value,
}

impl Plans {
    fn of(scratch: &Scratch) -> Self {
        let plan = |format: &str, more: &[&str]| {
            let words = [&["plan", "HEAD", ".", "-o", format], more, &HERE[..]].concat();
            qontract(scratch.path(), &words)
        };
        assert_eq!(
            plan("text", &[]).status.code(),
            Some(0),
            "the plain exit code does not depend on changes"
        );
        let printed = |format: &str| {
            let output = plan(format, &["--detailed-exitcode"]);
            assert_eq!(output.status.code(), Some(2), "{format}: {}", text(&output));
            output
        };
        let json: Value = serde_json::from_slice(&printed("json").stdout).unwrap();
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plan.schema.json");
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
        let errors: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&json)
            .map(|one| one.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{json:#}");
        let (text, markdown) = (text(&printed("text")), text(&printed("md")));
        assert!(
            !text.contains("\nno changes") && !markdown.contains("### Plan: no changes"),
            "{text}{markdown}"
        );
        assert_ne!(json["status"], "unchanged", "{json:#}");
        Self { text, markdown, json }
    }

    /// The entries of a list of an integration.
    fn entries(&self, integration: &str, list: &str) -> Vec<Value> {
        let all = self.json["integrations"].as_array().unwrap();
        let one = all.iter().find(|one| one["integration"] == integration);
        let one = one.unwrap_or_else(|| panic!("no {integration} in {:#}", self.json));
        assert_ne!(one["status"], "unchanged", "{one:#}");
        one[list].as_array().cloned().unwrap_or_default()
    }

    fn total(&self, count: &str) -> u64 {
        self.json["totals"][count].as_u64().unwrap()
    }
}

/// Applies the change, after which another plan has nothing to report.
fn assert_applied_plan_is_empty(scratch: &Scratch) {
    scratch.commit_all("merged");
    apply(scratch);
    let words = [&["plan", "HEAD", ".", "--all", "--detailed-exitcode"], &HERE[..]].concat();
    let output = qontract(scratch.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn an_edit_beside_a_changed_address_is_not_planned_and_its_declared_changes_are_shown() {
    let scratch = applied_example();
    edit(&scratch, CLUSTER, "api.cliffs-stage.example", "api2.cliffs-stage.example");
    edit(&scratch, STAGE, "  tier: edge\n", "");
    edit(&scratch, STAGE, "replicas: 2", "replicas: 7");
    let plans = Plans::of(&scratch);
    assert_eq!(plans.json["status"], "not-known", "{:#}", plans.json);
    assert!(plans.total("not_planned") >= 2, "{:#}", plans.json);
    let unplanned = plans.entries("openshift-resources", "unplanned");
    let stage =
        unplanned.iter().find(|one| one["shard"].as_str().unwrap().ends_with("namespace=catalog-stage"));
    let stage = stage.unwrap_or_else(|| panic!("{unplanned:#?}"));
    assert!(stage["message"].as_str().unwrap().contains("not contacted before it is merged"), "{stage:#}");
    let replicas = line_of(&scratch, STAGE, "replicas: 7");
    let field = &stage["declared"][0];
    assert_eq!((&field["before"], &field["after"]), (&"2".into(), &"7".into()), "{stage:#}");
    assert_eq!(
        format!("{}:{}", field["location"]["file"].as_str().unwrap(), field["location"]["line"]),
        replicas
    );
    let address = format!("because of {}", line_of(&scratch, CLUSTER, "api2.cliffs-stage"));
    assert!(plans.text.contains(&address), "{}", plans.text);
    assert!(
        plans.text.contains("not planned: `cluster=cliffs-stage, namespace=catalog-stage`"),
        "{}",
        plans.text
    );
    assert!(plans.text.contains("declared changes, not compared with the target:"), "{}", plans.text);
    assert!(plans.text.contains(&format!("\"2\" → \"7\"  --> {replicas}\n")), "{}", plans.text);
    assert!(
        plans.markdown.contains("**not planned** `") && plans.markdown.contains(&replicas),
        "{}",
        plans.markdown
    );
    assert!(plans.markdown.lines().next().unwrap().contains(" not planned"), "{}", plans.markdown);
    // The objects at the old address stay.
    let released = plans.entries("openshift-resources", "released");
    let of_stage = |one: &&Value| one["shard"] == stage["shard"];
    let stage = released.iter().find(of_stage).unwrap_or_else(|| panic!("{released:#?}"));
    assert!(stage["objects"].as_u64().unwrap() >= 2, "{stage:#}");
    let message = stage["message"].as_str().unwrap();
    assert!(message.contains("the address of the target changes: "), "{message}");
    assert!(message.contains(" are no longer managed, and stay at the old address, unless "), "{message}");
    assert!(plans.text.contains(message), "{}", plans.text);
    // A dry run of one integration has the same exit codes.
    let words = ["reconcile", "openshift-resources", "--dry-run", "--base", "HEAD", "--detailed-exitcode"];
    let output = qontract(scratch.path(), &[&words[..], &HERE[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!text(&output).contains("nothing to change"), "{}", text(&output));
    assert!(text(&output).contains(" not planned"), "{}", text(&output));
    assert_applied_plan_is_empty(&scratch);
}

#[test]
fn a_template_that_begins_to_read_a_secret_is_reported_with_the_secret_and_its_line() {
    let scratch = applied_example();
    let lookup = "  TOKEN: {{ vault(\"shop/production/billing/bank\", \"client_secret\", 12) }}\n";
    edit(&scratch, TEMPLATE, "  REPLICAS: \"{{ replicas }}\"\n", &format!("  REPLICAS: \"99\"\n{lookup}"));
    let plans = Plans::of(&scratch);
    let unplanned = plans.entries("openshift-resources", "unplanned");
    let of_stage = |one: &&Value| one["shard"].as_str().unwrap().ends_with("namespace=catalog-stage");
    let stage = unplanned.iter().find(of_stage).unwrap();
    let message = stage["message"].as_str().unwrap();
    assert!(message.starts_with("ConfigMap `catalog-config`"), "{message}");
    assert!(
        message.contains("the field `client_secret` of the secret `shop/production/billing/bank`"),
        "{message}"
    );
    assert!(message.contains("no change to this object is shown"), "{message}");
    assert!(message.ends_with("it is planned and applied after the merge"), "{message}");
    let changed = line_of(&scratch, TEMPLATE, "REPLICAS");
    let at = |one: &Value| format!("{}:{}", one["file"].as_str().unwrap(), one["line"]);
    let places: Vec<String> = stage["locations"].as_array().unwrap().iter().map(at).collect();
    assert!(places.contains(&changed), "{places:?} {changed}");
    assert!(plans.text.contains(&format!("because of {changed}\n")), "{}", plans.text);
    assert_eq!(plans.total("not_planned"), unplanned.len() as u64, "{:#}", plans.json);
}

#[test]
fn commits_of_the_base_that_the_head_lacks_are_noted() {
    let scratch = applied_example();
    scratch.git(&["branch", "feature"]);
    edit(&scratch, STAGE, "replicas: 2", "replicas: 9");
    scratch.commit_all("the protected branch goes on");
    scratch.git(&["branch", "tip"]);
    scratch.git(&["checkout", "--quiet", "feature"]);
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    scratch.commit_all("a change");
    let plan = |base: &str, head: &str, format: &str| {
        let output = qontract(scratch.path(), &[&["plan", base, head, "-o", format], &HERE[..]].concat());
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let note = "1 commit of the base is not in the head: their changes are shown as reverted";
    for (head, format) in [("feature", "text"), (".", "text"), ("feature", "md"), ("feature", "json")] {
        let shown = plan("tip", head, format);
        assert!(shown.contains(note), "{head} {format}: {shown}");
    }
    scratch.git(&["merge", "--quiet", "--no-edit", "tip"]);
    let shown = plan("tip", "feature", "text");
    assert!(!shown.contains("of the base") && !shown.contains("REPLICAS"), "{shown}");
    assert!(shown.contains("tier"), "{shown}");
}

#[test]
fn a_namespace_that_is_no_longer_managed_is_reported_with_its_objects() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "managedRoles: true", "managedRoles: true\nmanagedByExternal: true");
    let plans = Plans::of(&scratch);
    let released = plans.entries("openshift-resources", "released");
    assert!(released[0]["objects"].as_u64().unwrap() >= 2, "{released:#?}");
    let message = released[0]["message"].as_str().unwrap();
    assert!(message.contains("(managedByExternal)") && message.contains("stay in the target"), "{message}");
    let line = line_of(&scratch, STAGE, "managedByExternal");
    assert!(
        plans.text.contains("no longer managed: `cluster=cliffs-stage, namespace=catalog-stage`"),
        "{}",
        plans.text
    );
    assert!(plans.text.contains(&line), "{line}: {}", plans.text);
    assert!(plans.markdown.contains("**no longer managed** `"), "{}", plans.markdown);
    let all = plans.json["integrations"].as_array().unwrap();
    let counts = all.iter().map(|one| one["totals"]["released"].as_u64().unwrap());
    assert_eq!(plans.total("released"), counts.sum::<u64>());
    let summary = format!(" {} no longer managed", plans.total("released"));
    assert!(plans.text.contains(&summary), "{summary}: {}", plans.text);
    assert_applied_plan_is_empty(&scratch);
    assert!(
        scratch
            .path()
            .join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/catalog-config.yaml")
            .is_file()
    );
}

#[test]
fn a_kind_that_is_no_longer_managed_is_reported_with_its_objects() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "- ConfigMap\n- Service\n", "- ConfigMap\n");
    edit(&scratch, STAGE, "- provider: resource\n  path: /shop/catalog/search-index.service.yaml\n", "");
    let plans = Plans::of(&scratch);
    let released = plans.entries("openshift-resources", "released");
    assert_eq!((released.len(), &released[0]["objects"]), (1, &1.into()), "{released:#?}");
    let message = released[0]["message"].as_str().unwrap();
    assert!(
        message.contains("Service is no longer a managed kind: 1 declared object is no longer managed"),
        "{message}"
    );
    let file = released[0]["locations"][0]["file"].as_str().unwrap();
    assert!(file == STAGE && released[0]["locations"][0]["line"].as_u64().unwrap() > 20, "{released:#?}");
    assert_eq!((plans.total("released"), plans.total("remove")), (1, 0), "{:#}", plans.json);
    assert_applied_plan_is_empty(&scratch);
}

#[test]
fn a_disabled_or_removed_integration_is_reported_with_its_objects() {
    let scratch = applied_example();
    edit(
        &scratch,
        CLUSTER,
        "internal: false",
        "internal: false\ndisable:\n  integrations:\n  - openshift-resourcequotas",
    );
    scratch.remove("data/integrations/openshift-routes.yml");
    let plans = Plans::of(&scratch);
    let quotas = plans.entries("openshift-resourcequotas", "released");
    assert!(
        quotas.iter().all(|one| one["message"].as_str().unwrap().contains("cluster `cliffs-stage`")),
        "{quotas:#?}"
    );
    let routes = plans.entries("openshift-routes", "released");
    let message = routes[0]["message"].as_str().unwrap();
    assert!(message.contains("no longer defined") && message.contains("stay in the target"), "{message}");
    assert_eq!(routes[0]["locations"][0]["file"], "data/integrations/openshift-routes.yml");
    let sum = |entries: &[Value]| entries.iter().map(|one| one["objects"].as_u64().unwrap()).sum::<u64>();
    let objects = sum(&routes);
    assert!(objects > 0 && plans.total("released") == objects + sum(&quotas), "{:#}", plans.json);
    assert!(
        plans.text.contains("no longer managed: `openshift-routes` is no longer defined"),
        "{}",
        plans.text
    );
}

#[test]
fn the_removal_of_a_namespace_counts_the_objects_in_it() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "managedRoles: true", "managedRoles: true\ndelete: true");
    let output = qontract(scratch.path(), &[&["plan", "HEAD", ".", "-o", "json"], &HERE[..]].concat());
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let all = plan["integrations"].as_array().unwrap();
    let changes = all.iter().flat_map(|one| one["changes"].as_array().unwrap());
    let namespace = changes.into_iter().find(|one| one["kind"] == "Namespace").unwrap();
    let notes = namespace["notes"].to_string();
    assert!(notes.contains("declared objects in it (") && notes.contains("openshift-resources: "), "{notes}");
    assert_eq!(plan["totals"]["released"], 0, "its objects do not stay: {plan:#}");
}

#[test]
fn a_plan_against_a_sandbox_that_does_not_exist_reports_it() {
    let scratch = applied_example();
    let note = "the sandbox does not exist: every object is planned as new";
    for line in [
        "plan HEAD . -o md",
        "plan HEAD . -o json",
        "plan HEAD .",
        "up . --once --dry-run -o json",
        "reconcile openshift-resources --dry-run -o md",
    ] {
        let words: Vec<&str> = line.split(' ').chain(["--sandbox", "typo", "--runs", "runs"]).collect();
        let output = qontract(scratch.path(), &words);
        assert!(String::from_utf8_lossy(&output.stdout).contains(note), "{line}: {}", text(&output));
    }
}

#[test]
fn a_secret_that_base_names_for_other_shards_only_is_called_that() {
    let scratch = applied_example();
    let entry = "- provider: vault-secret\n  name: pull\n  path: shop/stage/catalog/search\n  version: 3\n";
    let billing = "data/services/billing/namespaces/billing-stage.yml";
    edit(&scratch, billing, "openshiftResources:\n", &format!("openshiftResources:\n{entry}"));
    let plans = Plans::of(&scratch);
    let unplanned = plans.entries("openshift-vault-secrets", "unplanned");
    let message = unplanned[0]["message"].as_str().unwrap();
    assert!(message.contains("is new for this shard (base names it only for other shards)"), "{message}");
}

#[test]
fn a_new_approval_is_a_cause_of_the_plan() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "limitRanges: {$ref: /platform/limitranges/default.yml}\n", "");
    scratch.commit_all("the object is no longer declared");
    let approval = "data/approvals/limits.yml";
    let text_of_approval = "---\n$schema: /app-interface/removal-approval-1.yml\nlabels: {}\nname: limits\ndescription: not needed\nintegration: openshift-limitranges\nexpiration: '2099-01-31'\nremovals:\n- target: cluster=cliffs-stage, namespace=catalog-stage, kind=LimitRange\n  kind: LimitRange\n  name: default\n";
    scratch.write(approval, text_of_approval);
    let words = [&["plan", "HEAD", ".", "-i", "openshift-limitranges", "--all"], &HERE[..]].concat();
    let shown = text(&qontract(scratch.path(), &words));
    assert!(shown.contains(&format!("because of {approval}")), "{shown}");
}
