//! Drop-in replacement of qontract-reconcile: its flags, its configuration, and few requests to
//! qontract-server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::Output;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::command;
use crate::support::empty_cluster::EmptyCluster;
use qontract_testkit::vault::{ROOT, TestVault};
use qontract_testkit::{Scratch, example};
use qontract_testserver::DataServer;
use serde_json::json;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const NAMESPACE: &str = "data/services/catalog/namespaces/catalog-stage.yml";

/// The example with `count` more resources and rules in one namespace.
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
        scratch
            .write(&format!("resources{rule}"), format!("{object}rule-{number}}}\nspec: {{groups: []}}\n"));
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
    // Few resources are requested together, many are listed: tests both sides of the boundary.
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
fn resources_fetched_in_batches_equal_those_of_a_bundle_file() {
    for count in [120, 200] {
        let repo = repo_with_resources(count);
        // One resource of a batch is missing; the others are read.
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

/// The integrations with clusters, each with the peer's switches that only it has.
const OF_CLUSTERS: [(&str, &[&str]); 11] = [
    ("openshift-clusterrolebindings", &[]),
    ("openshift-limitranges", &["--no-take-over"]),
    ("openshift-namespace-labels", &[]),
    ("openshift-namespaces", &[]),
    ("openshift-network-policies", &[]),
    ("openshift-prometheus-rules", &[]),
    ("openshift-resourcequotas", &["--take-over"]),
    ("openshift-resources", &[]),
    ("openshift-rolebindings", &["--support-role-ref", "--no-support-role-ref"]),
    ("openshift-routes", &[]),
    ("openshift-vault-secrets", &[]),
];

const HERE: [&str; 6] = ["--sandbox", "sandbox", "--runs", "runs", "--data", "."];

fn peer(scratch: &Scratch, words: &[&str]) -> Output {
    command::qontract(scratch.path(), &[&["peer", "reconcile"], &HERE[..], words].concat())
}

/// The example with one internal cluster, one external one, and one without the field.
fn repo_with_internal_cluster() -> Scratch {
    let scratch = Scratch::copy_of(&example());
    let file = "data/clusters/cliffs-stage.yml";
    scratch.write(file, scratch.read(file).replace("internal: false", "internal: true"));
    let file = "data/clusters/dunes-int.yml";
    scratch.write(file, scratch.read(file).replace("internal: false\n", ""));
    scratch
}

/// The clusters whose shards a run processed, and its output.
fn clusters(scratch: &Scratch, words: &[&str]) -> (Vec<String>, String) {
    let output = peer(scratch, &[&["--dry-run", "--no-validate", "-o", "json"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shards = record["shards"].as_object().unwrap().keys();
    let name = |key: &String| key.strip_prefix("cluster=").unwrap().split(',').next().unwrap().to_owned();
    let names: BTreeSet<String> = shards.map(name).collect();
    (names.into_iter().collect(), text(&output))
}

#[test]
fn every_integration_takes_the_flags_of_the_peer() {
    let scratch = repo_with_internal_cluster();
    for (integration, own) in OF_CLUSTERS {
        let words = [integration, "--thread-pool-size", "3", "--internal", "--use-jump-host"];
        let (names, captured) = clusters(&scratch, &[&words[..], own].concat());
        assert_eq!(names, ["cliffs-stage"], "{integration}: {captured}");
        let warning = "`--use-jump-host` has no effect: jump hosts are not supported";
        assert!(captured.contains(warning), "{integration}: {captured}");
    }
    let output = peer(&scratch, &["openshift-namespaces", "--thread-pool-size", "0"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}

#[test]
fn internal_and_external_select_clusters_by_the_data() {
    let scratch = repo_with_internal_cluster();
    let clusters = |flags: &[&str]| clusters(&scratch, &[&["openshift-namespaces"], flags].concat());
    assert_eq!(clusters(&[]).0, ["cliffs-stage", "dunes-int", "harbor-prod"]);
    // A cluster without the field is external, as in the peer.
    assert_eq!(clusters(&["--external"]).0, ["dunes-int", "harbor-prod"]);
    // Of two opposite flags, the last one applies.
    assert_eq!(clusters(&["--external", "--internal"]).0, ["cliffs-stage"]);
    let (_, captured) = clusters(&["--internal", "--use-jump-host", "--no-use-jump-host"]);
    assert!(!captured.contains("no effect"), "{captured}");
    let scratch = Scratch::copy_of(&example());
    let output = peer(&scratch, &["--dry-run", "openshift-namespaces", "--internal"]);
    assert!(output.status.success() && text(&output).contains("no shard selected"), "{}", text(&output));
}

#[test]
fn objects_without_a_mark_are_left_alone_on_request() {
    let scratch = Scratch::copy_of(&example());
    let words = ["openshift-limitranges", "--namespace-name", "catalog-stage", "--dry-run"];
    scratch.init_journal("sandbox");
    scratch.write(
        "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-stage}\n",
    );
    scratch.write(
        "sandbox/clusters/cliffs-stage/catalog-stage/LimitRange/other.yaml",
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: other, namespace: catalog-stage}\nspec: {limits: []}\n",
    );
    for (flags, goes) in [(&[][..], true), (&["--take-over"], true), (&["--no-take-over"], false)] {
        let output = peer(&scratch, &[&words[..], flags].concat());
        assert_eq!(text(&output).contains("LimitRange `other`"), goes, "{flags:?}: {}", text(&output));
    }
}

#[test]
fn a_role_of_the_namespace_is_bound_on_request() {
    let scratch = Scratch::copy_of(&example());
    let role_of = |flags: &[&str]| {
        let output = peer(&scratch, &["openshift-namespaces"]);
        assert!(output.status.success(), "{}", text(&output));
        let output = peer(&scratch, &[&["openshift-rolebindings"], flags].concat());
        assert!(output.status.success(), "{}", text(&output));
        let mut kinds = BTreeMap::new();
        let clusters = scratch.path().join("sandbox/clusters");
        for cluster in std::fs::read_dir(&clusters).unwrap() {
            for namespace in std::fs::read_dir(cluster.unwrap().path()).unwrap() {
                let Ok(bindings) = std::fs::read_dir(namespace.unwrap().path().join("RoleBinding")) else {
                    continue;
                };
                for binding in bindings {
                    let path = binding.unwrap().path();
                    let body = std::fs::read_to_string(&path).unwrap();
                    let is_role = body.contains("kind: Role\n");
                    *kinds.entry(is_role).or_insert(0) += 1;
                }
            }
        }
        std::fs::remove_dir_all(clusters).unwrap();
        std::fs::remove_dir_all(scratch.path().join("sandbox/journal")).unwrap();
        kinds
    };
    assert!(!role_of(&[]).contains_key(&true));
    assert!(role_of(&["--support-role-ref"]).contains_key(&true));
}

/// A directory with a configuration of the peer: a data server, a Vault, and no additional table. The data
/// names the cluster.
struct PeerSetUp {
    scratch: Scratch,
    cluster: EmptyCluster,
    vault: TestVault,
    server: DataServer,
}

impl PeerSetUp {
    fn new(hold: Duration) -> Self {
        let (cluster, vault, server) = (EmptyCluster::start(hold), TestVault::start(), DataServer::start());
        let repo = Scratch::copy_of(&example());
        let file = "data/clusters/cliffs-stage.yml";
        let lines = repo.read(file);
        let lines = lines.lines().map(|line| match line {
            line if line.starts_with("serverUrl:") => format!("serverUrl: {}\n", cluster.server.url()),
            line if line.trim_start().starts_with("path: ") => "  path: secret/clusters/cliffs\n".to_owned(),
            line => format!("{line}\n"),
        });
        repo.write(file, lines.collect::<String>());
        vault.put("clusters/cliffs", &json!({"token": "the-cluster-token", "server": cluster.server.url()}));
        server.load(&bundle(&repo));
        let scratch = Scratch::new();
        let config = format!(
            "[graphql]\nserver = {:?}\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n",
            server.url(),
            vault.url()
        );
        scratch.write("config.toml", config);
        Self { scratch, cluster, vault, server }
    }

    fn run(&self, words: &[&str]) -> Output {
        let first = ["peer", "reconcile", "--config", "config.toml", "--runs", "runs", "--dry-run"];
        let flags = ["--cluster-name", "cliffs-stage"];
        command::qontract(self.scratch.path(), &[&first[..], words, &flags].concat())
    }
}

#[test]
fn a_configuration_of_the_peer_reaches_the_clusters_of_the_data() {
    let set_up = PeerSetUp::new(Duration::ZERO);
    let output = set_up.run(&["openshift-namespaces"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("+ create Namespace `catalog-stage`"), "{}", text(&output));
    assert!(set_up.vault.requests("") > 0);
    let seen = set_up.cluster.server.seen();
    let token = "authorization: bearer the-cluster-token";
    assert!(!seen.is_empty() && seen.iter().all(|head| head.to_lowercase().contains(token)), "{seen:?}");
    assert!(!text(&output).contains("the-cluster-token"));
    // As `qontract`, real clusters have to be configured.
    let words =
        ["reconcile", "openshift-namespaces", "--config", "config.toml", "--runs", "runs", "--dry-run"];
    let output = command::qontract(set_up.scratch.path(), &words);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}

#[test]
fn an_address_that_a_change_adds_is_not_used_with_a_configuration_of_the_peer() {
    let set_up = PeerSetUp::new(Duration::ZERO);
    let repo = Scratch::copy_of(&example());
    let base = set_up.server.load(&bundle(&repo));
    let file = "data/clusters/cliffs-stage.yml";
    let text_before = repo.read(file);
    let before = text_before.lines().find(|line| line.starts_with("serverUrl:")).unwrap();
    let after = format!("serverUrl: {}", set_up.cluster.server.url());
    repo.write(file, text_before.replace(before, &after));
    set_up.server.load(&bundle(&repo));
    let output = set_up.run(&["--early-exit-compare-sha", &base, "openshift-namespaces"]);
    assert!(set_up.cluster.server.seen().is_empty(), "{}", text(&output));
    assert_eq!(set_up.vault.requests(""), 0, "and no token is read for it: {}", text(&output));
}

#[test]
fn the_thread_pool_size_bounds_concurrency() {
    for (size, expect) in [("1", 1), ("10", 2)] {
        let set_up = PeerSetUp::new(Duration::from_millis(40));
        let output = set_up.run(&["openshift-limitranges", "--thread-pool-size", size]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(set_up.cluster.server.seen().len() > 2, "{:?}", set_up.cluster.server.seen());
        let max = set_up.cluster.max_in_flight.load(Ordering::SeqCst);
        assert_eq!(max.min(2), expect, "with {size}: {max} requests in flight");
    }
}

#[test]
fn a_missing_configuration_by_the_name_of_the_peer_is_a_failure() {
    let scratch = Scratch::new();
    let output =
        command::qontract(scratch.path(), &["peer", "reconcile", "--dry-run", "openshift-namespaces"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("no configuration: pass `--config FILE`"), "{}", text(&output));
}

#[test]
fn integrations_that_the_data_does_not_declare_are_reported_as_such() {
    let scratch = Scratch::copy_of(&example());
    scratch.write("declared.json", bundle(&scratch));
    std::fs::remove_dir_all(scratch.path().join("data/integrations")).unwrap();
    scratch.write("bundle.json", bundle(&scratch));
    let affected = |words: &[&str]| {
        let output = command::qontract(scratch.path(), &[&["affected"], words].concat());
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let words = ["bundle.json", "bundle.json", "--integration", "openshift-routes", "-o", "json"];
    let (code, rows, captured) = affected(&words);
    assert_eq!(code, Some(4), "{captured}");
    assert!(captured.contains("neither base nor head declares `openshift-routes`"), "{captured}");
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!((&rows[0]["integration"], &rows[0]["declared"]), (&json!("openshift-routes"), &json!(false)));
    let (code, rows, captured) = affected(&["bundle.json", "bundle.json"]);
    assert_eq!(code, Some(4), "{captured}");
    assert!(rows.contains("openshift-namespaces: not declared in the data\n"), "{rows}");
    // If the data declares some, the others are omitted; one that only the base declares counts as declared.
    let (code, rows, _) = affected(&["declared.json", "declared.json", "-o", "json"]);
    assert!(code == Some(0) && !rows.contains("declared\": false"), "{rows}");
    let (code, ..) = affected(&["declared.json", "bundle.json", "--integration", "openshift-routes"]);
    assert_ne!(code, Some(4));
}

#[test]
fn json_files_may_have_characters_that_yaml_refuses() {
    let scratch = Scratch::copy_of(&example());
    let file = "data/services/catalog/app";
    let yaml: serde_json::Value =
        qontract_yaml::json::read(scratch.read(&format!("{file}.yml")).as_bytes()).unwrap();
    let mut app = yaml;
    app["description"] = "a\u{85}b\u{2028}c".into();
    app["$schema"] = "/app-sre/app-1.yml".into();
    scratch.remove(&format!("{file}.yml"));
    scratch.write(&format!("{file}.json"), app.to_string());
    let bytes = command::qontract(scratch.path(), &["bundle", ".", "--no-validate", "-o", "-"]);
    assert!(bytes.status.success(), "{}", text(&bytes));
    let bundle: serde_json::Value = serde_json::from_slice(&bytes.stdout).unwrap();
    let description = &bundle["data"]["/services/catalog/app.json"]["description"];
    assert_eq!(description, "a\u{85}b\u{2028}c");
}

#[test]
fn odd_requests_are_answered_as_by_the_peer() {
    let server = DataServer::start();
    let sha = server.load(&bundle(&Scratch::copy_of(&example())));
    let address = server.url().trim_start_matches("http://").trim_end_matches("/graphql").to_owned();
    let answer = |head: &str, body: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let length = body.len();
        let head = format!("{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    let reply = answer(&format!("GET /diff/{sha}/{sha}/datafile"), "");
    assert!(reply.starts_with("HTTP/1.1 404") && reply.ends_with("\r\n\r\ndatafile not found"), "{reply}");
    let reply = answer(&format!("OPTIONS /diff/{sha}/{sha}/datafile"), "");
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("GET, HEAD"), "{reply}");
    let reply = answer("POST /graphql", r#"{"query":"\ud83d"}"#);
    assert!(reply.starts_with("HTTP/1.1 400") && reply.contains("application/json"), "{reply}");
    assert!(reply.contains("Syntax Error: Invalid character: U+D83D."), "{reply}");
    // A nested filter on a field that is not an object, as `schema`.
    for field in ["name", "schema"] {
        let query = format!("{{apps_v1(filter:{{{field}:{{filter:null}}}}){{name}}}}");
        let reply = answer("POST /graphql", &json!({"query": query}).to_string());
        assert!(reply.contains("Cannot read properties of undefined (reading 'name')"), "{field}: {reply}");
        assert!(reply.contains(r#""data":null"#) || reply.contains(r#""apps_v1":null"#), "{field}: {reply}");
    }
}
