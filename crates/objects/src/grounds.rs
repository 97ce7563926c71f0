//! The shards of a room that works in namespaces, or on clusters as such: one for each, with what keeps it from its work.

use std::collections::BTreeMap;

use qontract_client_kubernetes::Cluster;
use qontract_runtime::state::{Declared, Disabled, Shard};
use qontract_runtime::{Fault, OneByOne, Place, Places, ShardKey};

use crate::contact::Contact;
use crate::flags::INTERNAL;

/// A namespace, as the data of every room tells it.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Its cluster.
    pub contact: Contact,
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
        let cluster = self.contact.cluster.name.as_str();
        ShardKey::new([("cluster", cluster), ("namespace", self.namespace.as_str())])
    }
}

/// The shards of a room that works in namespaces, or on clusters as such.
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

    /// Adds a namespace with what is declared for it, or with what is wrong about that.
    pub fn add(&mut self, ground: Ground, state: Result<Stated<S>, Fault>) {
        let key = ground.key();
        self.label(&ground.contact, &key);
        let Ground { contact, namespace, is_external, is_admin, place, cluster_place } = ground;
        let disabled = contact.disabled(self.integration, cluster_place).or_else(|| {
            let by = format!("the namespace `{namespace}`: it is managed by others");
            is_external.then(|| Disabled { by, place: place.clone() })
        });
        if !is_name(&namespace) {
            let why = format!("`{namespace}` cannot be the name of a namespace");
            return self.declared.fault(key, Fault::author(why).at(place));
        }
        if self.is_twin((&contact, &namespace), &key, "namespace", place.as_ref()) {
            return;
        }
        let target = if is_admin { contact.as_admin() } else { Ok(contact.cluster) };
        let state = target.map_err(Fault::author).and_then(|target| Ok((target, state?)));
        self.insert(key, place, disabled, state);
    }

    /// Adds a namespace that is passed over, and why.
    pub fn pass_over(&mut self, ground: Ground, why: &str)
    where
        S: Default,
    {
        let (key, place) = (ground.key(), ground.place);
        self.label(&ground.contact, &key);
        let by = format!("the namespace `{}`: {why}", ground.namespace);
        let disabled = Some(Disabled { by, place: place.clone() });
        let state = Ok((ground.contact.cluster, (S::default(), BTreeMap::new())));
        self.insert(key, place, disabled, state);
    }

    /// Adds a whole cluster, for objects that are in no namespace.
    pub fn add_cluster(&mut self, contact: Contact, place: Option<Place>, state: Result<Stated<S>, Fault>) {
        let key = ShardKey::new([("cluster", contact.cluster.name.as_str())]);
        self.label(&contact, &key);
        let disabled = contact.disabled(self.integration, place.clone());
        if self.is_twin((&contact, ""), &key, "cluster", place.as_ref()) {
            return;
        }
        let state = state.map(|state| (contact.cluster, state));
        self.insert(key, place, disabled, state);
    }

    fn label(&mut self, contact: &Contact, key: &ShardKey) {
        if contact.is_internal {
            self.declared.label(INTERNAL, key.clone());
        }
    }

    /// Whether it is there already under another name, which is wrong: two of one server would undo each other's work in turns.
    fn is_twin(
        &mut self,
        (contact, namespace): (&Contact, &str),
        key: &ShardKey,
        what: &str,
        place: Option<&Place>,
    ) -> bool {
        let server = OneByOne::loosely(&contact.cluster.server);
        let Some(other) = self.servers.insert((server, namespace.to_owned()), key.clone()) else {
            return false;
        };
        if other == *key {
            return false;
        }
        let why = format!("`{other}` and `{key}` are the same {what}: their clusters have one server");
        let known = self.declared.shards.get(&other).and_then(|shard| shard.places.get("").cloned());
        self.declared.fault(other, Fault::author(why.clone()).at(known));
        self.declared.fault(key.clone(), Fault::author(why).at(place.cloned()));
        true
    }

    fn insert(
        &mut self,
        key: ShardKey,
        place: Option<Place>,
        disabled: Option<Disabled>,
        state: Result<(Cluster, Stated<S>), Fault>,
    ) {
        match state {
            Ok((target, (state, places))) => {
                let mut shard = Shard { disabled, ..Shard::new(target, state, place) };
                shard.places.extend(places);
                self.declared.add(key, shard);
            }
            // What is left alone is not judged either.
            Err(_) if disabled.is_some() => {}
            Err(fault) if fault.places.is_empty() => self.declared.fault(key, fault.at(place)),
            Err(fault) => self.declared.fault(key, fault),
        }
    }

    /// All of them.
    pub fn finish(self) -> Declared<(), Cluster, S> {
        self.declared
    }
}

/// A namespace of a room's own answer. [`reads_namespaces!`](crate::reads_namespaces) makes it one.
pub trait Grounded {
    /// The namespace, as all rooms see it; without its places.
    fn ground(&self) -> Ground;

    /// Whether the data wants it gone, and with it all that is in it.
    fn is_to_go(&self) -> bool;
}

/// What is declared for a shard, and where its parts come from, by JSON pointer.
pub type Stated<S> = (S, BTreeMap<String, Place>);

/// The shards of a room whose shards are namespaces: one for each, with what `declare` finds for it. It gets the namespace and its JSON pointer
/// into the answer. A namespace that is to go is passed over.
pub fn in_namespaces<N: Grounded, S: Default>(
    integration: &'static str,
    namespaces: Option<Vec<N>>,
    places: &Places,
    declare: impl Fn(&N, &str) -> Result<Stated<S>, Fault>,
) -> Declared<(), Cluster, S> {
    let mut grounds = Grounds::new(integration);
    for (index, namespace) in namespaces.into_iter().flatten().enumerate() {
        let pointer = format!("/namespaces_v1/{index}");
        let mut ground = namespace.ground();
        ground.place = places.of(&pointer);
        ground.cluster_place = places.of(&format!("{pointer}/cluster"));
        if namespace.is_to_go() {
            grounds.pass_over(ground, "it is to be removed");
            continue;
        }
        grounds.add(ground, declare(&namespace, &pointer));
    }
    grounds.finish()
}

/// Whether it can be the name of a namespace: a part of a host name.
fn is_name(name: &str) -> bool {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    !name.is_empty() && name.len() <= 63 && name.bytes().all(letters) && !ends
}
