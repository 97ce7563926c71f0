//! What is wanted of a namespace, and where namespaces are looked after.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kind};
use qontract_inventory::{Callers, Desired, Owner};
use qontract_objects::{Estate, Item, Managed};
use qontract_runtime::{Fault, View, Want, Wanted};
use serde_json::json;

use crate::NAME;
use crate::declare::Namespace;

/// The namespaces of a cluster that are wanted, or wanted gone. Others are nobody's business here.
pub fn estate(cluster: &Cluster, wanted: &[Want<Item>]) -> Arc<Estate> {
    of(cluster, wanted.iter().map(|want| want.thing.name.clone()).collect())
}

fn of(cluster: &Cluster, names: BTreeSet<String>) -> Arc<Estate> {
    Arc::new(Estate {
        cluster: cluster.clone(),
        namespace: None,
        kinds: vec![Managed { kind: Kind::namespace(), names: Some(names) }],
        owner: Arc::new(Owner::of(NAME, None).expect("its marks are in the table")),
        // It has no callers.
        callers: Arc::new(Callers::Unknown),
    })
}

/// What is wanted of the namespace of a shard.
pub fn want(view: &View<'_, (), Cluster, Namespace>) -> Want<Item> {
    let name = view.key.get("namespace").unwrap_or_default();
    let estate = of(&view.shard.target, BTreeSet::from([name.to_owned()]));
    let kind = Kind::namespace();
    let thing = estate.thing(&kind, name);
    let wanted = match &view.shard.state {
        Namespace::Delete => Wanted::Delete,
        Namespace::Present(labels) => {
            let mut body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            if !labels.is_empty() {
                body["metadata"]["labels"] = json!(labels);
            }
            match Desired::new(body) {
                Ok(desired) => {
                    let moved_from = BTreeSet::new();
                    Wanted::Present(Item { estate, kind, desired, is_sensitive: false, moved_from })
                }
                Err(why) => Wanted::Unresolved(Fault::author(why.to_string())),
            }
        }
    };
    Want { thing, place: view.shard.places.get("").cloned(), wanted }
}
