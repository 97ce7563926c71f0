//! Reads desired and current state, with one list of namespaces per cluster.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{Cluster, Kind, Kubernetes, Object};
use qontract_objects::cluster_fault;
use qontract_runtime::{
    CurrentState, DeclaredShardView, DesiredItem, DesiredState, Fault, ObjectKey, Observed, ReadContext,
    Scope,
};

use crate::declare::DeclaredLabels;
use crate::plan::DesiredLabels;

/// One shard: a namespace.
type NamespaceView<'v> = DeclaredShardView<'v, (), Cluster, DeclaredLabels>;

/// The key of the list of namespaces in the cache of a round. The cluster includes the reference to the token,
/// because another token may have no access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamespaceListKey(Cluster);

impl NamespaceListKey {
    fn of(cluster: &Cluster) -> Self {
        Self(cluster.clone())
    }
}

/// The desired labels of a shard's namespace.
pub fn desired_labels(view: &NamespaceView<'_>) -> DesiredItem<DesiredLabels> {
    let (cluster, labels) = (view.shard.target.clone(), view.shard.state.0.clone());
    let (scope, name) = (scope(&cluster), name(view).to_owned());
    DesiredItem {
        object: ObjectKey { scope, kind: Kind::namespace().to_string(), name },
        place: view.shard.places.get("").cloned(),
        state: DesiredState::Present(DesiredLabels { cluster, labels }),
    }
}

/// The namespace of a shard, if it exists.
pub async fn observe(
    kubernetes: &dyn Kubernetes,
    read: &ReadContext,
    view: &NamespaceView<'_>,
) -> CurrentState<Object> {
    let cluster = &view.shard.target;
    let list = async {
        let listed = kubernetes.list(&read.permit, cluster, &Kind::namespace(), None).await;
        listed.map_err(|error| cluster_fault(&error))
    };
    // Many shards share a cluster, so the list is cached for the round.
    let listed = read.cache.get_or_read(NamespaceListKey::of(cluster), list).await;
    let observed = match &*listed {
        Ok(all) => {
            let own = all.iter().filter(|object| object.address.name == name(view));
            Observed::Known(own.cloned().collect())
        }
        Err(why) => Observed::Unknown(Fault::clone(why)),
    };
    BTreeMap::from([(scope(cluster), observed)])
}

fn name<'v>(view: &NamespaceView<'v>) -> &'v str {
    view.key.get("namespace").unwrap_or_default()
}

/// The scope of one list request.
fn scope(cluster: &Cluster) -> Scope {
    Scope::new([("cluster", cluster.name.as_str())])
}

#[cfg(test)]
mod tests {
    use qontract_client_kubernetes::TokenRef;

    use super::*;

    #[test]
    fn the_list_of_one_token_is_not_used_for_another() {
        let key = |path: &str| {
            let token = TokenRef { path: path.to_owned(), field: "token".to_owned(), version: None };
            let server = "https://c1.example.com".to_owned();
            NamespaceListKey::of(&Cluster { name: "c1".to_owned(), server, token: Some(token) })
        };
        assert_eq!(key("creds/one"), key("creds/one"));
        assert_ne!(key("creds/one"), key("creds/other"));
    }
}
