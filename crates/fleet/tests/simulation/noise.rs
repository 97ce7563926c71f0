//! Noisy measurements: 100 windows in which every measured run time differs by up to 20 % from the true one.

use super::fleets::{Family, estimate, fraction};
use super::statistics::fair_share;
use qontract_fleet::balance::{
    Assignment, BalancePolicy, CostHistory, CostWindow, PolicyInput, balance, rebalance,
};
use qontract_testkit::SeededRng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

const WINDOWS: usize = 100;

/// The highest deviation of a measurement.
const NOISE: f64 = 0.2;

/// The true load of a slot, relative to the target.
const LOADS: [f64; 3] = [1.0, 1.15, 0.75];

/// What happened in one fleet.
#[derive(Default)]
struct Changes {
    /// Windows in which the number of slots changed.
    resized: usize,
    /// Keys that moved without a change of the number of slots.
    moves: usize,
    /// Keys that moved back to a slot that they had left.
    returns: usize,
}

/// The changes of noisy fleets as a Markdown table.
pub(crate) fn table(count: u64) -> String {
    let mut text = String::from(
        "| costs | load / target | fleets | with one change of slots | with several | with moves in other windows | keys moved in these | keys that returned |\n|---|---|---|---|---|---|---|---|\n",
    );
    for family in Family::ALL {
        for load in LOADS {
            let changes: Vec<Changes> = (0..count).map(|seed| simulate(family, load, seed)).collect();
            let fleets =
                |is_counted: &dyn Fn(&Changes) -> bool| changes.iter().filter(|one| is_counted(one)).count();
            let sum = |of: &dyn Fn(&Changes) -> usize| changes.iter().map(of).sum::<usize>();
            let _ = writeln!(
                text,
                "| {} | {load} | {count} | {} | {} | {} | {} | {} |",
                family.name(),
                fleets(&|one| one.resized == 1),
                fleets(&|one| one.resized > 1),
                fleets(&|one| one.moves > 0),
                sum(&|one| one.moves),
                sum(&|one| one.returns),
            );
            assert_eq!(sum(&|one| one.returns), 0, "{}: keys move back and forth", family.name());
            assert_eq!(
                fleets(&|one| one.resized > 1),
                0,
                "{}: the number of slots oscillates",
                family.name()
            );
        }
    }
    text
}

fn simulate(family: Family, load: f64, seed: u64) -> Changes {
    let mut rng = SeededRng::new(seed);
    let costs = family.costs(&mut rng, 100);
    let keys: BTreeSet<String> = costs.keys().cloned().collect();
    let target = fair_share(&costs, 10) / load;
    let input = PolicyInput { target, max_slots: 100, ..PolicyInput::default() };
    let policy = BalancePolicy::new(input).unwrap();
    let mut assignment = rebalance(&Assignment::default(), &estimate(&costs), 10, &policy).assignment;
    let mut history = CostHistory::default();
    let mut changes = Changes::default();
    let mut left: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for _ in 0..WINDOWS {
        let noisy = |(key, cost): (&String, &Duration)| {
            (key.clone(), cost.mul_f64(1.0 - NOISE + 2.0 * NOISE * fraction(&mut rng)))
        };
        history.push(CostWindow::new(costs.iter().map(noisy).collect()), policy.history_windows());
        let balanced = balance(&assignment, &keys, &history, &policy);
        if balanced.slots.slots == assignment.slots() {
            changes.moves += balanced.plan.moves.len();
        } else {
            changes.resized += 1;
        }
        for one in &balanced.plan.moves {
            let slots = left.entry(one.key.clone()).or_default();
            changes.returns += usize::from(slots.contains(&one.to));
            slots.extend(one.from);
        }
        assignment = balanced.plan.assignment;
    }
    changes
}
