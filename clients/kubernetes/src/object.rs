//! Clusters, kinds and objects.

use std::fmt;
use std::str::FromStr;

use qontract_kinds::group_of;
use serde::Serialize;
use serde_json::Value;

use crate::error::KubernetesError;
use crate::fields::ManagedFields;

/// A cluster and its address. The token is referenced, not stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cluster {
    /// The name.
    pub name: String,
    /// The address of the cluster's API server.
    pub server: String,
    /// A reference to the token.
    pub token: Option<TokenRef>,
}

/// A reference to a token in the secret store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TokenRef {
    /// The secret.
    pub path: String,
    /// The field.
    pub field: String,
    /// The version; the latest by default.
    pub version: Option<i32>,
}

/// A kind of objects, as the data names it: `Secret`, `Deployment.apps`,
/// `PrometheusRule.monitoring.coreos.com`.
///
/// ```
/// use qontract_client_kubernetes::Kind;
///
/// let kind: Kind = "Deployment.apps".parse()?;
/// assert_eq!((kind.name.as_str(), kind.group.as_deref()), ("Deployment", Some("apps")));
/// assert_eq!("Secret".parse::<Kind>()?.group, None);
/// assert_eq!(Kind::of(&serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment"})), Some(kind));
/// assert!("../Secret".parse::<Kind>().is_err());
/// # Ok::<_, qontract_client_kubernetes::KubernetesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The name.
    pub name: String,
    /// The group; empty for the core group. `None` selects the only group that serves a kind of this name,
    /// otherwise the core group, otherwise the only built-in group.
    pub group: Option<String>,
}

impl Kind {
    /// A kind without a group.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), group: None }
    }

    /// A kind of this group.
    pub fn in_group(name: impl Into<String>, group: impl Into<String>) -> Self {
        Self { name: name.into(), group: Some(group.into()) }
    }

    /// `Namespace` of the core group.
    pub fn namespace() -> Self {
        Self { name: "Namespace".to_owned(), group: Some(String::new()) }
    }

    /// The kind of an object, from its body.
    pub fn of(body: &Value) -> Option<Self> {
        let (name, version) = (body["kind"].as_str()?, body["apiVersion"].as_str()?);
        Some(Self { name: name.to_owned(), group: Some(group_of(version).to_owned()) })
    }
}

impl FromStr for Kind {
    type Err = KubernetesError;

    /// `Kind`, or `Kind.group`.
    fn from_str(text: &str) -> Result<Self, KubernetesError> {
        let (name, group) = text.split_once('.').map_or((text, None), |(name, group)| (name, Some(group)));
        let fine = |text: &str| !text.is_empty() && check_name(text).is_ok();
        if !fine(name) || !group.is_none_or(fine) {
            return Err(KubernetesError::Name { name: text.to_owned() });
        }
        Ok(Self { name: name.to_owned(), group: group.map(str::to_owned) })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_deref() {
            None | Some("") => f.write_str(&self.name),
            Some(group) => write!(f, "{}.{group}", self.name),
        }
    }
}

/// Serialises the kind as the data names it: `Secret`, `Deployment.apps`.
impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The API resource of a kind on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResource {
    /// The preferred group and version: `v1`, `apps/v1`.
    pub api_version: String,
    /// All versions of the group that have the kind, preferred first.
    pub versions: Vec<String>,
    /// The plural name of the kind in URLs: `deployments`.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
}

impl ApiResource {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }
}

/// The address of an object in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectAddress {
    /// The kind.
    pub kind: Kind,
    /// The namespace, if the kind is namespaced.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectAddress {
    /// A cluster-scoped object.
    pub fn cluster_scoped(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, namespace: None, name: name.into() }
    }

    /// An object in a namespace.
    pub fn in_namespace(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, namespace: Some(namespace.into()), name: name.into() }
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} `{}` in `{namespace}`", self.kind, self.name),
            None => write!(f, "{} `{}`", self.kind, self.name),
        }
    }
}

/// A kind, and the API version in which its objects are read.
#[derive(Clone, Copy, Debug)]
pub struct KindVersion<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// The API version, for example `apps/v1`; by default, the version that the cluster prefers.
    pub api_version: Option<&'a str>,
}

/// The version of an object that was read. The version is opaque: only the cluster can interpret it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectVersion {
    /// Distinguishes objects that had the same name at different times; `None` in a sandbox, which does not
    /// distinguish them.
    pub uid: Option<String>,
    /// The revision.
    pub resource_version: String,
}

impl fmt::Display for ObjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.uid {
            Some(uid) => write!(f, "{uid}/{}", self.resource_version),
            None => f.write_str(&self.resource_version),
        }
    }
}

/// Ownership of an object's fields, reduced to the cases that affect the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOwnership {
    /// Fields that we applied are ours, and no other manager owns fields that have to be moved.
    Ours,
    /// Client-side apply, or our own creation, owns fields that have to be moved to us.
    ClientSideApplied,
    /// In addition, a manager wrote the whole object by other means, and we have not applied the object yet.
    /// If the object is ours, the fields of this manager have to be moved as well. Otherwise they are not
    /// moved, and the write is planned with `ClientSideApplied`.
    Updated,
}

/// An object that was read. The managed fields, which are as large as the rest of the object, are stored
/// unparsed next to the body.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// The address.
    pub address: ObjectAddress,
    /// The version that was read.
    pub version: ObjectVersion,
    /// Ownership of the fields that affect the next write.
    pub field_ownership: FieldOwnership,
    /// Ownership of each field.
    pub managed_fields: ManagedFields,
    /// The whole object except `metadata.managedFields`.
    pub body: Value,
}

/// Prints the kind and the name, never the content, which may be secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} `{}`)", self.address.kind, self.address.name)
    }
}

impl Object {
    /// Whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        !self.body["metadata"]["deletionTimestamp"].is_null() || self.body["status"]["phase"] == "Terminating"
    }

    /// The cause of the last restart of the workload's pods, if any.
    pub fn restart_cause(&self) -> Option<&str> {
        self.body["spec"]["template"]["metadata"]["annotations"][crate::RECYCLED_ANNOTATION].as_str()
    }
}

/// Checks that a name can be part of a path: only characters that Kubernetes allows, and at most the length
/// of a file name.
pub(crate) fn check_name(name: &str) -> Result<&str, KubernetesError> {
    let fine = |one: char| one.is_ascii_alphanumeric() || "-._:@+=~,!()".contains(one);
    let begins = name.starts_with(|one: char| one.is_ascii_alphanumeric());
    if !begins || name.len() > 250 || !name.chars().all(fine) {
        return Err(KubernetesError::Name { name: name.to_owned() });
    }
    Ok(name)
}
