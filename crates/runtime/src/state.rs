//! Declared state: the state that follows from the data alone. It is pure, cheap to compute, and comparable.
//!
//! **Invariant:** provenance is never part of a digest: moving a declaration to another file does not change the
//! state. List order is significant; an integration for which the order has no meaning uses a `BTreeSet` or sorts the
//! list.

mod comparison;
mod consent;
mod digest;

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::Sha256;
use serde::Serialize;

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::source_location::SourceLocation;

pub use comparison::{Comparison, Difference, MAX_DIFFERENCES, compare};
pub use consent::RemovalConsent;
pub use digest::digest;

/// The declared state of one shard with the address of its target.
#[derive(Clone, Debug)]
pub struct Shard<T, S> {
    /// The address of the target. It must suffice for observing the target even if the data no longer declares
    /// anything in it.
    pub target: T,
    /// The declared state.
    pub state: S,
    /// Provenance: maps JSON pointers into the state to source locations. The longest matching pointer takes
    /// precedence.
    pub places: BTreeMap<String, SourceLocation>,
    /// The reason why the data disables the integration for this shard; `None` if it is enabled.
    pub disabled: Option<DisabledReason>,
    /// The removals that the data approves as a whole for this shard.
    pub removal_consent: RemovalConsent,
}

/// The reason why an integration is disabled for a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledReason {
    /// A description of the object that disables the integration: ``cluster `c1` ``.
    pub by: String,
    /// The source location.
    pub place: Option<SourceLocation>,
    /// Whether the data removes the target of the shard, and the objects together with the target.
    pub removes_target: bool,
}

impl DisabledReason {
    /// Disables the integration for a shard whose objects stay in the target.
    pub fn new(by: impl Into<String>, place: Option<SourceLocation>) -> Self {
        Self { by: by.into(), place, removes_target: false }
    }
}

impl<T, S> Shard<T, S> {
    /// Creates a shard with one source location, if known.
    pub fn new(target: T, state: S, place: Option<SourceLocation>) -> Self {
        let places = place.into_iter().map(|place| (String::new(), place)).collect();
        Self { target, state, places, disabled: None, removal_consent: RemovalConsent::default() }
    }

    /// Sets the removals that the declaration of the shard approves as a whole.
    #[must_use]
    pub fn consent_to_removals(mut self, consent: RemovalConsent) -> Self {
        self.removal_consent = consent;
        self
    }

    /// The source location of a part of the state: the location of the longest pointer at or above `pointer`.
    ///
    /// ```
    /// use qontract_runtime::SourceLocation;
    /// use qontract_runtime::state::Shard;
    ///
    /// let file = SourceLocation::datafile("/apps/shop.yml", "");
    /// let mut shard = Shard::new((), ["small", "large"], Some(file.clone()));
    /// shard.places.insert("/1".to_owned(), file.below("/sizes/1"));
    /// assert_eq!(shard.place("/1/name").map(|place| &*place.pointer), Some("/sizes/1"));
    /// assert_eq!(shard.place("/0"), Some(&file));
    /// ```
    pub fn place(&self, pointer: &str) -> Option<&SourceLocation> {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return Some(place);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

/// The declared state of an integration, by shard key.
///
/// ```
/// use qontract_runtime::ShardKey;
/// use qontract_runtime::state::{DeclaredState, Shard};
///
/// let mut declared = DeclaredState::new(());
/// for (app, limit) in [("shop", 5), ("billing", 8), ("shop", 6)] {
///     let target = format!("https://{app}.example.com");
///     declared.add(ShardKey::new([("app", app)]), Shard::new(target, limit, None));
/// }
/// // The shard with a conflict is reported; the others are processed.
/// assert_eq!(declared.shards.keys().map(ToString::to_string).collect::<Vec<_>>(), ["app=billing"]);
/// let fault = &declared.faults[&ShardKey::new([("app", "shop")])][0];
/// assert_eq!(fault.text, "`app=shop` is declared more than once");
/// ```
#[derive(Clone, Debug)]
pub struct DeclaredState<C, T, S> {
    /// The state that all shards share.
    pub common: C,
    /// The shards, by key.
    pub shards: BTreeMap<ShardKey, Shard<T, S>>,
    /// Faults of shards whose declaration is invalid. These shards are skipped; the others are processed.
    pub faults: BTreeMap<ShardKey, Vec<Fault>>,
    /// Labels by which flags select shards, each with the shards that have the label.
    pub labels: BTreeMap<&'static str, BTreeSet<ShardKey>>,
    /// The keys of shards, including invalid ones, with the addresses of their targets instead of names. Two shards
    /// with equal target keys have the same objects, even if the data has renamed the target.
    pub target_keys: BTreeMap<ShardKey, ShardKey>,
}

impl<C, T, S> DeclaredState<C, T, S> {
    /// Creates a state without shards.
    pub fn new(common: C) -> Self {
        let (shards, faults) = (BTreeMap::new(), BTreeMap::new());
        Self { common, shards, faults, labels: BTreeMap::new(), target_keys: BTreeMap::new() }
    }

    /// Adds a label to a shard, for flags that select shards by the label.
    pub fn label(&mut self, label: &'static str, key: ShardKey) {
        self.labels.entry(label).or_default().insert(key);
    }

    /// Whether a shard has a label.
    pub fn has_label(&self, label: &str, key: &ShardKey) -> bool {
        self.labels.get(label).is_some_and(|keys| keys.contains(key))
    }

    /// Adds a shard. If two shards have the same key, a fault is recorded, and neither shard is processed.
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

impl<C, T, S> DeclaredState<C, T, S> {
    /// Adds a fault to a shard, which is then not processed.
    pub fn add_fault(&mut self, key: ShardKey, fault: Fault) {
        self.shards.remove(&key);
        self.faults.entry(key).or_default().push(fault);
    }
}

/// The digests of a declared state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// The digest of the common state.
    pub common: Sha256,
    /// The digest of each shard's target, state and labels.
    pub shards: BTreeMap<ShardKey, Sha256>,
}

impl<C: Serialize, T: Serialize, S: Serialize> DeclaredState<C, T, S> {
    /// Computes the digests while serialising, so that the serialised state is never held in memory.
    pub fn digests(&self) -> Digests {
        let texts = |faults: &[Fault]| faults.iter().map(|fault| fault.text.clone()).collect::<Vec<_>>();
        let faulty: Vec<(&ShardKey, Vec<String>)> =
            self.faults.iter().map(|(key, faults)| (key, texts(faults))).collect();
        let common = digest(&(&self.common, faulty));
        let of = |key: &ShardKey, shard: &Shard<T, S>| {
            let disabled = shard.disabled.as_ref().map(|disabled| &disabled.by);
            let labels = self.labels.keys().filter(|label| self.has_label(label, key));
            let labels: Vec<_> = labels.collect();
            digest(&(&shard.target, &shard.state, disabled, labels, &shard.removal_consent))
        };
        let shards = self.shards.iter().map(|(key, shard)| (key.clone(), of(key, shard))).collect();
        Digests { common, shards }
    }
}
