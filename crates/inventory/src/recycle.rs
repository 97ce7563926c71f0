//! Finds the workloads to restart when a ConfigMap or a Secret changes.

use serde_json::Value;

use crate::mark::annotation;
use crate::restart::RESTARTABLE_KINDS;

/// Whether the workloads that use this object are restarted when it changes.
pub fn wants_recycle(object: &Value) -> bool {
    annotation(object, "qontract.recycle") == Some("true")
}

/// Whether the pods of a workload use the ConfigMap or Secret of this name.
///
/// The uses are volumes, and `envFrom` and single variables of containers and init containers. Optional uses
/// count; image pull secrets do not.
pub fn uses(workload: &Value, kind: &str, name: &str) -> bool {
    let is_workload = workload["kind"].as_str().is_some_and(|kind| RESTARTABLE_KINDS.contains(&kind));
    let (Some(words), true) = (ReferenceFields::of(kind), is_workload) else { return false };
    let pod = &workload["spec"]["template"]["spec"];
    let mut containers = items(&pod["initContainers"]).chain(items(&pod["containers"]));
    items(&pod["volumes"]).any(|volume| words.in_volume(volume, name))
        || containers.any(|container| words.in_container(container, name))
}

/// The names of the fields that reference an object of a kind.
struct ReferenceFields {
    volume: &'static str,
    volume_name: &'static str,
    env_from: &'static str,
    env: &'static str,
}

impl ReferenceFields {
    fn of(kind: &str) -> Option<Self> {
        match kind {
            "ConfigMap" => Some(Self {
                volume: "configMap",
                volume_name: "name",
                env_from: "configMapRef",
                env: "configMapKeyRef",
            }),
            "Secret" => Some(Self {
                volume: "secret",
                volume_name: "secretName",
                env_from: "secretRef",
                env: "secretKeyRef",
            }),
            _ => None,
        }
    }

    fn in_volume(&self, volume: &Value, name: &str) -> bool {
        volume[self.volume][self.volume_name] == name
            || items(&volume["projected"]["sources"]).any(|source| source[self.volume]["name"] == name)
    }

    fn in_container(&self, container: &Value, name: &str) -> bool {
        items(&container["envFrom"]).any(|source| source[self.env_from]["name"] == name)
            || items(&container["env"]).any(|variable| variable["valueFrom"][self.env]["name"] == name)
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::{uses, wants_recycle};
    use serde_json::{Value, json};

    /// Whether pods of this spec use the ConfigMap and the Secret called `a`.
    fn check(pod: &Value, expect: [bool; 2]) {
        let workload = json!({"kind": "Deployment", "spec": {"template": {"spec": pod}}});
        assert_eq!(["ConfigMap", "Secret"].map(|kind| uses(&workload, kind, "a")), expect, "{pod}");
        assert!(!uses(&workload, "ConfigMap", "b") && !uses(&workload, "Service", "a"));
        let other = json!({"kind": "Job", "spec": {"template": {"spec": pod}}});
        assert!(!uses(&other, "ConfigMap", "a") && !uses(&other, "Secret", "a"));
    }

    #[test]
    fn volumes_use_objects() {
        check(
            &json!({"volumes": [{"name": "a"}, {"configMap": {"name": "a", "optional": true}}]}),
            [true, false],
        );
        check(&json!({"volumes": [{"secret": {"secretName": "a"}}]}), [false, true]);
        check(
            &json!({"volumes": [{"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "a"}}]}}]}),
            [true, true],
        );
    }

    #[test]
    fn variables_use_objects() {
        for list in ["initContainers", "containers"] {
            check(&json!({list: [{}, {"envFrom": [{"configMapRef": {"name": "a"}}]}]}), [true, false]);
            check(
                &json!({list: [{"envFrom": [{"secretRef": {"name": "a", "optional": true}}]}]}),
                [false, true],
            );
            check(
                &json!({list: [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]}]}),
                [true, false],
            );
            check(
                &json!({list: [{"env": [{"name": "a"}, {"valueFrom": {"secretKeyRef": {"name": "a"}}}]}]}),
                [false, true],
            );
        }
    }

    #[test]
    fn other_references_do_not_count() {
        check(
            &json!({"imagePullSecrets": [{"name": "a"}], "volumes": [{"emptyDir": {"name": "a"}}], "containers": [{"name": "a"}]}),
            [false, false],
        );
        check(&json!({"volumes": {"configMap": {"name": "a"}}, "containers": "a"}), [false, false]);
        check(&Value::Null, [false, false]);
    }

    #[test]
    fn only_the_annotation_value_true_requests_recycling() {
        for (value, expect) in
            [(json!("true"), true), (json!("false"), false), (json!(true), false), (json!(null), false)]
        {
            assert_eq!(
                wants_recycle(&json!({"metadata": {"annotations": {"qontract.recycle": value}}})),
                expect
            );
        }
        assert!(!wants_recycle(&json!({})));
    }
}
