//! Snapshot tests of `query` and `get` on the example data repo and the recorded one.

use std::path::Path;

use crate::support::command;
use qontract_testkit::{Scratch, example, snapshot, vectors};

/// Runs one command line in `folder` and compares its output with the snapshot.
fn check(name: &str, folder: &Path, arguments: &[&str]) {
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots")).join(format!("{name}.txt"));
    snapshot(&kept, &command::seen(folder, arguments));
}

#[test]
fn query_reads_a_directory_a_bundle_and_a_revision() {
    let text = "{ apps_v1 { name team { name } } }";
    check("query", &vectors().join("repo"), &["query", text]);
    let bundle = command::qontract(&vectors(), &["query", text, "--data", "bundle.json"]);
    let folder = command::qontract(&vectors(), &["query", text, "--data", "repo"]);
    assert_eq!(bundle.stdout, folder.stdout);
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    scratch.commit_all("data");
    scratch.remove("data/apps/billing.yml");
    let revision = command::qontract(scratch.path(), &["query", text, "--data", "HEAD"]);
    assert_eq!(revision.stdout, folder.stdout);
    assert_ne!(command::qontract(scratch.path(), &["query", text]).stdout, folder.stdout);
    check("query-nowhere", scratch.path(), &["query", text, "--data", "/nope"]);
}

#[test]
fn the_directory_of_the_data_repo_is_the_default_data() {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    let elsewhere = Scratch::new();
    let repo = scratch.path().to_str().expect("a path");
    for words in [&["get", "apps"][..], &["query", "{ apps_v1 { name } }"], &["validate"]] {
        let here = command::qontract(scratch.path(), words);
        let there = command::qontract(elsewhere.path(), &[words, &["--repo", repo]].concat());
        assert!(there.status.success(), "{words:?}: {}", String::from_utf8_lossy(&there.stderr));
        assert_eq!(
            String::from_utf8_lossy(&there.stdout),
            String::from_utf8_lossy(&here.stdout),
            "{words:?}"
        );
    }
}

#[test]
fn query_takes_variables_and_an_operation() {
    let text = "query A($p: String) { apps_v1(path: $p) { name } } query B { teams_v1 { name } }";
    let variables = "{\"p\": \"/apps/search.yml\"}";
    let options = ["--data", "bundle.json", "--operation", "A", "--variables", variables];
    check("query-variables", &vectors(), &[&["query", text], &options[..]].concat());
    check("query-no-operation", &vectors(), &["query", text, "--data", "bundle.json"]);
    check("query-bad-variables", &vectors(), &["query", text, "--data", "bundle.json", "--variables", "[1]"]);
}

#[test]
fn query_shows_the_provenance_of_objects() {
    let text =
        "{ apps_v1 { name endpoints { ... on EndpointTcp_v1 { port } } team { name } rules { path } } }";
    check("query-provenance", &vectors(), &["query", text, "--data", "repo", "--provenance"]);
    check("query-provenance-bundle", &vectors(), &["query", text, "--data", "bundle.json", "--provenance"]);
}

#[test]
fn query_fails_on_errors_and_still_prints_the_response() {
    check("query-invalid", &vectors(), &["query", "{ nope }", "--data", "bundle.json"]);
    check("query-syntax", &vectors(), &["query", "{ apps_v1 {", "--data", "bundle.json"]);
    let levels = 25;
    let hostile =
        format!("{{ teams_v1 {}{{ name }}{} }}", "{ apps { team ".repeat(levels), "} }".repeat(levels));
    check("query-too-deep", &vectors(), &["query", &hostile, "--data", "bundle.json"]);
}

#[test]
fn get_lists_kinds_and_objects() {
    check("get-kinds", &example(), &["get"]);
    check("get-table", &example(), &["get", "namespaces"]);
    check("get-interface", &example(), &["get", "permissions_v1"]);
    check("get-wide", &vectors(), &["get", "apps", "-o", "wide", "--data", "bundle.json"]);
    check("get-resources", &vectors(), &["get", "resources", "--data", "bundle.json"]);
    check("get-sorted", &example(), &["get", "namespaces", "--filter", "app=catalog", "--sort", "cluster"]);
}

#[test]
fn get_shows_one_object_by_name_or_path() {
    check("get-yaml", &example(), &["get", "cluster", "harbor-prod", "-o", "yaml"]);
    check(
        "get-json",
        &vectors(),
        &["get", "app", "/apps/billing.yml", "-o", "json", "--data", "bundle.json"],
    );
    check("get-one", &example(), &["get", "apps", "billing"]);
    check("get-user", &example(), &["get", "users", "dev-billing-one"]);
    check("get-by-file", &example(), &["get", "products", "data/products/platform/product.yml"]);
}

#[test]
fn get_reports_unknown_names() {
    check("get-no-kind", &vectors(), &["get", "cluste", "--data", "bundle.json"]);
    check("get-no-resource", &vectors(), &["get", "resources", "/nope", "--data", "bundle.json"]);
    check("get-no-name", &vectors(), &["get", "apps", "nope", "--data", "bundle.json"]);
    check("get-no-field", &vectors(), &["get", "apps", "--sort", "labels", "--data", "bundle.json"]);
    check("get-bad-filter", &vectors(), &["get", "apps", "--filter", "name", "--data", "bundle.json"]);
}

#[test]
fn get_can_show_every_kind_of_the_example_in_every_form() {
    let kinds = command::qontract(&example(), &["get"]);
    let kinds = String::from_utf8_lossy(&kinds.stdout).into_owned();
    let names: Vec<&str> = kinds.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 30, "{kinds}");
    let bundle = Scratch::new();
    let file = bundle.path().join("bundle.json").display().to_string();
    command::qontract(&example(), &["bundle", "-o", &file]);
    for name in names {
        for form in ["wide", "json"] {
            let output = command::qontract(&example(), &["get", name, "-o", form, "--data", &file]);
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), printed.as_str()), (Some(0), ""), "{name} -o {form}");
        }
    }
}

#[test]
fn a_query_that_takes_too_long_is_aborted() {
    // Each with another alias, because equal selections in the same place are copied and take no time.
    let mut parts = String::new();
    for part in 0..60 {
        parts.push_str(&format!("p{part}: clusters_v1 {{ namespaces {{ name app {{ name }} }} }} "));
    }
    let query = format!("{{ {parts} }}");
    let output = command::qontract(&example(), &["query", &query, "--timeout", "0"]);
    let body = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(body.contains(r#""code":"CANCELLED""#), "{body}");
    assert_eq!(output.status.code(), Some(1));
}
