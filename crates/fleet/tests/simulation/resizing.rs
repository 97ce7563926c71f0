//! Fleets of 100 keys on 10, then 9, then 10 slots, balanced by several methods.

use super::baselines;
use super::fleets::{Family, estimate, policy};
use super::statistics::{MovedKeys, Resize, Slots, moved, percentile, spread};
use qontract_fleet::balance::{Assignment, rebalance};
use qontract_testkit::SeededRng;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

const KEYS: usize = 100;

/// The numbers of slots, one after the other.
const SIZES: [u32; 3] = [10, 9, 10];

/// The tolerated spread, which is also the goal at the 95th percentile.
const TOLERANCE: f64 = 0.025;

/// The goal for the number of moves that are not forced.
const MAX_EXTRA_MOVES: f64 = 8.0;

/// The results of one method in one step, over all fleets.
pub(crate) struct Row {
    family: Family,
    method: &'static str,
    step: usize,
    spreads: Vec<f64>,
    moved: Vec<f64>,
    extra: Vec<f64>,
}

type Method = fn(&BTreeMap<String, Duration>, u32) -> Slots;

const BASELINES: [(&str, Method); 3] = [
    ("greedy", baselines::greedy),
    ("hash modulo slots", baselines::hash_mod),
    ("bounded-load ring", baselines::ring),
];

/// Simulates fleets of a family, and checks the goal.
pub(crate) fn simulate(family: Family, count: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for step in 0..SIZES.len() {
        for method in std::iter::once("`rebalance`").chain(BASELINES.map(|(name, _)| name)) {
            rows.push(Row { family, method, step, spreads: vec![], moved: vec![], extra: vec![] });
        }
    }
    for seed in 0..count {
        let costs = family.costs(&mut SeededRng::new(seed), KEYS);
        let histories = std::iter::once(ours(&costs))
            .chain(BASELINES.map(|(_, method)| SIZES.map(|slots| method(&costs, slots))));
        for (method, history) in histories.enumerate() {
            for (step, slots) in SIZES.into_iter().enumerate() {
                let row = &mut rows[step * (BASELINES.len() + 1) + method];
                row.spreads.push(spread(&history[step], &costs, slots));
                if let Some(before) = step.checked_sub(1) {
                    let resize = Resize { from: SIZES[before], to: slots };
                    let MovedKeys { total, extra } = moved(&history[before], &history[step], &costs, resize);
                    row.moved.push(f64::from(u32::try_from(total).unwrap()));
                    row.extra.push(f64::from(u32::try_from(extra).unwrap()));
                }
            }
        }
    }
    for row in rows.iter().filter(|row| row.method == "`rebalance`") {
        row.check();
    }
    rows
}

/// The assignments of `rebalance`.
fn ours(costs: &BTreeMap<String, Duration>) -> [Slots; 3] {
    let (estimate, policy) = (estimate(costs), policy(costs, TOLERANCE));
    let mut assignment = Assignment::default();
    SIZES.map(|slots| {
        let rebalanced = rebalance(&assignment, &estimate, slots, &policy);
        assert!(rebalanced.extra_moves <= policy.move_budget());
        assignment = rebalanced.assignment;
        assignment.placements().iter().map(|(key, placement)| (key.clone(), placement.slot)).collect()
    })
}

impl Row {
    fn check(&self) {
        let p95 = percentile(&self.spreads, 95);
        let name = self.family.name();
        assert!(p95 <= TOLERANCE, "{name}, step {}: a spread of {p95} at the 95th percentile", self.step);
        let extra = self.extra.iter().copied().fold(0.0, f64::max);
        assert!(extra <= MAX_EXTRA_MOVES, "{name}, step {}: {extra} extra moves", self.step);
    }
}

/// The rows as a Markdown table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| costs | slots | method | spread p50 | p95 | max | moved keys p50 | p95 | extra p95 | max |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let step = match row.step.checked_sub(1) {
            Some(before) => format!("{} → {}", SIZES[before], SIZES[row.step]),
            None => SIZES[row.step].to_string(),
        };
        let spread = |percent| 100.0 * percentile(&row.spreads, percent);
        let keys = |values: &[f64], percent| {
            if values.is_empty() { "–".to_owned() } else { percentile(values, percent).to_string() }
        };
        let _ = writeln!(
            text,
            "| {} | {step} | {} | {:.1} % | {:.1} % | {:.1} % | {} | {} | {} | {} |",
            row.family.name(),
            row.method,
            spread(50),
            spread(95),
            spread(100),
            keys(&row.moved, 50),
            keys(&row.moved, 95),
            keys(&row.extra, 95),
            keys(&row.extra, 100),
        );
    }
    text
}
