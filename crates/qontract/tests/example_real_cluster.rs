//! The whole example on a real API server: everything that it names is made, and the second time there is nothing to do.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    pub mod command;
}

use qontract_testcluster::TestCluster;
use qontract_testkit::{Scratch, example};
use support::command::qontract;

/// The kinds that the example has and a plain API server has not.
const KINDS: [(&str, &str, &str); 3] = [
    ("route.openshift.io", "Route", "routes"),
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    ("monitoring.rhobs", "PrometheusRule", "prometheusrules"),
];

fn definition((group, kind, plural): (&str, &str, &str)) -> String {
    let schema = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n\
         spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  \
         versions: [{{name: v1, served: true, storage: true, schema: {schema}}}]\n---\n"
    )
}

#[test]
fn the_example_is_made_and_then_there_is_nothing_to_do() {
    let (cluster, scratch) = (TestCluster::start(), Scratch::new());
    let api = &cluster.api;
    scratch.copy(&example(), "repo");
    for name in ["cliffs-stage", "dunes-int", "harbor-prod"] {
        let file = format!("repo/data/clusters/{name}.yml");
        let address = format!("https://api.{name}.example.com:6443");
        let text = scratch.read(&file);
        assert!(text.contains(&address), "{text}");
        scratch.write(&file, text.replace(&address, &api.url));
    }
    // One server stands for all three clusters, which is refused by a room that looks after clusters as a whole.
    scratch.remove("repo/data/integrations/openshift-clusterrolebindings.yml");
    // This server is older than these versions.
    for (file, now, then) in [
        ("shop/catalog/autoscaler.yaml", "autoscaling/v2", "autoscaling/v2beta2"),
        ("shop/billing/month-end.cronjob.yaml", "batch/v1", "batch/v1beta1"),
    ] {
        let file = format!("repo/resources/{file}");
        scratch.write(&file, scratch.read(&file).replace(now, then));
    }
    let mut config = format!("[kubernetes]\nrequests_per_second = 400\nca = \"{}\"\n\n", api.ca.display());
    for name in ["cliffs-stage", "dunes-int", "harbor-prod", "harbor-prod-admin"] {
        config.push_str(&format!("[platform.clusters.{name}]\ntoken = {:?}\n\n", api.token));
    }
    config.push_str(&scratch.read("repo/sandbox/secrets.toml"));
    scratch.write("config.toml", config);
    api.kubectl(&["apply", "--filename", "-"], &KINDS.map(definition).concat()).text();
    for (group, _, plural) in KINDS {
        let name = format!("crd/{plural}.{group}");
        api.kubectl(&["wait", "--for", "condition=established", &name, "--timeout", "60s"], "").text();
    }

    let up = || {
        let words = ["up", "repo", "--once", "--config", "config.toml", "--runs", "runs"];
        let output = qontract(scratch.path(), &words);
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        told
    };
    let told = up();
    assert!(told.contains("+ create Route `catalog`"), "{told}");
    let secret = api
        .kubectl(&["get", "secret", "catalog-search", "--namespace", "catalog-prod", "--output", "json"], "");
    let secret: serde_json::Value = serde_json::from_str(&secret.text()).unwrap();
    assert_eq!(secret["data"]["user"], "c2VhcmNo");
    assert_eq!(secret["metadata"]["annotations"]["qontract.integration"], "openshift-vault-secrets");

    let told = up();
    let ends: Vec<&str> = told.lines().filter(|line| line.contains("held=0")).collect();
    assert!(ends.len() >= 5, "{told}");
    assert!(ends.iter().all(|line| line.contains(" ok changes=0 held=0 ")), "{told}");
}
