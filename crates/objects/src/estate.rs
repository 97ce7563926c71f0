//! What is wanted, and where it is looked after.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Address, Cluster, Kind};
use qontract_inventory::{Callers, Desired, Owner};
use qontract_runtime::{Scope, Thing};
use serde_json::Value;

/// What one shard looks after: kinds of objects in a namespace, or of the cluster itself.
#[derive(Clone, Debug)]
pub struct Estate {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace; none for objects of the cluster itself.
    pub namespace: Option<String>,
    /// The kinds.
    pub kinds: Vec<Managed>,
    /// Who we are.
    pub owner: Arc<Owner>,
    /// All callers of the integration, as the whole bundle knows them.
    pub callers: Arc<Callers>,
    /// Whether what nobody marked is ours as well: if it is not wanted, it goes.
    pub takes_over: bool,
}

/// A kind that is looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Managed {
    /// The kind, as the data names it.
    pub kind: Kind,
    /// The names that may be looked after; all of them by default.
    pub names: Option<BTreeSet<String>>,
}

impl From<Kind> for Managed {
    fn from(kind: Kind) -> Self {
        Self { kind, names: None }
    }
}

/// An object as it is to be.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where it is looked after.
    pub estate: Arc<Estate>,
    /// Its kind, as the estate names it.
    pub kind: Kind,
    /// All that is declared of it.
    pub desired: Desired,
    /// Whether none of its values may be shown.
    pub is_sensitive: bool,
    /// Annotation names of integrations that the data moved it from.
    pub moved_from: BTreeSet<String>,
}

impl Estate {
    /// What one list of a kind tells about. Namespaces are what a cluster consists of: their scope is the cluster.
    pub fn scope(&self, kind: &Kind) -> Scope {
        let cluster = ("cluster", self.cluster.name.as_str());
        let label = kind.to_string();
        match &self.namespace {
            Some(namespace) => {
                Scope::new([cluster, ("namespace", namespace.as_str()), ("kind", label.as_str())])
            }
            None if *kind == Kind::namespace() => Scope::new([cluster]),
            None => Scope::new([cluster, ("kind", label.as_str())]),
        }
    }

    /// An object as plans name it.
    pub fn thing(&self, kind: &Kind, name: impl Into<String>) -> Thing {
        Thing { scope: self.scope(kind), kind: kind.to_string(), name: name.into() }
    }

    /// Where an object is.
    pub fn address(&self, kind: &Kind, name: impl Into<String>) -> Address {
        Address { kind: kind.clone(), namespace: self.namespace.clone(), name: name.into() }
    }

    /// The kind that looks after an object: the one of its group, else the one that names no group.
    pub fn kind_of(&self, body: &Value) -> Option<&Kind> {
        let own = Kind::of(body)?;
        let named = || self.kinds.iter().map(|managed| &managed.kind).filter(|kind| kind.name == own.name);
        named().find(|kind| kind.group == own.group).or_else(|| named().find(|kind| kind.group.is_none()))
    }
}
