//! Reads the current state: one list request per kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, KindVersion, KubernetesError, ManagedFields, Object, ObjectAddress,
    ObjectVersion,
};
use qontract_inventory::{LiveBody, OwnerMark};
use qontract_runtime::{
    CurrentState, DesiredItem, DesiredState, Fault, Observed, ReadContext, TargetAddress,
};
use qontract_telemetry::activity;
use qontract_telemetry::measure::{Measurement, ObjectState};
use tokio::time::Instant;

use super::ObjectReconciler;
use super::fault::cluster_fault;
use crate::scope::{DesiredObject, ManagedKind, ManagedScope, WriteVersion};

/// Maximum number of kinds of one scope that are listed concurrently.
const MAX_CONCURRENT_LISTS: usize = 4;

/// An observed object.
#[derive(Clone, Debug)]
pub struct LiveObject {
    /// The scope in which the object is managed.
    pub managed_scope: Arc<ManagedScope>,
    /// The address.
    pub address: ObjectAddress,
    /// The version that was read.
    pub version: ObjectVersion,
    /// Ownership of the fields that affect the next write.
    pub field_ownership: FieldOwnership,
    /// Ownership of each field.
    pub managed_fields: ManagedFields,
    /// The whole object.
    pub live: LiveBody,
}

/// The key of a reachability check in the cache of a round. The cluster includes the reference to the token,
/// because another token may have access to other objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ReachabilityKey {
    cluster: Cluster,
}

/// The key of a list in the cache of a round. The cluster includes the reference to the token, because
/// another token may have access to other objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ListKey {
    cluster: Cluster,
    namespace: Option<String>,
    kind: Kind,
    api_version: Option<String>,
}

impl LiveObject {
    /// Whether the scope of the object manages it. If not, the object belongs to another owner.
    pub fn is_managed(&self) -> bool {
        self.managed_scope.manages(self.live.mark())
    }

    fn new(managed_scope: &Arc<ManagedScope>, object: Object) -> Self {
        let Object { address, version, field_ownership, managed_fields, body } = object;
        Self {
            managed_scope: Arc::clone(managed_scope),
            address,
            version,
            field_ownership,
            managed_fields,
            live: LiveBody::new(body),
        }
    }
}

impl ObjectReconciler {
    /// Observes the relevant objects of a scope: those that carry the mark of our integration, and those that
    /// are desired.
    pub async fn observe(
        &self,
        read: &ReadContext,
        managed_scope: &Arc<ManagedScope>,
        wanted: &[DesiredItem<DesiredObject>],
    ) -> CurrentState<LiveObject> {
        let mut current = CurrentState::new();
        if let Err(why) = self.check_reachable(read, managed_scope).await {
            let scopes = managed_scope.kinds.iter().map(|managed| managed_scope.kind_scope(&managed.kind));
            current.extend(scopes.map(|scope| (scope, Observed::Unknown(why.clone()))));
            return current;
        }
        let wrong = self.unmanageable_kinds(read, managed_scope).await;
        let mut lists: Vec<BoxFuture<'_, _>> = Vec::new();
        for managed in &managed_scope.kinds {
            let scope = managed_scope.kind_scope(&managed.kind);
            if let Some(why) = wrong.get(&managed.kind) {
                current.insert(scope, Observed::Unknown(why.clone()));
                continue;
            }
            let listing = self.list(read, managed_scope, managed, wanted);
            lists.push(listing.map(move |listed| (scope, managed, listed)).boxed());
        }
        let lists: Vec<_> =
            futures_util::stream::iter(lists).buffer_unordered(MAX_CONCURRENT_LISTS).collect().await;
        for (scope, managed, listed) in lists {
            let observed = match listed {
                Ok(objects) => {
                    let is_desired = |want: &&DesiredItem<DesiredObject>| {
                        want.object.scope == scope && !matches!(want.state, DesiredState::Delete)
                    };
                    let desired = wanted.iter().filter(is_desired).count();
                    record_count(managed_scope, managed, ObjectState::Current, objects.len());
                    record_count(managed_scope, managed, ObjectState::Desired, desired);
                    Observed::Known(
                        objects.into_iter().map(|object| LiveObject::new(managed_scope, object)).collect(),
                    )
                }
                Err(why) => Observed::Unknown(why),
            };
            current.insert(scope, observed);
        }
        self.add_workloads(read, managed_scope, wanted, &mut current).await;
        current
    }

    /// All objects of a kind in the namespace of a scope, regardless of their owner. The list is shared with `observe`.
    pub async fn live_objects(
        &self,
        read: &ReadContext,
        managed_scope: &ManagedScope,
        kind: KindVersion<'_>,
    ) -> Result<Vec<Object>, Fault> {
        self.check_reachable(read, managed_scope).await?;
        self.list_concerned(read, managed_scope, kind, |_| true).await
    }

    /// Checks whether the cluster responds. The result is cached for the round, so that only one request
    /// waits for the deadline of an unreachable cluster.
    async fn check_reachable(&self, read: &ReadContext, managed_scope: &ManagedScope) -> Result<(), Fault> {
        let cluster = &managed_scope.cluster;
        read.trust.check(&cluster_address(cluster))?;
        let probe = async {
            let served = self.kubernetes.api_resource(&read.permit, cluster, &Kind::namespace()).await;
            match served {
                Err(
                    error @ (KubernetesError::Unreachable { .. }
                    | KubernetesError::Credentials { .. }
                    | KubernetesError::Settings { .. }
                    | KubernetesError::Denied { .. }),
                ) => Err(cluster_fault(&error)),
                // Other errors are reported by the requests that they affect.
                Ok(_) | Err(_) => Ok(()),
            }
        };
        Result::clone(&*read.cache.get_or_read(ReachabilityKey { cluster: cluster.clone() }, probe).await)
    }

    /// Kinds that cannot be managed in this scope: listed twice, cluster-scoped although the scope has a
    /// namespace, or namespaced although the scope has no namespace.
    async fn unmanageable_kinds(
        &self,
        read: &ReadContext,
        managed_scope: &ManagedScope,
    ) -> BTreeMap<Kind, Fault> {
        let mut wrong = BTreeMap::new();
        let mut kinds_by_name: BTreeMap<(String, String), Kind> = BTreeMap::new();
        for ManagedKind { kind, names } in &managed_scope.kinds {
            // Other errors of a kind are reported when it is listed.
            let Ok(served) = self.kubernetes.api_resource(&read.permit, &managed_scope.cluster, kind).await
            else {
                continue;
            };
            let group = served.group().to_owned();
            if let Some(other) = kinds_by_name.insert((group, kind.name.clone()), kind.clone()) {
                let why = Fault::author(format!("`{other}` and `{kind}` are the same kind: list it once"));
                wrong.insert(other, why.clone());
                wrong.insert(kind.clone(), why);
            }
            let why = match (served.is_namespaced, &managed_scope.namespace) {
                (false, Some(_)) if names.is_none() => {
                    format!("{kind} is cluster-scoped: list the names that this namespace manages")
                }
                (true, None) => format!("{kind} is namespaced, but no namespace is named"),
                (true | false, _) => continue,
            };
            wrong.insert(kind.clone(), Fault::author(why));
        }
        wrong
    }

    async fn list(
        &self,
        read: &ReadContext,
        managed_scope: &ManagedScope,
        managed: &ManagedKind,
        wanted: &[DesiredItem<DesiredObject>],
    ) -> Result<Vec<Object>, Fault> {
        let scope = managed_scope.kind_scope(&managed.kind);
        let names: BTreeSet<&str> = wanted
            .iter()
            .filter(|want| want.object.scope == scope)
            .map(|want| want.object.name.as_str())
            .collect();
        let concerns = |object: &Object| {
            let name = object.address.name.as_str();
            let is_ours = || {
                managed_scope.manages(OwnerMark::of(&object.body).as_ref())
                    && managed.names.as_ref().is_none_or(|names| names.contains(name))
            };
            names.contains(name) || is_ours()
        };
        // The kind is read in the API version in which it is written, because another version of the kind may lack
        // declared fields.
        let declared = wanted.iter().find_map(|want| match &want.state {
            DesiredState::Present(item) if want.object.scope == scope => Some(item.desired.api_version()),
            DesiredState::Present(_) | DesiredState::Delete | DesiredState::Unresolved(_) => None,
        });
        let version = match managed_scope.write_version {
            WriteVersion::Declared => declared,
            WriteVersion::Preferred => None,
        };
        let kind = KindVersion { kind: &managed.kind, api_version: version };
        self.list_concerned(read, managed_scope, kind, concerns).await
    }

    /// Lists the objects of a kind, and returns those that concern the scope. If several shards may need the
    /// same list (cluster-scoped kinds, and namespaces that callers share), it is cached for the round.
    async fn list_concerned(
        &self,
        read: &ReadContext,
        managed_scope: &ManagedScope,
        kind: KindVersion<'_>,
        concerns: impl Fn(&Object) -> bool,
    ) -> Result<Vec<Object>, Fault> {
        if managed_scope.namespace.is_some() && !managed_scope.is_shared {
            let all = self.list_kind(read, managed_scope, kind).await?;
            return Ok(all.into_iter().filter(concerns).collect());
        }
        let cluster = &managed_scope.cluster;
        // The version that the list will have, so that a shard that declares no objects of the kind reads the
        // same list as a shard that declares some. The client caches discovery; errors of discovery are
        // reported when the kind is listed.
        let served = self.kubernetes.api_resource(&read.permit, cluster, kind.kind).await.ok();
        let is_served = |version: &&str| {
            served.as_ref().is_none_or(|served| served.versions.iter().any(|one| one == version))
        };
        let declared = kind.api_version.filter(is_served).map(str::to_owned);
        let key = ListKey {
            cluster: cluster.clone(),
            namespace: managed_scope.namespace.clone(),
            kind: kind.kind.clone(),
            api_version: declared.or_else(|| served.map(|served| served.api_version)),
        };
        let all = read.cache.get_or_read(key, self.list_kind(read, managed_scope, kind)).await;
        let all = all.as_ref().as_ref().map_err(Fault::clone)?;
        Ok(all.iter().filter(|object| concerns(object)).cloned().collect())
    }

    async fn list_kind(
        &self,
        read: &ReadContext,
        managed_scope: &ManagedScope,
        kind: KindVersion<'_>,
    ) -> Result<Vec<Object>, Fault> {
        let begun = Instant::now();
        let listed = self
            .kubernetes
            .list_version(&read.permit, &managed_scope.cluster, kind, managed_scope.namespace.as_deref())
            .await;
        activity::record_measurement(Measurement::Listed {
            cluster: managed_scope.cluster.name.clone(),
            kind: kind.kind.to_string(),
            took: begun.elapsed(),
        });
        match listed {
            Ok(objects) => Ok(objects),
            // The same change may create the kind, which has no objects until then.
            Err(KubernetesError::Unserved { .. }) => Ok(Vec::new()),
            Err(error) => Err(cluster_fault(&error)),
        }
    }

    /// Adds workloads to the current state if an object that they use is to be recycled.
    async fn add_workloads(
        &self,
        read: &ReadContext,
        managed_scope: &Arc<ManagedScope>,
        wanted: &[DesiredItem<DesiredObject>],
        current: &mut CurrentState<LiveObject>,
    ) {
        if managed_scope.namespace.is_none() || !super::recycle::may_restart(wanted, current) {
            return;
        }
        let mut workloads = BTreeMap::new();
        for kind in super::recycle::kinds() {
            let kind_version = KindVersion { kind: &kind, api_version: None };
            let listed = self.list_concerned(read, managed_scope, kind_version, |_| true).await;
            let observed = match listed {
                Ok(objects) => Observed::Known(
                    objects.into_iter().map(|object| LiveObject::new(managed_scope, object)).collect(),
                ),
                Err(why) => Observed::Unknown(why),
            };
            workloads.insert(super::recycle::workload_scope(managed_scope, &kind), observed);
        }
        current.extend(workloads);
    }
}

/// The address of a cluster, with the location of its token.
pub fn cluster_address(cluster: &Cluster) -> TargetAddress {
    TargetAddress::of(cluster.server.as_str(), cluster)
}

fn record_count(managed_scope: &ManagedScope, managed: &ManagedKind, state: ObjectState, count: usize) {
    activity::record_measurement(Measurement::Objects {
        cluster: managed_scope.cluster.name.clone(),
        namespace: managed_scope.namespace.clone().unwrap_or_default(),
        kind: managed.kind.to_string(),
        shard: activity::shard(),
        state,
        count,
    });
}
