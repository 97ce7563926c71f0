//! Declares namespaces.

use std::collections::BTreeMap;

use qontract_objects::{Declared, LocatedNamespace, LocatedState, NamespaceTarget, ShardBuilder};
use qontract_runtime::{Data, Fault};
use serde::Serialize;

use crate::NAME;
use crate::query::Namespaces;

/// The declared state of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclaredNamespace {
    /// The namespace is desired.
    #[default]
    Present,
    /// The namespace is to be removed.
    Delete,
}

/// Declares the namespaces of all clusters.
pub fn declare(data: &Data) -> Result<Declared<DeclaredNamespace>, Fault> {
    let answer = data.query::<Namespaces>()?;
    let mut shards = ShardBuilder::new(NAME);
    for (index, namespace) in answer.data.namespaces_v1.into_iter().flatten().enumerate() {
        let pointer = format!("/namespaces_v1/{index}");
        let state = match namespace.delete {
            Some(true) if is_system_namespace(&namespace.name) => {
                Err(format!("`{}` is a system namespace: it is not removed", namespace.name))
            }
            Some(true) => Ok(DeclaredNamespace::Delete),
            Some(false) | None => Ok(DeclaredNamespace::Present),
        };
        let target = NamespaceTarget {
            name: namespace.name,
            delete: namespace.delete,
            managed_by_external: namespace.managed_by_external,
            cluster_admin: None,
            cluster: namespace.cluster,
        };
        let located = LocatedNamespace::new(target, &answer.places, &pointer);
        let state = state.map(|state| LocatedState { state, places: BTreeMap::new() });
        shards.add(located, state.map_err(Fault::author));
    }
    Ok(shards.finish())
}

/// Whether a namespace belongs to the system.
fn is_system_namespace(name: &str) -> bool {
    matches!(name, "default" | "kube" | "openshift")
        || name.starts_with("kube-")
        || name.starts_with("openshift-")
}
