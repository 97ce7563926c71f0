//! The chart in `deploy/chart`, rendered by Helm's own library, and the objects that it contains.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The name of the release in all tests.
pub const RELEASE: &str = "q";

/// The chart as one release in a namespace.
pub struct Chart<'c> {
    namespace: &'c str,
    kubeconfig: &'c Path,
}

impl Chart<'static> {
    /// A release that is only rendered.
    pub fn without_cluster() -> Self {
        Self { namespace: "platform", kubeconfig: Path::new("") }
    }
}

impl<'c> Chart<'c> {
    /// A release in a namespace of a cluster.
    pub fn in_cluster(namespace: &'c str, kubeconfig: &'c Path) -> Self {
        Self { namespace, kubeconfig }
    }

    /// Runs actions of `helm.py`, and returns the result of each action.
    pub fn run(&self, actions: &Value) -> Vec<Value> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut helm = Command::new(std::env::var("QONTRACT_PYTHON").unwrap())
            .arg(root.join("tests/suite/support/helm.py"))
            .arg(root.join("../../deploy/chart"))
            .args([RELEASE, self.namespace])
            .arg(self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        helm.stdin.take().unwrap().write_all(actions.to_string().as_bytes()).unwrap();
        let output = helm.wait_with_output().unwrap();
        assert!(output.status.success(), "helm.py failed");
        let results: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(results.len(), actions.as_array().unwrap().len());
        results
    }

    /// The objects of one rendering without a cluster.
    #[track_caller]
    pub fn render(&self, values: &Value) -> Vec<Value> {
        objects(self.run(&json!([{ "render": values }])).remove(0))
    }
}

/// The objects in the result of an action.
#[track_caller]
pub fn objects(result: Value) -> Vec<Value> {
    match result {
        Value::Array(objects) => objects,
        other => panic!("not rendered: {other}"),
    }
}

/// `KIND/NAME` of each object.
pub fn names(objects: &[Value]) -> Vec<String> {
    let name = |object: &Value| {
        let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
        format!("{}/{}", kind.unwrap(), name.unwrap())
    };
    objects.iter().map(name).collect()
}

/// The object with this kind and name.
#[track_caller]
pub fn find<'o>(objects: &'o [Value], name: &str) -> &'o Value {
    let place = names(objects).iter().position(|one| one == name);
    &objects[place.unwrap_or_else(|| panic!("{name} is not in {:?}", names(objects)))]
}

/// The smallest values with which everything is enabled.
pub fn usual_values() -> Value {
    json!({
        "server": {"data": {"s3": {"bucket": "bundles"}}},
        "manager": {"enabled": true, "config": {"secret": "qontract-manager"}},
    })
}

/// Sets of values that together use every key; `others` are namespaces of shards.
pub fn value_sets(others: [&str; 2]) -> Vec<(&'static str, Value)> {
    let pod = json!({
        "podAnnotations": {"example.com/a": "b"}, "podLabels": {"team": "platform"},
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}},
        "priorityClassName": "system-cluster-critical",
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    });
    let with_pod = |mut values: Value| {
        values.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        values
    };
    let full = json!({
        "nameOverride": "platform", "imagePullSecrets": ["registry"],
        "image": {"repository": "registry.example.com/qontract",
            "digest": format!("sha256:{}", "a".repeat(64)), "pullPolicy": "Always"},
        "log": {"level": "DEBUG", "format": "text"}, "caBundle": {"configMap": "ca", "key": "ca.pem"},
        "server": with_pod(json!({
            "replicas": 3,
            "data": {"source": "s3", "s3": {"bucket": "bundles", "key": "latest.json", "store": "bundles",
                "region": "eu-west-1", "endpoint": "https://s3.example.com", "credentialsSecret": "s3"}},
            "token": {"secret": "token", "key": "header", "bearerKey": "bearer"},
            "extraArgs": ["--ttl", "1h"], "service": {"port": 80, "annotations": {"a": "b"}},
            "serviceAccount": {"name": "server", "annotations": {"example.com/role": "reader"}},
            "podDisruptionBudget": {"maxUnavailable": "50%"},
            "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "8Gi"}},
            "terminationGracePeriodSeconds": 45,
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}}],
        })),
        "manager": with_pod(json!({
            "enabled": true, "dryRun": false, "config": {"secret": "manager", "key": "prod.toml"},
            "environmentName": "prod", "upstream": "https://forge.example.com/platform/qontract",
            "clusters": "internal", "image": "registry.example.com/qontract-tools",
            "imageTagFromRef": {"prod": "v1", "stage": "main"}, "intervalSeconds": 60,
            "extraArgs": "--thread-pool-size 5", "runs": {"claim": "runs"},
            "inCluster": {"server": "https://api.example.com:6443"},
            "rbac": {"namespaces": others, "listPods": true},
            "serviceAccount": {"name": "deployer", "annotations": {"a": "b"}, "mountToken": true},
            "service": {"port": 80}, "resources": {"limits": {"memory": "1Gi"}},
            "terminationGracePeriodSeconds": 120,
        })),
        "shards": {"serviceAccount": {"name": "shard", "annotations": {"a": "b"}}},
        "monitoring": {
            "serviceMonitor": {"enabled": "always", "interval": "1m", "labels": {"release": "prometheus"},
                "shardSelector": {"component": "qontract-reconcile"}},
            "rules": {"enabled": "always", "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": true, "labels": {"grafana_dashboard": "1"}}},
        "networkPolicy": {"enabled": true,
            "server": [{"namespaceSelector": {"matchLabels": {"team": "platform"}}}],
            "manager": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]},
    });
    vec![
        ("usual", usual_values()),
        ("full", full),
        (
            "a volume, and no objects beyond the pods",
            json!({
                "server": {
                    "data": {"source": "volume", "path": "repo", "content": "repo", "watch": true,
                        "volume": {"spec": {"persistentVolumeClaim": {"claimName": "data"}}}},
                    "serviceAccount": {"create": false}, "podDisruptionBudget": {"enabled": false},
                },
                "manager": {"enabled": true, "config": {"secret": "manager"}, "inCluster": {"enabled": false},
                    "rbac": {"create": false}, "serviceAccount": {"create": false}},
                "shards": {"serviceAccount": {"create": false}},
                "monitoring": {"serviceMonitor": {"enabled": "never"}, "rules": {"enabled": "never"}},
            }),
        ),
        (
            "a bundle in the image, and rights in all namespaces",
            json!({
                "fullnameOverride": "platform",
                "server": {"data": {"source": "image", "path": "/bundle.json"},
                    "token": {"secret": "token"}, "replicas": 0},
                "manager": {"enabled": true, "config": {"secret": "manager"},
                    "rbac": {"clusterWide": true, "listPods": false}},
                "shards": {"serviceAccount": {"namespaces": others}},
                "networkPolicy": {"enabled": true},
            }),
        ),
        (
            "only the manager",
            json!({"server": {"enabled": false}, "runAsUser": 0,
                "manager": {"enabled": true, "config": {"secret": "m"}}}),
        ),
    ]
}
