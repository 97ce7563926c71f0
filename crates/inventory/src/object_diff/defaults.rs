//! Values that an API server fills in by default, so that taking them away changes nothing.
//!
//! Server-side apply does not own them. But a tool that created or replaced an object as a whole owns all of it, and lists that are one value
//! are written without them.

use serde_json::{Value, json};

use crate::path::{Segment, last_key};

/// Fields whose values the server chooses or derives.
const CHOSEN: [&str; 8] = [
    "clusterIP",
    "clusterIPs",
    "healthCheckNodePort",
    "ipFamilies",
    "ipFamilyPolicy",
    "nodePort",
    "targetPort",
    "volumeName",
];

/// Fields with the text that is their default.
const TEXTS: [(&str, &str); 27] = [
    ("apiGroup", ""),
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiVersion", "v1"),
    ("completionMode", "NonIndexed"),
    ("concurrencyPolicy", "Allow"),
    ("dnsPolicy", "ClusterFirst"),
    ("externalTrafficPolicy", "Cluster"),
    ("imagePullPolicy", "Always"),
    ("imagePullPolicy", "IfNotPresent"),
    ("internalTrafficPolicy", "Cluster"),
    ("maxSurge", "25%"),
    ("maxUnavailable", "25%"),
    ("path", "/"),
    ("podManagementPolicy", "OrderedReady"),
    ("protocol", "TCP"),
    ("restartPolicy", "Always"),
    ("schedulerName", "default-scheduler"),
    ("scheme", "HTTP"),
    ("sessionAffinity", "None"),
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("type", "ClusterIP"),
    ("type", "Opaque"),
    ("type", "RollingUpdate"),
    ("volumeMode", "Filesystem"),
    ("whenDeleted", "Retain"),
    ("whenScaled", "Retain"),
];

/// Fields with the number that is their default.
const NUMBERS: [(&str, i64); 16] = [
    ("backoffLimit", 6),
    ("completions", 1),
    ("defaultMode", 420),
    ("failedJobsHistoryLimit", 1),
    ("failureThreshold", 3),
    ("maxUnavailable", 1),
    ("minReplicas", 1),
    ("parallelism", 1),
    ("periodSeconds", 10),
    ("progressDeadlineSeconds", 600),
    ("replicas", 1),
    ("revisionHistoryLimit", 10),
    ("successThreshold", 1),
    ("successfulJobsHistoryLimit", 3),
    ("terminationGracePeriodSeconds", 30),
    ("timeoutSeconds", 1),
];

/// Maps whose keys are the user's, or mean something else than the field of that name.
const FREE: [&str; 9] = [
    "annotations",
    "binaryData",
    "data",
    "hard",
    "labels",
    "matchLabels",
    "nodeSelector",
    "selector",
    "stringData",
];

/// Whether the server fills the value in at this path of an object of this group.
pub fn is_default(group: &str, path: &[Segment], value: &Value) -> bool {
    let is_builtin = !group.contains('.') || group.ends_with(".k8s.io");
    let is_free = |segment: &Segment| matches!(segment, Segment::Key(key) if FREE.contains(&key.as_str()));
    if !is_builtin || path.iter().any(is_free) {
        return false;
    }
    let key = last_key(path);
    let is_chosen = matches!(path, [Segment::Key(spec), ..] if spec == "spec") && CHOSEN.contains(&key);
    is_chosen
        || TEXTS.iter().any(|(field, text)| *field == key && value == text)
        || NUMBERS.iter().any(|(field, number)| *field == key && *value == json!(number))
        || key == "suspend" && *value == json!(false)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_default;
    use crate::path::Segment;

    fn check(group: &str, path: &str, value: &Value, expect: bool) {
        let path: Vec<Segment> = path.split('.').map(|key| Segment::Key(key.to_owned())).collect();
        assert_eq!(is_default(group, &path, value), expect, "{group} {path:?} {value}");
    }

    #[test]
    fn what_the_server_fills_in_is_a_default() {
        check("apps", "spec.revisionHistoryLimit", &json!(10), true);
        check("apps", "spec.revisionHistoryLimit", &json!(11), false);
        check("networking.k8s.io", "spec.ingress.protocol", &json!("TCP"), true);
        check("", "spec.ports.protocol", &json!("UDP"), false);
        check("", "spec.clusterIP", &json!("10.0.0.1"), true);
        check("batch", "spec.suspend", &json!(false), true);
        check("batch", "spec.suspend", &json!(true), false);
        check("batch", "spec.other", &json!(false), false);
        check("", "type", &json!("Opaque"), true);
    }

    #[test]
    fn what_users_name_and_what_others_define_is_none() {
        check("", "data.protocol", &json!("TCP"), false);
        check("", "clusterIP", &json!("10.0.0.1"), false);
        check("apps", "spec.template.metadata.labels.replicas", &json!(1), false);
        check("example.com", "spec.replicas", &json!(1), false);
        check("rbac.authorization.k8s.io", "roleRef.apiGroup", &json!("rbac.authorization.k8s.io"), true);
    }
}
