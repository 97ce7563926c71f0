//! The namespace that a shard manages, and its desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::Kind;
use qontract_objects::{
    DesiredObject, ManagedKind, ManagedScope, ObjectState, ScopeSpec, Sensitivity, ShardView,
};
use qontract_runtime::guard::Date;
use qontract_runtime::{Fault, Want, Wanted};
use serde_json::json;

use crate::declare::Namespace;

impl ObjectState for Namespace {
    /// The namespace of the shard only.
    fn scope(shard: ShardView<'_, Self>) -> ScopeSpec {
        let names = Some(BTreeSet::from([name(shard).to_owned()]));
        let kinds = vec![ManagedKind { kind: Kind::namespace(), names }];
        ScopeSpec { namespace: None, kinds, adopts_unmarked: false }
    }

    fn wants(
        shard: ShardView<'_, Self>,
        scope: &Arc<ManagedScope>,
        _: Date,
    ) -> Result<Vec<Want<DesiredObject>>, Fault> {
        let name = name(shard);
        let place = shard.shard.places.get("").cloned();
        Ok(vec![match &shard.shard.state {
            Namespace::Delete => {
                Want { thing: scope.thing(&Kind::namespace(), name), place, wanted: Wanted::Delete }
            }
            Namespace::Present => {
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                scope.want(body, Sensitivity::Public, place)
            }
        }])
    }
}

fn name(shard: ShardView<'_, Namespace>) -> &str {
    shard.key.get("namespace").unwrap_or_default()
}
