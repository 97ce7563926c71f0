//! Immutable fields of objects, and the kinds that may be replaced to change them.

use qontract_kinds::{ImmutableField, SEALED_FIELDS, can_be_sealed, dotted_path, immutable_fields};
use serde_json::Value;

use crate::compare::holds;
use crate::normalize;

/// Kinds and groups of objects that may be removed and created again, because they hold no data or all of
/// their data is declared.
const REPLACEABLE_KINDS: [(&str, &str); 10] = [
    ("ClusterRoleBinding", "authorization.openshift.io"),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io"),
    ("ConfigMap", ""),
    ("Job", "batch"),
    ("ResourceQuota", ""),
    ("RoleBinding", "authorization.openshift.io"),
    ("RoleBinding", "rbac.authorization.k8s.io"),
    ("Route", "route.openshift.io"),
    ("Secret", ""),
    ("Service", ""),
];

/// Finds the immutable fields that a write would change, for two objects that differ.
pub fn immutable_changes(group: &str, desired: &Value, live: &Value) -> Vec<String> {
    let kind = desired["kind"].as_str().unwrap_or_default();
    let (wanted, found) = (normalize::normalize_desired(desired), normalize::normalize_live(live));
    let mut fields = Vec::new();
    for field in immutable_fields(kind, group) {
        fields.extend(violations(*field, &wanted, &found));
    }
    if can_be_sealed(kind, group) && live["immutable"] == true {
        fields.extend(sealed_changes(&wanted, &found));
    }
    fields
}

/// The immutable fields that the desired object would change.
fn violations(field: ImmutableField, desired: &Value, live: &Value) -> Vec<String> {
    let broken = |field: &str, is_broken: bool| if is_broken { vec![dotted_path(field)] } else { Vec::new() };
    match field {
        ImmutableField::Fixed(field) => broken(field, !is_preserved(desired, live, field)),
        ImmutableField::FixedOnceSet(field) => {
            let is_set = live.pointer(field).is_some_and(|value| !value.is_null() && value != "");
            broken(field, is_set && !is_preserved(desired, live, field))
        }
        ImmutableField::FixedWhole(field) => {
            broken(field, !is_preserved(desired, live, field) || !is_preserved(live, desired, field))
        }
        ImmutableField::SpecExcept(free) => {
            let spec = desired["spec"].as_object().into_iter().flatten();
            let bound = spec.filter(|(name, _)| !free.contains(&name.as_str()));
            let lost = bound.filter(|(name, value)| !holds(value, live["spec"].get(name.as_str())));
            lost.map(|(name, _)| format!("spec.{name}")).collect()
        }
    }
}

/// Which objects may be removed and created again, in order to change an immutable field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Objects that hold no data and run no pods.
    #[default]
    WithoutPods,
    /// Also workloads: their pods end before the new object is created.
    WithPods,
}

/// Workloads whose replacement ends their pods. The volumes of their pods are kept.
const WORKLOADS: [(&str, &str); 3] = [("CronJob", "batch"), ("Deployment", "apps"), ("StatefulSet", "apps")];

/// Whether an object of this kind may be removed and created again.
pub fn is_replaceable(kind: &str, group: &str, replacement: Replacement) -> bool {
    REPLACEABLE_KINDS.contains(&(kind, group)) || is_replaced_with_pods(kind, group, replacement)
}

/// Whether an object of this kind is a workload that may be removed and created again.
pub fn is_replaced_with_pods(kind: &str, group: &str, replacement: Replacement) -> bool {
    replacement == Replacement::WithPods && WORKLOADS.contains(&(kind, group))
}

/// The fields of an object with `immutable: true` that would change, in either direction.
fn sealed_changes(desired: &Value, live: &Value) -> Vec<String> {
    let same = |field: &str| is_preserved(desired, live, field) && is_preserved(live, desired, field);
    let fields = SEALED_FIELDS.map(|field| format!("/{field}"));
    fields.iter().filter(|field| !same(field)).map(|field| dotted_path(field)).collect()
}

/// Whether two objects have the same value at a pointer.
fn is_preserved(one: &Value, other: &Value, field: &str) -> bool {
    one.pointer(field).is_none_or(|value| holds(value, other.pointer(field)))
}

#[cfg(test)]
mod tests {
    use super::{Replacement, immutable_changes, is_replaceable};
    use serde_json::{Value, json};

    /// Checks which immutable fields would change.
    fn check(kind: &str, group: &str, mut desired: Value, mut live: Value, expect: &[&str]) {
        desired["kind"] = kind.into();
        live["kind"] = kind.into();
        assert_eq!(immutable_changes(group, &desired, &live), expect, "{desired} over {live}");
    }

    #[test]
    fn a_secret_keeps_its_type_and_a_sealed_one_its_data() {
        check("Secret", "", json!({"type": "a"}), json!({"type": "b"}), &["type"]);
        check("Secret", "", json!({}), json!({"type": "b"}), &[]);
        let open = json!({"data": {"a": "1"}});
        let sealed = json!({"data": {"a": "1"}, "immutable": true});
        check("ConfigMap", "", json!({"data": {"a": "2"}}), open, &[]);
        check("ConfigMap", "", json!({"data": {"a": "2"}, "immutable": true}), sealed.clone(), &["data"]);
        check("ConfigMap", "", json!({"data": {}, "immutable": true}), sealed.clone(), &["data"]);
        check("ConfigMap", "", json!({"data": {"a": "1"}, "metadata": {}}), sealed.clone(), &["immutable"]);
        check("Secret", "", json!({"stringData": {"a": "x"}, "immutable": true}), sealed, &["data"]);
    }

    #[test]
    fn a_binding_keeps_its_role() {
        let role = |name: &str| json!({"roleRef": {"kind": "ClusterRole", "name": name}});
        check("RoleBinding", "rbac.authorization.k8s.io", role("a"), role("b"), &["roleRef"]);
        check("ClusterRoleBinding", "rbac.authorization.k8s.io", role("a"), role("a"), &[]);
    }

    #[test]
    fn a_service_keeps_the_address_that_it_has() {
        let address = |ip: &str| json!({"spec": {"clusterIP": ip}});
        check("Service", "", address("None"), address("10.0.0.1"), &["spec.clusterIP"]);
        check("Service", "", address("10.0.0.1"), address(""), &[]);
        check("Service", "", address(""), address("10.0.0.1"), &[]);
        check("Service", "", json!({"spec": {}}), address("10.0.0.1"), &[]);
        check("Service", "serving.knative.dev", address("None"), address("10.0.0.1"), &[]);
    }

    #[test]
    fn a_quota_keeps_its_scopes() {
        let scopes = |scopes: Value| json!({"spec": {"hard": {"pods": "1"}, "scopes": scopes}});
        check("ResourceQuota", "", scopes(json!(["Terminating"])), scopes(json!(["Terminating"])), &[]);
        check("ResourceQuota", "", scopes(json!([])), json!({"spec": {"hard": {"pods": "2"}}}), &[]);
        check("ResourceQuota", "", scopes(json!([])), scopes(json!(["Terminating"])), &["spec.scopes"]);
        check("ResourceQuota", "", scopes(json!(["Terminating"])), json!({"spec": {}}), &["spec.scopes"]);
    }

    #[test]
    fn a_workload_keeps_its_selector() {
        let selector = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}, "replicas": 1}});
        for kind in ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"] {
            check(kind, "apps", selector(json!({"a": "1"})), selector(json!({"a": "1"})), &[]);
            check(kind, "apps", selector(json!({"a": "1"})), selector(json!({"a": "2"})), &["spec.selector"]);
            check(
                kind,
                "apps",
                selector(json!({"a": "1"})),
                selector(json!({"a": "1", "b": "2"})),
                &["spec.selector"],
            );
        }
    }

    #[test]
    fn a_stateful_set_keeps_all_fields_but_those_that_may_roll_out() {
        let live = json!({"spec": {"serviceName": "a", "replicas": 1, "template": {"x": 1}, "podManagementPolicy": "OrderedReady",
            "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {}}]}});
        let claim = |size: &str| json!([{"spec": {"resources": {"requests": {"storage": size}}}}]);
        let same = json!({"spec": {"serviceName": "a", "replicas": 2, "template": {"x": 2}, "volumeClaimTemplates": claim("1024Mi")}});
        check("StatefulSet", "apps", same, live.clone(), &[]);
        let other = json!({"spec": {"serviceName": "b", "volumeClaimTemplates": claim("2Gi")}});
        check("StatefulSet", "apps", other, live, &["spec.serviceName", "spec.volumeClaimTemplates"]);
    }

    #[test]
    fn a_claim_may_only_grow() {
        let claim = |class: &str, size: &str| json!({"spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}}});
        check("PersistentVolumeClaim", "", claim("a", "2Gi"), claim("a", "1Gi"), &[]);
        check("PersistentVolumeClaim", "", claim("b", "1Gi"), claim("a", "1Gi"), &["spec.storageClassName"]);
    }

    #[test]
    fn jobs_routes_and_classes_have_immutable_fields() {
        let job = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": image}]}}}});
        check("Job", "batch", job("1"), job("2"), &["spec.template"]);
        check("Job", "batch.volcano.sh", job("1"), job("2"), &[]);
        check(
            "Route",
            "route.openshift.io",
            json!({"spec": {"host": "a"}}),
            json!({"spec": {"host": "b"}}),
            &["spec.host"],
        );
        check(
            "StorageClass",
            "storage.k8s.io",
            json!({"provisioner": "a"}),
            json!({"provisioner": "b", "parameters": {"x": "y"}}),
            &["provisioner", "parameters"],
        );
        check("Ingress", "networking.k8s.io", json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}), &[]);
    }

    #[test]
    fn kinds_that_hold_data_are_never_replaced() {
        for kind in ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "StatefulSet", "Deployment"] {
            let is_replaceable = |group| is_replaceable(kind, group, Replacement::WithoutPods);
            assert!(!["", "apps"].into_iter().any(is_replaceable), "{kind}");
        }
        assert!(is_replaceable("Service", "", Replacement::WithoutPods));
        assert!(!is_replaceable("Service", "serving.knative.dev", Replacement::WithoutPods));
    }

    #[test]
    fn workloads_are_replaced_only_on_request() {
        for (kind, group) in [("Deployment", "apps"), ("StatefulSet", "apps"), ("CronJob", "batch")] {
            assert!(!is_replaceable(kind, group, Replacement::WithoutPods), "{kind}");
            assert!(is_replaceable(kind, group, Replacement::WithPods), "{kind}");
        }
        assert!(!is_replaceable("PersistentVolumeClaim", "", Replacement::WithPods));
        assert!(is_replaceable("ConfigMap", "", Replacement::WithPods));
    }
}
