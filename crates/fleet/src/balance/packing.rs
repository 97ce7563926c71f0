//! The working state of a rebalance: keys as items with integer costs, in slots with loads.

/// The highest share of a slot that one key can take; a key with more is *heavy*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FairShare {
    /// The mean load of the slots without a heavy key, in microseconds.
    pub(super) load: u64,
}

impl FairShare {
    /// The fair share of these costs: heavy keys get a slot each, and the other keys share the other slots.
    pub(super) fn of(costs: &[u64], slots: usize) -> Self {
        let mut sorted = costs.to_vec();
        sorted.sort_unstable_by(|left, right| right.cmp(left));
        let mut rest: u128 = sorted.iter().map(|cost| u128::from(*cost)).sum();
        let mut free_slots = slots as u128;
        let mut lightest_heavy = 0;
        for cost in sorted {
            if free_slots <= 1 || u128::from(cost) * free_slots <= rest {
                break;
            }
            rest -= u128::from(cost);
            free_slots -= 1;
            lightest_heavy = cost;
        }
        let load = if rest == 0 { u128::from(lightest_heavy) } else { rest / free_slots.max(1) };
        Self { load: u64::try_from(load).unwrap_or(u64::MAX) }
    }

    /// The cost by which a key is balanced: a heavy key fills a slot exactly, so that its slot is neither
    /// overloaded by it, nor a place for other keys.
    pub(super) fn effective(self, cost: u64) -> u64 {
        cost.min(self.load)
    }
}

/// A key.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The effective cost in microseconds.
    pub(super) cost: u64,
    /// The slot that runs the key, if this slot still exists.
    pub(super) home: Option<usize>,
    /// The slot that the key is assigned to; `None` until it is placed.
    pub(super) slot: Option<usize>,
    /// Whether the key stays in its slot whatever the loads are.
    pub(super) is_fixed: bool,
}

/// Items in slots.
#[derive(Clone, Debug)]
pub(super) struct Packing {
    items: Vec<Item>,
    loads: Vec<u64>,
    members: Vec<Vec<usize>>,
}

impl Packing {
    /// The packing of these items.
    pub(super) fn new(items: Vec<Item>, slots: usize) -> Self {
        let mut packing = Self { items, loads: vec![0; slots], members: vec![Vec::new(); slots] };
        for index in 0..packing.items.len() {
            if let Some(slot) = packing.items[index].slot {
                packing.add(index, slot);
            }
        }
        packing
    }

    /// The items, in the order in which they were given.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// The load of each slot.
    pub(super) fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// The items of a slot.
    pub(super) fn members(&self, slot: usize) -> &[usize] {
        &self.members[slot]
    }

    /// Puts an item into a slot.
    pub(super) fn assign(&mut self, index: usize, slot: usize) {
        self.remove(index);
        self.items[index].slot = Some(slot);
        self.add(index, slot);
    }

    /// Takes an item out of its slot.
    pub(super) fn remove(&mut self, index: usize) {
        if let Some(slot) = self.items[index].slot.take() {
            self.loads[slot] -= self.items[index].cost;
            self.members[slot].retain(|member| *member != index);
        }
    }

    fn add(&mut self, index: usize, slot: usize) {
        self.loads[slot] += self.items[index].cost;
        let position = self.members[slot].partition_point(|member| *member < index);
        self.members[slot].insert(position, index);
    }

    /// Places every item without a slot: largest first, into the slot with the lowest load.
    pub(super) fn place_orphans(&mut self) {
        let mut orphans: Vec<usize> =
            (0..self.items.len()).filter(|index| self.items[*index].slot.is_none()).collect();
        orphans.sort_by_key(|index| (std::cmp::Reverse(self.items[*index].cost), *index));
        for index in orphans {
            let lowest = (0..self.loads.len()).min_by_key(|slot| (self.loads[*slot], *slot));
            if let Some(slot) = lowest {
                self.assign(index, slot);
            }
        }
    }

    /// How many items are not in the slot that runs them. Items that no existing slot runs are not counted.
    pub(super) fn displaced(&self) -> usize {
        self.items.iter().filter(|item| item.home.is_some() && item.home != item.slot).count()
    }

    /// The slot with the highest load, and the slot with the lowest load.
    pub(super) fn extremes(&self) -> Option<Extremes> {
        let slots = || 0..self.loads.len();
        let highest = slots().min_by_key(|slot| (std::cmp::Reverse(self.loads[*slot]), *slot))?;
        let lowest = slots().min_by_key(|slot| (self.loads[*slot], *slot))?;
        Some(Extremes { highest, lowest })
    }

    /// The difference of the highest and the lowest load, relative to the mean; 0 without any load.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for comparisons")]
    pub(super) fn spread(&self) -> f64 {
        let (Some(highest), Some(lowest)) = (self.loads.iter().max(), self.loads.iter().min()) else {
            return 0.0;
        };
        let mean = self.mean();
        if mean == 0.0 { 0.0 } else { (highest - lowest) as f64 / mean }
    }

    /// The mean load.
    #[expect(clippy::cast_precision_loss, reason = "a mean for comparisons")]
    pub(super) fn mean(&self) -> f64 {
        let total: u128 = self.loads.iter().map(|load| u128::from(*load)).sum();
        if self.loads.is_empty() { 0.0 } else { total as f64 / self.loads.len() as f64 }
    }
}

/// The slots with the highest and the lowest load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extremes {
    pub(super) highest: usize,
    pub(super) lowest: usize,
}

#[cfg(test)]
mod tests {
    use super::FairShare;

    #[test]
    fn heavy_keys_do_not_count_for_the_fair_share_of_the_others() {
        let check = |costs: &[u64], slots: usize, expect: u64| {
            assert_eq!(FairShare::of(costs, slots).load, expect, "{costs:?} in {slots} slots");
        };
        check(&[10, 10, 10, 10], 2, 20);
        check(&[100, 10, 10, 10, 10], 3, 20);
        // A second key is heavy only because the first one takes a slot.
        check(&[1000, 50, 10, 10, 10, 10], 3, 40);
        check(&[100, 10], 1, 110);
        // Each key has a slot of its own.
        check(&[30, 20], 3, 20);
        check(&[0, 0], 3, 0);
        check(&[], 3, 0);
        check(&[u64::MAX, u64::MAX, u64::MAX], 1, u64::MAX);
    }
}
