//! Tests of the chart, without a cluster: values, capabilities, and what every pod must have.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::chart::{Chart, find, names, objects, usual_values, value_sets};
use crate::support::running::{Running, get};
use qontract_testkit::{Scratch, example};
use serde_json::{Value, json};

const OTHERS: [&str; 2] = ["fleet-one", "fleet-two"];

/// All objects of each set of values.
fn rendered() -> Vec<(&'static str, Vec<Value>)> {
    let sets = value_sets(OTHERS);
    let actions: Vec<Value> = sets.iter().map(|(_, values)| json!({ "render": values })).collect();
    let results = Chart::without_cluster().run(&actions.into());
    sets.into_iter().zip(results).map(|((name, _), result)| (name, objects(result))).collect()
}

/// The variables of a container, with plain values.
fn variables(container: &Value) -> Vec<(String, String)> {
    let list = container["env"].as_array().unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    list.iter().filter_map(|one| Some((text(&one["name"])?, text(&one["value"])?))).collect()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn every_pod_is_hardened_and_probed() {
    let mut pods = 0;
    for (set, object) in rendered().iter().flat_map(|(set, all)| all.iter().map(move |one| (set, one))) {
        assert_ne!(object["kind"], "Secret", "{set}: a chart must not contain a secret");
        if object["kind"] == "ServiceAccount" {
            assert_eq!(object["automountServiceAccountToken"], false, "{set}: {object}");
        }
        let pod = &object["spec"]["template"]["spec"];
        if pod.is_null() {
            continue;
        }
        pods += 1;
        let security = &pod["securityContext"];
        assert_eq!(security["runAsNonRoot"], true, "{set}");
        let user = if *set == "only the manager" { Value::Null } else { json!(65532) };
        for id in ["runAsUser", "runAsGroup", "fsGroup"] {
            assert_eq!(security[id], user, "{set}");
        }
        assert_eq!(security["seccompProfile"], json!({"type": "RuntimeDefault"}), "{set}");
        let [container] = pod["containers"].as_array().unwrap().as_slice() else { panic!("{set}: {pod}") };
        let expect = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}});
        assert_eq!(container["securityContext"], expect, "{set}");
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let path = container[probe]["httpGet"]["path"].as_str().unwrap();
            let is_ready = probe == "readinessProbe" && container["name"] == "manager";
            assert_eq!(path, if is_ready { "/readyz" } else { "/healthz" }, "{set}");
        }
        assert!(container["resources"]["limits"]["memory"].is_string(), "{set}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|mount| mount["mountPath"] == "/tmp"), "{set}");
        let volumes = pod["volumes"].as_array().unwrap();
        for mount in mounts {
            assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{set}: {mount}");
            let is_writable = mount["name"] == "tmp" || mount["name"] == "runs";
            assert_eq!(mount["readOnly"] == true, !is_writable, "{set}: {mount}");
        }
        // The process must have ended before the kubelet kills it.
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        let limit = variables(container).into_iter().find(|(name, _)| name == "QONTRACT_SHUTDOWN_SECONDS");
        let needed = limit.map_or(10, |(_, seconds)| seconds.parse::<u64>().unwrap());
        assert!(grace >= needed + 5, "{set}: {grace} {needed}");
    }
    assert_eq!(pods, 9);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn every_selector_selects_the_pods_of_exactly_one_component() {
    for (set, all) in rendered() {
        let pods: Vec<&Value> =
            all.iter().map(|object| &object["spec"]["template"]["metadata"]["labels"]).collect();
        let pods: Vec<&Value> = pods.into_iter().filter(|labels| labels.is_object()).collect();
        for object in &all {
            let selector = match object["kind"].as_str().unwrap() {
                "Service" => &object["spec"]["selector"],
                "Deployment" | "PodDisruptionBudget" => &object["spec"]["selector"]["matchLabels"],
                "NetworkPolicy" => &object["spec"]["podSelector"]["matchLabels"],
                _ => continue,
            };
            let selects = |labels: &&&Value| {
                selector.as_object().unwrap().iter().all(|(label, value)| labels[label] == *value)
            };
            assert_eq!(pods.iter().filter(selects).count(), 1, "{set}: {selector}");
        }
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn api_versions_follow_the_capabilities() {
    let render = |version: &str, more: &[&str]| json!({"render": usual_values(), "capabilities": {"kube_version": version, "api_versions": more}});
    let prometheus = "monitoring.coreos.com/v1";
    let results = Chart::without_cluster().run(&json!([
        render("v1.20.2", &[]),
        render("v1.21.0", &[]),
        render("v1.33.1", &[prometheus])
    ]));
    let results: Vec<Vec<Value>> = results.into_iter().map(objects).collect();
    let budget = "PodDisruptionBudget/q-qontract-server";
    let version = |index: usize| find(&results[index], budget)["apiVersion"].as_str().unwrap().to_owned();
    assert_eq!([version(0), version(1), version(2)], ["policy/v1beta1", "policy/v1", "policy/v1"]);
    let monitors = |index: usize| {
        let all = results[index].iter().filter(|object| object["apiVersion"] == prometheus);
        all.map(|object| object["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(monitors(0).is_empty() && monitors(1).is_empty());
    assert_eq!(monitors(2), ["ServiceMonitor", "ServiceMonitor", "PrometheusRule"]);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_server_whose_metrics_need_an_unknown_token_is_not_scraped() {
    let mut values = usual_values();
    values["monitoring"] = json!({"serviceMonitor": {"enabled": "always"}});
    values["server"]["token"] = json!({"secret": "token"});
    let monitors = |values: &Value| {
        let all = Chart::without_cluster().render(values);
        names(&all).into_iter().filter(|name| name.starts_with("ServiceMonitor")).collect::<Vec<_>>()
    };
    assert_eq!(monitors(&values), ["ServiceMonitor/q-qontract-manager"]);
    values["server"]["token"]["bearerKey"] = json!("bearer");
    assert_eq!(monitors(&values), ["ServiceMonitor/q-qontract-manager", "ServiceMonitor/q-qontract-server"]);
}

/// The paths of all settings. A map whose keys the user chooses has no properties.
fn schema_paths(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        found.insert(path.to_owned());
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{path} accepts unknown keys");
    for (name, inner) in properties {
        schema_paths(inner, &format!("{path}.{name}"), found);
    }
}

fn value_paths(values: &Value, path: &str, known: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    match values.as_object() {
        Some(fields) if !known.contains(path) => {
            for (name, value) in fields {
                value_paths(value, &format!("{path}.{name}"), known, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_schema_has_exactly_the_documented_values() {
    let result = Chart::without_cluster().run(&json!([{"values": true}])).remove(0);
    let (mut known, mut documented) = (BTreeSet::new(), BTreeSet::new());
    schema_paths(&result["schema"], "", &mut known);
    value_paths(&result["values"], "", &known, &mut documented);
    known.remove(".global");
    assert_eq!(known, documented);
    assert!(known.len() > 80, "{}", known.len());
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn bad_values_are_refused() {
    let change = |pointer: &str, value: Value| {
        let mut values = usual_values();
        let mut place = &mut values;
        for name in pointer.split('.') {
            place = &mut place[name];
        }
        *place = value;
        (pointer.rsplit('.').next().unwrap().to_owned(), values)
    };
    let mut cases = vec![
        ("bucket".to_owned(), json!({})),
        ("secret".to_owned(), json!({"server": {"enabled": false}, "manager": {"enabled": true}})),
        ("spec".to_owned(), json!({"server": {"data": {"source": "volume"}}})),
        ("path".to_owned(), json!({"server": {"data": {"source": "image", "path": "bundle.json"}}})),
        (
            "content".to_owned(),
            json!({"server": {"data": {"source": "image", "path": "/b.json", "watch": true}}}),
        ),
    ];
    cases.extend([
        change("sever", json!({})),
        change("server.replica", json!(2)),
        change("server.data.s3.secretKey", json!("AKIA")),
        change("server.token.value", json!("Bearer x")),
        change("server.replicas", json!("3")),
        change("server.replicas", json!(-1)),
        change("server.data.source", json!("git")),
        change("server.data.s3.endpoint", json!("s3.example.com")),
        change("server.extraArgs", json!("--ttl 1h")),
        change("server.service.port", json!(65536)),
        change("server.podDisruptionBudget.maxUnavailable", json!(0)),
        change("server.podDisruptionBudget.maxUnavailable", json!("0%")),
        change("server.terminationGracePeriodSeconds", json!(5)),
        change("manager.terminationGracePeriodSeconds", json!(10)),
        change("manager.dryRun", json!("--no-dry-run")),
        change("manager.clusters", json!("all")),
        change("manager.rbac.namespaces", json!(["Fleet"])),
        change("manager.rbac.namespaces", json!(["a", "a"])),
        change("manager.imageTagFromRef", json!({"prod": "a b"})),
        change("manager.image", json!("registry.example.com/qontract@sha256:00")),
        change("manager.inCluster.server", json!("http://kubernetes")),
        change("manager.intervalSeconds", json!("5m")),
        change("manager.extraEnv", json!([{"value": "x"}])),
        change("shards.serviceAccount.name", json!("")),
        change("image.digest", json!("latest")),
        change("log.level", json!("TRACE")),
        change("monitoring.serviceMonitor.enabled", json!(true)),
        change("monitoring.serviceMonitor.interval", json!("30")),
        change("networkPolicy.server", json!({})),
    ]);
    let actions: Vec<Value> = cases.iter().map(|(_, values)| json!({ "render": values })).collect();
    for ((name, values), result) in cases.iter().zip(Chart::without_cluster().run(&actions.into())) {
        let error = result["error"].as_str().unwrap_or_else(|| panic!("accepted: {values}"));
        assert!(error.contains(name.as_str()), "{name}: {error}");
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn containers_have_only_documented_variables() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let words: BTreeSet<&str> = page.split(|one: char| !one.is_ascii_alphanumeric() && one != '_').collect();
    for (set, all) in rendered() {
        for object in all.iter().filter(|object| object["kind"] == "Deployment") {
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            for (name, _) in variables(container) {
                assert!(words.contains(name.as_str()) || name == "SSL_CERT_FILE", "{set}: {name}");
            }
        }
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_manager_has_the_environment_of_its_integration() {
    let sets = rendered();
    let container = |index: usize, name: &str| {
        let (_, all) = &sets[index];
        find(all, &format!("Deployment/{name}"))["spec"]["template"]["spec"]["containers"][0].clone()
    };
    let variable = |container: &Value, name: &str| {
        variables(container).into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    };
    let (usual, full) = (container(0, "q-qontract-manager"), container(1, "q-platform-manager"));
    for (name, expect) in [
        ("INTEGRATION_NAME", [Some("integrations-manager"), Some("integrations-manager")]),
        ("MANAGER_DRY_RUN", [Some("--dry-run"), Some("--no-dry-run")]),
        ("INTEGRATIONS_MANAGER_IMAGE", [Some("qontract"), Some("registry.example.com/qontract-tools")]),
        ("INTEGRATIONS_MANAGER_UPSTREAM", [None, Some("https://forge.example.com/platform/qontract")]),
        ("INTEGRATIONS_MANAGER_IMAGE_TAG_FROM_REF", [None, Some("prod=v1 stage=main")]),
        ("ENVIRONMENT_NAME", [None, Some("prod")]),
        ("INTEGRATION_EXTRA_ARGS", [None, Some("--internal --thread-pool-size 5")]),
        ("SLEEP_DURATION_SECS", [Some("300"), Some("60")]),
        ("QONTRACT_SHUTDOWN_SECONDS", [Some("50"), Some("110")]),
        ("QONTRACT_RUNS", [None, Some("/var/lib/qontract/runs")]),
        ("CONFIG", [Some("/config/config.toml"), Some("/config/config.toml")]),
    ] {
        let found = [variable(&usual, name), variable(&full, name)];
        assert_eq!(found.each_ref().map(Option::as_deref), expect, "{name}");
    }
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_binary_accepts_the_arguments_of_the_server() {
    let (scratch, sets) = (Scratch::new(), rendered());
    let arguments = |set: usize| {
        let (_, all) = &sets[set];
        let server = all.iter().find(|object| {
            object["kind"] == "Deployment"
                && object["metadata"]["name"].as_str().unwrap().ends_with("-server")
        });
        let list = server.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        serde_json::from_value::<Vec<String>>(list).unwrap()
    };
    for set in 0..4 {
        let parsed =
            Command::new(env!("CARGO_BIN_EXE_qontract")).args(arguments(set)).arg("--help").output().unwrap();
        assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    }

    // The server of the fourth set, with its files here.
    let bundle = scratch.path().join("bundle.json");
    let mut build = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let built = build.arg("bundle").arg(example()).arg("-o").arg(&bundle).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let token = scratch.write("token", "Bearer x\n");
    let here = |word: String| match word.as_str() {
        "/bundle.json" => bundle.display().to_string(),
        "/etc/qontract/token/token" => token.display().to_string(),
        "0.0.0.0:4000" => "127.0.0.1:0".to_owned(),
        _ => word,
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let mut running = Running::of(command.args(arguments(3).into_iter().map(here)));
    let line = running.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 401"), "metrics need the token");
}
