//! What is wanted, and what is there.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{Address, Cluster, Kind, Kubernetes};
use qontract_runtime::{Fault, Observed, Read, Scope, Thing, View, Want, Wanted, World};

use crate::declare::Namespace;
use crate::plan::Seen;

/// What is wanted of the namespace of a shard.
pub fn want(view: &View<'_, (), Cluster, Namespace>) -> Want<Cluster> {
    let cluster = &view.shard.target;
    let name = view.key.get("namespace").unwrap_or_default().to_owned();
    Want {
        thing: Thing { scope: scope(cluster), kind: Kind::Namespace.to_string(), name },
        place: view.shard.places.get("").cloned(),
        wanted: match view.shard.state {
            Namespace::Present => Wanted::Present(cluster.clone()),
            Namespace::Delete => Wanted::Delete,
        },
    }
}

/// The namespaces that are wanted or wanted gone, as far as they are there. Others are not ours.
pub async fn observe(
    kubernetes: &dyn Kubernetes,
    read: &Read,
    cluster: &Cluster,
    wanted: &[Want<Cluster>],
) -> Result<World<Seen>, Fault> {
    let mut found = Vec::new();
    for want in wanted {
        let address = Address::of_cluster(Kind::Namespace, want.thing.name.clone());
        match kubernetes.get(&read.permit, cluster, &address).await {
            Ok(object) => found.extend(object.map(|object| Seen { cluster: cluster.clone(), object })),
            Err(error) => {
                let fault = fault(&error);
                return Ok(BTreeMap::from([(scope(cluster), Observed::Unknown(fault))]));
            }
        }
    }
    Ok(BTreeMap::from([(scope(cluster), Observed::Known(found))]))
}

fn scope(cluster: &Cluster) -> Scope {
    Scope::new([("cluster", cluster.name.as_str())])
}

/// Whose move it is when a cluster fails.
pub fn fault(error: &qontract_client_kubernetes::KubernetesError) -> Fault {
    if error.is_transient() { Fault::remote(error.told()) } else { Fault::operator(error.told()) }
}
