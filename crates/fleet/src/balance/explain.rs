//! Explains an assignment: why a key is in its slot, and what a slot runs.

use super::assignment::{Assignment, Placement};
use super::cost::{CostEstimate, KeyCost};
use super::packing::FairShare;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a key is in its slot.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyExplanation {
    /// The shard key.
    pub key: String,
    /// Its slot, and the reason for its last move.
    pub placement: Placement,
    /// Its run time, and how that was estimated.
    pub cost: KeyCost,
    /// The slot.
    pub slot: SlotExplanation,
    /// The best other slot, and the effect of a move to it; `None` if there is only one slot.
    pub alternative: Option<Alternative>,
}

/// The slot to which a key could move, and the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The other slot with the lowest load.
    pub slot: u32,
    /// The higher load of the two slots at present.
    pub before: Duration,
    /// The higher load of the two slots after the move.
    pub after: Duration,
}

impl Alternative {
    /// Whether the move would make the slower one of the two slots faster.
    pub fn is_improvement(&self) -> bool {
        self.after < self.before
    }
}

/// What a slot runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotExplanation {
    /// The slot.
    pub slot: u32,
    /// The number of slots.
    pub slots: u32,
    /// The run time of all its keys.
    pub load: Duration,
    /// The mean run time of all slots.
    pub mean: Duration,
    /// The deviation of the slot from the load that it should have: 0.1 is 10 % too much.
    pub deviation: f64,
    /// The keys of the slot with their run times, slowest first.
    pub keys: Vec<SlotKey>,
}

/// A key of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotKey {
    /// The shard key.
    pub key: String,
    /// Its run time.
    pub cost: Duration,
}

/// Explains the slot of a key; `None` if the key is not assigned or has no cost.
pub fn explain_key(assignment: &Assignment, costs: &CostEstimate, key: &str) -> Option<KeyExplanation> {
    let placement = *assignment.placements().get(key)?;
    let cost = costs.get(key)?;
    let loads = loads(assignment, costs);
    let slot = explain_slot(assignment, costs, placement.slot)?;
    let lowest = loads.iter().filter(|(slot, _)| **slot != placement.slot).min_by_key(|(_, load)| **load);
    let alternative = lowest.map(|(other, load)| Alternative {
        slot: *other,
        before: slot.load.max(*load),
        after: slot.load.saturating_sub(cost.cost).max(load.saturating_add(cost.cost)),
    });
    Some(KeyExplanation { key: key.to_owned(), placement, cost, slot, alternative })
}

/// Explains a slot; `None` if the slot does not exist.
pub fn explain_slot(assignment: &Assignment, costs: &CostEstimate, slot: u32) -> Option<SlotExplanation> {
    let loads = loads(assignment, costs);
    let load = *loads.get(&slot)?;
    let key_cost = |key: &str| costs.get(key).map_or(Duration::ZERO, |cost| cost.cost);
    let mut keys: Vec<SlotKey> = assignment
        .keys_by_slot()
        .get(&slot)?
        .iter()
        .map(|key| SlotKey { key: (*key).to_owned(), cost: key_cost(key) })
        .collect();
    keys.sort_by(|left, right| right.cost.cmp(&left.cost).then_with(|| left.key.cmp(&right.key)));
    let total = loads.values().fold(Duration::ZERO, |sum, load| sum.saturating_add(*load));
    Some(SlotExplanation {
        slot,
        slots: assignment.slots(),
        load,
        mean: total / assignment.slots(),
        deviation: deviations(assignment, costs).get(&slot).copied().unwrap_or_default(),
        keys,
    })
}

/// The load of every slot.
fn loads(assignment: &Assignment, costs: &CostEstimate) -> BTreeMap<u32, Duration> {
    let mut loads: BTreeMap<u32, Duration> =
        (0..assignment.slots()).map(|slot| (slot, Duration::ZERO)).collect();
    for (key, placement) in assignment.placements() {
        let cost = costs.get(key).map_or(Duration::ZERO, |cost| cost.cost);
        let load = loads.entry(placement.slot).or_default();
        *load = load.saturating_add(cost);
    }
    loads
}

/// The deviation of each slot from the mean, relative to the mean. A key that is heavier than the mean counts as a
/// full slot, because no assignment could improve it.
#[expect(clippy::cast_precision_loss, reason = "ratios for comparisons")]
pub(super) fn deviations(assignment: &Assignment, costs: &CostEstimate) -> BTreeMap<u32, f64> {
    let micros = |key: &str| {
        let cost = costs.get(key).map_or(0, |cost| cost.cost.as_micros());
        u64::try_from(cost).unwrap_or(u64::MAX)
    };
    let all: Vec<u64> = assignment.placements().keys().map(|key| micros(key)).collect();
    let share = FairShare::of(&all, assignment.slots() as usize);
    let mut loads: BTreeMap<u32, f64> = (0..assignment.slots()).map(|slot| (slot, 0.0)).collect();
    for (key, placement) in assignment.placements() {
        *loads.entry(placement.slot).or_default() += share.effective(micros(key)) as f64;
    }
    let mean = loads.values().sum::<f64>() / f64::from(assignment.slots().max(1));
    let deviation = |load: f64| if mean > 0.0 { load / mean - 1.0 } else { 0.0 };
    loads.into_iter().map(|(slot, load)| (slot, deviation(load))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Alternative, explain_key, explain_slot};
    use crate::balance::{Assignment, CostEstimate, Placement, PlacementReason};
    use std::time::Duration;

    fn fixture() -> (Assignment, CostEstimate) {
        let placement = |slot, from, reason| Placement { slot, from, reason };
        let keys = [
            ("a", placement(0, None, PlacementReason::NewKey)),
            ("b", placement(0, Some(1), PlacementReason::Balance)),
            ("c", placement(1, Some(2), PlacementReason::SlotRemoved)),
        ];
        let costs = [("a", 10), ("b", 20), ("c", 50)];
        (
            Assignment::new(2, keys.map(|(key, placement)| (key.to_owned(), placement)).into()).unwrap(),
            CostEstimate::of(costs.map(|(key, cost)| (key.to_owned(), Duration::from_secs(cost))).into()),
        )
    }

    #[test]
    fn an_explanation_has_the_last_move_and_the_best_alternative() {
        let (assignment, costs) = fixture();
        let explanation = explain_key(&assignment, &costs, "b").unwrap();
        assert_eq!(explanation.placement.from, Some(1));
        assert_eq!(explanation.placement.reason.as_str(), "the move improved the balance");
        let seconds = Duration::from_secs;
        let alternative = Alternative { slot: 1, before: seconds(50), after: seconds(70) };
        assert_eq!(explanation.alternative, Some(alternative));
        assert!(!alternative.is_improvement());
        assert!(explain_key(&assignment, &costs, "d").is_none());
    }

    #[test]
    fn a_slot_lists_its_keys_slowest_first() {
        let (assignment, costs) = fixture();
        let slot = explain_slot(&assignment, &costs, 0).unwrap();
        let keys: Vec<&str> = slot.keys.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(
            (keys, slot.load, slot.mean),
            (vec!["b", "a"], Duration::from_secs(30), Duration::from_secs(40))
        );
        // `c` is heavier than the mean, and fills the other slot.
        assert!(slot.deviation.abs() < 1e-9, "{}", slot.deviation);
        assert!(explain_slot(&assignment, &costs, 2).is_none());
    }
}
