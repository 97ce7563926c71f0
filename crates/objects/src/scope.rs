//! The objects that a shard manages, and their desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kind, ObjectAddress};
use qontract_inventory::{Callers, DesiredBody, Disclosure, Owner, OwnerMark, Replacement, invalid_values};
use qontract_runtime::{
    CALLER_DIMENSION, DesiredItem, DesiredState, Fault, ObjectKey, PlanHint, Scope, SourceLocation,
};
use serde_json::Value;

/// The objects that one shard manages: kinds of objects in a namespace, or cluster-scoped kinds.
#[derive(Clone, Debug)]
pub struct ManagedScope {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The managed kinds.
    pub kinds: Vec<ManagedKind>,
    /// The owner that is written into the annotations.
    pub owner: Arc<Owner>,
    /// All callers of the integration in the whole bundle.
    pub callers: Arc<Callers>,
    /// Whether unmarked objects are managed as well. If so, unmarked objects that are not declared are
    /// removed.
    pub adopts_unmarked: bool,
    /// Whether other shards manage objects of the same kinds in the namespace. If so, all these shards share
    /// the lists of the namespace.
    pub is_shared: bool,
    /// The objects that may be replaced in order to change an immutable field.
    pub replacement: Replacement,
    /// The API version in which objects are written.
    pub write_version: WriteVersion,
}

/// The API version in which the objects of a scope are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteVersion {
    /// The version that the object declares. A cluster that does not serve it refuses the object.
    #[default]
    Declared,
    /// The version that the cluster prefers, for objects whose fields are the same in all versions of their kind.
    Preferred,
}

/// A managed kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedKind {
    /// The kind, as the data names it.
    pub kind: Kind,
    /// The names of the managed objects; `None` means all objects of the kind.
    pub names: Option<BTreeSet<String>>,
}

impl From<Kind> for ManagedKind {
    fn from(kind: Kind) -> Self {
        Self { kind, names: None }
    }
}

/// A desired object.
#[derive(Clone, Debug)]
pub struct DesiredObject {
    /// The scope in which the object is managed.
    pub managed_scope: Arc<ManagedScope>,
    /// The kind, as the scope names it.
    pub kind: Kind,
    /// The declared object.
    pub desired: DesiredBody,
    /// The sensitivity, which limits the parts that may be shown.
    pub sensitivity: Sensitivity,
    /// Names of the integrations from which the data moved the object, as they are written in marks.
    pub moved_from: BTreeSet<String>,
    /// Whether the shard waits for the rollout of the object, because its next steps depend on the rollout.
    pub awaits_rollout: bool,
    /// Remarks about the declaration, such as a setting without effect.
    pub hints: Vec<PlanHint>,
}

/// Whether an object contains secrets, and which of its parts may be shown. Secret values are never shown.
#[derive(Clone, Debug, Default)]
pub enum Sensitivity {
    /// The object holds no secrets.
    #[default]
    Public,
    /// The object is rendered from a template with secrets. The value of a secret may decide which fields
    /// exist, so neither the paths that differ nor their number may be shown.
    Template,
    /// Secrets are written into certain fields. The paths of the contained object may be shown.
    Filled(Arc<Value>),
    /// The object is a Secret. Everything except the content of the contained object is confidential. The
    /// record of a real run names the fields of the Secret.
    Entry(Arc<Value>),
}

impl Sensitivity {
    /// Whether values must not be shown.
    pub fn is_sensitive(&self) -> bool {
        match self {
            Self::Public => false,
            Self::Template | Self::Filled(_) | Self::Entry(_) => true,
        }
    }

    /// The disclosure in every run.
    pub fn disclosure(&self) -> Disclosure<'_> {
        match self {
            Self::Public => Disclosure::Everything,
            Self::Template => Disclosure::Nothing,
            Self::Filled(declared) | Self::Entry(declared) => Disclosure::PathsOf(declared),
        }
    }

    /// The disclosure in the record of a real run, if it is larger than in other output.
    pub fn disclosure_in_record(&self) -> Option<Disclosure<'static>> {
        match self {
            Self::Public | Self::Template | Self::Filled(_) => None,
            Self::Entry(_) => Some(Disclosure::Paths),
        }
    }
}

impl ManagedScope {
    /// Whether the scope manages an object with this mark: the object belongs to the owner of the scope, or
    /// it is unmarked and the scope adopts it.
    pub fn manages(&self, mark: Option<&OwnerMark>) -> bool {
        mark.map_or(self.adopts_unmarked, |mark| {
            mark.integration == self.owner.integration() && mark.caller.as_deref() == self.owner.caller()
        })
    }

    /// The scope of listing a kind. For namespaces, the scope is the whole cluster. Objects of different
    /// callers are in different scopes, so that each caller has its own counts, and an unresolved object of
    /// one caller does not block the removals of another.
    pub fn kind_scope(&self, kind: &Kind) -> Scope {
        let label = kind.to_string();
        let mut parts = vec![("cluster", self.cluster.name.as_str())];
        parts.extend(self.namespace.as_deref().map(|namespace| ("namespace", namespace)));
        if self.namespace.is_some() || *kind != Kind::namespace() {
            parts.push(("kind", &label));
        }
        parts.extend(self.owner.caller().map(|caller| (CALLER_DIMENSION, caller)));
        Scope::new(parts)
    }

    /// The identity of an object in plans.
    pub fn object_key(&self, kind: &Kind, name: impl Into<String>) -> ObjectKey {
        ObjectKey { scope: self.kind_scope(kind), kind: kind.to_string(), name: name.into() }
    }

    /// The address of an object.
    pub fn address(&self, kind: &Kind, name: impl Into<String>) -> ObjectAddress {
        ObjectAddress { kind: kind.clone(), namespace: self.namespace.clone(), name: name.into() }
    }

    /// The managed kind of an object: the kind with its group, otherwise the kind without a group.
    pub fn kind_of(&self, body: &Value) -> Option<&Kind> {
        let own = Kind::of(body)?;
        let named = || self.kinds.iter().map(|managed| &managed.kind).filter(|kind| kind.name == own.name);
        named().find(|kind| kind.group == own.group).or_else(|| named().find(|kind| kind.group.is_none()))
    }

    /// An unresolved item for a desired object whose kind is not managed.
    pub fn unmanaged_item(
        &self,
        body: &Value,
        place: Option<SourceLocation>,
        hint: &str,
    ) -> DesiredItem<DesiredObject> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let kind = Kind::of(body).unwrap_or_else(|| Kind::named("object"));
        let fault = Fault::author("the kind is not managed in this namespace").hint(hint);
        let state = DesiredState::Unresolved(fault);
        DesiredItem { object: self.object_key(&kind, name), place, state }
    }

    /// A desired object of this scope. An object that cannot be managed is returned as unresolved, so that
    /// nothing is removed from its scope.
    ///
    /// **Invariant:** kind and name come from the data alone, even if the object holds secrets, because they
    /// are shown.
    pub fn desired_item(
        self: &Arc<Self>,
        body: Value,
        sensitivity: Sensitivity,
        place: Option<SourceLocation>,
    ) -> DesiredItem<DesiredObject> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = self.kind_of(&body).cloned() else {
            return self.unmanaged_item(&body, place, "add it to `managedResourceTypes`");
        };
        let names =
            self.kinds.iter().find(|managed| managed.kind == kind).and_then(|managed| managed.names.as_ref());
        let is_listed = names.is_none_or(|names| names.contains(&name));
        let object = self.object_key(&kind, name);
        if !is_listed {
            let fault = Fault::author("the name is not in `managedResourceNames`");
            return DesiredItem { object, place, state: DesiredState::Unresolved(fault) };
        }
        if let (Some(own), Some(other)) = (&self.namespace, body["metadata"]["namespace"].as_str())
            && own != other
        {
            let text =
                format!("`metadata.namespace` is `{other}`, but the object is declared in namespace `{own}`");
            let fault = Fault::author(text).hint("remove `metadata.namespace`");
            return DesiredItem { object, place, state: DesiredState::Unresolved(fault) };
        }
        // An object that may contain secrets is not checked, because the error would depend on the secrets.
        let invalid = if sensitivity.is_sensitive() { Vec::new() } else { invalid_values(&body) };
        if !invalid.is_empty() {
            let values = invalid.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let fault = Fault::author(format!("{} `{}`: {values}", object.kind, object.name));
            return DesiredItem { object, place, state: DesiredState::Unresolved(fault) };
        }
        let wanted = match DesiredBody::new(body) {
            Ok(desired) => {
                let (managed_scope, moved_from) = (Arc::clone(self), BTreeSet::new());
                DesiredState::Present(DesiredObject {
                    managed_scope,
                    kind,
                    desired,
                    sensitivity,
                    moved_from,
                    awaits_rollout: false,
                    hints: Vec::new(),
                })
            }
            Err(why) => DesiredState::Unresolved(Fault::author(why.to_string())),
        };
        DesiredItem { object, place, state: wanted }
    }
}
