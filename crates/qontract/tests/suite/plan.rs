//! Tests of the reports about a change (`plan`, `diff` and `affected`), and of the exit codes of all dry
//! runs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::{Command, Output};

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};
use serde_json::Value;

const STAGE: &str = "data/services/catalog/namespaces/catalog-stage.yml";
const HERE: [&str; 4] = ["--sandbox", "sandbox", "--runs", "runs"];

/// The example as a Git repository of one commit, and a sandbox in which it is applied.
fn applied_example() -> Scratch {
    let scratch = repo();
    let up = qontract(scratch.path(), &[&["up", ".", "--once"], &HERE[..]].concat());
    assert!(up.status.success(), "{}", stderr(&up));
    scratch
}

/// The example as a Git repository of one commit.
fn repo() -> Scratch {
    let scratch = Scratch::copy_of(&example());
    scratch.write(".gitignore", "/sandbox/\n/runs/\n");
    scratch.commit_all("as it is");
    scratch
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

fn plan(scratch: &Scratch, words: &[&str]) -> Output {
    qontract(scratch.path(), &[&["plan"], words, &HERE[..]].concat())
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    out(output) + &String::from_utf8_lossy(&output.stderr)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

fn integration<'r>(report: &'r Value, name: &str) -> &'r Value {
    let all = report["integrations"].as_array().unwrap();
    all.iter().find(|one| one["integration"] == name).unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

#[test]
fn a_plan_is_one_report_of_all_affected_integrations() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "replicas: 2", "replicas: 3");
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let output = plan(&scratch, &[]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (label, replicas) = (line_of(&scratch, STAGE, "tier: core"), line_of(&scratch, STAGE, "replicas: 3"));
    assert!(
        text.contains(&format!("openshift-namespace-labels\n  because of {label}\n  ~ label Namespace")),
        "{text}"
    );
    assert!(
        text.contains(&format!("openshift-resources\n  because of {replicas}\n  ~ change ConfigMap")),
        "{text}"
    );
    assert!(text.contains(&format!("--> {replicas}\n")), "{text}");
    assert!(text.contains("0 to add, 2 to change, 0 to remove, in 2 integrations; "), "{text}");
    assert!(text.contains("integrations not affected\n"), "{text}");
    assert!(
        stderr(&output).contains("`origin/HEAD` not found; comparing with `HEAD`"),
        "{}",
        stderr(&output)
    );
    // Nothing was changed.
    assert!(
        scratch.read("sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml").contains("edge")
    );
    let only = out(&plan(&scratch, &["-i", "openshift-resources"]));
    assert!(only.contains("ConfigMap") && !only.contains("openshift-namespace-labels"), "{only}");
    assert!(only.contains("0 to add, 1 to change, 0 to remove, in 1 integration\n"), "{only}");
}

#[test]
fn a_plan_compares_with_the_default_branch_of_the_remote() {
    let origin = repo();
    let scratch = Scratch::new();
    scratch.git(&["clone", "--quiet", &origin.path().display().to_string(), "clone"]);
    let clone = scratch.path().join("clone");
    let git = |words: &[&str]| scratch.git(&[&["-C", "clone"], words].concat());
    let text = scratch.read(&format!("clone/{STAGE}")).replace("tier: edge", "tier: core");
    scratch.write(&format!("clone/{STAGE}"), text);
    git(&["commit", "--quiet", "--all", "--message", "core"]);
    for command in ["plan", "affected"] {
        let more: &[&str] = if command == "plan" { &["--sandbox", "sandbox", "--runs", "runs"] } else { &[] };
        let output = qontract(&clone, &[&[command], more].concat());
        assert!(stderr(&output).contains("openshift-namespace-labels"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("not found"), "{}", stderr(&output));
        let output = qontract(&clone, &[&[command, "HEAD"], more].concat());
        assert!(!stderr(&output).contains("openshift-namespace-labels"), "{}", stderr(&output));
    }
}

#[test]
fn newer_commits_of_the_default_branch_are_not_part_of_a_change() {
    let origin = repo();
    let scratch = Scratch::new();
    scratch.git(&["clone", "--quiet", &origin.path().display().to_string(), "clone"]);
    let clone = scratch.path().join("clone");
    edit(&origin, STAGE, "tier: edge", "tier: core");
    origin.commit_all("the default branch goes on");
    let git = |words: &[&str]| scratch.git(&[&["-C", "clone"], words].concat());
    let text = scratch.read(&format!("clone/{STAGE}")).replace("replicas: 2", "replicas: 3");
    scratch.write(&format!("clone/{STAGE}"), text);
    git(&["commit", "--quiet", "--all", "--message", "replicas"]);
    git(&["fetch", "--quiet"]);
    let output = qontract(&clone, &["affected"]);
    let text = stderr(&output);
    assert!(text.contains("openshift-resources: affected"), "{text}");
    assert!(!text.contains("openshift-namespace-labels: affected"), "{text}");
    assert!(text.contains("where `HEAD` branched off `origin/HEAD`"), "{text}");
    // If the base is named, it is compared with the tip.
    let output = qontract(&clone, &["affected", "origin/HEAD", "."]);
    assert!(stderr(&output).contains("openshift-namespace-labels: affected"), "{}", stderr(&output));
}

fn published_schema() -> jsonschema::Validator {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plan.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// The plan of invalid data in every format: each exits with 1, and the findings are on stderr. Returns the
/// Markdown and the JSON.
fn plan_invalid(scratch: &Scratch, words: &[&str], file: &str) -> (String, Value) {
    let run = |format: &str| {
        let output = plan(scratch, &[words, &["-o", format, "--detailed-exitcode"]].concat());
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(file), "{format}: {}", stderr(&output));
        output
    };
    assert_eq!(out(&run("text")), "");
    let (markdown, report) = (out(&run("md")), json(&run("json")));
    let errors: Vec<String> =
        published_schema().iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{report:#}");
    assert_eq!(report["status"], "invalid", "{report:#}");
    (markdown, report)
}

#[test]
fn a_plan_of_invalid_data_reports_the_findings() {
    let scratch = repo();
    // A value that would be markup, a mention and a terminal command.
    let hostile = r#""@all <b>x</b> `y` \e[31m\u202E""#;
    edit(&scratch, STAGE, "tier: edge", &format!("tier: edge\nnope: {hostile}"));
    let clusters = "data/clusters/cliffs-stage.yml";
    edit(&scratch, clusters, "$schema: ", "\"<b>@all\\e\\u202E`\": 1\n$schema: ");
    let (markdown, report) = plan_invalid(&scratch, &["HEAD", "."], STAGE);
    let invalid = &report["invalid"];
    assert_eq!(invalid["side"], "head", "{report:#}");
    let findings = invalid["findings"].as_array().unwrap();
    let of_file = |file: &str| findings.iter().find(|one| one["file"] == file).unwrap().clone();
    let finding = of_file(STAGE);
    assert!(
        finding["severity"] == "error" && finding["code"].as_str().unwrap().starts_with('Q'),
        "{finding}"
    );
    assert!(finding["message"].as_str().unwrap().contains("nope"), "{finding}");
    let place = line_of(&scratch, STAGE, "nope:");
    assert_eq!(format!("{STAGE}:{}", finding["line"]), place, "{finding}");
    assert!(markdown.contains("### Plan: the data of head is invalid: "), "{markdown}");
    let line =
        format!("- **error** `{}`: `{place}:{}`: ", finding["code"].as_str().unwrap(), finding["column"]);
    assert!(markdown.contains(&line), "{markdown}");
    // The hostile key is in a code span whose fence is longer than its own backtick.
    assert!(of_file(clusters)["message"].as_str().unwrap().contains("@all"), "{report:#}");
    assert!(!markdown.contains(['\u{1b}', '\u{202e}']) && markdown.contains("@all"), "{markdown}");
    for line in markdown.lines().filter(|line| line.contains("@all")) {
        assert!(line.contains(" ``"), "{line}");
    }
    // The working tree differs from the commit.
    assert_eq!(report["head"]["modified"], true, "{report:#}");
    assert_eq!(report["totals"]["errors"], invalid["errors"], "{report:#}");
}

#[test]
fn omitted_characters_and_fields_are_counted_after_the_shown_ones() {
    let scratch = applied_example();
    let template = "resources/shop/app-config.configmap.yaml.j2";
    let keys: Vec<String> = (0..200).map(|number| format!("  KEY_{number}: \"1\"\n")).collect();
    let keys = keys.concat();
    edit(&scratch, template, "\ndata:\n", &format!("\ndata:\n  A_LONG: \"{}\"\n{keys}", "A".repeat(1_000)));
    let shown = format!("\"{}… (800 more characters)\"", "A".repeat(200));
    let text = out(&plan(&scratch, &["HEAD", "."]));
    assert!(text.contains(&format!("+ data.A_LONG: {shown}\n")), "{text}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let more = lines.iter().position(|line| line.starts_with("… and ")).unwrap();
    assert!(lines[more - 1].starts_with("+ data.KEY_") && lines[more + 1].starts_with("--> "), "{text}");
    let markdown = out(&plan(&scratch, &["HEAD", ".", "-o", "md"]));
    assert!(markdown.contains(&format!("added `data.A_LONG`: `{shown}`\n")), "{markdown}");
    let lines: Vec<&str> = markdown.lines().map(str::trim).collect();
    let more = lines.iter().position(|line| line.starts_with("- `… and ")).unwrap();
    assert!(lines[more - 1].starts_with("- added `data.KEY_"), "{markdown}");
}

#[test]
fn a_plan_of_data_that_cannot_be_bundled_names_the_side() {
    let scratch = repo();
    edit(&scratch, STAGE, "tier: edge", "tier: [");
    let (markdown, report) = plan_invalid(&scratch, &["HEAD", "."], STAGE);
    assert_eq!((&report["invalid"]["side"], &report["head"]["sha256"]), (&"head".into(), &"".into()));
    assert!(markdown.contains("the data of head") && markdown.contains(STAGE), "{markdown}");
    scratch.commit_all("broken");
    edit(&scratch, STAGE, "tier: [", "tier: edge");
    let (markdown, report) = plan_invalid(&scratch, &["HEAD", "."], STAGE);
    assert_eq!(report["invalid"]["side"], "base", "{report:#}");
    assert!(markdown.contains("the data of base") && markdown.contains(STAGE), "{markdown}");
    assert_eq!((&report["head"]["modified"], &report["base"]["modified"]), (&true.into(), &Value::Null));
}

#[test]
fn a_plan_as_json_follows_the_published_schema() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "replicas: 2", "replicas: 3");
    let output = plan(&scratch, &["HEAD", ".", "-o", "json", "--full"]);
    let report = json(&output);
    let validator = published_schema();
    let errors: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{report:#}");
    let change = &integration(&report, "openshift-resources")["changes"][0];
    assert_eq!(report["status"], "changes");
    assert_eq!((&report["head"]["modified"], &report["base"]["modified"]), (&true.into(), &Value::Null));
    assert_eq!(change["kind"], "ConfigMap");
    assert_eq!((&change["name"], &change["namespace"]), (&"catalog-config".into(), &"catalog-stage".into()));
    assert_eq!((&change["action"], &change["scope"]["cluster"]), (&"change".into(), &"cliffs-stage".into()));
    let replicas = line_of(&scratch, STAGE, "replicas: 3");
    let location = &change["location"];
    assert_eq!(format!("{}:{}", location["file"].as_str().unwrap(), location["line"]), replicas);
    let run = integration(&report, "openshift-resources")["run"].as_str().unwrap();
    let explained = qontract(scratch.path(), &["explain", "run", run, "--runs", "runs"]);
    assert!(explained.status.success(), "{}", stderr(&explained));
    // `up --once --dry-run` prints the same form, and nothing else on stdout.
    let words = [&["up", ".", "--once", "--dry-run", "-o", "json"], &HERE[..]].concat();
    let output = qontract(scratch.path(), &words);
    let report = json(&output);
    assert!(validator.is_valid(&report), "{report:#}");
    assert_eq!(integration(&report, "openshift-resources")["totals"]["change"], 1, "{report:#}");
}

#[test]
fn exit_codes_are_those_that_scripts_expect() {
    let scratch = applied_example();
    let lines = ["plan HEAD .", "reconcile openshift-resources --dry-run", "up . --once --dry-run"];
    // Without and with `--detailed-exitcode`: nothing to do, changes, failed.
    let expect = [(0, 0), (0, 2), (1, 1)];
    let code = |line: &str, more: &[&str]| {
        let words: Vec<&str> = line.split(' ').chain(HERE).chain(more.iter().copied()).collect();
        let output = qontract(scratch.path(), &words);
        (output.status.code().unwrap(), stderr(&output))
    };
    let states: [&dyn Fn(); 3] = [
        &|| {},
        &|| edit(&scratch, STAGE, "replicas: 2", "replicas: 3"),
        // A template that cannot be rendered.
        &|| {
            edit(
                &scratch,
                "resources/shop/app-config.configmap.yaml.j2",
                "data:",
                "data:\n  BROKEN: {{ nope() }}",
            );
        },
    ];
    for (index, (enter, (plain, detailed))) in states.iter().zip(expect).enumerate() {
        enter();
        for line in lines {
            let (got, text) = code(line, &[]);
            assert_eq!(got, plain, "{line} in state {index}: {text}");
            let (got, text) = code(line, &["--detailed-exitcode"]);
            assert_eq!(got, detailed, "{line} --detailed-exitcode in state {index}: {text}");
        }
    }
    let wrong = ["--config", "/nowhere/config.toml"];
    for line in lines {
        let (detailed, text) = code(line, &[&["--detailed-exitcode"], &wrong[..]].concat());
        assert_eq!(detailed, 64, "{line}: {text}");
    }
    for (more, expect) in [(&wrong[..], 2), (&["--nope"], 2), (&["--detailed-exitcode", "--nope"], 64)] {
        let (code, text) = code("plan HEAD .", more);
        assert_eq!(code, expect, "{more:?}: {text}");
    }
    let (plain, text) = code("plan nowhere .", &[]);
    assert_eq!(plain, 2, "{text}");
    let (code, text) = code("plan HEAD . -i openshift-namespces", &["--detailed-exitcode"]);
    assert!(code == 64 && text.contains("openshift-namespces"), "{text}");
}

#[test]
fn held_changes_are_in_the_report_with_their_approval() {
    let scratch = applied_example();
    // No ConfigMap is left of two: emptying a scope needs an approval.
    edit(&scratch, STAGE, "sharedResources:\n- $ref: /platform/shared-resources/trust.yml\n", "");
    let template = "- provider: resource-template\n  type: jinja2\n  path: /shop/app-config.configmap.yaml.j2\n  variables:\n    service: catalog\n    replicas: 2\n";
    edit(&scratch, STAGE, template, "");
    let words = ["HEAD", ".", "-i", "openshift-resources"];
    let output = plan(&scratch, &words);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(text.contains("  held: - remove ConfigMap `catalog-config`"), "{text}");
    assert!(
        text.contains("2 held") && text.contains("to approve the held changes, add this to the data:"),
        "{text}"
    );
    let markdown = out(&plan(&scratch, &[&words[..], &["-o", "md"]].concat()));
    assert!(
        markdown.contains("**held** in `openshift-resources`") && markdown.contains("```yaml\n"),
        "{markdown}"
    );
    let report = json(&plan(&scratch, &[&words[..], &["-o", "json"]].concat()));
    let one = integration(&report, "openshift-resources");
    assert!(one["status"] == "held" && one["changes"][0]["held"].is_string(), "{report:#}");
    assert_eq!((&report["totals"]["held"], &report["totals"]["remove"]), (&2.into(), &0.into()));
    let detailed = plan(&scratch, &[&words[..], &["--detailed-exitcode"]].concat());
    assert_eq!(detailed.status.code(), Some(1));
}

#[test]
fn an_integration_that_fails_does_not_stop_the_others() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let program = scratch.write("runs/program.sh", "echo 'it is broken' >&2\nexit 3\n");
    let config = format!("[integrations.service-dependencies]\ncommand = [\"sh\", {program:?}]\n");
    scratch.write("runs/config.toml", config);
    let output = plan(&scratch, &["HEAD", ".", "--config", "runs/config.toml"]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(text.contains("service-dependencies\n  error: cannot start: "), "{text}");
    assert!(text.contains("~ label Namespace `catalog-stage`"), "{text}");
    assert!(text.contains("1 to change, 0 to remove; 1 error, in 2 integrations"), "{text}");
}

#[test]
fn all_also_plans_unaffected_integrations() {
    let scratch = applied_example();
    std::fs::remove_file(
        scratch.path().join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/catalog-config.yaml"),
    )
    .unwrap();
    let affected = out(&plan(&scratch, &["HEAD", "."]));
    assert!(affected.starts_with("no changes; "), "{affected}");
    let all = out(&plan(&scratch, &["HEAD", ".", "--all"]));
    assert!(all.contains("+ create ConfigMap `catalog-config`"), "{all}");
    assert!(!all.contains("not affected"), "{all}");
}

#[test]
fn a_plan_of_two_revisions_reads_the_made_up_secrets_of_the_data_repo() {
    let scratch = repo();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    scratch.commit_all("a change");
    let output = plan(&scratch, &["HEAD~1", "HEAD", "--all", "-i", "openshift-vault-secrets"]);
    assert!(output.status.success() && !stderr(&output).contains("no secret"), "{}", stderr(&output));
}

#[test]
fn a_plan_without_integrations_is_not_green() {
    let scratch = applied_example();
    std::fs::remove_dir_all(scratch.path().join("data/integrations")).unwrap();
    scratch.commit_all("no integrations");
    let output = plan(&scratch, &["HEAD", ".", "--no-validate"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("warning: the data declares no integration"), "{}", stderr(&output));
}

#[test]
fn a_machine_without_a_ledger_plans_removals_with_a_warning() {
    let scratch = applied_example();
    let text = scratch.read(STAGE);
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("limitRanges:")).collect();
    scratch.write(STAGE, without.join("\n") + "\n");
    std::fs::remove_dir_all(scratch.path().join("sandbox/journal")).unwrap();
    let output = plan(&scratch, &["HEAD", ".", "-i", "openshift-limitranges", "--detailed-exitcode"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(out(&output).contains("- remove LimitRange"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning: no removal ledger in `sandbox/journal`"),
        "{}",
        stderr(&output)
    );
    assert!(!scratch.path().join("sandbox/journal").exists(), "a plan writes nothing");
}

#[test]
fn addresses_that_only_the_change_names_are_not_contacted() {
    let scratch = applied_example();
    let file = "data/clusters/cliffs-stage.yml";
    edit(&scratch, file, "serverUrl: https://", "serverUrl: https://evil.");
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    for more in [&[][..], &["--all"]] {
        let words = [&["HEAD", ".", "-i", "openshift-namespace-labels"], more].concat();
        let output = plan(&scratch, &words);
        assert!(!out(&output).contains("label Namespace"), "{}", stderr(&output));
        assert!(
            out(&output)
                .contains("not planned: `cluster=cliffs-stage, namespace=catalog-stage`: its address is new"),
            "{}",
            stderr(&output)
        );
        let trusted = out(&plan(&scratch, &[&words[..], &["--trust-head"]].concat()));
        assert!(trusted.contains("label Namespace `catalog-stage`"), "{trusted}");
    }
}

#[test]
fn causes_are_the_lines_that_matter_to_the_integration() {
    let scratch = repo();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    edit(&scratch, STAGE, "replicas: 2", "replicas: 3");
    let output = qontract(scratch.path(), &["affected", "HEAD", ".", "-o", "json"]);
    let rows = json(&output);
    let row =
        |name: &str| rows.as_array().unwrap().iter().find(|row| row["integration"] == name).unwrap().clone();
    let (label, replicas) = (line_of(&scratch, STAGE, "tier: core"), line_of(&scratch, STAGE, "replicas: 3"));
    for (name, line) in [("openshift-resources", replicas), ("openshift-namespace-labels", label)] {
        assert_eq!(row(name)["causes"], serde_json::json!([line]), "{name}: {rows:#}");
        assert_eq!(row(name)["shards"][0]["differs"], serde_json::json!([line]), "{name}: {rows:#}");
    }
    assert_eq!(row("openshift-routes")["affected"], false, "{rows:#}");
    // Fields that are not read, in files that a reference may read as another type.
    let (cluster, quota) = ("data/clusters/harbor-prod.yml", "data/platform/quotas/small.yml");
    for file in [cluster, quota] {
        edit(&scratch, file, "description: ", "description: other ");
    }
    edit(&scratch, quota, "pods: 20", "pods: 21");
    let rows = json(&qontract(scratch.path(), &["affected", "HEAD", ".", "-o", "json"]));
    let causes = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["integration"] == name);
        row.unwrap()["causes"].clone()
    };
    let label = line_of(&scratch, STAGE, "tier: core");
    assert_eq!(causes("openshift-namespace-labels"), serde_json::json!([label]), "{rows:#}");
    let pods = line_of(&scratch, quota, "pods: 21");
    assert_eq!(causes("openshift-resourcequotas"), serde_json::json!([pods]), "{rows:#}");
    // A template: the line of the resource.
    scratch.git(&["checkout", "--quiet", "."]);
    let template = "resources/shop/app-config.configmap.yaml.j2";
    edit(&scratch, template, "data:", "data:\n  NEW: \"1\"");
    let text = out(&qontract(scratch.path(), &["affected", "HEAD", "."]));
    let line = line_of(&scratch, template, "NEW");
    assert!(text.contains(&format!("because of {line}\n")), "{line}: {text}");
}

#[test]
fn a_removed_field_has_the_line_that_it_had() {
    let scratch = repo();
    let line = line_of(&scratch, STAGE, "limitRanges:");
    edit(&scratch, STAGE, "limitRanges: {$ref: /platform/limitranges/default.yml}\n", "");
    let text = out(&qontract(scratch.path(), &["affected", "HEAD", "."]));
    assert!(
        text.contains(&format!("openshift-limitranges: affected (desired state)\n    because of {line}\n")),
        "{text}"
    );
}

#[test]
fn a_mistyped_selector_is_a_usage_error_with_the_nearest_name() {
    let scratch = repo();
    let words = ["reconcile", "openshift-namespaces", "--dry-run", "--cluster-name", "clifs-stage"];
    let output = qontract(scratch.path(), &[&words[..], &HERE[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("did you mean `cliffs-stage`?"), "{}", stderr(&output));
    let output = qontract(scratch.path(), &[&words[..], &HERE[..], &["--detailed-exitcode"]].concat());
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    // Under the peer's name it is accepted.
    let peer = [&["peer"], &words[..], &HERE[..], &["--data", "."]].concat();
    let output = qontract(scratch.path(), &peer);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning: `--cluster-name clifs-stage` matches nothing"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn affected_integrations_come_first_and_the_others_are_counted() {
    let scratch = repo();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let affected = |more: &[&str]| {
        let output = qontract(scratch.path(), &[&["affected"], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        out(&output)
    };
    let text = affected(&[]);
    assert!(
        text.starts_with("openshift-namespace-labels: affected (desired state)\n    because of "),
        "{text}"
    );
    assert!(text.ends_with(" not affected (-v lists them)\n") && text.contains("\n1 affected, "), "{text}");
    assert!(!text.contains("openshift-routes"), "{text}");
    let verbose = affected(&["-v"]);
    assert!(
        verbose.contains("openshift-limitranges: not affected (queries)\n") && !verbose.contains("-v lists"),
        "{verbose}"
    );
    let markdown = affected(&["-o", "md"]);
    assert!(markdown.starts_with("### Affected: 1 integration\n"), "{markdown}");
    assert!(markdown.contains("| `openshift-namespace-labels` | `data/"), "{markdown}");
    assert!(
        markdown.contains("<details><summary>openshift-namespace-labels: 1 shard</summary>"),
        "{markdown}"
    );
}

fn diff(scratch: &Scratch, words: &[&str]) -> String {
    out(&qontract(scratch.path(), &[&["diff"], words].concat()))
}

#[test]
fn diff_shows_the_changes_of_the_working_tree_since_the_commit() {
    let scratch = repo();
    assert_eq!(diff(&scratch, &[]), "no differences\n");
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    for words in [&[][..], &["HEAD"], &["HEAD", "."], &["--repo", "."]] {
        let text = diff(&scratch, words);
        assert!(text.contains("~ /labels/tier  \"edge\" → \"core\""), "{words:?}: {text}");
    }
    let elsewhere = scratch.path().parent().unwrap();
    let folder = scratch.path().display().to_string();
    let output = qontract(elsewhere, &["diff", "--repo", &folder]);
    assert!(out(&output).contains("\"edge\" → \"core\""), "{}", stderr(&output));
}

#[test]
fn diff_shows_the_content_of_added_and_removed_files() {
    let scratch = repo();
    scratch.write(
        "data/services/new/app.yml",
        "---\n$schema: /app-sre/app-1.yml\nname: new\ndescription: brand new\n",
    );
    scratch.remove("data/services/observability/app.yml");
    scratch.write("resources/new.txt", "one\ntwo\n");
    edit(&scratch, "resources/shop/app-config.configmap.yaml.j2", "data:", "data:\n  NEW: \"1\"");
    let text = diff(&scratch, &[]);
    assert!(text.contains("+ data/services/new/app.yml  (/app-sre/app-1.yml)\n"), "{text}");
    assert!(text.contains("    + /description  \"brand new\"  [data/services/new/app.yml:4]\n"), "{text}");
    assert!(text.contains("- data/services/observability/app.yml"), "{text}");
    assert!(text.contains("    - /name  \"observability\"  [data/services/observability/app.yml:"), "{text}");
    assert!(text.contains("+ resources/new.txt\n    + one\n    + two\n"), "{text}");
    let line = scratch
        .read("resources/shop/app-config.configmap.yaml.j2")
        .lines()
        .position(|line| line.contains("NEW"));
    let place = format!("    [resources/shop/app-config.configmap.yaml.j2:{}]\n", line.unwrap());
    assert!(text.contains(&place) && text.contains("    +   NEW: \"1\"\n"), "{place}: {text}");
    assert!(text.ends_with("1 changed, 2 added, 1 removed\n"), "{text}");
    let markdown = diff(&scratch, &["-o", "md"]);
    assert!(
        markdown.contains("- **added** `data/services/new/app.yml` `/app-sre/app-1.yml`\n  <details>"),
        "{markdown}"
    );
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
    // Long files are folded, and shown in full on request.
    let many: Vec<String> = (0..50).map(|number| format!("line {number}")).collect();
    scratch.write("resources/new.txt", many.join("\n") + "\n");
    let text = diff(&scratch, &[]);
    assert!(text.contains("    + line 11\n    … 38 more lines (--full shows them)\n"), "{text}");
    assert!(diff(&scratch, &["--full"]).contains("    + line 49\n"));
}

#[test]
fn a_plan_names_its_targets_and_folds_what_is_not_validated() {
    let scratch = repo();
    let words = ["plan", "--all", "--sandbox", "missing", "--runs", "runs"];
    let output = qontract(scratch.path(), &words);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("planning against sandbox `missing`\n"), "{text}");
    assert!(text.contains("note: the sandbox does not exist: every object is planned as new"), "{text}");
    let is_note =
        |line: &&str| line.contains("note: not validated: ") || line.contains(" changes not validated");
    assert!(text.contains(" changes not validated, for example + create "), "{text}");
    assert!(text.lines().filter(is_note).count() <= 14, "one line for each integration: {text}");
    let report = json(&qontract(scratch.path(), &[&words[..], &["-o", "json"]].concat()));
    assert_eq!(report["targets"], "sandbox `missing`");
    let markdown = out(&qontract(scratch.path(), &[&words[..], &["-o", "md"]].concat()));
    assert!(markdown.contains("\nplanned against "), "{markdown}");
}

#[test]
fn a_mere_rename_is_not_a_cause_of_another_change() {
    let scratch = repo();
    let (old, new) = ("data/platform/quotas/small.yml", "data/platform/quotas/tiny.yml");
    scratch.write(new, scratch.read(old));
    scratch.remove(old);
    for namespace in [
        STAGE,
        "data/services/billing/namespaces/billing-stage.yml",
        "data/services/checkout/namespaces/checkout-mailer-prod.yml",
        "data/services/checkout/namespaces/checkout-stage.yml",
    ] {
        edit(&scratch, namespace, "quotas/small.yml", "quotas/tiny.yml");
    }
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let text = out(&plan(&scratch, &["-i", "openshift-namespace-labels"]));
    let cause = format!("because of {}", line_of(&scratch, STAGE, "tier: core"));
    let causes: Vec<&str> = text.lines().filter(|line| line.contains("because of")).map(str::trim).collect();
    assert_eq!(causes, [cause.as_str()], "{text}");
}

#[test]
fn diff_recognises_renamed_files() {
    let scratch = repo();
    let moved = "data/services/catalog/namespaces/moved.yml";
    let text = scratch.read(STAGE).replace("tier: edge", "tier: core");
    scratch.write(moved, text);
    scratch.remove(STAGE);
    let route = scratch.read("resources/shop/catalog/search-index.service.yaml");
    scratch.write("resources/shop/moved.service.yaml", route);
    scratch.remove("resources/shop/catalog/search-index.service.yaml");
    let output = qontract(scratch.path(), &["diff"]);
    let text = out(&output);
    assert!(
        text.contains(&format!("> {STAGE} → {moved}  (/openshift/namespace-1.yml)\n")),
        "{}",
        stderr(&output)
    );
    assert!(text.contains("    ~ /labels/tier  \"edge\" → \"core\""), "{text}");
    assert!(
        text.contains(
            "> resources/shop/catalog/search-index.service.yaml → resources/shop/moved.service.yaml\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("0 changed, 0 added, 0 removed, 2 renamed\n"), "{text}");
    assert!(diff(&scratch, &["-o", "md"]).contains(&format!("- **renamed** `{STAGE}` → `{moved}`")));
}

#[test]
fn colours_are_on_terminals_and_where_they_are_forced() {
    let scratch = applied_example();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let run = |line: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(scratch.path()).args(line.split(' ')).envs(variables.iter().copied());
        let output = command.env("GIT_CEILING_DIRECTORIES", Path::new("/")).output().unwrap();
        out(&output)
    };
    for line in [
        "plan HEAD . --sandbox sandbox --runs runs",
        "reconcile openshift-namespace-labels --dry-run --sandbox sandbox --runs runs",
        "diff",
        "affected HEAD .",
    ] {
        assert!(run(line, &[("CLICOLOR_FORCE", "1")]).contains("\u{1b}[33m"), "{line}");
        assert!(!run(line, &[]).contains('\u{1b}'), "{line}: stdout is not a terminal");
    }
    assert!(!run("diff", &[("NO_COLOR", "1")]).contains('\u{1b}'));
    let markdown = "plan HEAD . --sandbox sandbox --runs runs -o md";
    assert!(!run(markdown, &[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
}

#[test]
fn without_targets_the_sandbox_of_up_is_planned_against() {
    let scratch = repo();
    edit(&scratch, STAGE, "tier: edge", "tier: core");
    let run = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(scratch.path()).args(line.split(' '));
        command.env("XDG_STATE_HOME", scratch.path().join("runs")).output().unwrap()
    };
    let output = run("plan HEAD .");
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains("no target is configured"),
        "{}",
        stderr(&output)
    );
    assert!(run("up . --once").status.success());
    edit(&scratch, STAGE, "tier: core", "tier: inner");
    let output = run("plan HEAD .");
    assert!(output.status.success() && out(&output).contains("\"core\" → \"inner\""), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("note: no target is configured; planning against the sandbox "),
        "{}",
        stderr(&output)
    );
}
