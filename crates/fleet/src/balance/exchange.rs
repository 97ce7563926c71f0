//! Exchanges of keys between two slots that improve the balance, and the search for the best one.
//!
//! An exchange gives up to two keys of the slot with the higher load, and takes up to two keys in return. Its gain
//! is the decrease of the sum of squared loads, so a sequence of exchanges ends. Its *price* is the number of keys
//! that it moves away from the slots that run them; a key that returns, or that no slot runs, is free.

use super::packing::Packing;
use std::collections::BTreeMap;

/// Sets of two keys are searched only in slots with at most this number of keys. In larger slots, single keys
/// have enough different costs.
const MAX_KEYS_FOR_PAIRS: usize = 40;

/// All pairs of slots are searched only if there are at most this number of slots. Otherwise, each extreme slot is
/// paired with this number of slots from the other end.
const MAX_SLOTS_FOR_ALL_PAIRS: usize = 32;

/// An exchange between two slots.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exchange {
    from: usize,
    to: usize,
    give: KeySet,
    take: KeySet,
    gain: f64,
    price: i32,
}

/// At most two keys of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeySet {
    cost: u64,
    keys: [Option<usize>; 2],
    price: i32,
}

/// Which exchanges a search may return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Price {
    /// Only free exchanges.
    Free,
    /// Exchanges of at most this price, which transfer at least this load, in microseconds.
    AtMost { price: usize, transfer: f64 },
}

impl Exchange {
    /// Moves the keys.
    pub(super) fn apply(&self, packing: &mut Packing) {
        for index in self.give.keys.into_iter().flatten() {
            packing.assign(index, self.to);
        }
        for index in self.take.keys.into_iter().flatten() {
            packing.assign(index, self.from);
        }
    }

    /// Whether this exchange is to be preferred: by gain per price, then by gain.
    fn is_better_than(&self, other: &Self) -> bool {
        let per_key =
            |one: &Self| if one.price <= 0 { f64::INFINITY } else { one.gain / f64::from(one.price) };
        match per_key(self).total_cmp(&per_key(other)) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => self.gain > other.gain,
        }
    }
}

/// The best exchange that includes the slot with the highest or the lowest load; if there is none and free
/// exchanges are wanted, the best exchange of any two slots.
pub(super) fn best_exchange(packing: &Packing, price: Price) -> Option<Exchange> {
    let extremes = packing.extremes()?;
    let slots = packing.loads().len();
    let mut best = None;
    let mut by_load: Vec<usize> = (0..slots).collect();
    by_load.sort_by_key(|slot| (packing.loads()[*slot], *slot));
    for slot in by_load.iter().take(MAX_SLOTS_FOR_ALL_PAIRS) {
        consider(packing, SlotPair { from: extremes.highest, to: *slot }, price, &mut best);
    }
    for slot in by_load.iter().rev().take(MAX_SLOTS_FOR_ALL_PAIRS) {
        consider(packing, SlotPair { from: *slot, to: extremes.lowest }, price, &mut best);
    }
    if best.is_none() && price == Price::Free && slots <= MAX_SLOTS_FOR_ALL_PAIRS {
        for from in 0..slots {
            for to in 0..slots {
                consider(packing, SlotPair { from, to }, price, &mut best);
            }
        }
    }
    best
}

/// The slot that gets less load, and the slot that gets more.
#[derive(Clone, Copy, Debug)]
struct SlotPair {
    from: usize,
    to: usize,
}

/// Replaces `best` by the best exchange of two slots, if that one is better.
fn consider(packing: &Packing, pair: SlotPair, price: Price, best: &mut Option<Exchange>) {
    let loads = packing.loads();
    let Some(difference) = loads[pair.from].checked_sub(loads[pair.to]).filter(|difference| *difference > 1)
    else {
        return;
    };
    let mut taken: BTreeMap<i32, Vec<KeySet>> = BTreeMap::new();
    let empty = KeySet { cost: 0, keys: [None; 2], price: 0 };
    for set in key_sets(packing, pair.to, pair.from).into_iter().chain([empty]) {
        taken.entry(set.price).or_default().push(set);
    }
    for sets in taken.values_mut() {
        sets.sort_unstable();
    }
    for give in key_sets(packing, pair.from, pair.to) {
        for (take_price, sets) in &taken {
            let total = give.price + take_price;
            let is_affordable = match price {
                Price::Free => total <= 0,
                Price::AtMost { price, .. } => usize::try_from(total).unwrap_or_default() <= price,
            };
            if !is_affordable {
                continue;
            }
            // The gain is highest if half of the difference is transferred.
            let wanted = give.cost.saturating_sub(difference / 2);
            let at = sets.partition_point(|set| set.cost < wanted);
            for take in sets[at.saturating_sub(1)..].iter().take(2) {
                let Some(found) = exchange(pair, give, *take, difference) else { continue };
                let is_enough = match price {
                    Price::Free => true,
                    Price::AtMost { transfer, .. } => found.effective_transfer(difference) >= transfer,
                };
                if is_enough && best.as_ref().is_none_or(|best| found.is_better_than(best)) {
                    *best = Some(found);
                }
            }
        }
    }
}

/// The exchange of these keys, if it improves the balance.
#[expect(clippy::cast_precision_loss, reason = "gains are compared, not added")]
fn exchange(pair: SlotPair, give: KeySet, take: KeySet, difference: u64) -> Option<Exchange> {
    let transfer = give.cost.checked_sub(take.cost).filter(|one| *one > 0 && *one < difference)?;
    let gain = 2.0 * transfer as f64 * (difference - transfer) as f64;
    let price = give.price + take.price;
    Some(Exchange { from: pair.from, to: pair.to, give, take, gain, price })
}

impl Exchange {
    /// The transferred load, less the load by which the other slot then exceeds the first one.
    #[expect(clippy::cast_precision_loss, reason = "compared with a threshold")]
    fn effective_transfer(&self, difference: u64) -> f64 {
        let transfer = self.give.cost - self.take.cost;
        transfer.min(difference - transfer) as f64
    }
}

/// The sets of one or two keys of a slot that may move, with the price of their move to another slot.
fn key_sets(packing: &Packing, slot: usize, to: usize) -> Vec<KeySet> {
    let items = packing.items();
    let price = |index: usize| match items[index].home {
        Some(home) if home == slot => 1,
        Some(home) if home == to => -1,
        _ => 0,
    };
    let movable: Vec<usize> =
        packing.members(slot).iter().copied().filter(|index| !items[*index].is_fixed).collect();
    let single =
        |index: usize| KeySet { cost: items[index].cost, keys: [Some(index), None], price: price(index) };
    let mut sets: Vec<KeySet> = movable.iter().map(|index| single(*index)).collect();
    if movable.len() > MAX_KEYS_FOR_PAIRS {
        return sets;
    }
    for (position, first) in movable.iter().enumerate() {
        for second in &movable[position + 1..] {
            sets.push(KeySet {
                cost: items[*first].cost + items[*second].cost,
                keys: [Some(*first), Some(*second)],
                price: price(*first) + price(*second),
            });
        }
    }
    sets
}
