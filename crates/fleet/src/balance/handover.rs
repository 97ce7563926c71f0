//! Moves keys between slots: drain, acknowledged, start.
//!
//! Each slot has a configuration, the keys that its process has to run, with a generation. A key that moves is first
//! removed from the configuration of its slot (*drain*). When the slot has acknowledged a generation without the key
//! (*acknowledged*), the key is added to the configuration of the other slot (*start*).
//!
//! The state is stored, with a precondition on the stored version, before the processes see it. A process applies
//! only configurations that are newer than its own, and acknowledges a generation when it runs no key that this
//! generation does not contain.
//!
//! **Invariant:** no key is in the configuration of two slots, and none is started while another slot may still run
//! it; also if acknowledgements are late, repeated or lost, and if processes crash.

use super::BalanceError;
use super::assignment::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the stored form.
const VERSION: u32 = 1;

/// The configurations of all slots, and the keys that slots may still run.
///
/// As JSON: `{"version":1,"slots":{"0":{"generation":2,"keys":["a"],"draining":{"b":2}}}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    version: u32,
    slots: BTreeMap<u32, SlotConfiguration>,
}

/// What a slot has to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotConfiguration {
    /// Increases with every change.
    pub generation: u64,
    /// The keys to run.
    pub keys: BTreeSet<String>,
    /// Removed keys that the slot may still run, each with the first generation that does not contain it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub draining: BTreeMap<String, u64>,
}

/// A step of a handover.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandoverStep {
    /// The key was removed from the configuration of a slot, which has to acknowledge this.
    Drained {
        /// The shard key.
        key: String,
        /// The slot that ran the key.
        slot: u32,
    },
    /// The key was added to the configuration of a slot.
    Started {
        /// The shard key.
        key: String,
        /// The slot that now runs the key.
        slot: u32,
    },
    /// The key cannot start, because another slot has not acknowledged its removal.
    Waiting {
        /// The shard key.
        key: String,
        /// The slot that the key has to start in.
        slot: u32,
        /// The slot that has to acknowledge.
        draining: u32,
    },
}

impl Default for Handover {
    /// No slot runs anything.
    fn default() -> Self {
        Self { version: VERSION, slots: BTreeMap::new() }
    }
}

impl Handover {
    /// Rebuilds a lost state from an observation of what each slot runs, with the generation that it applied last.
    /// The observation must be complete: a slot that is missing is taken to run nothing. A key that several slots run
    /// stays in the first one, and drains from the others.
    pub fn from_observation(observed: BTreeMap<u32, SlotConfiguration>) -> Self {
        let mut claimed = BTreeSet::new();
        let mut handover = Self { version: VERSION, slots: observed };
        for configuration in handover.slots.values_mut() {
            let surplus: Vec<String> =
                configuration.keys.iter().filter(|key| !claimed.insert((*key).clone())).cloned().collect();
            configuration.remove(&surplus);
        }
        handover
    }

    /// Reads a stored state.
    pub fn from_json(text: &str) -> Result<Self, BalanceError> {
        let document = "handover";
        let stored: Self =
            serde_json::from_str(text).map_err(|cause| BalanceError::Read { document, cause })?;
        if stored.version != VERSION {
            return Err(BalanceError::Version { document, version: stored.version, supported: VERSION });
        }
        Ok(stored)
    }

    /// The stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a handover is plain data with text keys")
    }

    /// The configuration of each slot.
    pub fn configurations(&self) -> &BTreeMap<u32, SlotConfiguration> {
        &self.slots
    }

    /// Records that a slot applied a generation, and runs no key that this generation does not contain. Old and
    /// repeated acknowledgements change nothing; nor does one of a generation that does not exist yet. For a slot
    /// whose process is gone for good, the caller acknowledges the present generation once no process runs.
    pub fn acknowledge(&mut self, slot: u32, generation: u64) {
        if let Some(configuration) = self.slots.get_mut(&slot)
            && generation <= configuration.generation
        {
            configuration.draining.retain(|_, removed| *removed > generation);
        }
    }

    /// Changes the configurations toward an assignment, as far as acknowledgements allow, and returns the steps.
    pub fn advance(&mut self, wanted: &Assignment) -> Vec<HandoverStep> {
        let mut steps = Vec::new();
        for (slot, configuration) in &mut self.slots {
            let leaving: Vec<String> =
                configuration.keys.iter().filter(|key| wanted.slot_of(key) != Some(*slot)).cloned().collect();
            configuration.remove(&leaving);
            steps.extend(leaving.into_iter().map(|key| HandoverStep::Drained { key, slot: *slot }));
        }
        for (slot, keys) in wanted.keys_by_slot() {
            let mut starting = Vec::new();
            for key in keys {
                if self.slots.get(&slot).is_some_and(|configuration| configuration.keys.contains(key)) {
                    continue;
                }
                if let Some(draining) = self.draining_elsewhere(key, slot) {
                    steps.push(HandoverStep::Waiting { key: key.to_owned(), slot, draining });
                    continue;
                }
                starting.push(key.to_owned());
                steps.push(HandoverStep::Started { key: key.to_owned(), slot });
            }
            let configuration = self.slots.entry(slot).or_default();
            if !starting.is_empty() {
                configuration.generation += 1;
                configuration.draining.retain(|key, _| !starting.contains(key));
                configuration.keys.extend(starting);
            }
        }
        steps
    }

    /// Whether every key runs where it should, and no slot has to acknowledge anything.
    pub fn is_complete(&self, wanted: &Assignment) -> bool {
        let by_slot = wanted.keys_by_slot();
        let keys = |slot: &u32| by_slot.get(slot).cloned().unwrap_or_default();
        by_slot.keys().all(|slot| by_slot[slot].is_empty() || self.slots.contains_key(slot))
            && self.slots.iter().all(|(slot, configuration)| {
                configuration.draining.is_empty()
                    && configuration.keys.iter().map(String::as_str).eq(keys(slot))
            })
    }

    /// The slots whose process can be removed: the assignment does not have them, and they run nothing.
    pub fn removable_slots(&self, wanted: &Assignment) -> BTreeSet<u32> {
        let is_removable = |(slot, configuration): &(&u32, &SlotConfiguration)| {
            **slot >= wanted.slots() && configuration.keys.is_empty() && configuration.draining.is_empty()
        };
        self.slots.iter().filter(is_removable).map(|(slot, _)| *slot).collect()
    }

    /// Another slot that may still run a key, because it has not acknowledged the removal.
    fn draining_elsewhere(&self, key: &str, slot: u32) -> Option<u32> {
        let mut others = self.slots.iter().filter(|(other, _)| **other != slot);
        let is_blocked = |configuration: &SlotConfiguration| {
            configuration.keys.contains(key) || configuration.draining.contains_key(key)
        };
        others.find(|(_, configuration)| is_blocked(configuration)).map(|(other, _)| *other)
    }
}

impl SlotConfiguration {
    fn remove(&mut self, keys: &[String]) {
        if keys.is_empty() {
            return;
        }
        self.generation += 1;
        for key in keys {
            self.keys.remove(key);
            self.draining.insert(key.clone(), self.generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Handover, HandoverStep, SlotConfiguration};
    use crate::balance::{Assignment, Placement, PlacementReason};
    use std::collections::BTreeMap;

    fn assignment(slots: u32, keys: &[(&str, u32)]) -> Assignment {
        let place = |slot| Placement { slot, from: None, reason: PlacementReason::NewKey };
        Assignment::new(slots, keys.iter().map(|(key, slot)| ((*key).to_owned(), place(*slot))).collect())
            .unwrap()
    }

    fn drained(key: &str, slot: u32) -> HandoverStep {
        HandoverStep::Drained { key: key.to_owned(), slot }
    }

    fn started(key: &str, slot: u32) -> HandoverStep {
        HandoverStep::Started { key: key.to_owned(), slot }
    }

    fn waiting(key: &str, slot: u32, draining: u32) -> HandoverStep {
        HandoverStep::Waiting { key: key.to_owned(), slot, draining }
    }

    #[test]
    fn a_key_starts_only_after_its_slot_has_acknowledged_the_drain() {
        let (before, after) = (assignment(2, &[("a", 0), ("b", 0)]), assignment(2, &[("a", 0), ("b", 1)]));
        let mut handover = Handover::default();
        assert_eq!(handover.advance(&before), [started("a", 0), started("b", 0)]);
        assert!(handover.is_complete(&before) && !handover.is_complete(&after));
        assert_eq!(handover.advance(&after), [drained("b", 0), waiting("b", 1, 0)]);
        assert_eq!(handover.advance(&after), [waiting("b", 1, 0)]);
        // An acknowledgement of the configuration before the drain, and one of a generation that does not exist.
        for generation in [0, 1, 3] {
            handover.acknowledge(0, generation);
            assert_eq!(handover.advance(&after), [waiting("b", 1, 0)]);
        }
        handover.acknowledge(0, 2);
        assert!(!handover.is_complete(&after));
        assert_eq!(handover.advance(&after), [started("b", 1)]);
        assert!(handover.is_complete(&after));
        assert_eq!(handover.advance(&after), []);
    }

    #[test]
    fn a_key_that_returns_to_its_slot_does_not_wait() {
        let (before, after) = (assignment(2, &[("a", 0)]), assignment(2, &[("a", 1)]));
        let mut handover = Handover::default();
        handover.advance(&before);
        handover.advance(&after);
        assert_eq!(handover.advance(&before), [started("a", 0)]);
        assert!(handover.is_complete(&before));
        // The drain was withdrawn, so its acknowledgement does not count for the next one.
        handover.advance(&after);
        handover.acknowledge(0, 2);
        assert_eq!(handover.advance(&after), [waiting("a", 1, 0)]);
    }

    #[test]
    fn a_removed_key_drains_and_its_slot_can_be_removed_afterwards() {
        let (before, after) = (assignment(2, &[("a", 0), ("b", 1)]), assignment(1, &[("a", 0)]));
        let mut handover = Handover::default();
        handover.advance(&before);
        assert_eq!(handover.advance(&after), [drained("b", 1)]);
        assert_eq!(handover.removable_slots(&after), [].into());
        handover.acknowledge(1, 2);
        assert_eq!(handover.removable_slots(&after), [1].into());
        assert!(handover.is_complete(&after));
    }

    #[test]
    fn a_lost_state_is_rebuilt_without_running_a_key_twice() {
        let observed = |generation, keys: &[&str]| SlotConfiguration {
            generation,
            keys: keys.iter().map(ToString::to_string).collect(),
            draining: BTreeMap::new(),
        };
        let mut handover =
            Handover::from_observation([(0, observed(4, &["a", "b"])), (1, observed(7, &["b"]))].into());
        let wanted = assignment(2, &[("a", 0), ("b", 1)]);
        assert_eq!(handover.advance(&wanted), [drained("b", 0), waiting("b", 1, 0)]);
        handover.acknowledge(0, 5);
        assert_eq!(handover.advance(&wanted), [started("b", 1)]);
        assert_eq!(handover.configurations()[&1].generation, 9);
    }

    #[test]
    fn the_stored_form_is_the_documented_one() {
        let mut handover = Handover::default();
        handover.advance(&assignment(1, &[("a", 0), ("b", 0)]));
        handover.advance(&assignment(1, &[("a", 0)]));
        let text = r#"{"version":1,"slots":{"0":{"generation":2,"keys":["a"],"draining":{"b":2}}}}"#;
        assert_eq!(handover.to_json(), text);
        assert_eq!(Handover::from_json(text).unwrap(), handover);
        let newer = Handover::from_json(r#"{"version":2,"slots":{}}"#).unwrap_err().to_string();
        assert_eq!(newer, "the stored handover has version 2, and this program reads version 1");
    }
}
