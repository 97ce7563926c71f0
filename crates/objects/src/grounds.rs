//! The shards of a room that works in namespaces: one for each, with what keeps it from its work.

use std::collections::BTreeMap;

use qontract_client_kubernetes::Cluster;
use qontract_runtime::state::{Declared, Disabled, Shard};
use qontract_runtime::{Fault, Place, ShardKey};

use crate::reach::Reached;

/// A namespace, as the data of every room tells it.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Its cluster.
    pub reached: Reached,
    /// Its name.
    pub namespace: String,
    /// Whether others look after it.
    pub is_external: bool,
    /// Whether its objects take the cluster's administrator.
    pub is_admin: bool,
    /// Where it is declared.
    pub place: Option<Place>,
    /// Where its cluster is.
    pub cluster_place: Option<Place>,
}

impl Ground {
    /// The shard that it is.
    pub fn key(&self) -> ShardKey {
        let cluster = self.reached.cluster.name.as_str();
        ShardKey::new([("cluster", cluster), ("namespace", self.namespace.as_str())])
    }
}

/// The shards of a room that works in namespaces.
pub struct Grounds<S> {
    integration: &'static str,
    declared: Declared<(), Cluster, S>,
    servers: BTreeMap<(String, String), ShardKey>,
}

impl<S> Grounds<S> {
    /// None yet, for this integration.
    pub fn new(integration: &'static str) -> Self {
        Self { integration, declared: Declared::new(()), servers: BTreeMap::new() }
    }

    /// Adds a namespace with what is declared for it, or with what is wrong about that. `places` are of parts of the state, by JSON pointer.
    pub fn add(&mut self, ground: Ground, state: Result<S, Fault>, places: BTreeMap<String, Place>) {
        let key = ground.key();
        let Ground { reached, namespace, is_external, is_admin, place, cluster_place } = ground;
        let disabled = reached.disabled(self.integration, cluster_place).or_else(|| {
            let by = format!("the namespace `{namespace}`: it is managed by others");
            is_external.then(|| Disabled { by, place: place.clone() })
        });
        if !is_name(&namespace) {
            let why = format!("`{namespace}` cannot be the name of a namespace");
            return self.declared.fault(key, Fault::author(why).at(place));
        }
        // Two clusters of one server would undo each other's work in turns.
        let server = reached.cluster.server.trim_end_matches('/').to_lowercase();
        if let Some(other) = self.servers.insert((server, namespace), key.clone())
            && other != key
        {
            let why = format!("`{other}` and `{key}` are the same namespace: their clusters have one server");
            let known = self.declared.shards.get(&other).and_then(|shard| shard.places.get("").cloned());
            self.declared.fault(other, Fault::author(why.clone()).at(known));
            return self.declared.fault(key, Fault::author(why).at(place));
        }
        let target = if is_admin { reached.as_admin() } else { Ok(reached.cluster) };
        let state = target.map_err(Fault::author).and_then(|target| Ok((target, state?)));
        match state {
            Ok((target, state)) => {
                let mut shard = Shard { disabled, ..Shard::new(target, state, place) };
                shard.places.extend(places);
                self.declared.add(key, shard);
            }
            Err(fault) => self.declared.fault(key, fault.at(place)),
        }
    }

    /// All of them.
    pub fn finish(self) -> Declared<(), Cluster, S> {
        self.declared
    }
}

/// Whether it can be the name of a namespace: a part of a host name.
fn is_name(name: &str) -> bool {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    !name.is_empty() && name.len() <= 63 && name.bytes().all(letters) && !ends
}
