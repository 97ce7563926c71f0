//! Facts about object kinds: the immutable fields and the free-form maps of Kubernetes kinds, which the planner
//! (`inventory`) and the client (`clients/kubernetes`) share, and the kinds that guards protect. Pure.
//!
//! **Invariant:** the planner and the sandbox use the same table of immutable fields. The sandbox accepts
//! every in-place change that the planner makes. For every change that the sandbox refuses, the planner
//! replaces the object or reports an error.

/// An object kind: its name and API group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKind {
    /// The name of the kind.
    pub kind: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
}

/// Fields that are maps with user-defined keys.
const FREE_FORM_MAPS: [&str; 11] = [
    "annotations",
    "binaryData",
    "data",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
    "selector",
    "stringData",
];

/// Kubernetes kinds whose removal always needs an approval, because it destroys the content of the object.
const PROTECTED_KUBERNETES: [GroupKind; 4] = [
    GroupKind { kind: "Namespace", group: "" },
    GroupKind { kind: "Project", group: "project.openshift.io" },
    GroupKind { kind: "PersistentVolume", group: "" },
    GroupKind { kind: "PersistentVolumeClaim", group: "" },
];

/// AWS kinds whose removal always needs an approval, as Terraform names them.
const PROTECTED_AWS: [&str; 8] = [
    "aws_db_instance",
    "aws_dynamodb_table",
    "aws_ebs_volume",
    "aws_efs_file_system",
    "aws_elasticache_cluster",
    "aws_elasticache_replication_group",
    "aws_rds_cluster",
    "aws_s3_bucket",
];

/// The names of all kinds whose removal always needs an approval, in every integration. A kind with an API
/// group is listed with and without the group.
pub fn protected_kinds() -> impl Iterator<Item = String> {
    PROTECTED_KUBERNETES.into_iter().flat_map(GroupKind::spellings).chain(PROTECTED_AWS.map(str::to_owned))
}

impl GroupKind {
    /// The spellings of the kind in plans and data: `Project`, `Project.project.openshift.io`.
    pub fn spellings(self) -> impl Iterator<Item = String> {
        let full = (!self.group.is_empty()).then(|| format!("{}.{}", self.kind, self.group));
        std::iter::once(self.kind.to_owned()).chain(full)
    }
}

/// Whether a field of this name is a map with user-defined keys. The API server adds no default keys to such
/// a map. A key of the map does not denote the field of that name, and it may be part of a secret.
///
/// ```
/// assert!(qontract_kinds::is_free_form("labels"));
/// assert!(!qontract_kinds::is_free_form("livenessProbe"));
/// ```
pub fn is_free_form(field: &str) -> bool {
    FREE_FORM_MAPS.contains(&field)
}

/// The API group of a group and version such as `apps/v1`; empty for the core group.
///
/// ```
/// assert_eq!(qontract_kinds::group_of("apps/v1"), "apps");
/// assert_eq!(qontract_kinds::group_of("v1"), "");
/// ```
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A field that the API server does not allow to be changed after the object is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImmutableField {
    /// The value at this JSON pointer; an object that omits it keeps its value.
    Fixed(&'static str),
    /// The value at this JSON pointer, once it is set.
    FixedOnceSet(&'static str),
    /// The whole value at this JSON pointer: adding or omitting a part of it is also a change.
    FixedWhole(&'static str),
    /// All fields of `spec` except these.
    SpecExcept(&'static [&'static str]),
}

use ImmutableField::{Fixed, FixedOnceSet, FixedWhole, SpecExcept};

/// Kind, group, and immutable fields.
const IMMUTABLE_FIELDS: [(&str, &str, &[ImmutableField]); 20] = [
    ("Secret", "", &[Fixed("/type")]),
    ("RoleBinding", "rbac.authorization.k8s.io", &[Fixed("/roleRef")]),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io", &[Fixed("/roleRef")]),
    ("RoleBinding", "authorization.openshift.io", &[Fixed("/roleRef")]),
    ("ClusterRoleBinding", "authorization.openshift.io", &[Fixed("/roleRef")]),
    ("ResourceQuota", "", &[FixedWhole("/spec/scopes")]),
    ("Service", "", &[FixedOnceSet("/spec/clusterIP")]),
    ("Route", "route.openshift.io", &[Fixed("/spec/host"), Fixed("/spec/wildcardPolicy")]),
    (
        "Job",
        "batch",
        &[
            Fixed("/spec/template"),
            Fixed("/spec/selector"),
            Fixed("/spec/completions"),
            Fixed("/spec/completionMode"),
        ],
    ),
    ("Deployment", "apps", &[FixedWhole("/spec/selector")]),
    ("DaemonSet", "apps", &[FixedWhole("/spec/selector")]),
    ("ReplicaSet", "apps", &[FixedWhole("/spec/selector")]),
    (
        "StatefulSet",
        "apps",
        &[
            FixedWhole("/spec/selector"),
            SpecExcept(&[
                "selector",
                "replicas",
                "template",
                "updateStrategy",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
                "ordinals",
                "revisionHistoryLimit",
            ]),
        ],
    ),
    ("PersistentVolumeClaim", "", &[SpecExcept(&["resources", "volumeAttributesClassName"])]),
    (
        "StorageClass",
        "storage.k8s.io",
        &[
            Fixed("/provisioner"),
            FixedWhole("/parameters"),
            Fixed("/reclaimPolicy"),
            Fixed("/volumeBindingMode"),
        ],
    ),
    ("CustomResourceDefinition", "apiextensions.k8s.io", &[Fixed("/spec/scope")]),
    ("PriorityClass", "scheduling.k8s.io", &[Fixed("/value"), Fixed("/preemptionPolicy")]),
    ("IngressClass", "networking.k8s.io", &[Fixed("/spec/controller")]),
    ("RuntimeClass", "node.k8s.io", &[Fixed("/handler")]),
    ("CSIDriver", "storage.k8s.io", &[Fixed("/spec/attachRequired")]),
];

/// The immutable fields of a kind.
///
/// ```
/// use qontract_kinds::{ImmutableField, immutable_fields};
/// assert_eq!(immutable_fields("Secret", ""), [ImmutableField::Fixed("/type")]);
/// assert!(immutable_fields("Secret", "example.com").is_empty());
/// ```
pub fn immutable_fields(kind: &str, group: &str) -> &'static [ImmutableField] {
    IMMUTABLE_FIELDS.iter().find(|row| (row.0, row.1) == (kind, group)).map_or(&[], |row| row.2)
}

/// The JSON pointer of a field as a dotted path, for messages.
///
/// ```
/// assert_eq!(qontract_kinds::dotted_path("/spec/scope"), "spec.scope");
/// ```
pub fn dotted_path(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// Whether objects of a kind can be made immutable with `immutable: true`.
pub fn can_be_sealed(kind: &str, group: &str) -> bool {
    group.is_empty() && ["ConfigMap", "Secret"].contains(&kind)
}

/// The immutable fields of an object with `immutable: true`.
pub const SEALED_FIELDS: [&str; 3] = ["data", "binaryData", "immutable"];

#[cfg(test)]
mod tests {
    use super::{IMMUTABLE_FIELDS, can_be_sealed, immutable_fields};

    #[test]
    fn a_kind_is_listed_once() {
        for (index, row) in IMMUTABLE_FIELDS.iter().enumerate() {
            let again =
                IMMUTABLE_FIELDS[index + 1..].iter().any(|other| (other.0, other.1) == (row.0, row.1));
            assert!(!again, "{} of `{}`", row.0, row.1);
        }
    }

    #[test]
    fn a_kind_is_identified_by_its_group() {
        assert_eq!(immutable_fields("Deployment", "apps").len(), 1);
        assert_eq!(immutable_fields("Deployment", "").len(), 0);
        assert!(can_be_sealed("Secret", "") && can_be_sealed("ConfigMap", ""));
        assert!(!can_be_sealed("Secret", "x") && !can_be_sealed("Service", ""));
    }

    #[test]
    fn namespaces_volumes_and_databases_are_protected_with_and_without_their_group() {
        let names: Vec<String> = super::protected_kinds().collect();
        let expected = [
            "Namespace",
            "Project",
            "Project.project.openshift.io",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "aws_db_instance",
            "aws_dynamodb_table",
            "aws_ebs_volume",
            "aws_efs_file_system",
            "aws_elasticache_cluster",
            "aws_elasticache_replication_group",
            "aws_rds_cluster",
            "aws_s3_bucket",
        ];
        assert_eq!(names, expected);
    }
}
