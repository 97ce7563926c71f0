//! The objects of a fleet that the Helm chart of qontract-reconcile has deployed.

use serde_json::{Value, json};

use super::kubelet::SLOW;

/// The time that the pods of the tests get to end; the chart does not set it.
pub const GRACE_SECONDS: u64 = 8;

/// A workload of the chart.
pub struct PeerWorkload<'w> {
    pub kind: &'w str,
    pub integration: &'w str,
    /// The end of the name of the object.
    pub suffix: &'w str,
    /// The variables that select the shard.
    pub shard: &'w [(&'w str, &'w str)],
    /// The time that the pod gets to end, in seconds, if it takes all of it.
    pub slow: Option<u64>,
}

/// Adds the marks that qontract-reconcile writes.
fn marked(mut object: Value, namespace: &str, caller: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["annotations"] = json!({
        "qontract.integration": "integrations-manager",
        "qontract.integration_version": "0.1.0",
        "qontract.caller_name": caller,
        "qontract.sha256sum": "ab".repeat(32),
        "qontract.update": "2026-01-01T00:00:00",
    });
    object
}

impl PeerWorkload<'_> {
    /// The object.
    pub fn object(&self, namespace: &str, caller: &str) -> Value {
        let app = format!("qontract-reconcile-{}", self.integration);
        let name = format!("{app}{}", self.suffix);
        let annotations = json!({"ignore-check.kube-linter.io/no-liveness-probe": "pods are monitored"});
        let metadata = json!({"name": name, "labels": {"app": app}, "annotations": annotations});
        if self.kind == "CronJob" {
            let template = json!({"metadata": {"annotations": annotations}, "spec": self.pod("OnFailure")});
            let spec = json!({"schedule": "0 3 * * *", "concurrencyPolicy": "Allow",
                "jobTemplate": {"spec": {"template": template}}});
            let object =
                json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": metadata, "spec": spec});
            return marked(object, namespace, caller);
        }
        let labels = json!({"app": app, "component": "qontract-reconcile"});
        let mut spec = json!({
            "replicas": 1,
            "revisionHistoryLimit": 5,
            // All shards of the integration have the same selector.
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": self.pod("Always")},
        });
        if self.kind == "StatefulSet" {
            spec["serviceName"] = "".into();
            let claim = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "gp2",
                "resources": {"requests": {"storage": "1Gi"}}});
            spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "cache"}, "spec": claim}]);
        }
        let object = json!({"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": spec});
        marked(object, namespace, caller)
    }

    /// The specification of the pods.
    fn pod(&self, restart_policy: &str) -> Value {
        let grace = self.slow.unwrap_or(GRACE_SECONDS);
        let slow: &[_] = if self.slow.is_some() { &[(SLOW, "true")] } else { &[] };
        let own = [
            ("DRY_RUN", "--dry-run"),
            ("INTEGRATION_NAME", self.integration),
            ("SLEEP_DURATION_SECS", "300"),
        ];
        let variables = self.shard.iter().chain(&own).chain(slow);
        let variables: Vec<Value> =
            variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        let logs = json!({"name": "logs", "mountPath": "/fluentd/log/"});
        let config = json!({"name": "fluentd-config", "mountPath": "/fluentd/etc/"});
        let image = "quay.io/app-sre/qontract-reconcile:latest";
        let resources =
            json!({"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "400Mi"}});
        json!({
            "serviceAccountName": "qontract-reconcile",
            "restartPolicy": restart_policy,
            "terminationGracePeriodSeconds": grace,
            "initContainers": [{"name": "config", "image": "quay.io/app-sre/ubi8-ubi-minimal:latest",
                "imagePullPolicy": "Always", "command": ["/bin/sh", "-c"], "args": ["true"], "volumeMounts": [config]}],
            "containers": [
                {"name": "int", "image": image, "ports": [{"name": "http", "containerPort": 9090}], "env": variables,
                    "resources": resources,
                    "volumeMounts": [{"name": "qontract-reconcile-toml", "mountPath": "/config"}, logs]},
                {"name": "fluentd", "image": "quay.io/app-sre/fluentd:latest", "imagePullPolicy": "Always",
                    "volumeMounts": [logs, config]},
            ],
            "volumes": [
                {"name": "qontract-reconcile-toml", "secret": {"secretName": "qontract-reconcile-toml"}},
                {"name": "logs", "emptyDir": {}},
                {"name": "fluentd-config", "emptyDir": {}},
            ],
        })
    }
}

/// The Service of the chart.
pub fn service(namespace: &str, caller: &str) -> Value {
    let port = json!({"protocol": "TCP", "port": 80, "targetPort": 9090, "name": "http"});
    let object = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "qontract-reconcile", "labels": {"app": "qontract-reconcile"}},
        "spec": {"ports": [port], "selector": {"component": "qontract-reconcile"}}});
    marked(object, namespace, caller)
}
