//! The assignment of shard keys to slots, as it is stored.

use super::BalanceError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the stored form.
const VERSION: u32 = 1;

/// Which slot runs which shard keys.
///
/// As JSON: `{"version":1,"slots":2,"keys":{"account=a":{"slot":0,"reason":"new-key"}}}`. A key that was moved
/// also has the field `from`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    version: u32,
    slots: u32,
    keys: BTreeMap<String, Placement>,
}

/// The slot of a key, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The slot.
    pub slot: u32,
    /// The slot that the key was moved from; `None` for a key that was never moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Why the key was put into its slot.
    pub reason: PlacementReason,
}

/// Why a key was put into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementReason {
    /// The key was new, and the slot had the lowest load.
    NewKey,
    /// The previous slot of the key was removed.
    SlotRemoved,
    /// The slot was new, and had to be filled.
    SlotAdded,
    /// The move improved the balance.
    Balance,
}

impl PlacementReason {
    /// The reason as a clause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewKey => "the key was new",
            Self::SlotRemoved => "its previous slot was removed",
            Self::SlotAdded => "the slot was added",
            Self::Balance => "the move improved the balance",
        }
    }
}

impl Default for Assignment {
    /// No slots, and no keys.
    fn default() -> Self {
        Self { version: VERSION, slots: 0, keys: BTreeMap::new() }
    }
}

impl Assignment {
    /// An assignment of keys to slots. **Invariant:** no key is in a slot that does not exist.
    pub fn new(slots: u32, keys: BTreeMap<String, Placement>) -> Result<Self, BalanceError> {
        match keys.iter().find(|(_, placement)| placement.slot >= slots) {
            Some((key, placement)) => {
                Err(BalanceError::Slot { key: key.clone(), slot: placement.slot, slots })
            }
            None => Ok(Self { version: VERSION, slots, keys }),
        }
    }

    /// Reads a stored assignment.
    pub fn from_json(text: &str) -> Result<Self, BalanceError> {
        let document = "assignment";
        let stored: Self =
            serde_json::from_str(text).map_err(|cause| BalanceError::Read { document, cause })?;
        if stored.version != VERSION {
            let supported = VERSION;
            return Err(BalanceError::Version { document, version: stored.version, supported });
        }
        Self::new(stored.slots, stored.keys)
    }

    /// The stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an assignment is plain data with text keys")
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// All keys with their slots.
    pub fn placements(&self) -> &BTreeMap<String, Placement> {
        &self.keys
    }

    /// The slot of a key.
    pub fn slot_of(&self, key: &str) -> Option<u32> {
        self.keys.get(key).map(|placement| placement.slot)
    }

    /// The keys of each slot; a slot without keys has an empty set.
    pub fn keys_by_slot(&self) -> BTreeMap<u32, BTreeSet<&str>> {
        let mut slots: BTreeMap<u32, BTreeSet<&str>> =
            (0..self.slots).map(|slot| (slot, BTreeSet::new())).collect();
        for (key, placement) in &self.keys {
            slots.entry(placement.slot).or_default().insert(key);
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::{Assignment, Placement, PlacementReason};

    #[test]
    fn the_stored_form_is_the_documented_one() {
        let placement = Placement { slot: 0, from: None, reason: PlacementReason::NewKey };
        let moved = Placement { slot: 1, from: Some(0), reason: PlacementReason::SlotAdded };
        let keys = [("account=a".to_owned(), placement), ("account=b".to_owned(), moved)].into();
        let assignment = Assignment::new(2, keys).unwrap();
        let text = r#"{"version":1,"slots":2,"keys":{"account=a":{"slot":0,"reason":"new-key"},"account=b":{"slot":1,"from":0,"reason":"slot-added"}}}"#;
        assert_eq!(assignment.to_json(), text);
        assert_eq!(Assignment::from_json(text).unwrap(), assignment);
    }

    #[test]
    fn a_stored_assignment_that_is_not_valid_is_refused() {
        let check = |text: &str, expect: &str| {
            assert_eq!(Assignment::from_json(text).unwrap_err().to_string(), expect);
        };
        check("{", "cannot read the stored assignment");
        check(
            r#"{"version":2,"slots":2,"keys":{}}"#,
            "the stored assignment has version 2, and this program reads version 1",
        );
        check(
            r#"{"version":1,"slots":2,"keys":{"a":{"slot":2,"reason":"balance"}}}"#,
            "the stored assignment has 2 slots, but assigns `a` to slot 2",
        );
    }
}
