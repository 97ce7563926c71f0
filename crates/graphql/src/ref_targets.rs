//! A lock-free cache of reference targets, keyed by the identity of the reference.
//!
//! Resolving a reference by path reads the path, a table slot and the path stored in the slot. Without this
//! cache, a large response spends most of its time on the CPU cache misses of these reads. All references to
//! one path are interned as one map in memory, so a reference that was resolved before is found by its
//! address alone.
//!
//! **Invariant:** an entry is valid as long as the bundle lives, because the values of a bundle never move.
//! Every index has its own cache, so no entry outlives its bundle. Threads share the cache without a lock: an
//! entry is one atomic word, and a racing write only replaces one valid entry with another.

use std::sync::atomic::{AtomicU64, Ordering};

use qontract_bundle::Map;

use crate::source::FileId;

/// Number of significant bits of an address: values are aligned to 8 bytes, and user-space addresses are
/// below 2^47.
const ADDRESS_BITS: u32 = 44;

/// A direct-mapped cache of reference targets.
#[derive(Debug)]
pub struct RefTargetCache {
    /// The lower 32 bits of an entry are the datafile id plus one (0 if the slot is empty), the upper 32 bits
    /// the tag of the address.
    slots: Box<[AtomicU64]>,
    /// Binary logarithm of the number of slots.
    power: u32,
}

impl RefTargetCache {
    /// Creates an empty cache, sized for references to this many datafiles.
    pub fn new(datafiles: usize) -> Self {
        let power = (datafiles * 4).next_power_of_two().ilog2().clamp(ADDRESS_BITS - 32, 22);
        Self { slots: (0..1_usize << power).map(|_| AtomicU64::new(0)).collect(), power }
    }

    /// Returns the target of a reference, from the cache or from `find`. Dangling references and errors are
    /// not cached.
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

    /// The slot and the tag of an address, which together identify the address. `None` for addresses that
    /// cannot be cached.
    fn slot(&self, address: usize) -> Option<(&AtomicU64, u64)> {
        // 2^64 divided by the golden ratio, for Fibonacci hashing. The constant is odd, so that the
        // multiplication is injective modulo any power of two.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let address = u64::try_from(address).ok()?;
        if address % 8 != 0 || address >> (ADDRESS_BITS + 3) != 0 {
            return None;
        }
        let spread = (address >> 3).wrapping_mul(SPREAD) & ((1 << ADDRESS_BITS) - 1);
        let slot = usize::try_from(spread >> (ADDRESS_BITS - self.power)).ok()?;
        Some((self.slots.get(slot)?, spread & ((1 << (ADDRESS_BITS - self.power)) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qontract_bundle::Value;
    use std::collections::HashSet;

    #[test]
    fn a_reference_is_resolved_once_and_cached_then() {
        let leads = RefTargetCache::new(10);
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
    fn no_two_addresses_share_slot_and_tag() {
        for datafiles in [1, 5_000, 10_000_000] {
            let leads = RefTargetCache::new(datafiles);
            let mut seen = HashSet::new();
            let near = (0..10_000).map(|number| 0x7f00_0000_0000 + 8 * number);
            let far = (0..44).map(|bit| 8_usize << bit);
            for address in near.chain(far) {
                let (slot, tag) = leads.slot(address).expect("an address of a process");
                assert!(tag < 1 << 32);
                assert!(seen.insert((std::ptr::from_ref(slot).addr(), tag)), "{address:#x}");
            }
        }
        assert!(RefTargetCache::new(1).slot(1 << 48).is_none());
    }
}
