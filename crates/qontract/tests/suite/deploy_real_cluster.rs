//! Tests of the chart on a real API server: it accepts every object, and the rights of the manager are exactly
//! those that it needs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeSet;

use crate::support::api_request::{ApiUser, collection};
use crate::support::chart::{Chart, RELEASE, find, names, objects, usual_values, value_sets};
use crate::support::web_deployment::{RESOURCES, WebFixture};
use qontract_client_http::Method;
use qontract_testkit::cluster::{Api, shared, unique_name};
use qontract_testkit::eventually;
use serde_json::{Value, json};

/// The verbs of the manager for the kinds that it deploys.
const VERBS: [&str; 5] = ["create", "delete", "get", "list", "patch"];

/// The kinds that the manager deploys: group, plural.
const KINDS: [(&str, &str); 6] = [
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "services"),
];

/// A namespace of the test run.
fn namespace(api: &Api, name: &str) -> String {
    let name = unique_name(name);
    api.kubectl(&["create", "namespace", &name], "").text();
    name
}

/// Defines the kinds of the Prometheus Operator that the chart uses.
fn define_monitoring(api: &Api) {
    for (kind, plural) in [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")] {
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": free}}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
        });
        api.kubectl(&["apply", "--server-side", "--filename", "-"], &definition.to_string()).text();
        let path = format!("/apis/monitoring.coreos.com/v1/{plural}");
        let admin = ApiUser::admin(api);
        eventually("the kind is served", || (admin.send(&Method::GET, &path, None).0 == 200).then_some(()));
    }
}

/// The paths of the fields that the server dropped or changed. It drops fields that it does not know, and empty
/// values.
fn lost_fields(sent: &Value, stored: &Value, path: &str, lost: &mut Vec<String>) {
    match (sent, stored) {
        (Value::Object(fields), Value::Object(_)) => {
            for (name, value) in fields {
                lost_fields(value, &stored[name], &format!("{path}.{name}"), lost);
            }
        }
        (Value::Array(items), Value::Array(other)) if items.len() == other.len() => {
            for (index, (item, stored)) in items.iter().zip(other).enumerate() {
                lost_fields(item, stored, &format!("{path}.{index}"), lost);
            }
        }
        (Value::Null, _) => {}
        _ if sent == stored => {}
        _ => lost.push(format!("{path}: {sent} became {stored}")),
    }
}

#[test]
#[ignore = "needs a Kubernetes API server and QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_api_server_accepts_every_object_of_the_chart() {
    let api = shared();
    define_monitoring(api);
    let admin = ApiUser::admin(api);
    let [own, one, two] = ["platform", "fleet", "fleet"].map(|name| namespace(api, name));
    let sets = value_sets([&one, &two]);
    let actions: Vec<Value> = sets.iter().map(|(_, values)| json!({ "plan": values })).collect();
    let results = Chart::in_cluster(&own, &api.kubeconfig).run(&actions.into());
    let mut kinds = BTreeSet::new();
    for ((set, _), result) in sets.iter().zip(results) {
        for object in objects(result) {
            let path = format!("{}?dryRun=All", collection(&object));
            let (status, answer) = admin.send(&Method::POST, &path, Some(&object));
            assert_eq!(status, 201, "{set}: {object}\n{answer}");
            let mut lost = Vec::new();
            lost_fields(&object, &answer, "", &mut lost);
            assert!(lost.is_empty(), "{set}: {}: {lost:?}", object["kind"]);
            kinds.insert(format!("{}/{}", object["apiVersion"], object["kind"]).replace('"', ""));
        }
    }
    let expect = [
        "apps/v1/Deployment",
        "monitoring.coreos.com/v1/PrometheusRule",
        "monitoring.coreos.com/v1/ServiceMonitor",
        "networking.k8s.io/v1/NetworkPolicy",
        "policy/v1beta1/PodDisruptionBudget",
        "rbac.authorization.k8s.io/v1/ClusterRole",
        "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
        "rbac.authorization.k8s.io/v1/Role",
        "rbac.authorization.k8s.io/v1/RoleBinding",
        "v1/ConfigMap",
        "v1/Service",
        "v1/ServiceAccount",
    ];
    assert_eq!(kinds, BTreeSet::from(expect.map(str::to_owned)));
}

#[test]
#[ignore = "needs a Kubernetes API server and QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_chart_is_installed_upgraded_and_uninstalled() {
    let api = shared();
    define_monitoring(api);
    let own = namespace(api, "platform");
    let mut values = usual_values();
    // No pod has to be scheduled.
    values["server"]["replicas"] = json!(0);
    let mut newer = values.clone();
    newer["manager"]["dryRun"] = json!(false);
    newer["manager"]["rbac"] = json!({"listPods": false});
    let release = Chart::in_cluster(&own, &api.kubeconfig);
    let installed = objects(release.run(&json!([{ "install": values }])).remove(0));
    let kinds = "deployments,services,serviceaccounts,roles,rolebindings,poddisruptionbudgets,servicemonitors,prometheusrules";
    let selector = format!("app.kubernetes.io/instance={RELEASE}");
    let list = || {
        let words = ["get", kinds, "--namespace", &own, "--selector", &selector, "--output", "json"];
        let found: Value = serde_json::from_str(&api.kubectl(&words, "").text()).unwrap();
        found["items"].as_array().unwrap().clone()
    };
    let created: BTreeSet<String> = names(&list()).into_iter().collect();
    let expected = names(&installed).into_iter().filter(|name| !name.starts_with("ConfigMap/"));
    assert_eq!(created, expected.collect());
    let upgraded = objects(release.run(&json!([{ "upgrade": newer }])).remove(0));
    assert_eq!(names(&upgraded), names(&installed));
    let role = list().into_iter().find(|object| object["kind"] == "Role").unwrap();
    assert_eq!(role["rules"].as_array().unwrap().len(), 3, "{role}");
    assert_eq!(release.run(&json!([{"uninstall": true}])), [json!([])]);
    eventually("all objects are removed", || list().is_empty().then_some(()));
}

/// The rights of a user in a namespace, as `GROUP/RESOURCE VERB`.
fn rights(user: &ApiUser, namespace: &str) -> BTreeSet<String> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (status, answer) = user.send(&Method::POST, path, Some(&review));
    assert_eq!((status, &answer["status"]["incomplete"]), (201, &json!(false)), "{answer}");
    let list = |rule: &Value, key: &str| serde_json::from_value::<Vec<String>>(rule[key].clone()).unwrap();
    let mut found = BTreeSet::new();
    for rule in answer["status"]["resourceRules"].as_array().unwrap() {
        assert!(rule["resourceNames"].is_null(), "{rule}");
        for group in list(rule, "apiGroups") {
            for resource in list(rule, "resources") {
                found.extend(list(rule, "verbs").iter().map(|verb| format!("{group}/{resource} {verb}")));
            }
        }
    }
    found
}

/// The rights of each user that is logged in.
fn common_rights(more: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    reviews
        .map(|resource| format!("authorization.k8s.io/{resource} create"))
        .into_iter()
        .chain(more)
        .collect()
}

fn manager_rights() -> impl Iterator<Item = String> {
    KINDS.into_iter().flat_map(|(group, plural)| VERBS.map(|verb| format!("{group}/{plural} {verb}")))
}

/// Creates the objects of the chart that grant rights.
fn grant(api: &Api, all: &[Value]) {
    let admin = ApiUser::admin(api);
    let kinds = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
    for object in all.iter().filter(|object| kinds.contains(&object["kind"].as_str().unwrap())) {
        let (status, answer) = admin.send(&Method::POST, &collection(object), Some(object));
        assert_eq!(status, 201, "{answer}");
    }
}

/// An object of each kind that the manager deploys.
fn shard_objects(namespace: &str) -> Vec<Value> {
    let labels = json!({"shard": "a"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "int", "image": "qontract"}]}});
    let mut job = pod.clone();
    job["spec"]["restartPolicy"] = json!("OnFailure");
    let object = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}, "spec": spec});
    let selector = json!({"matchLabels": labels});
    vec![
        object("apps/v1", "Deployment", json!({"replicas": 0, "selector": selector, "template": pod})),
        object(
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 0, "serviceName": "a", "selector": selector, "template": pod}),
        ),
        object(
            "batch/v1beta1",
            "CronJob",
            json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": job}}}),
        ),
        object(
            "v1",
            "PersistentVolumeClaim",
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}),
        object("v1", "Service", json!({"selector": labels, "ports": [{"port": 80, "protocol": "TCP"}]})),
    ]
}

#[test]
#[ignore = "needs a Kubernetes API server and QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_manager_has_exactly_the_rights_that_it_needs() {
    let api = shared();
    let [own, fleet, other] = ["platform", "fleet", "other"].map(|name| namespace(api, name));
    let mut values = usual_values();
    values["manager"]["rbac"] = json!({"namespaces": [fleet]});
    grant(
        api,
        &objects(Chart::in_cluster(&own, &api.kubeconfig).run(&json!([{ "plan": values }])).remove(0)),
    );
    let manager = ApiUser::service_account(api, &own, "q-qontract-manager");
    eventually("the authorizer knows the role", || (rights(&manager, &fleet).len() > 2).then_some(()));

    // All rights, as the authorizer lists them.
    assert_eq!(rights(&manager, &fleet), common_rights(manager_rights().chain(["/pods list".to_owned()])));
    for elsewhere in [&own, &other, &"kube-system".to_owned()] {
        assert_eq!(rights(&manager, elsewhere), common_rights([]), "{elsewhere}");
    }
    let server = ApiUser::service_account(api, &own, "q-qontract-server");
    let shard = ApiUser::service_account(api, &fleet, "qontract-reconcile");
    assert_eq!(rights(&server, &own), common_rights([]));
    assert_eq!(rights(&shard, &fleet), common_rights([]));

    // Requests.
    for mut object in shard_objects(&fleet) {
        let all = collection(&object);
        let one = format!("{all}/a");
        let send = |user: &ApiUser, method: Method, path: &str, body: Option<&Value>| {
            user.send(&method, path, body).0
        };
        assert_eq!(send(&manager, Method::POST, &all, Some(&object)), 201, "{all}");
        object["metadata"]["labels"] = json!({"changed": "yes"});
        let apply = format!("{one}?fieldManager=integrations-manager&force=true");
        assert_eq!(send(&manager, Method::PATCH, &apply, Some(&object)), 200, "{all}");
        assert_eq!(send(&manager, Method::GET, &all, None), 200, "{all}");
        assert_eq!(send(&manager, Method::GET, &one, None), 200, "{all}");
        let (_, live) = manager.send(&Method::GET, &one, None);
        assert_eq!(send(&manager, Method::PUT, &one, Some(&live)), 403, "{all}");
        assert_eq!(send(&manager, Method::GET, &format!("{all}?watch=true&timeoutSeconds=1"), None), 403);
        assert_eq!(send(&manager, Method::DELETE, &all, None), 403, "a collection of {all}");
        assert_eq!(send(&shard, Method::GET, &all, None), 403, "{all}");
        assert_eq!(send(&manager, Method::DELETE, &one, None), 200, "{all}");
        let elsewhere = all.replace(&fleet, &other);
        assert_eq!(send(&manager, Method::GET, &elsewhere, None), 403, "{elsewhere}");
        let everywhere = all.replace(&format!("/namespaces/{fleet}"), "");
        assert_eq!(send(&manager, Method::GET, &everywhere, None), 403, "{everywhere}");
    }
    let pods = format!("/api/v1/namespaces/{fleet}/pods");
    assert_eq!(manager.send(&Method::GET, &pods, None).0, 200);
    for path in [
        format!("/api/v1/namespaces/{fleet}/secrets"),
        format!("/api/v1/namespaces/{fleet}/serviceaccounts"),
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{fleet}/roles"),
        format!("/apis/apps/v1/namespaces/{fleet}/deployments/a/scale"),
        format!("/apis/apps/v1/namespaces/{fleet}/daemonsets"),
        format!("{pods}/a"),
        format!("{pods}/a/log"),
        "/api/v1/namespaces".to_owned(),
        "/api/v1/nodes".to_owned(),
    ] {
        assert_eq!(manager.send(&Method::GET, &path, None).0, 403, "{path}");
    }
    for (path, body) in [
        (pods.clone(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})),
        (format!("{pods}/a/exec?command=sh"), json!({})),
        (format!("/api/v1/namespaces/{fleet}/serviceaccounts/qontract-reconcile/token"), json!({})),
    ] {
        assert_eq!(manager.send(&Method::POST, &path, Some(&body)).0, 403, "{path}");
    }
}

/// Lets the runs of a fixture use the kubeconfig of the chart, with the token and the CA of this machine.
fn use_kubeconfig(fixture: &WebFixture, api: &Api, all: &[Value], own: &str) {
    let path = format!("/api/v1/namespaces/{own}/serviceaccounts/q-qontract-manager/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let (_, token) = ApiUser::admin(api).send(&Method::POST, &path, Some(&request));
    let token = fixture.repo.0.write("token", token["status"]["token"].as_str().unwrap());
    let kubeconfig = find(all, "ConfigMap/q-qontract-manager")["data"]["kubeconfig"].as_str().unwrap();
    let mounted = "/var/run/secrets/kubernetes.io/serviceaccount";
    let here = kubeconfig
        .replace(&format!("{mounted}/token"), token.to_str().unwrap())
        .replace(&format!("{mounted}/ca.crt"), api.ca.to_str().unwrap());
    assert!(here.contains(&api.url) && !here.contains(mounted), "{here}");
    fixture.repo.0.write("kubeconfig", here);
    let config =
        "[kubernetes]\nrequests_per_second = 400\n[kubernetes.clusters.c1]\nkubeconfig = \"kubeconfig\"\n";
    fixture.repo.0.write("config.toml", config);
}

#[test]
#[ignore = "needs a Kubernetes API server and QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_run_with_the_kubeconfig_of_the_chart_needs_all_of_its_rights() {
    let api = shared();
    let (own, fixture) = (namespace(api, "platform"), WebFixture::new());
    let fleet = &fixture.namespace;
    let mut values = usual_values();
    values["manager"]["rbac"] = json!({"namespaces": [fleet]});
    values["manager"]["inCluster"] = json!({"server": api.url});
    let all = objects(Chart::in_cluster(&own, &api.kubeconfig).run(&json!([{ "plan": values }])).remove(0));
    grant(api, &all);
    use_kubeconfig(&fixture, api, &all, &own);
    let manager = ApiUser::service_account(api, &own, "q-qontract-manager");
    eventually("the authorizer knows the role", || (rights(&manager, fleet).len() > 2).then_some(()));

    let probe = "livenessProbe: {httpGet: {path: /, port: 80}}\n";
    // The second write removes defaults, so it reads the current version of the object.
    for container in [probe, "", probe] {
        fixture.declare(container, "");
        let (code, text) = fixture.run(RESOURCES, &[]);
        assert_eq!(code, 0, "{text}");
    }

    let mut role = find(&all, "Role/q-qontract-manager").clone();
    let verbs = |verb: &str| VERBS.into_iter().filter(|other| *other != verb).collect::<Vec<_>>();
    let variable = "env: [{name: A, value: b}]\n";
    for (verb, container) in [("get", ""), ("patch", variable), ("list", variable)] {
        role["rules"][0]["verbs"] = json!(verbs(verb));
        let path = format!("{}/q-qontract-manager", collection(&role));
        let (status, answer) = ApiUser::admin(api).send(&Method::PUT, &path, Some(&role));
        assert_eq!(status, 200, "{answer}");
        let missing = format!("apps/deployments {verb}");
        eventually("the role has changed", || (!rights(&manager, fleet).contains(&missing)).then_some(()));
        fixture.declare(container, "");
        let (code, text) = fixture.run(RESOURCES, &[]);
        assert!(code == 1 && text.contains("forbidden"), "without `{verb}`: {code} {text}");
    }
}

#[test]
#[ignore = "needs a Kubernetes API server and QONTRACT_PYTHON; run by `cargo xtask test`"]
fn rights_in_all_namespaces_are_only_granted_on_request() {
    let api = shared();
    let [own, other] = ["platform", "other"].map(|name| namespace(api, name));
    let mut values = usual_values();
    let plan = |values: &Value| {
        objects(Chart::in_cluster(&own, &api.kubeconfig).run(&json!([{ "plan": values }])).remove(0))
    };
    assert!(!names(&plan(&values)).iter().any(|name| name.starts_with("ClusterRole")));
    values["manager"]["rbac"] = json!({"clusterWide": true, "listPods": false});
    let all = plan(&values);
    assert!(!names(&all).iter().any(|name| name.starts_with("Role")));
    grant(api, &all);
    let manager = ApiUser::service_account(api, &own, "q-qontract-manager");
    eventually("the authorizer knows the role", || (rights(&manager, &other).len() > 2).then_some(()));
    assert_eq!(rights(&manager, &other), common_rights(manager_rights()));
    let role = find(&all, &format!("ClusterRole/{own}-q-qontract-manager"));
    for kind in ["clusterrole", "clusterrolebinding"] {
        api.kubectl(&["delete", kind, role["metadata"]["name"].as_str().unwrap()], "").text();
    }
}
