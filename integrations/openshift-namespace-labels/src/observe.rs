//! Desired and current state: one list of namespaces per cluster.

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

/// The desired labels of a shard's namespace.
pub fn desired_labels(plot: &NamespaceView<'_>) -> DesiredItem<DesiredLabels> {
    let (cluster, labels) = (plot.shard.target.clone(), plot.shard.state.0.clone());
    let (scope, name) = (scope(&cluster), name(plot).to_owned());
    DesiredItem {
        object: ObjectKey { scope, kind: Kind::namespace().to_string(), name },
        place: plot.shard.places.get("").cloned(),
        state: DesiredState::Present(DesiredLabels { cluster, labels }),
    }
}

/// The namespace of a shard, if it exists.
pub async fn observe(
    kubernetes: &dyn Kubernetes,
    read: &ReadContext,
    plot: &NamespaceView<'_>,
) -> CurrentState<Object> {
    let cluster = &plot.shard.target;
    let list = async {
        let listed = kubernetes.list(&read.permit, cluster, &Kind::namespace(), None).await;
        listed.map_err(|error| cluster_fault(&error))
    };
    // Many shards share a cluster, so the list is cached for the round.
    let listed =
        read.cache.get_or_read(format!("namespaces {} {}", cluster.name, cluster.server), list).await;
    let observed = match &*listed {
        Ok(all) => {
            let own = all.iter().filter(|object| object.address.name == name(plot));
            Observed::Known(own.cloned().collect())
        }
        Err(why) => Observed::Unknown(Fault::clone(why)),
    };
    BTreeMap::from([(scope(cluster), observed)])
}

fn name<'v>(plot: &NamespaceView<'v>) -> &'v str {
    plot.key.get("namespace").unwrap_or_default()
}

/// The scope of one list.
fn scope(cluster: &Cluster) -> Scope {
    Scope::new([("cluster", cluster.name.as_str())])
}
