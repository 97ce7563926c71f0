//! Values that an API server sets by default, so that removing them has no effect.
//!
//! With server-side apply, defaults have no owner. However, a write can remove defaults: a tool that created
//! or replaced an object as a whole owns all of its fields, and an atomic list is written as a whole, without
//! the defaults.
//!
//! **Invariant:** a value counts as a default only where the server would set the same value again. A default
//! that depends on the kind, the parent field or the sibling fields is in
//! [`RemovedField::is_conditional_default`], all others are in the tables.

use qontract_kinds::is_free_form;
use serde_json::{Map, Value, json};

use crate::path::{PathSegment, last_key};

/// Fields with a string default.
const TEXT_DEFAULTS: [(&str, &str); 17] = [
    ("apiGroup", ""),
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("completionMode", "NonIndexed"),
    ("concurrencyPolicy", "Allow"),
    ("dnsPolicy", "ClusterFirst"),
    ("externalTrafficPolicy", "Cluster"),
    ("internalTrafficPolicy", "Cluster"),
    ("podManagementPolicy", "OrderedReady"),
    ("protocol", "TCP"),
    ("schedulerName", "default-scheduler"),
    ("scheme", "HTTP"),
    ("sessionAffinity", "None"),
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("volumeMode", "Filesystem"),
    ("whenDeleted", "Retain"),
    ("whenScaled", "Retain"),
];

/// Fields with a numeric default.
const NUMBER_DEFAULTS: [(&str, i64); 8] = [
    ("defaultMode", 420),
    ("failedJobsHistoryLimit", 1),
    ("minReplicas", 1),
    ("parallelism", 1),
    ("progressDeadlineSeconds", 600),
    ("replicas", 1),
    ("revisionHistoryLimit", 10),
    ("successfulJobsHistoryLimit", 3),
];

/// Probe fields with a numeric default. Webhooks and session affinity have fields with the same names but
/// other defaults.
const PROBE_DEFAULTS: [(&str, i64); 4] =
    [("failureThreshold", 3), ("periodSeconds", 10), ("successThreshold", 1), ("timeoutSeconds", 1)];

/// The fields of a container that are probes.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Maps that the server stores in every object of a kind that has them, even if they are empty.
const STORED_MAPS: [&str; 8] = [
    "jobTemplate",
    "metadata",
    "resources",
    "securityContext",
    "spec",
    "strategy",
    "template",
    "updateStrategy",
];

/// Maps that the server creates if they are missing. The defaults in any other map are removed with the map.
const RECREATED_MAPS: [&str; 3] = ["persistentVolumeClaimRetentionPolicy", "strategy", "updateStrategy"];

/// A field that a write removes.
pub struct RemovedField<'a> {
    /// The kind of the object.
    pub kind: &'a str,
    /// The API group of the object; empty for the core group.
    pub group: &'a str,
    /// The path of the field.
    pub path: &'a [PathSegment],
    /// The sibling fields after the write; `None` if the map that held the field is removed as well.
    pub siblings: Option<&'a Map<String, Value>>,
}

impl RemovedField<'_> {
    /// Whether the server sets the removed value again.
    pub fn is_default(&self, value: &Value) -> bool {
        if self.siblings.is_none() && !self.is_recreated() {
            return false;
        }
        let is_builtin = !self.group.contains('.') || self.group.ends_with(".k8s.io");
        if !is_builtin || self.path.iter().any(is_free_form_map) {
            return false;
        }
        let key = last_key(self.path);
        if value.as_object().is_some_and(Map::is_empty) {
            return self.is_stored_map(key);
        }
        has_entry(&TEXT_DEFAULTS, key, |text| value == text)
            || has_entry(&NUMBER_DEFAULTS, key, |number| *value == json!(number))
            || key == "suspend" && *value == json!(false)
            || self.is_conditional_default(key, value)
            || self.is_chosen(key, value)
    }

    /// Whether the server replaces the declared zero value with `live`.
    pub fn is_default_for(&self, declared: &Value, live: &Value) -> bool {
        let parent = last_key(&self.path[..self.path.len().saturating_sub(1)]);
        let is_replaced = declared == "" || *declared == json!(0) && PROBES.contains(&parent);
        is_replaced && self.is_default(live)
    }

    /// Whether the server stores the map at this path if it is empty.
    fn is_stored_map(&self, key: &str) -> bool {
        let is_pod_selector = self.kind == "NetworkPolicy" && self.path.len() == 2 && key == "podSelector";
        is_pod_selector || STORED_MAPS.contains(&key)
    }

    /// Whether the server creates the map that holds the field again, with its defaults.
    fn is_recreated(&self) -> bool {
        RECREATED_MAPS.iter().any(|map| self.is_below(map)) || self.is_claim_status()
    }

    /// Whether the field is in the status that the server adds to the claim templates of a `StatefulSet`.
    fn is_claim_status(&self) -> bool {
        self.kind == "StatefulSet" && self.is_below("volumeClaimTemplates") && self.is_below("status")
    }

    /// Whether the value is a default at this path of this kind, with these siblings.
    fn is_conditional_default(&self, key: &str, value: &Value) -> bool {
        let parent = last_key(&self.path[..self.path.len().saturating_sub(1)]);
        match (self.kind, key) {
            ("Deployment", "maxSurge" | "maxUnavailable") => value == "25%",
            ("DaemonSet" | "StatefulSet", "maxUnavailable") => *value == json!(1),
            ("DaemonSet", "maxSurge") => *value == json!(0),
            ("DaemonSet" | "Deployment" | "StatefulSet", "type") => {
                matches!(parent, "strategy" | "updateStrategy") && value == "RollingUpdate"
            }
            ("Secret", "type") => value == "Opaque",
            ("Service", "type") => value == "ClusterIP",
            ("Service", "targetPort") => self.sibling("port") == Some(value),
            ("StatefulSet", "apiVersion") if parent == "volumeClaimTemplates" => value == "v1",
            ("StatefulSet", "kind") if parent == "volumeClaimTemplates" => value == "PersistentVolumeClaim",
            ("StatefulSet", "phase") => self.is_claim_status() && value == "Pending",
            (_, "apiVersion") => parent == "fieldRef" && value == "v1",
            (_, "backoffLimit") => self.sibling("backoffLimitPerIndex").is_none() && *value == json!(6),
            (_, "completions") => self.sibling("parallelism").is_none() && *value == json!(1),
            (_, "imagePullPolicy") => {
                let image = self.sibling("image").and_then(Value::as_str);
                image.is_some_and(|image| value == pull_policy(image))
            }
            (_, "path") => parent == "httpGet" && value == "/",
            // An init container with `restartPolicy: Always` is a sidecar, so its policy is not a default.
            (_, "restartPolicy") => !self.is_below("initContainers") && value == "Always",
            // A probe without a grace period uses that of its pod, so no value in a probe is a default.
            (_, "terminationGracePeriodSeconds") => !PROBES.contains(&parent) && *value == json!(30),
            _ => {
                PROBES.contains(&parent) && has_entry(&PROBE_DEFAULTS, key, |number| *value == json!(number))
            }
        }
    }

    /// Whether the server assigned the value and keeps it after the field is removed. The value `None` of a
    /// headless service is always declared, never assigned.
    fn is_chosen(&self, key: &str, value: &Value) -> bool {
        if !matches!(self.path, [PathSegment::Key(spec), ..] if spec == "spec") {
            return false;
        }
        match (self.kind, key) {
            ("Service", "clusterIP") => value != "None",
            ("Service", "clusterIPs") => *value != json!(["None"]),
            ("Service", "ipFamilyPolicy") => value == "SingleStack",
            ("Service", "healthCheckNodePort" | "ipFamilies" | "nodePort")
            | ("PersistentVolumeClaim", "volumeName") => true,
            _ => false,
        }
    }

    fn sibling(&self, key: &str) -> Option<&Value> {
        self.siblings.and_then(|siblings| siblings.get(key))
    }

    fn is_below(&self, name: &str) -> bool {
        self.path.iter().any(|segment| matches!(segment, PathSegment::Key(key) if key == name))
    }
}

fn is_free_form_map(segment: &PathSegment) -> bool {
    matches!(segment, PathSegment::Key(key) if is_free_form(key))
}

/// Whether a table has a matching default for the field.
fn has_entry<T>(table: &[(&str, T)], key: &str, fits: impl Fn(&T) -> bool) -> bool {
    table.iter().any(|(field, default)| *field == key && fits(default))
}

/// The default pull policy of a container.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map(|(_, tag)| tag);
    match (tag, digest) {
        (Some("latest"), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RemovedField;
    use crate::path::PathSegment;

    /// `object` is a kind and its group; `siblings` are the sibling fields after the write.
    #[track_caller]
    fn check_beside(siblings: &Value, object: &str, path: &str, value: &Value, expect: bool) {
        let (kind, group) = object.split_once('.').unwrap_or((object, ""));
        let path: Vec<PathSegment> = path.split('.').map(|key| PathSegment::Key(key.to_owned())).collect();
        let field = RemovedField { kind, group, path: &path, siblings: siblings.as_object() };
        assert_eq!(field.is_default(value), expect, "{object} {path:?} {value}");
    }

    #[track_caller]
    fn check(object: &str, path: &str, value: &Value, expect: bool) {
        check_beside(&json!({}), object, path, value, expect);
    }

    #[test]
    fn a_value_that_the_server_sets_is_a_default() {
        check("Deployment.apps", "spec.revisionHistoryLimit", &json!(10), true);
        check("Deployment.apps", "spec.revisionHistoryLimit", &json!(11), false);
        check("NetworkPolicy.networking.k8s.io", "spec.ingress.protocol", &json!("TCP"), true);
        check("Service", "spec.ports.protocol", &json!("UDP"), false);
        check("CronJob.batch", "spec.suspend", &json!(false), true);
        check("CronJob.batch", "spec.suspend", &json!(true), false);
        check("CronJob.batch", "spec.other", &json!(false), false);
    }

    #[test]
    fn a_zero_value_may_be_replaced_with_a_default() {
        let check = |path: &str, declared: Value, live: Value, expect: bool| {
            let siblings = json!({"image": "web"});
            let path: Vec<PathSegment> =
                path.split('.').map(|key| PathSegment::Key(key.to_owned())).collect();
            let siblings = siblings.as_object();
            let field = RemovedField { kind: "Deployment", group: "apps", path: &path, siblings };
            assert_eq!(field.is_default_for(&declared, &live), expect, "{path:?} {declared} {live}");
        };
        check("spec.containers.livenessProbe.timeoutSeconds", json!(0), json!(1), true);
        check("spec.containers.livenessProbe.timeoutSeconds", json!(0), json!(2), false);
        check("spec.containers.livenessProbe.timeoutSeconds", json!(2), json!(1), false);
        check("spec.containers.imagePullPolicy", json!(""), json!("Always"), true);
        check("spec.replicas", json!(0), json!(1), false);
    }

    #[test]
    fn an_empty_map_that_the_server_stores_is_a_default() {
        check("Deployment.apps", "spec.template.spec.containers.resources", &json!({}), true);
        check("Deployment.apps", "spec.template.spec.affinity", &json!({}), false);
        check("NetworkPolicy.networking.k8s.io", "spec.podSelector", &json!({}), true);
        check("NetworkPolicy.networking.k8s.io", "spec.ingress.from.podSelector", &json!({}), false);
        check("Deployment.apps", "spec.template.spec.resources", &json!([]), false);
        check("Widget.example.com", "spec.resources", &json!({}), false);
    }

    #[test]
    fn a_value_that_the_server_chooses_is_a_default_of_that_kind_only() {
        check("Service", "spec.clusterIP", &json!("10.0.0.1"), true);
        check("Service", "spec.clusterIP", &json!("None"), false);
        check("Service", "spec.clusterIPs", &json!(["10.0.0.1"]), true);
        check("Service", "spec.clusterIPs", &json!(["None"]), false);
        check("Service", "spec.ipFamilies", &json!(["IPv4"]), true);
        check("Service", "spec.ipFamilyPolicy", &json!("SingleStack"), true);
        check("Service", "spec.ipFamilyPolicy", &json!("RequireDualStack"), false);
        check("PersistentVolumeClaim", "spec.volumeName", &json!("pv-1"), true);
        check("PersistentVolume", "spec.scaleIO.volumeName", &json!("pv-1"), false);
    }

    #[test]
    fn a_target_port_is_a_default_if_it_is_the_port() {
        check_beside(&json!({"port": 80}), "Service", "spec.ports.targetPort", &json!(80), true);
        check_beside(&json!({"port": 80}), "Service", "spec.ports.targetPort", &json!(8080), false);
        check_beside(&json!({"port": 80}), "Service", "spec.ports.targetPort", &json!("http"), false);
        check("Service", "spec.ports.targetPort", &json!(80), false);
    }

    #[test]
    fn a_rolling_update_has_the_defaults_of_its_kind() {
        let path = "spec.strategy.rollingUpdate.maxUnavailable";
        check("Deployment.apps", path, &json!("25%"), true);
        check("Deployment.apps", path, &json!(1), false);
        check("DaemonSet.apps", path, &json!(1), true);
        check("DaemonSet.apps", path, &json!("25%"), false);
        check("PodDisruptionBudget.policy", "spec.maxUnavailable", &json!(1), false);
        check("Deployment.apps", "spec.strategy.rollingUpdate.maxSurge", &json!("25%"), true);
        check("DaemonSet.apps", "spec.updateStrategy.rollingUpdate.maxSurge", &json!("25%"), false);
    }

    #[test]
    fn the_defaults_of_a_removed_map_are_gone_unless_the_map_is_created_again() {
        let check = |path: &str, value: Value, expect: bool| {
            check_beside(&Value::Null, "Deployment.apps", path, &value, expect);
        };
        check("spec.template.spec.containers.livenessProbe.timeoutSeconds", json!(1), false);
        check("spec.template.spec.containers.livenessProbe.httpGet.scheme", json!("HTTP"), false);
        check("spec.template.spec.volumes.secret.defaultMode", json!(420), false);
        check("spec.strategy.type", json!("RollingUpdate"), true);
        check("spec.strategy.rollingUpdate.maxSurge", json!("25%"), true);
    }

    #[test]
    fn a_pull_policy_depends_on_the_tag() {
        let check = |image: &str, expect: &str| {
            for policy in ["Always", "IfNotPresent", "Never"] {
                let path = "spec.template.spec.containers.imagePullPolicy";
                let siblings = json!({ "image": image });
                check_beside(&siblings, "Deployment.apps", path, &json!(policy), policy == expect);
            }
        };
        check("web", "Always");
        check("registry:5000/team/web", "Always");
        check("registry:5000/team/web:latest", "Always");
        check("web:latest@sha256:12", "Always");
        check("web:1.2", "IfNotPresent");
        check("web@sha256:12", "IfNotPresent");
    }

    #[test]
    fn a_default_that_depends_on_the_path_counts_there_only() {
        check("Secret", "type", &json!("Opaque"), true);
        check("Service", "spec.type", &json!("ClusterIP"), true);
        check("Deployment.apps", "spec.strategy.type", &json!("RollingUpdate"), true);
        check("Deployment.apps", "spec.strategy.type", &json!("Recreate"), false);
        check("Deployment.apps", "spec.template.spec.other.type", &json!("RollingUpdate"), false);
        check("Pod", "spec.restartPolicy", &json!("Always"), true);
        check("Pod", "spec.initContainers.restartPolicy", &json!("Always"), false);
        check("Pod", "spec.containers.livenessProbe.timeoutSeconds", &json!(1), true);
        check("Service", "spec.sessionAffinityConfig.clientIP.timeoutSeconds", &json!(1), false);
        check("Pod", "spec.terminationGracePeriodSeconds", &json!(30), true);
        check("Pod", "spec.containers.livenessProbe.terminationGracePeriodSeconds", &json!(30), false);
        check("Pod", "spec.containers.livenessProbe.httpGet.path", &json!("/"), true);
        check("Ingress.networking.k8s.io", "spec.rules.http.paths.path", &json!("/"), false);
        check("Pod", "spec.containers.env.valueFrom.fieldRef.apiVersion", &json!("v1"), true);
        check("Pod", "spec.containers.env.valueFrom.fieldRef.apiVersion", &json!("v2"), false);
        check("StatefulSet.apps", "spec.volumeClaimTemplates.apiVersion", &json!("v1"), true);
        check("StatefulSet.apps", "spec.volumeClaimTemplates.kind", &json!("PersistentVolumeClaim"), true);
        check("StatefulSet.apps", "spec.volumeClaimTemplates.status.phase", &json!("Pending"), true);
        check("Widget.apps", "spec.volumeClaimTemplates.apiVersion", &json!("v1"), false);
        check("Job.batch", "spec.completions", &json!(1), true);
        check_beside(&json!({"parallelism": 2}), "Job.batch", "spec.completions", &json!(1), false);
        check("Job.batch", "spec.backoffLimit", &json!(6), true);
        check_beside(&json!({"backoffLimitPerIndex": 2}), "Job.batch", "spec.backoffLimit", &json!(6), false);
    }

    #[test]
    fn user_defined_keys_and_custom_kinds_have_no_defaults() {
        check("ConfigMap", "data.protocol", &json!("TCP"), false);
        check("Service", "clusterIP", &json!("10.0.0.1"), false);
        check("Deployment.apps", "spec.template.metadata.labels.replicas", &json!(1), false);
        check("Widget.example.com", "spec.replicas", &json!(1), false);
        let group = "rbac.authorization.k8s.io";
        check(&format!("RoleBinding.{group}"), "roleRef.apiGroup", &json!(group), true);
    }
}
