//! Random fleets.

use crate::statistics::fair_share;
use qontract_fleet::balance::{BalancePolicy, CostEstimate, PolicyInput};
use qontract_testkit::SeededRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// A distribution of run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// 1 to 200 s, uniform.
    Uniform,
    /// A Pareto distribution with exponent 1.2, from 10 to 5,000 s.
    HeavyTail,
    /// 1 to 200 s, uniform; one key takes 3,000 s, three times the mean of ten slots.
    Dominated,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::Uniform, Self::HeavyTail, Self::Dominated];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform 1–200 s",
            Self::HeavyTail => "heavy tail",
            Self::Dominated => "one dominating key",
        }
    }

    /// The run times of a fleet.
    pub(crate) fn costs(self, rng: &mut SeededRng, keys: usize) -> BTreeMap<String, Duration> {
        let cost = |index: usize, rng: &mut SeededRng| match self {
            Self::Dominated if index == keys / 2 => Duration::from_mins(50),
            Self::Uniform | Self::Dominated => uniform(rng),
            Self::HeavyTail => {
                let unit = fraction(rng).max(1e-6);
                Duration::from_secs_f64((10.0 * unit.powf(-1.0 / 1.2)).min(5_000.0))
            }
        };
        (0..keys).map(|index| (format!("account=a{index:03}"), cost(index, rng))).collect()
    }
}

fn uniform(rng: &mut SeededRng) -> Duration {
    Duration::from_millis(1_000 + rng.below(199_001) as u64)
}

/// A number from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a random fraction")]
pub(crate) fn fraction(rng: &mut SeededRng) -> f64 {
    rng.below(1_000_001) as f64 / 1_000_000.0
}

/// The default policy with another tolerance and up to 100 slots. The target is the load that each of ten slots has
/// in a perfect balance.
pub(crate) fn policy(costs: &BTreeMap<String, Duration>, tolerance: f64) -> BalancePolicy {
    let target = fair_share(costs, 10).max(1.0);
    BalancePolicy::new(PolicyInput { target, max_slots: 100, tolerance, ..PolicyInput::default() }).unwrap()
}

pub(crate) fn estimate(costs: &BTreeMap<String, Duration>) -> CostEstimate {
    CostEstimate::of(costs.clone())
}
