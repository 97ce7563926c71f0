//! What is wanted, and where it is looked after.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Address, Cluster, Kind};
use qontract_inventory::{Callers, Desired, Disclosure, Owner};
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
    /// What of it may be shown.
    pub sensitivity: Sensitivity,
    /// Annotation names of integrations that the data moved it from.
    pub moved_from: BTreeSet<String>,
}

/// Whether an object holds secrets, and what of it may be shown then. Never a value.
#[derive(Clone, Debug, Default)]
pub enum Sensitivity {
    /// It holds none.
    #[default]
    Public,
    /// It is rendered from a template with secrets, which may put fields anywhere because of what a secret is: not even the paths that differ may be
    /// shown, nor how many they are.
    Template,
    /// Secrets are put into certain fields of this object. The paths that it has may be shown.
    Filled(Arc<Value>),
    /// It is a secret as a whole, but for what is in this object. The record of a real run names its fields.
    Entry(Arc<Value>),
}

impl Sensitivity {
    /// Whether no value may be shown.
    pub fn is_sensitive(&self) -> bool {
        match self {
            Self::Public => false,
            Self::Template | Self::Filled(_) | Self::Entry(_) => true,
        }
    }

    /// What may be shown in any run.
    pub fn disclosure(&self) -> Disclosure<'_> {
        match self {
            Self::Public => Disclosure::Everything,
            Self::Template => Disclosure::Nothing,
            Self::Filled(declared) | Self::Entry(declared) => Disclosure::PathsOf(declared),
        }
    }

    /// What the record of a real run shows, where that is more.
    pub fn disclosure_in_record(&self) -> Option<Disclosure<'static>> {
        match self {
            Self::Public | Self::Template | Self::Filled(_) => None,
            Self::Entry(_) => Some(Disclosure::Paths),
        }
    }
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
