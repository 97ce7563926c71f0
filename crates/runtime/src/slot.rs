//! Shard slots: each shard is assigned to one of n processes by a hash, as in qontract-reconcile.

use md5::{Digest as _, Md5};

/// A shard slot: slot `index` of `count`.
///
/// ```
/// use qontract_runtime::ShardKey;
/// use qontract_runtime::slot::Slot;
///
/// let key = ShardKey::new([("cluster", "cluster1"), ("namespace", "ns1")]);
/// let slots = [Slot::new(0, 2)?, Slot::new(1, 2)?];
/// assert_eq!(slots.map(|slot| slot.contains(&key.slot_value())), [false, true], "exactly one slot has it");
/// assert!(Slot::default().contains(&key.slot_value()), "a single process runs all shards");
/// let error = Slot::new(2, 2).unwrap_err();
/// assert_eq!(error.to_string(), "slot 2 of 2 does not exist: slots are numbered from 0");
/// # Ok::<_, qontract_runtime::slot::InvalidSlot>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    index: u32,
    count: u32,
}

/// The error about a slot that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("slot {index} of {count} does not exist: slots are numbered from 0")]
pub struct InvalidSlot {
    index: u32,
    count: u32,
}

impl Slot {
    /// Creates slot `index` of `count`, counted from 0.
    pub fn new(index: u32, count: u32) -> Result<Self, InvalidSlot> {
        if index < count { Ok(Self { index, count }) } else { Err(InvalidSlot { index, count }) }
    }

    /// The index, counted from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Number of slots.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Whether the hashed string `value` belongs to this slot.
    pub fn contains(self, value: &str) -> bool {
        slot_of(value, self.count) == self.index
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.index, self.count)
    }
}

impl Default for Slot {
    /// The only slot, which contains all shards.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

/// The slot of `value` among `count` slots: its MD5 digest, as an integer, modulo `count`.
pub fn slot_of(value: &str, count: u32) -> u32 {
    let digest = Md5::digest(value.as_bytes());
    let count = u64::from(count.max(1));
    let rest = digest.iter().fold(0u64, |rest, byte| (rest * 256 + u64::from(*byte)) % count);
    u32::try_from(rest).expect("a remainder is smaller than its divisor")
}

#[cfg(test)]
mod tests {
    use super::{Slot, slot_of};

    /// Values with their slots among 2, 3, 4, 5 and 10, recorded from qontract-reconcile.
    const RECORDED: [(&str, [u32; 5]); 4] = [
        ("cluster1/ns1", [1, 2, 3, 4, 9]),
        ("cluster1/ns2", [0, 0, 2, 4, 4]),
        ("appint-ex-01", [1, 0, 1, 2, 7]),
        ("https://github.com/app-sre/qontract-reconcile", [0, 0, 0, 0, 0]),
    ];

    #[test]
    fn slots_equal_those_of_qontract_reconcile() {
        for (value, slots) in RECORDED {
            for (count, slot) in [2, 3, 4, 5, 10].into_iter().zip(slots) {
                assert_eq!(slot_of(value, count), slot, "{value} of {count}");
            }
        }
    }

    #[test]
    fn each_value_is_in_one_slot() {
        let slots: Vec<Slot> = (0..3).map(|index| Slot::new(index, 3).unwrap()).collect();
        assert_eq!(slots.iter().filter(|slot| slot.contains("cluster1/ns1")).count(), 1);
        assert!(Slot::default().contains("anything"));
        assert!(Slot::new(3, 3).is_err());
    }
}
