//! Clusters, kinds and objects.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

use crate::error::KubernetesError;
use crate::fields::Ownership;

/// A cluster, and how it is reached. The token is named, not held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The address of its API server.
    pub server: String,
    /// Where the token is kept.
    pub token: Option<TokenRef>,
}

/// Where a token is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TokenRef {
    /// The secret.
    pub path: String,
    /// Its field.
    pub field: String,
    /// Its version; the latest by default.
    pub version: Option<i32>,
}

/// A kind of object, as data names it: `Secret`, `Deployment.apps`, `PrometheusRule.monitoring.coreos.com`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Its group; empty for the core group. Without one it is the only group that serves a kind of this name; among several
    /// the core group, else the only one of Kubernetes itself.
    pub group: Option<String>,
}

impl Kind {
    /// A kind of whichever group has it.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), group: None }
    }

    /// `Namespace` of the core group.
    pub fn namespace() -> Self {
        Self { name: "Namespace".to_owned(), group: Some(String::new()) }
    }

    /// The kind that an object says it is of.
    pub fn of(body: &Value) -> Option<Self> {
        let (name, version) = (body["kind"].as_str()?, body["apiVersion"].as_str()?);
        let group = version.split_once('/').map_or("", |(group, _)| group);
        Some(Self { name: name.to_owned(), group: Some(group.to_owned()) })
    }
}

impl FromStr for Kind {
    type Err = KubernetesError;

    /// `Kind`, or `Kind.group`.
    fn from_str(text: &str) -> Result<Self, KubernetesError> {
        let (name, group) = text.split_once('.').map_or((text, None), |(name, group)| (name, Some(group)));
        let fine = |text: &str| !text.is_empty() && checked(text).is_ok();
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

/// How a cluster serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Group and version that the cluster prefers: `v1`, `apps/v1`.
    pub api_version: String,
    /// All versions of the group that have the kind, best first.
    pub versions: Vec<String>,
    /// Its name in addresses: `deployments`.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
}

/// Where an object is in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, for kinds that are in one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Address {
    /// An object of the cluster itself.
    pub fn of_cluster(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, namespace: None, name: name.into() }
    }

    /// An object in a namespace.
    pub fn in_namespace(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, namespace: Some(namespace.into()), name: name.into() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} `{}` in `{namespace}`", self.kind, self.name),
            None => write!(f, "{} `{}`", self.kind, self.name),
        }
    }
}

/// A kind, and the version in which its objects are read.
#[derive(Clone, Copy, Debug)]
pub struct KindVersion<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// Such as `apps/v1`; the cluster's preferred one by default.
    pub api_version: Option<&'a str>,
}

/// The version of an object that was read. It means something to the cluster alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Which object it is of those that had its name. A sandbox does not tell them apart.
    pub uid: Option<String>,
    /// As of when.
    pub resource_version: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.uid {
            Some(uid) => write!(f, "{uid}/{}", self.resource_version),
            None => f.write_str(&self.resource_version),
        }
    }
}

/// Who owns the fields of an object, as far as it matters to the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// What we applied is ours already, or nobody's who must hand it over.
    Settled,
    /// A tool that applied on the client's side, or our own creation, owns fields that are to be ours.
    ToBeMoved,
    /// Besides, somebody wrote it as a whole by other means, and we have not applied it yet: if it is ours, these fields
    /// are to be ours as well. If it is not, they are to stay: plan with `ToBeMoved`.
    Written,
}

/// An object as it was read. Who manages which of its fields is not in the body, but beside it as text: it is as large as the rest.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// Where it is.
    pub address: Address,
    /// The version that was read.
    pub version: Version,
    /// Who owns its fields, as far as it matters to the next write.
    pub fields: Fields,
    /// Who owns which of its fields.
    pub ownership: Ownership,
    /// All of it but `metadata.managedFields`.
    pub body: Value,
}

/// Tells what it is, never what it holds: it may be a secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} `{}`)", self.address.kind, self.address.name)
    }
}

impl Object {
    /// Whether it is being removed.
    pub fn is_going(&self) -> bool {
        !self.body["metadata"]["deletionTimestamp"].is_null() || self.body["status"]["phase"] == "Terminating"
    }

    /// Why its pods were started anew the last time, if they were.
    pub fn cause(&self) -> Option<&str> {
        self.body["spec"]["template"]["metadata"]["annotations"][crate::RECYCLED].as_str()
    }
}

/// A name that can be part of a path: what Kubernetes allows anyway, and not longer than names of files may be.
pub(crate) fn checked(name: &str) -> Result<&str, KubernetesError> {
    let fine = |one: char| one.is_ascii_alphanumeric() || "-._:@+=~,!()".contains(one);
    let begins = name.starts_with(|one: char| one.is_ascii_alphanumeric());
    if !begins || name.len() > 250 || !name.chars().all(fine) {
        return Err(KubernetesError::Name { name: name.to_owned() });
    }
    Ok(name)
}
