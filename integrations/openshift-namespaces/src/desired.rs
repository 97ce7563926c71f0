//! The namespace that a shard manages, and its desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::Kind;
use qontract_objects::{
    DeclaredObject, DesiredObject, ManagedKind, ManagedScope, ObjectShardView, ObjectState, ScopeSpec,
    Sensitivity,
};
use qontract_runtime::guard::Date;
use qontract_runtime::{DesiredItem, DesiredState, Fault};
use serde_json::json;

use crate::declare::DeclaredNamespace;

impl ObjectState for DeclaredNamespace {
    /// Only the namespace of the shard.
    fn scope_spec(shard: ObjectShardView<'_, Self>) -> ScopeSpec {
        let names = Some(BTreeSet::from([name(shard).to_owned()]));
        let kinds = vec![ManagedKind { kind: Kind::namespace(), names }];
        ScopeSpec { kinds, ..ScopeSpec::default() }
    }

    fn declared_objects(shard: ObjectShardView<'_, Self>) -> Vec<Option<DeclaredObject>> {
        let name = name(shard).to_owned();
        match &shard.shard.state {
            DeclaredNamespace::Delete => Vec::new(),
            DeclaredNamespace::Present => vec![Some(DeclaredObject { kind: Kind::namespace(), name })],
        }
    }

    fn desired(
        shard: ObjectShardView<'_, Self>,
        scope: &Arc<ManagedScope>,
        _: Date,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        let name = name(shard);
        let place = shard.shard.places.get("").cloned();
        Ok(vec![match &shard.shard.state {
            DeclaredNamespace::Delete => DesiredItem {
                object: scope.object_key(&Kind::namespace(), name),
                place,
                state: DesiredState::Delete,
            },
            DeclaredNamespace::Present => {
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                scope.desired_item(body, Sensitivity::Public, place)
            }
        }])
    }
}

fn name(shard: ObjectShardView<'_, DeclaredNamespace>) -> &str {
    shard.key.get("namespace").unwrap_or_default()
}
