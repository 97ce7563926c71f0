//! Clusters, kinds and objects.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::error::KubernetesError;

/// A cluster, and how it is reached. The token is named, not held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The address of its API server.
    pub server: String,
    /// Where the token is kept, as path and field.
    pub token: Option<(String, String)>,
}

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1/Namespace`
    Namespace,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Namespace => "Namespace",
        }
    }

    /// Its group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::Namespace => "v1",
        }
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        match self {
            Kind::Namespace => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} `{}` in `{namespace}`", self.kind, self.name),
            None => write!(f, "{} `{}`", self.kind, self.name),
        }
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Where it is.
    pub address: Address,
    /// The version that was read; empty for one that is to be created.
    pub version: String,
    /// All of it.
    pub body: Value,
}

impl Object {
    /// An object that is to be created, of its kind and name alone.
    pub fn bare(address: Address) -> Self {
        let mut metadata = serde_json::json!({"name": address.name});
        if let Some(namespace) = &address.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        let body = serde_json::json!({
            "apiVersion": address.kind.api_version(),
            "kind": address.kind.as_str(),
            "metadata": metadata,
        });
        Self { address, version: String::new(), body }
    }

    /// Whether it is being removed.
    pub fn is_going(&self) -> bool {
        !self.body["metadata"]["deletionTimestamp"].is_null() || self.body["status"]["phase"] == "Terminating"
    }
}

/// A name that can be part of a path: what Kubernetes allows anyway, and not longer than file names may be.
pub(crate) fn checked(name: &str) -> Result<&str, KubernetesError> {
    let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | '_' | ':');
    let begins = name.starts_with(|one: char| one.is_ascii_alphanumeric());
    if !begins || name.len() > 200 || !name.chars().all(fine) {
        return Err(KubernetesError::Name { name: name.to_owned() });
    }
    Ok(name)
}
