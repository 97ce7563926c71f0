//! What the data says about namespaces.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{Cluster, TokenRef};
use qontract_runtime::state::{Declared, Disabled, Shard};
use qontract_runtime::{Data, Fault, ShardKey};
use serde::Serialize;
use serde_json::Value;

use crate::NAME;
use crate::query::{Namespaces, VaultSecret};

/// What is declared for a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// It is to be there, with these labels.
    Present(BTreeMap<String, String>),
    /// It is to be gone.
    Delete,
}

/// The namespaces of all clusters.
pub fn declare(data: &Data) -> Result<Declared<(), Cluster, Namespace>, Fault> {
    let answer = data.query::<Namespaces>()?;
    let mut declared = Declared::new(());
    let mut servers: BTreeMap<(String, String), ShardKey> = BTreeMap::new();
    for (index, namespace) in answer.data.namespaces_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/namespaces_v1/{index}"));
        let cluster = namespace.cluster;
        let key = ShardKey::new([("cluster", cluster.name.as_str()), ("namespace", namespace.name.as_str())]);
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
            token: cluster.automation_token.map(|VaultSecret { path, field, version }| TokenRef {
                path,
                field,
                version,
            }),
        };
        // Two clusters of one server would undo each other's work in turns.
        let server = target.server.trim_end_matches('/').to_lowercase();
        if let Some(other) = servers.insert((server, namespace.name.clone()), key.clone())
            && other != key
        {
            let why = format!("`{other}` and `{key}` are the same namespace: their clusters have one server");
            let known = declared.shards.get(&other).and_then(|shard| shard.places.get("").cloned());
            declared.fault(other, Fault::author(why.clone()).at(known));
            declared.fault(key, Fault::author(why).at(place));
            continue;
        }
        let state = match (namespace.delete, labels(namespace.labels.as_deref())) {
            _ if !is_name(&namespace.name) => {
                Err(format!("`{}` cannot be the name of a namespace", namespace.name))
            }
            (Some(true), _) if is_of_the_system(&namespace.name) => {
                Err(format!("the cluster cannot do without `{}`: it is not removed", namespace.name))
            }
            (Some(true), _) => Ok(Namespace::Delete),
            (_, labels) => labels.map(Namespace::Present),
        };
        let state = match state {
            Ok(state) => state,
            Err(why) => {
                declared.fault(key, Fault::author(why).at(place));
                continue;
            }
        };
        declared.add(key, Shard { disabled, ..Shard::new(target, state, place) });
    }
    Ok(declared)
}

/// Namespaces that a cluster cannot do without.
fn is_of_the_system(name: &str) -> bool {
    matches!(name, "default" | "kube" | "openshift")
        || name.starts_with("kube-")
        || name.starts_with("openshift-")
}

/// Whether it can be the name of a namespace: a part of a host name.
fn is_name(name: &str) -> bool {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    !name.is_empty() && name.len() <= 63 && name.bytes().all(letters) && !ends
}

/// The labels of a namespace, from their JSON: a map of texts.
fn labels(json: Option<&str>) -> Result<BTreeMap<String, String>, String> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let map = match serde_json::from_str(json) {
        Ok(Value::Null) => return Ok(BTreeMap::new()),
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => return Err("`labels` is no map".to_owned()),
    };
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        _ => Err(format!("the label `{name}` is no text")),
    };
    map.into_iter().map(text).collect()
}
