//! Fields that an API server does not let anybody change. Pure.

use serde_json::Value;

/// What of a `StatefulSet` may change.
const OF_STATEFUL_SET: [&str; 6] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
];

/// The first field that differs and may not.
pub(super) fn changed(kind: &str, before: &Value, after: &Value) -> Option<String> {
    let differs = |pointer: &str| before.pointer(pointer) != after.pointer(pointer);
    let first =
        |pointers: &[&str]| pointers.iter().find(|pointer| differs(pointer)).map(|found| shown(found));
    match kind {
        "Secret" => {
            let kind = |body: &Value| body["type"].as_str().unwrap_or("Opaque").to_owned();
            (kind(before) != kind(after)).then(|| "type".to_owned()).or_else(|| frozen(before, after))
        }
        "ConfigMap" => frozen(before, after),
        "RoleBinding" | "ClusterRoleBinding" => first(&["/roleRef"]),
        "ResourceQuota" => {
            let scopes = |body: &Value| body["spec"]["scopes"].as_array().cloned().unwrap_or_default();
            (scopes(before) != scopes(after)).then(|| "spec.scopes".to_owned())
        }
        "Deployment" | "DaemonSet" | "ReplicaSet" => first(&["/spec/selector"]),
        "StatefulSet" => {
            let spec = |body: &Value| body["spec"].as_object().cloned().unwrap_or_default();
            let (before, after) = (spec(before), spec(after));
            let mut names = before.keys().chain(after.keys());
            let found = names.find(|name| {
                !OF_STATEFUL_SET.contains(&name.as_str()) && before.get(*name) != after.get(*name)
            });
            found.map(|name| format!("spec.{name}"))
        }
        // An address that nobody asked for is given by the server.
        "Service" if before["spec"]["clusterIP"].is_string() => first(&["/spec/clusterIP"]),
        "Job" => first(&["/spec/selector", "/spec/template", "/spec/completions"]),
        "PersistentVolumeClaim" => {
            first(&["/spec/accessModes", "/spec/storageClassName", "/spec/volumeName"])
        }
        "StorageClass" => first(&["/provisioner", "/parameters"]),
        _ => None,
    }
}

/// A Secret or ConfigMap that says that it never changes.
fn frozen(before: &Value, after: &Value) -> Option<String> {
    let fields = ["immutable", "data", "binaryData"];
    let changed = fields.into_iter().find(|field| before.get(field) != after.get(field));
    changed.filter(|_| before["immutable"] == true).map(str::to_owned)
}

fn shown(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::changed;

    #[track_caller]
    fn check(kind: &str, before: &Value, after: &Value, expect: Option<&str>) {
        assert_eq!(changed(kind, before, after).as_deref(), expect);
        assert_eq!(changed(kind, before, before), None);
    }

    #[test]
    fn fields_that_do_not_change() {
        check("Secret", &json!({}), &json!({"type": "Opaque"}), None);
        check("Secret", &json!({"data": {"a": "b"}}), &json!({"type": "x"}), Some("type"));
        check(
            "ConfigMap",
            &json!({"immutable": true, "data": {"a": "b"}}),
            &json!({"immutable": true}),
            Some("data"),
        );
        check("ConfigMap", &json!({"immutable": true}), &json!({}), Some("immutable"));
        check("ConfigMap", &json!({"data": {"a": "b"}}), &json!({"immutable": true}), None);
        check(
            "RoleBinding",
            &json!({"roleRef": {"name": "a"}}),
            &json!({"roleRef": {"name": "b"}}),
            Some("roleRef"),
        );
        check("Service", &json!({"spec": {}}), &json!({"spec": {"clusterIP": "None"}}), None);
        check(
            "Service",
            &json!({"spec": {"clusterIP": "None"}}),
            &json!({"spec": {}}),
            Some("spec.clusterIP"),
        );
        check(
            "Job",
            &json!({"spec": {"template": 1}}),
            &json!({"spec": {"template": 2}}),
            Some("spec.template"),
        );
        check("StatefulSet", &json!({"spec": {"replicas": 1}}), &json!({"spec": {"replicas": 2}}), None);
        check(
            "StatefulSet",
            &json!({"spec": {}}),
            &json!({"spec": {"serviceName": "a"}}),
            Some("spec.serviceName"),
        );
        check("Route", &json!({"spec": {"host": "a"}}), &json!({"spec": {"host": "b"}}), None);
    }
}
