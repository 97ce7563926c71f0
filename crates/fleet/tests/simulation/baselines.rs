//! The methods that `rebalance` is compared with. None of them knows the previous assignment.

use super::statistics::Slots;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

/// Points of each slot on the ring.
const POINTS: u32 = 100;

/// The highest load of a slot on the ring, relative to the mean.
const RING_CAPACITY: f64 = 1.25;

/// Largest first, each into the slot with the lowest load, from nothing.
pub(crate) fn greedy(costs: &BTreeMap<String, Duration>, slots: u32) -> Slots {
    let mut sorted: Vec<(&String, &Duration)> = costs.iter().collect();
    sorted.sort_by(|left, right| right.1.cmp(left.1).then_with(|| left.0.cmp(right.0)));
    let mut loads = vec![Duration::ZERO; slots as usize];
    let place = |(key, cost): (&String, &Duration)| {
        let slot = (0..loads.len()).min_by_key(|slot| loads[*slot]).unwrap();
        loads[slot] += *cost;
        (key.clone(), u32::try_from(slot).unwrap())
    };
    sorted.into_iter().map(place).collect()
}

/// The hash of the key, modulo the number of slots.
pub(crate) fn hash_mod(costs: &BTreeMap<String, Duration>, slots: u32) -> Slots {
    let slot = |key: &String| u32::try_from(hash(key) % u64::from(slots)).unwrap();
    costs.keys().map(|key| (key.clone(), slot(key))).collect()
}

/// A consistent-hash ring with bounded loads: a key goes to the next slot on the ring that has capacity for it.
#[expect(clippy::cast_precision_loss, reason = "a small number of slots")]
pub(crate) fn ring(costs: &BTreeMap<String, Duration>, slots: u32) -> Slots {
    let ring: BTreeMap<u64, u32> =
        (0..slots).flat_map(|slot| (0..POINTS).map(move |point| (hash(&(slot, point)), slot))).collect();
    let total: f64 = costs.values().map(Duration::as_secs_f64).sum();
    let mut loads = vec![0.0; slots as usize];
    let capacity = RING_CAPACITY * total / loads.len() as f64;
    let mut assigned = Slots::new();
    for (key, cost) in costs {
        let cost = cost.as_secs_f64();
        let start = hash(key);
        let from_key = ring.range(start..).chain(ring.range(..start)).map(|(_, slot)| *slot);
        let mut candidates = from_key.clone();
        let has_capacity = |slot: &u32| loads[*slot as usize] + cost <= capacity;
        let slot = candidates.find(has_capacity).unwrap_or_else(|| {
            (0..slots).min_by(|left, right| loads[*left as usize].total_cmp(&loads[*right as usize])).unwrap()
        });
        loads[slot as usize] += cost;
        assigned.insert(key.clone(), slot);
    }
    assigned
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
