//! Beside the established runtime: few requests to a server, its flags, its configuration.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    pub mod command;
}

use std::fmt::Write as _;
use std::process::Output;

use qontract_testkit::{Scratch, example};
use qontract_testserver::DataServer;
use support::command;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const NAMESPACE: &str = "data/services/catalog/namespaces/catalog-stage.yml";

/// The example with so many more resources and rules in one namespace.
fn repo_with_resources(count: usize) -> Scratch {
    let scratch = Scratch::copy_of(&example());
    let mut namespace = scratch.read(NAMESPACE);
    let mut entries = String::from("openshiftResources:\n");
    for number in 0..count {
        let (map, rule) = (format!("/many/map-{number}.yaml"), format!("/many/rule-{number}.yaml"));
        writeln!(entries, "- provider: resource\n  path: {map}").unwrap();
        writeln!(entries, "- provider: prometheus-rule\n  path: {rule}").unwrap();
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ";
        scratch.write(&format!("resources{map}"), format!("{object}map-{number}}}\ndata: {{a: b}}\n"));
        let object = "$schema: /openshift/prometheus-rule-1.yml\napiVersion: monitoring.coreos.com/v1\n\
             kind: PrometheusRule\nmetadata: {labels: {prometheus: app-sre, role: alert-rules}, name: ";
        scratch.write(&format!("resources{rule}"), format!("{object}rule-{number}}}\nspec: {{groups: []}}\n"));
    }
    namespace = namespace.replace("openshiftResources:\n", &entries);
    scratch.write(NAMESPACE, namespace);
    scratch
}

fn bundle(repo: &Scratch) -> Vec<u8> {
    command::qontract(repo.path(), &["bundle", ".", "--no-validate", "-o", "-"]).stdout
}

#[test]
fn many_resources_of_a_server_take_few_requests() {
    // Few are requested together, many are listed: both sides of the boundary.
    for count in [120, 700] {
        let server = DataServer::start();
        let repo = repo_with_resources(count);
        let base = server.load(&bundle(&repo));
        let file = "data/services/catalog/app.yml";
        repo.write(file, repo.read(file).replace("description: ", "description: still "));
        server.load(&bundle(&repo));
        let scratch = Scratch::new();
        let config = format!("[graphql]\nserver = {:?}\n[sandbox]\ndirectory = \"sandbox\"\n", server.url());
        scratch.write("config.toml", config);
        for integration in ["openshift-prometheus-rules", "openshift-resources"] {
            let before = server.all_requests();
            let words = ["peer", "reconcile", "--config", "config.toml", "--runs", "runs", "--dry-run"];
            let words = [&words[..], &["--early-exit-compare-sha", &base, integration]].concat();
            let output = command::qontract(scratch.path(), &words);
            assert!(output.status.success(), "{}", text(&output));
            assert!(text(&output).contains("no change between"), "{}", text(&output));
            let requests = server.all_requests() - before;
            assert!(requests <= 20, "{integration} on {count}: {requests} requests");
        }
    }
}

#[test]
fn what_comes_from_a_server_in_batches_is_what_a_bundle_file_has() {
    for count in [120, 200] {
        let repo = repo_with_resources(count);
        // One resource of a batch is missing: the others are read nevertheless.
        repo.remove("resources/many/map-7.yaml");
        let bytes = bundle(&repo);
        let scratch = Scratch::new();
        scratch.write("bundle.json", &bytes);
        let server = DataServer::start();
        server.load(&bytes);
        let plan = |data: &str| {
            let words = ["reconcile", "openshift-resources", "--dry-run", "--no-validate", "-o", "json"];
            let words = [&words[..], &["--sandbox", "sandbox", "--runs", "runs", "--data", data]].concat();
            let output = command::qontract(scratch.path(), &words);
            let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            (output.status.code(), record["plan"]["digest"].clone(), record["declared"].clone(), record)
        };
        let (local, remote) = (plan("bundle.json"), plan(&server.url()));
        assert_eq!((&local.0, &local.1, &local.2), (&remote.0, &remote.1, &remote.2), "{}", local.3);
    }
}
