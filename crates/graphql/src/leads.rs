//! Where references lead, remembered by their identity.
//!
//! To look a path up means to read the path, its hash, the table and the path there: most of the time of a large answer
//! was spent waiting for these. References to the same path are one in memory, so that one that was followed before is known
//! without reading it.
//!
//! **Invariant:** what is remembered is right for as long as the values of the bundle are where they are, which is as
//! long as the bundle lives. Who shares it does not wait: an entry is one word.

use std::sync::atomic::{AtomicU64, Ordering};

use qontract_bundle::Map;

use crate::index::FileId;

/// Significant bits of an address: values stand at multiples of eight, and processes below 2^47.
const BITS: u32 = 44;

/// Where references lead.
#[derive(Debug)]
pub struct Leads {
    /// In an entry the lower half is a datafile, counted from one, and the upper half tells which address it is for.
    slots: Box<[AtomicU64]>,
    /// The number of slots is this power of two.
    power: u32,
}

impl Leads {
    /// Room for references to so many datafiles.
    pub fn new(datafiles: usize) -> Self {
        let power = (datafiles * 4).next_power_of_two().ilog2().clamp(BITS - 32, 22);
        Self { slots: (0..1_usize << power).map(|_| AtomicU64::new(0)).collect(), power }
    }

    /// Where a reference leads: what `find` found when it was asked first. What leads nowhere is asked again.
    pub fn get<E>(
        &self,
        reference: &Map,
        find: impl FnOnce() -> Result<Option<FileId>, E>,
    ) -> Result<Option<FileId>, E> {
        let Some((slot, tag)) = self.slot(reference.id()) else { return find() };
        let entry = slot.load(Ordering::Relaxed);
        let (known, file) = (entry >> 32, entry & u64::from(u32::MAX));
        if known == tag && file > 0 {
            return Ok(u32::try_from(file - 1).ok());
        }
        let found = find()?;
        if let Some(file) = found.and_then(|file| file.checked_add(1)) {
            slot.store(tag << 32 | u64::from(file), Ordering::Relaxed);
        }
        Ok(found)
    }

    /// The slot of an address and what else is to be known of it: together they tell it from all others.
    fn slot(&self, address: usize) -> Option<(&AtomicU64, u64)> {
        // Odd, so that no two addresses become one; its bits are those of the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let address = u64::try_from(address).ok()?;
        if address % 8 != 0 || address >> (BITS + 3) != 0 {
            return None;
        }
        let spread = (address >> 3).wrapping_mul(SPREAD) & ((1 << BITS) - 1);
        let slot = usize::try_from(spread >> (BITS - self.power)).ok()?;
        Some((self.slots.get(slot)?, spread & ((1 << (BITS - self.power)) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qontract_bundle::Value;
    use std::collections::HashSet;

    #[test]
    fn a_reference_is_found_once_and_known_then() {
        let leads = Leads::new(10);
        let to = |path: &str| Map::new(vec![("$ref", Value::str(path))]);
        let (first, second) = (to("/services/long/enough/to/be/elsewhere.yml"), to("/b"));
        let ask = |map: &Map, answer: Option<FileId>| leads.get::<()>(map, || Ok(answer)).unwrap();
        assert_eq!(ask(&first, None), None);
        assert_eq!(ask(&first, Some(7)), Some(7));
        assert_eq!(ask(&to("/services/long/enough/to/be/elsewhere.yml"), Some(8)), Some(7));
        assert_eq!(ask(&second, Some(u32::MAX)), Some(u32::MAX));
        assert_eq!(ask(&second, Some(0)), Some(0));
    }

    #[test]
    fn no_two_addresses_are_taken_for_one() {
        for datafiles in [1, 5_000, 10_000_000] {
            let leads = Leads::new(datafiles);
            let mut seen = HashSet::new();
            let near = (0..10_000).map(|number| 0x7f00_0000_0000 + 8 * number);
            let far = (0..44).map(|bit| 8_usize << bit);
            for address in near.chain(far) {
                let (slot, tag) = leads.slot(address).expect("an address of a process");
                assert!(tag < 1 << 32);
                assert!(seen.insert((std::ptr::from_ref(slot).addr(), tag)), "{address:#x}");
            }
        }
        assert!(Leads::new(1).slot(1 << 48).is_none());
    }
}
