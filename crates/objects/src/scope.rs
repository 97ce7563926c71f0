//! Which objects a shard manages, and how they are to be.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Address, Cluster, Kind};
use qontract_inventory::{Callers, Desired, Disclosure, Owner};
use qontract_runtime::{Fault, Place, Scope, Thing, Want, Wanted};
use serde_json::Value;

/// The objects that one shard manages: kinds of objects in a namespace, or of the cluster itself.
#[derive(Clone, Debug)]
pub struct ManagedScope {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace; none for objects of the cluster itself.
    pub namespace: Option<String>,
    /// The kinds.
    pub kinds: Vec<ManagedKind>,
    /// Who we are.
    pub owner: Arc<Owner>,
    /// All callers of the integration, as the whole bundle knows them.
    pub callers: Arc<Callers>,
    /// Whether objects without a mark are managed, too: if they are not wanted, they are removed.
    pub adopts_unmarked: bool,
}

/// A managed kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedKind {
    /// The kind, as the data names it.
    pub kind: Kind,
    /// The managed names; all by default.
    pub names: Option<BTreeSet<String>>,
}

impl From<Kind> for ManagedKind {
    fn from(kind: Kind) -> Self {
        Self { kind, names: None }
    }
}

/// An object as it is to be.
#[derive(Clone, Debug)]
pub struct DesiredObject {
    /// The scope that it is managed in.
    pub managed_scope: Arc<ManagedScope>,
    /// Its kind, as the scope names it.
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

impl ManagedScope {
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

    /// The managed kind of an object: the one of its group, else the one that names no group.
    pub fn kind_of(&self, body: &Value) -> Option<&Kind> {
        let own = Kind::of(body)?;
        let named = || self.kinds.iter().map(|managed| &managed.kind).filter(|kind| kind.name == own.name);
        named().find(|kind| kind.group == own.group).or_else(|| named().find(|kind| kind.group.is_none()))
    }

    /// An object that is wanted here. If it cannot be managed, it is wanted anyway, as unresolved, so that nothing is removed because of it.
    ///
    /// **Invariant:** kind and name come from the data alone, also of an object that holds secrets: they are shown.
    pub fn want(
        self: &Arc<Self>,
        body: Value,
        sensitivity: Sensitivity,
        place: Option<Place>,
    ) -> Want<DesiredObject> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = self.kind_of(&body).cloned() else {
            let fault = Fault::author("the kind is not among those that are managed here")
                .hint("add it to `managedResourceTypes`");
            let kind = Kind::of(&body).unwrap_or_else(|| Kind::named("object"));
            return Want { thing: self.thing(&kind, name), place, wanted: Wanted::Unresolved(fault) };
        };
        let names =
            self.kinds.iter().find(|managed| managed.kind == kind).and_then(|managed| managed.names.as_ref());
        let is_listed = names.is_none_or(|names| names.contains(&name));
        let thing = self.thing(&kind, name);
        if !is_listed {
            let fault = Fault::author("the name is not in `managedResourceNames`");
            return Want { thing, place, wanted: Wanted::Unresolved(fault) };
        }
        let wanted = match Desired::new(body) {
            Ok(desired) => {
                let (managed_scope, moved_from) = (Arc::clone(self), BTreeSet::new());
                Wanted::Present(DesiredObject { managed_scope, kind, desired, sensitivity, moved_from })
            }
            Err(why) => Wanted::Unresolved(Fault::author(why.to_string())),
        };
        Want { thing, place, wanted }
    }
}
