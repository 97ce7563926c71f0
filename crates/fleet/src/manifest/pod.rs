//! The pods of a workload.

use serde_json::{Value, json};

use super::environment::environment;
use super::{COMPONENT, PodSettings, Workload, WorkloadKind, fluentd};

/// The port of the health listener.
pub(super) const PORT: u16 = 9090;

/// The directory of the service account token.
const TOKEN_DIRECTORY: &str = "/var/run/secrets/qontract";
/// The path of the service account token.
pub(super) const TOKEN_PATH: &str = "/var/run/secrets/qontract/token";

/// The pod template of a workload.
pub(super) fn template(workload: &Workload, settings: &PodSettings) -> Value {
    let mut labels = workload.labels();
    labels.insert("component", COMPONENT.to_owned());
    let mut containers = vec![container(workload, settings)];
    containers.extend(fluentd::sidecar(workload, settings));
    let restart_policy = match workload.kind {
        WorkloadKind::CronJob => Some(workload.spec.restart_policy.as_deref().unwrap_or("OnFailure")),
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => None,
    };
    let annotations = (!workload.pod_annotations.is_empty()).then_some(&workload.pod_annotations);
    json!({
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {
            "serviceAccountName": settings.parameters.text_or("SERVICE_ACCOUNT", "qontract-reconcile"),
            "restartPolicy": restart_policy,
            "terminationGracePeriodSeconds": workload.grace_seconds,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": init_containers(workload, settings),
            "containers": containers,
            "volumes": volumes(workload, settings),
        },
    })
}

/// The security context of every container.
pub(super) fn security_context() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

fn container(workload: &Workload, settings: &PodSettings) -> Value {
    let mut container = json!({
        "name": "int",
        "image": settings.image(workload),
        "env": environment(workload, settings),
        "resources": workload.resources(settings),
        "securityContext": security_context(),
        "volumeMounts": mounts(workload),
    });
    // A job ends by itself, and is not stopped while it runs.
    if workload.kind != WorkloadKind::CronJob {
        container["ports"] = json!([{"name": "http", "containerPort": PORT, "protocol": "TCP"}]);
        container["startupProbe"] = probe("/healthz", 2, 60);
        container["readinessProbe"] = probe("/readyz", 10, 3);
        container["livenessProbe"] = probe("/healthz", 30, 4);
    }
    container
}

/// A probe of the health listener.
fn probe(path: &str, period_seconds: u32, failure_threshold: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 5,
        "failureThreshold": failure_threshold,
    })
}

fn init_containers(workload: &Workload, settings: &PodSettings) -> Option<Value> {
    if workload.spec.internal_certificates != Some(true) {
        return None;
    }
    let name = "INTERNAL_CERTIFICATES_IMAGE";
    Some(json!([{
        "name": "internal-certificates",
        "image": settings.sidecar_image(name, "quay.io/app-sre/internal-redhat-ca"),
        "imagePullPolicy": settings.parameters.text_or("INTERNAL_CERTIFICATES_IMAGE_PULL_POLICY", "Always"),
        "command": ["/bin/sh", "-c"],
        "args": ["cp -r /etc/pki/. /tmp/etc-pki/"],
        "securityContext": security_context(),
        "volumeMounts": [{"name": "internal-certificates", "mountPath": "/tmp/etc-pki/"}],
    }]))
}

fn mounts(workload: &Workload) -> Vec<Value> {
    let mut mounts = vec![
        json!({"name": "tmp-dir", "mountPath": "/tmp"}),
        json!({"name": "qontract-reconcile-toml", "mountPath": "/config", "readOnly": true}),
        json!({"name": "service-account-token", "mountPath": TOKEN_DIRECTORY, "readOnly": true}),
    ];
    if workload.has_cache() {
        mounts.push(json!({"name": "cache", "mountPath": "/.cache"}));
    }
    if workload.spec.internal_certificates == Some(true) {
        mounts.push(json!({"name": "internal-certificates", "mountPath": "/etc/pki/"}));
    }
    if workload.spec.state == Some(true) {
        mounts.push(json!({"name": "aws-config", "mountPath": "/aws", "readOnly": true}));
    }
    if workload.spec.logs.is_some() {
        mounts.push(json!({"name": "logs", "mountPath": fluentd::DIRECTORY}));
    }
    mounts
}

fn volumes(workload: &Workload, settings: &PodSettings) -> Vec<Value> {
    let text_or = |name: &str, default: &str| settings.parameters.text_or(name, default);
    let secret = text_or("CONFIG_SECRET", "qontract-reconcile-toml");
    let token = json!({
        "path": "token",
        "audience": text_or("KUBE_SA_TOKEN_AUDIENCE", "openshift"),
        "expirationSeconds": 1800,
    });
    let mut volumes = vec![
        json!({"name": "tmp-dir", "emptyDir": {}}),
        json!({"name": "qontract-reconcile-toml", "secret": {"secretName": secret}}),
        json!({"name": "service-account-token", "projected": {"sources": [{"serviceAccountToken": token}]}}),
    ];
    if workload.has_cache() && workload.kind == WorkloadKind::CronJob {
        let claim = workload.claim();
        volumes.push(json!({"name": "cache", "persistentVolumeClaim": {"claimName": claim}}));
    }
    if workload.spec.internal_certificates == Some(true) {
        volumes.push(json!({"name": "internal-certificates", "emptyDir": {}}));
    }
    if workload.spec.state == Some(true) {
        let secret = text_or("AWS_CONFIG_SECRET", "aws-config");
        volumes.push(json!({"name": "aws-config", "secret": {"secretName": secret}}));
    }
    volumes.extend(fluentd::volumes(workload));
    volumes
}
