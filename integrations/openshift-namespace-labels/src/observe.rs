//! Desired and current state: one list of namespaces per cluster.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{Cluster, Kind, Kubernetes, Object};
use qontract_objects::fault;
use qontract_runtime::{Fault, Observed, Read, Scope, Thing, View, Want, Wanted, World};

use crate::declare::Labels;
use crate::plan::Item;

/// One shard: a namespace.
type Plot<'v> = View<'v, (), Cluster, Labels>;

/// The desired labels of a shard's namespace.
pub fn want(plot: &Plot<'_>) -> Want<Item> {
    let (cluster, labels) = (plot.shard.target.clone(), plot.shard.state.0.clone());
    let (scope, name) = (scope(&cluster), name(plot).to_owned());
    Want {
        thing: Thing { scope, kind: Kind::namespace().to_string(), name },
        place: plot.shard.places.get("").cloned(),
        wanted: Wanted::Present(Item { cluster, labels }),
    }
}

/// The namespace of a shard, if it exists.
pub async fn observe(kubernetes: &dyn Kubernetes, read: &Read, plot: &Plot<'_>) -> World<Object> {
    let cluster = &plot.shard.target;
    let list = async {
        let listed = kubernetes.list(&read.permit, cluster, &Kind::namespace(), None).await;
        listed.map_err(|error| fault(&error))
    };
    // Many shards share a cluster, so the list is cached for the round.
    let listed = read.memo.once(format!("namespaces {} {}", cluster.name, cluster.server), list).await;
    let observed = match &*listed {
        Ok(all) => {
            let own = all.iter().filter(|object| object.address.name == name(plot));
            Observed::Known(own.cloned().collect())
        }
        Err(why) => Observed::Unknown(Fault::clone(why)),
    };
    BTreeMap::from([(scope(cluster), observed)])
}

fn name<'v>(plot: &Plot<'v>) -> &'v str {
    plot.key.get("namespace").unwrap_or_default()
}

/// The scope of one list.
fn scope(cluster: &Cluster) -> Scope {
    Scope::new([("cluster", cluster.name.as_str())])
}
