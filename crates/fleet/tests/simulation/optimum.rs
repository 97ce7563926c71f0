//! Small fleets, compared with the best of all assignments.

use super::baselines::greedy;
use super::fleets::{Family, estimate, policy};
use super::statistics::{Slots, percentile, spread};
use qontract_fleet::balance::{Assignment, rebalance};
use qontract_testkit::SeededRng;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

const SLOTS: u32 = 3;

/// The spreads of small fleets as a Markdown table: of `rebalance` from nothing, after a slot was removed and added
/// again, of greedy, and of the optimum.
pub(crate) fn table(count: u64) -> String {
    let mut text = String::from(
        "| costs | method | spread p50 | p95 | mean above the optimum |\n|---|---|---|---|---|\n",
    );
    for family in Family::ALL {
        let mut columns: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for seed in 0..count {
            let mut rng = SeededRng::new(seed);
            let keys = 6 + rng.below(5);
            let costs = family.costs(&mut rng, keys);
            let optimum = optimum(&costs);
            let mut record = |name, spread: f64| {
                assert!(spread >= optimum - 1e-6, "{name} of seed {seed} is better than the optimum");
                columns.entry(name).or_default().push(spread);
            };
            let (estimate, policy) = (estimate(&costs), policy(&costs, 0.0));
            let mut assignment = Assignment::default();
            for slots in [SLOTS, SLOTS - 1, SLOTS] {
                let first = assignment.slots() == 0;
                assignment = rebalance(&assignment, &estimate, slots, &policy).assignment;
                let slots_of: Slots =
                    assignment.placements().iter().map(|(key, one)| (key.clone(), one.slot)).collect();
                if slots == SLOTS {
                    let name = if first {
                        "2 `rebalance` from nothing"
                    } else {
                        "3 `rebalance`, 3 → 2 → 3 slots"
                    };
                    record(name, spread(&slots_of, &costs, SLOTS));
                }
            }
            record("4 greedy", spread(&greedy(&costs, SLOTS), &costs, SLOTS));
            record("1 optimum", optimum);
        }
        let optimum = mean(&columns["1 optimum"]);
        let ours = mean(&columns["2 `rebalance` from nothing"]);
        assert!(ours - optimum <= 0.02, "{}: {ours} on average, and the optimum is {optimum}", family.name());
        for (name, spreads) in &columns {
            let shown = |percent| 100.0 * percentile(spreads, percent);
            let above = 100.0 * (mean(spreads) - optimum);
            let _ = writeln!(
                text,
                "| {} | {} | {:.1} % | {:.1} % | {above:.2} percentage points |",
                family.name(),
                &name[2..],
                shown(50),
                shown(95),
            );
        }
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a small number of values")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The lowest spread of all assignments.
fn optimum(costs: &BTreeMap<String, Duration>) -> f64 {
    let share = super::statistics::fair_share(costs, SLOTS);
    let costs: Vec<f64> = costs.values().map(|cost| cost.as_secs_f64().min(share)).collect();
    let mut best = f64::INFINITY;
    search(&costs, &mut vec![0.0; SLOTS as usize], &mut best);
    best / (costs.iter().sum::<f64>() / f64::from(SLOTS))
}

/// Tries every slot for the first of the costs; equal slots are tried once.
fn search(costs: &[f64], loads: &mut Vec<f64>, best: &mut f64) {
    let Some((cost, rest)) = costs.split_first() else {
        let (max, min) =
            loads.iter().fold((f64::MIN, f64::MAX), |(max, min), load| (max.max(*load), min.min(*load)));
        *best = best.min(max - min);
        return;
    };
    for slot in 0..loads.len() {
        let is_first_empty = loads[..slot].iter().all(|load| *load > 0.0);
        if loads[slot] > 0.0 || is_first_empty {
            loads[slot] += cost;
            search(rest, loads, best);
            loads[slot] -= cost;
            if loads[slot] < 1e-9 {
                loads[slot] = 0.0;
            }
        }
    }
}
