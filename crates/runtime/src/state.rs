//! Declared state: what the data alone says. Pure, cheap, comparable.
//!
//! **Invariant:** provenance is never part of a digest: a state that moves to another file is the same state. List
//! order matters; a room for which it does not keeps a `BTreeSet` or sorts.

mod compare;
mod digest;

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::Sha256;
use serde::Serialize;

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::place::Place;

pub use compare::{Comparison, Difference, compare};
pub use digest::digest;

/// What one shard is to be, and how to reach it.
#[derive(Clone, Debug)]
pub struct Shard<T, S> {
    /// How to reach the target: what is needed to observe it even when nothing is wanted there any more.
    pub target: T,
    /// What is declared.
    pub state: S,
    /// Where the state comes from: JSON pointer into it ↦ place. The longest pointer that fits counts.
    pub places: BTreeMap<String, Place>,
    /// Set if the data switches the integration off for this shard: where it says so.
    pub disabled: Option<Disabled>,
}

/// The data says that an integration is not to touch something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// What says so, in words: ``cluster `c1` ``.
    pub by: String,
    /// Where.
    pub place: Option<Place>,
}

impl<T, S> Shard<T, S> {
    /// A shard that comes from one place, if that is known.
    pub fn new(target: T, state: S, place: Option<Place>) -> Self {
        let places = place.into_iter().map(|place| (String::new(), place)).collect();
        Self { target, state, places, disabled: None }
    }

    /// Where a part of the state comes from: the place of the longest pointer at or above it.
    pub fn place(&self, pointer: &str) -> Option<&Place> {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return Some(place);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

/// What the data says, per shard key.
#[derive(Clone, Debug)]
pub struct Declared<C, T, S> {
    /// What matters to every shard.
    pub common: C,
    /// The shards.
    pub shards: BTreeMap<ShardKey, Shard<T, S>>,
    /// What is wrong with some shards, which are left out; the others go on.
    pub faults: BTreeMap<ShardKey, Vec<Fault>>,
    /// Labels that flags select shards by, each with the shards that have it.
    pub labels: BTreeMap<&'static str, BTreeSet<ShardKey>>,
}

impl<C, T, S> Declared<C, T, S> {
    /// Nothing but what is common.
    pub fn new(common: C) -> Self {
        Self { common, shards: BTreeMap::new(), faults: BTreeMap::new(), labels: BTreeMap::new() }
    }

    /// Labels a shard, for flags that select by it.
    pub fn label(&mut self, label: &'static str, key: ShardKey) {
        self.labels.entry(label).or_default().insert(key);
    }

    /// Whether a shard has a label.
    pub fn has_label(&self, label: &str, key: &ShardKey) -> bool {
        self.labels.get(label).is_some_and(|keys| keys.contains(key))
    }

    /// Adds a shard. A second one of the same key makes both wrong: neither is processed.
    pub fn add(&mut self, key: ShardKey, shard: Shard<T, S>) {
        let place = |shard: &Shard<T, S>| shard.places.get("").cloned();
        if let Some(faults) = self.faults.get_mut(&key) {
            if let Some(fault) = faults.first_mut() {
                fault.places.extend(place(&shard));
            }
            return;
        }
        if let Some(first) = self.shards.remove(&key) {
            let fault = Fault::author(format!("`{key}` is declared more than once"))
                .hint("keep one of the files")
                .at(place(&first))
                .at(place(&shard));
            self.faults.insert(key, vec![fault]);
            return;
        }
        self.shards.insert(key, shard);
    }
}

impl<C, T, S> Declared<C, T, S> {
    /// Tells what is wrong with a shard, which is not processed then.
    pub fn fault(&mut self, key: ShardKey, fault: Fault) {
        self.shards.remove(&key);
        self.faults.entry(key).or_default().push(fault);
    }
}

/// The digests of declared state, without the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Of what matters to every shard.
    pub common: Sha256,
    /// Per shard, of its target, its state and its labels.
    pub shards: BTreeMap<ShardKey, Sha256>,
}

impl<C: Serialize, T: Serialize, S: Serialize> Declared<C, T, S> {
    /// The digests of the state, made as it is written out: the text of it is never held.
    pub fn digests(&self) -> Digests {
        let texts = |faults: &[Fault]| faults.iter().map(|fault| fault.text.clone()).collect::<Vec<_>>();
        let faulty: Vec<(&ShardKey, Vec<String>)> =
            self.faults.iter().map(|(key, faults)| (key, texts(faults))).collect();
        let common = digest(&(&self.common, faulty));
        let of = |key: &ShardKey, shard: &Shard<T, S>| {
            let disabled = shard.disabled.as_ref().map(|disabled| &disabled.by);
            let labels = self.labels.keys().filter(|label| self.has_label(label, key));
            digest(&(&shard.target, &shard.state, disabled, labels.collect::<Vec<_>>()))
        };
        let shards = self.shards.iter().map(|(key, shard)| (key.clone(), of(key, shard))).collect();
        Digests { common, shards }
    }
}
