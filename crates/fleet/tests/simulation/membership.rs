//! Random histories in which keys and slots join and leave, and costs change.

use super::fleets::{Family, fraction};
use qontract_fleet::balance::{
    Assignment, BalancePolicy, CostEstimate, CostHistory, CostWindow, PlacementReason, PolicyInput,
    RebalancePlan, SlotReason, balance, rebalance,
};
use qontract_testkit::{SeededRng, chaos_count};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STEPS: usize = 20;

/// Repeated rebalances of the same input end after at most this number of runs.
const MAX_RUNS: usize = 100;

/// 2,000 histories with `cargo xtask chaos fleet-membership`.
#[test]
fn membership_histories_keep_the_invariants() {
    for seed in 0..chaos_count(20) {
        let mut fleet = Fleet::new(seed);
        for _ in 0..STEPS {
            fleet.change();
            fleet.rebalance();
            fleet.balance();
        }
    }
}

/// A fleet of one history.
struct Fleet {
    seed: u64,
    rng: SeededRng,
    family: Family,
    /// The number of keys that were ever created.
    created: usize,
    costs: BTreeMap<String, Duration>,
    slots: u32,
    assignment: Assignment,
    history: CostHistory,
    balanced: Assignment,
}

impl Fleet {
    fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        let family = *rng.pick(&Family::ALL);
        let slots = 1 + u32::try_from(rng.below(12)).unwrap();
        let mut fleet = Self {
            seed,
            rng,
            family,
            created: 0,
            costs: BTreeMap::new(),
            slots,
            assignment: Assignment::default(),
            history: CostHistory::default(),
            balanced: Assignment::default(),
        };
        let keys = fleet.rng.below(60);
        fleet.create(keys);
        fleet
    }

    fn create(&mut self, count: usize) {
        let costs = self.family.costs(&mut self.rng, count);
        for cost in costs.into_values() {
            self.created += 1;
            // Keys are not created in their order.
            let name = format!("cluster=c{:03}", self.created * 7919 % 1000);
            self.costs.insert(name, cost);
        }
    }

    /// Keys leave, join and get slower or faster; slots join and leave.
    fn change(&mut self) {
        let leave = self.rng.below(4) * 10;
        let rng = &mut self.rng;
        self.costs.retain(|_, _| !rng.percent(leave));
        let count = if self.rng.percent(50) { self.rng.below(12) } else { 0 };
        self.create(count);
        let drift = fraction(&mut self.rng);
        for cost in self.costs.values_mut() {
            *cost = cost.mul_f64(1.0 - drift / 2.0 + drift * fraction(&mut self.rng));
            if self.rng.percent(2) {
                *cost = Duration::ZERO;
            }
        }
        if self.rng.percent(40) {
            self.slots = 1 + u32::try_from(self.rng.below(14)).unwrap();
        }
    }

    fn policy(&mut self, move_budget: u32) -> BalancePolicy {
        let tolerance = 0.1 * fraction(&mut self.rng);
        let input = PolicyInput {
            target: 600.0,
            min_slots: 2,
            max_slots: 8,
            move_budget,
            tolerance,
            ..PolicyInput::default()
        };
        BalancePolicy::new(input).unwrap()
    }

    fn rebalance(&mut self) {
        let seed = self.seed;
        let budget = u32::try_from(self.rng.below(10)).unwrap();
        let policy = self.policy(budget);
        let costs = CostEstimate::of(self.costs.clone());
        let result = rebalance(&self.assignment, &costs, self.slots, &policy);
        assert_eq!(
            result,
            rebalance(&self.assignment, &costs, self.slots, &policy),
            "seed {seed}: not deterministic"
        );
        self.check(&self.assignment, &result);
        assert_eq!(result.assignment.slots(), self.slots, "seed {seed}");
        assert!(result.extra_moves <= policy.move_budget(), "seed {seed}: {result:?}");
        if self.slots <= self.assignment.slots() {
            let voluntary = result.moves.iter().filter(|one| one.reason == PlacementReason::Balance).count();
            assert_eq!(result.extra_moves, voluntary, "seed {seed}");
        }
        let still = BalancePolicy::new(PolicyInput {
            move_budget: 0,
            tolerance: policy.tolerance(),
            ..PolicyInput::default()
        });
        let still = rebalance(&self.assignment, &costs, self.slots, &still.unwrap());
        assert!(
            result.after.ratio() <= still.after.ratio() + 1e-6,
            "seed {seed}: moves made the balance worse"
        );
        self.assignment = self.repeat(result, &costs, &policy);
    }

    /// Rebalances until nothing moves.
    fn repeat(&self, first: RebalancePlan, costs: &CostEstimate, policy: &BalancePolicy) -> Assignment {
        let mut last = first;
        for _ in 0..MAX_RUNS {
            let next = rebalance(&last.assignment, costs, self.slots, policy);
            if last.after.ratio() <= policy.tolerance() {
                assert!(
                    next.moves.is_empty(),
                    "seed {}: moves within the tolerance: {:?}",
                    self.seed,
                    next.moves
                );
            }
            if next.moves.is_empty() {
                return next.assignment;
            }
            assert!(next.after.ratio() <= last.after.ratio() + 1e-6, "seed {}", self.seed);
            last = next;
        }
        panic!("seed {}: still moving keys after {MAX_RUNS} runs", self.seed);
    }

    /// A decision by measurements, of which some windows are missing or incomplete.
    fn balance(&mut self) {
        let policy = self.policy(8);
        let is_measured = !self.rng.percent(10);
        let window = self.costs.iter().filter(|_| is_measured && !self.rng.percent(20));
        let window = CostWindow::new(window.map(|(key, cost)| (key.clone(), *cost)).collect());
        self.history.push(window, policy.history_windows());
        let keys: BTreeSet<String> = self.costs.keys().cloned().collect();
        let balanced = balance(&self.balanced, &keys, &self.history, &policy);
        self.check(&self.balanced, &balanced.plan);
        assert_eq!(balanced.plan.assignment.slots(), balanced.slots.slots, "seed {}", self.seed);
        assert!((2..=8).contains(&balanced.slots.slots), "seed {}: {:?}", self.seed, balanced.slots);
        if !is_measured && balanced.slots.reason != SlotReason::Bounds {
            assert_eq!(
                balanced.slots.slots,
                self.balanced.slots(),
                "seed {}: no data, but a decision",
                self.seed
            );
            assert_eq!(balanced.plan.extra_moves, 0, "seed {}", self.seed);
        }
        self.balanced = balanced.plan.assignment;
    }

    /// What holds for every result.
    fn check(&self, before: &Assignment, result: &RebalancePlan) {
        let seed = self.seed;
        let after = &result.assignment;
        assert!(after.placements().keys().eq(self.costs.keys()), "seed {seed}: not every key has a slot");
        assert!(after.placements().values().all(|one| one.slot < after.slots()), "seed {seed}");
        let moved: BTreeSet<&str> = result.moves.iter().map(|one| one.key.as_str()).collect();
        for (key, placement) in after.placements() {
            let previous = before.placements().get(key);
            assert_eq!(moved.contains(key.as_str()), previous != Some(placement), "seed {seed}: {key}");
        }
        for one in &result.moves {
            assert_eq!(one.from, before.slot_of(&one.key), "seed {seed}");
            assert_ne!(one.from, Some(one.to), "seed {seed}");
        }
        assert_eq!(result.forced_moves + result.extra_moves, result.moves.len(), "seed {seed}: {result:?}");
        assert_eq!(Assignment::from_json(&after.to_json()).unwrap(), *after, "seed {seed}");
        for heavy in &result.too_heavy {
            assert_eq!(after.slot_of(&heavy.key), Some(heavy.slot), "seed {seed}");
            assert!(heavy.cost > heavy.limit, "seed {seed}: {heavy:?}");
        }
    }
}
