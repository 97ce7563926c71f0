//! What the data says about namespaces.

use qontract_client_kubernetes::Cluster;
use qontract_runtime::state::{Declared, Disabled, Shard};
use qontract_runtime::{Data, Fault, ShardKey};
use serde::Serialize;

use crate::NAME;
use crate::query::Namespaces;

/// What is declared for a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// It is to be there.
    Present,
    /// It is to be gone.
    Delete,
}

/// The namespaces of all clusters.
pub fn declare(data: &Data) -> Result<Declared<(), Cluster, Namespace>, Fault> {
    let answer = data.query::<Namespaces>()?;
    let mut declared = Declared::new(());
    for (index, namespace) in answer.data.namespaces_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/namespaces_v1/{index}"));
        let cluster = namespace.cluster;
        let key = ShardKey::new([("cluster", cluster.name.as_str()), ("namespace", namespace.name.as_str())]);
        let state = if namespace.delete == Some(true) { Namespace::Delete } else { Namespace::Present };
        let off = cluster.disable.and_then(|disable| disable.integrations).unwrap_or_default();
        let disabled = if off.iter().any(|name| name == NAME) {
            let place = answer.places.of(&format!("/namespaces_v1/{index}/cluster"));
            Some(Disabled { by: format!("the cluster `{}`", cluster.name), place })
        } else if namespace.managed_by_external == Some(true) {
            let by = format!("the namespace `{}`: it is managed by others", namespace.name);
            Some(Disabled { by, place: place.clone() })
        } else {
            None
        };
        let target = Cluster {
            name: cluster.name,
            server: cluster.server_url,
            token: cluster.automation_token.map(|token| (token.path, token.field)),
        };
        declared.add(key, Shard { disabled, ..Shard::new(target, state, place) });
    }
    Ok(declared)
}
