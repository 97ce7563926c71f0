//! Builds the shards of integrations: one shard for each namespace, or one for each cluster. A disabled shard
//! has the reason why it is disabled.

use std::collections::BTreeMap;

use qontract_client_kubernetes::Cluster;
use qontract_runtime::state::{DeclaredState, DisabledReason, Shard};
use qontract_runtime::{CALLER_DIMENSION, Fault, ShardKey, SourceLocation, SourceLocations, normalize_key};

use crate::flags::INTERNAL;
use crate::fragments::{ClusterAccess, NamespaceTarget};

/// A namespace with its provenance.
#[derive(Clone, Debug)]
pub struct LocatedNamespace {
    /// The namespace and its cluster.
    pub target: NamespaceTarget,
    /// Provenance of the namespace.
    pub place: Option<SourceLocation>,
    /// Provenance of the namespace's cluster.
    pub cluster_place: Option<SourceLocation>,
}

impl LocatedNamespace {
    /// The namespace at this JSON pointer into a query result.
    pub fn new(target: NamespaceTarget, places: &SourceLocations, pointer: &str) -> Self {
        let cluster_place = places.of(&format!("{pointer}/cluster"));
        Self { target, place: places.of(pointer), cluster_place }
    }
}

impl LocatedNamespace {
    /// The reason why the data disables an integration in this namespace, if it does.
    pub(crate) fn disabled(&self, integration: &str) -> Option<DisabledReason> {
        let Self { target, place, cluster_place } = self;
        target.cluster.disabled(integration, cluster_place.clone()).or_else(|| {
            let by = format!("namespace `{}` (managedByExternal)", target.name);
            let is_external = target.managed_by_external == Some(true);
            is_external.then(|| DisabledReason::new(by, place.clone()))
        })
    }
}

impl NamespaceTarget {
    /// The shard key of the namespace.
    pub fn key(&self) -> ShardKey {
        ShardKey::new([("cluster", self.cluster.name.as_str()), ("namespace", self.name.as_str())])
    }

    /// Whether the data marks the namespace, and everything in it, for deletion.
    pub fn is_marked_for_deletion(&self) -> bool {
        self.delete == Some(true)
    }

    /// The cluster, with the token that the namespace's objects require.
    pub(crate) fn cluster(&self) -> Result<Cluster, String> {
        match self.cluster_admin {
            Some(true) => self.cluster.admin_cluster(),
            Some(false) | None => Ok(self.cluster.cluster()),
        }
    }
}

/// A declared state with its provenance.
#[derive(Clone, Debug, Default)]
pub struct LocatedState<S> {
    /// The declared state.
    pub state: S,
    /// Provenance of the parts of the state, by JSON pointer.
    pub places: BTreeMap<String, SourceLocation>,
}

impl<S> LocatedState<S> {
    /// The shard with this state. `place` is the provenance of the shard itself.
    fn shard(self, target: Cluster, place: Option<SourceLocation>) -> Shard<Cluster, S> {
        let mut shard = Shard::new(target, self.state, place);
        shard.places.extend(self.places);
        shard
    }
}

/// A server, or one of its namespaces. The address is normalized, so that different spellings compare equal.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ServerTarget {
    address: String,
    namespace: Option<String>,
}

/// Builds the shards of an integration: one for each namespace, or one for each cluster.
pub struct ShardBuilder<S> {
    integration: &'static str,
    caller: Option<String>,
    declared: DeclaredState<(), Cluster, S>,
    servers: BTreeMap<ServerTarget, ShardKey>,
}

impl<S: Default> ShardBuilder<S> {
    /// A builder without shards, for this integration.
    pub fn new(integration: &'static str) -> Self {
        Self { integration, caller: None, declared: DeclaredState::new(()), servers: BTreeMap::new() }
    }

    /// Sets the caller of all shards.
    #[must_use]
    pub fn with_caller(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// The key of the shard of a namespace.
    fn key(&self, namespace: &NamespaceTarget) -> ShardKey {
        match &self.caller {
            None => namespace.key(),
            Some(caller) => {
                let key = namespace.key();
                ShardKey::new(key.parts().chain([(CALLER_DIMENSION, caller.as_str())]))
            }
        }
    }

    /// Adds a namespace with its declared state, or with the fault that prevented declaring it.
    pub fn add(&mut self, namespace: LocatedNamespace, state: Result<LocatedState<S>, Fault>) {
        let disabled = namespace.disabled(self.integration);
        let LocatedNamespace { target, place, .. } = namespace;
        let key = self.key(&target);
        self.label(&target.cluster, &key);
        self.locate(&target.cluster, &key);
        if let Err(why) = check_namespace_name(&target.name) {
            let place = place.map(|place| place.below("/name"));
            return self.declared.add_fault(key, Fault::author(why).at(place));
        }
        let address = normalize_key(&target.cluster.server_url);
        let server = ServerTarget { address, namespace: Some(target.name.clone()) };
        if self.is_duplicate(server, &key, place.as_ref()) {
            return;
        }
        let cluster = target.cluster().map_err(Fault::author);
        let shard = cluster.and_then(|cluster| Ok(state?.shard(cluster, place.clone())));
        let shard = ignore_fault_if(disabled.is_some(), shard, &target.cluster, place.as_ref());
        self.insert(key, place, disabled, shard);
    }

    /// Adds a namespace that is marked for deletion. Its objects are removed together with the namespace.
    pub fn skip_deleted(&mut self, namespace: LocatedNamespace) {
        let LocatedNamespace { target, place, .. } = namespace;
        let key = self.key(&target);
        self.label(&target.cluster, &key);
        self.locate(&target.cluster, &key);
        let by = format!("namespace `{}` (to be deleted)", target.name);
        let disabled = Some(DisabledReason { by, place: place.clone(), removes_target: true });
        let shard = LocatedState::<S>::default().shard(target.cluster.cluster(), place.clone());
        self.insert(key, place, disabled, Ok(shard));
    }

    /// Adds a whole cluster, for cluster-scoped objects.
    pub fn add_cluster(
        &mut self,
        cluster: &ClusterAccess,
        place: Option<SourceLocation>,
        state: Result<LocatedState<S>, Fault>,
    ) {
        let key = ShardKey::new([("cluster", cluster.name.as_str())]);
        self.label(cluster, &key);
        self.locate(cluster, &key);
        let disabled = cluster.disabled(self.integration, place.clone());
        let server = ServerTarget { address: normalize_key(&cluster.server_url), namespace: None };
        if self.is_duplicate(server, &key, place.as_ref()) {
            return;
        }
        let shard = state.map(|state| state.shard(cluster.cluster(), place.clone()));
        let shard = ignore_fault_if(disabled.is_some(), shard, cluster, place.as_ref());
        self.insert(key, place, disabled, shard);
    }

    fn label(&mut self, cluster: &ClusterAccess, key: &ShardKey) {
        if cluster.is_internal() {
            self.declared.label(INTERNAL, key.clone());
        }
    }

    fn locate(&mut self, cluster: &ClusterAccess, key: &ShardKey) {
        self.declared.target_keys.insert(key.clone(), cluster.target_key(key));
    }

    /// Whether the server, or its namespace, is already declared under another key. If so, reports an error,
    /// because two shards with one target would revert each other's changes.
    fn is_duplicate(&mut self, server: ServerTarget, key: &ShardKey, place: Option<&SourceLocation>) -> bool {
        let what = if server.namespace.is_none() { "cluster" } else { "namespace" };
        let Some(other) = self.servers.insert(server, key.clone()) else {
            return false;
        };
        if other == *key {
            return false;
        }
        let why = format!("`{other}` and `{key}` are the same {what}: their clusters have the same server");
        let other_place = self.declared.shards.get(&other).and_then(|shard| shard.places.get("").cloned());
        self.declared.add_fault(other, Fault::author(why.clone()).at(other_place));
        self.declared.add_fault(key.clone(), Fault::author(why).at(place.cloned()));
        true
    }

    fn insert(
        &mut self,
        key: ShardKey,
        place: Option<SourceLocation>,
        disabled: Option<DisabledReason>,
        shard: Result<Shard<Cluster, S>, Fault>,
    ) {
        match shard {
            Ok(shard) => self.declared.add(key, Shard { disabled, ..shard }),
            Err(fault) if fault.places.is_empty() => self.declared.add_fault(key, fault.at(place)),
            Err(fault) => self.declared.add_fault(key, fault),
        }
    }

    /// The declared state with all shards.
    pub fn finish(self) -> DeclaredState<(), Cluster, S> {
        self.declared
    }
}

/// The shard; if it is disabled and has a fault, an empty shard in its place. A disabled shard must exist,
/// because otherwise it counts as removed from the data, and its objects are removed.
fn ignore_fault_if<S: Default>(
    is_disabled: bool,
    shard: Result<Shard<Cluster, S>, Fault>,
    cluster: &ClusterAccess,
    place: Option<&SourceLocation>,
) -> Result<Shard<Cluster, S>, Fault> {
    match shard {
        Err(_) if is_disabled => Ok(LocatedState::default().shard(cluster.cluster(), place.cloned())),
        shard => shard,
    }
}

/// Builds one shard for each namespace of a query result, with the state that `declare` returns for it.
/// `declare` gets the namespace and its JSON pointer into the result. A namespace that is marked for deletion
/// is skipped.
pub fn in_namespaces<N, S: Default>(
    integration: &'static str,
    namespaces: Option<Vec<N>>,
    places: &SourceLocations,
    target: fn(&N) -> &NamespaceTarget,
    declare: impl Fn(&N, &str) -> Result<LocatedState<S>, Fault>,
) -> DeclaredState<(), Cluster, S> {
    let mut shards = ShardBuilder::new(integration);
    for (index, namespace) in namespaces.into_iter().flatten().enumerate() {
        let pointer = format!("/namespaces_v1/{index}");
        let located = LocatedNamespace::new(target(&namespace).clone(), places, &pointer);
        if located.target.is_marked_for_deletion() {
            shards.skip_deleted(located);
            continue;
        }
        shards.add(located, declare(&namespace, &pointer));
    }
    shards.finish()
}

/// Whether a name is a valid namespace name: a DNS label.
///
/// ```
/// use qontract_objects::check_namespace_name;
///
/// assert!(check_namespace_name("checkout-prod").is_ok());
/// let message = check_namespace_name("checkout_prod").unwrap_err();
/// assert_eq!(message, "`checkout_prod` is not a valid namespace name");
/// ```
pub fn check_namespace_name(name: &str) -> Result<(), String> {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    if !name.is_empty() && name.len() <= 63 && name.bytes().all(letters) && !ends {
        return Ok(());
    }
    Err(format!("`{name}` is not a valid namespace name"))
}
