//! What is wanted of a namespace.

use std::sync::Arc;

use qontract_client_kubernetes::Kind;
use qontract_objects::{Estate, Item, Plot, Sensitivity};
use qontract_runtime::{Want, Wanted};
use serde_json::json;

use crate::declare::Namespace;

/// What is wanted of the namespace of a shard.
pub fn want(plot: Plot<'_, Namespace>, estate: &Arc<Estate>) -> Want<Item> {
    let name = plot.key.get("namespace").unwrap_or_default();
    let place = plot.shard.places.get("").cloned();
    match &plot.shard.state {
        Namespace::Delete => {
            Want { thing: estate.thing(&Kind::namespace(), name), place, wanted: Wanted::Delete }
        }
        Namespace::Present => {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            estate.want(body, Sensitivity::Public, place)
        }
    }
}
