//! Percentiles, and the measures that all methods are compared by.

use std::collections::BTreeMap;
use std::time::Duration;

/// The slot of each key.
pub(crate) type Slots = BTreeMap<String, u32>;

/// A percentile of values; 100 is the maximum.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// The largest cost by which a key counts: keys that exceed the mean of the other slots fill a slot.
pub(crate) fn fair_share(costs: &BTreeMap<String, Duration>, slots: u32) -> f64 {
    let mut sorted: Vec<f64> = costs.values().map(Duration::as_secs_f64).collect();
    sorted.sort_by(|left, right| right.total_cmp(left));
    let (mut rest, mut free) = (sorted.iter().sum::<f64>(), f64::from(slots));
    for cost in sorted {
        if free <= 1.0 || cost <= rest / free {
            break;
        }
        rest -= cost;
        free -= 1.0;
    }
    rest / free
}

/// The loads of all slots.
pub(crate) fn loads(of: &Slots, costs: &BTreeMap<String, Duration>, slots: u32) -> Vec<f64> {
    let share = fair_share(costs, slots);
    let mut loads = vec![0.0; slots as usize];
    for (key, slot) in of {
        loads[*slot as usize] += costs[key].as_secs_f64().min(share);
    }
    loads
}

/// (max − min) / mean of the loads.
#[expect(clippy::cast_precision_loss, reason = "a small number of slots")]
pub(crate) fn spread(of: &Slots, costs: &BTreeMap<String, Duration>, slots: u32) -> f64 {
    let loads = loads(of, costs, slots);
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let (max, min) =
        loads.iter().fold((f64::MIN, f64::MAX), |(max, min), load| (max.max(*load), min.min(*load)));
    (max - min) / mean
}

/// How many keys have another slot than before, and how many of these are not forced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedKeys {
    pub(crate) total: usize,
    pub(crate) extra: usize,
}

/// Counts the keys that moved. Forced are the keys of removed slots, and, if slots were added, the lowest number of
/// keys that has to leave overloaded slots so that none exceeds the mean by more than 2.5 %.
pub(crate) fn moved(
    before: &Slots,
    after: &Slots,
    costs: &BTreeMap<String, Duration>,
    slots: Resize,
) -> MovedKeys {
    let total = after.iter().filter(|(key, slot)| before[*key] != **slot).count();
    let orphans = before.values().filter(|slot| **slot >= slots.to).count();
    let forced = if slots.to > slots.from { surplus_keys(before, costs, slots) } else { orphans };
    MovedKeys { total, extra: total.saturating_sub(forced) }
}

/// A change of the number of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resize {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

fn surplus_keys(before: &Slots, costs: &BTreeMap<String, Duration>, slots: Resize) -> usize {
    let share = fair_share(costs, slots.to);
    let cost = |key: &str| costs[key].as_secs_f64().min(share);
    let mean = before.keys().map(|key| cost(key)).sum::<f64>() / f64::from(slots.to);
    let surplus = |slot: u32| {
        let mut costs: Vec<f64> =
            before.iter().filter(|(_, of)| **of == slot).map(|(key, _)| cost(key)).collect();
        costs.sort_by(|left, right| right.total_cmp(left));
        let mut load: f64 = costs.iter().sum();
        costs
            .iter()
            .take_while(|cost| {
                let is_surplus = load > mean * 1.025;
                load -= **cost;
                is_surplus
            })
            .count()
    };
    (0..slots.from).map(surplus).sum()
}
