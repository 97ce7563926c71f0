//! Runs the whole example on real API servers, one for each of its clusters: its Kubernetes integrations
//! create all objects, and a second run has nothing to do.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use qontract_testkit::cluster::TestCluster;
use qontract_testkit::{Scratch, example};

/// The kinds of the example that a plain API server does not serve.
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

const CLUSTERS: [&str; 3] = ["cliffs-stage", "dunes-int", "harbor-prod"];

/// Starts a test cluster for each cluster of the example, concurrently.
fn clusters() -> Vec<TestCluster> {
    std::thread::scope(|scope| {
        let starting = CLUSTERS.map(|_| scope.spawn(TestCluster::start));
        starting.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// The Kubernetes integrations that the example defines and the binary contains.
fn integrations(scratch: &Scratch) -> Vec<String> {
    let files = std::fs::read_dir(scratch.path().join("repo/data/integrations")).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let integrations: Vec<String> =
        names.filter(|name| name.starts_with("openshift-") && name != "openshift-saas-deploy").collect();
    assert!(integrations.iter().any(|name| name == "openshift-clusterrolebindings"), "{integrations:?}");
    integrations
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn the_example_is_applied_and_then_there_is_nothing_to_do() {
    let (clusters, scratch) = (clusters(), Scratch::new());
    scratch.copy(&example(), "repo");
    scratch.init_journal("runs");
    for (name, cluster) in CLUSTERS.iter().zip(&clusters) {
        let file = format!("repo/data/clusters/{name}.yml");
        let address = format!("https://api.{name}.example.com:6443");
        let text = scratch.read(&file);
        assert!(text.contains(&address), "{text}");
        scratch.write(&file, text.replace(&address, &cluster.api.url));
    }
    // These servers are older than these versions.
    for (file, now, then) in [
        ("shop/catalog/autoscaler.yaml", "autoscaling/v2", "autoscaling/v2beta2"),
        ("shop/billing/month-end.cronjob.yaml", "batch/v1", "batch/v1beta1"),
    ] {
        let file = format!("repo/resources/{file}");
        scratch.write(&file, scratch.read(&file).replace(now, then));
    }
    let mut config = "[kubernetes]\nrequests_per_second = 400\n\n".to_owned();
    for (name, TestCluster { api, .. }) in CLUSTERS.iter().zip(&clusters) {
        config.push_str(&format!("[kubernetes.clusters.{name}]\nca = \"{}\"\n\n", api.ca.display()));
        config.push_str(&format!("[platform.clusters.{name}]\ntoken = {:?}\n\n", api.token));
    }
    let harbor = &clusters[2].api;
    config.push_str(&format!("[platform.clusters.harbor-prod-admin]\ntoken = {:?}\n\n", harbor.token));
    config.push_str(&scratch.read("repo/sandbox/secrets.toml"));
    scratch.write("config.toml", config);
    for TestCluster { api, .. } in &clusters {
        api.kubectl(&["apply", "--filename", "-"], &KINDS.map(definition).concat()).text();
        for (group, _, plural) in KINDS {
            let name = format!("crd/{plural}.{group}");
            api.kubectl(&["wait", "--for", "condition=established", &name, "--timeout", "60s"], "").text();
        }
    }

    let up = || {
        let words = ["up", "repo", "--once", "--config", "config.toml", "--runs", "runs"];
        let output = qontract(scratch.path(), &words);
        let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        printed
    };
    let printed = up();
    assert!(printed.contains("+ create Route `catalog`"), "{printed}");
    assert!(printed.contains("+ create ClusterRoleBinding"), "{printed}");
    let secret = harbor
        .kubectl(&["get", "secret", "catalog-search", "--namespace", "catalog-prod", "--output", "json"], "");
    let secret: serde_json::Value = serde_json::from_str(&secret.text()).unwrap();
    assert_eq!(secret["data"]["user"], "c2VhcmNo");
    assert_eq!(secret["metadata"]["annotations"]["qontract.integration"], "openshift-vault-secrets");

    let printed = up();
    let ends: Vec<&str> = printed.lines().filter(|line| line.contains("held=0")).collect();
    assert!(ends.len() >= 5, "{printed}");
    for integration in integrations(&scratch) {
        assert!(
            ends.iter().any(|line| line.split_whitespace().any(|word| word.ends_with(&integration))),
            "{integration}: {printed}"
        );
    }
    assert!(ends.iter().all(|line| line.contains(" ok changes=0 held=0 ")), "{printed}");
}
