//! Run times per shard key: measured in windows, and estimated for keys without a measurement.

use super::BalanceError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The cost of a key if nothing at all was measured: keys are then balanced by their number.
const DEFAULT_COST: Duration = Duration::from_secs(1);

/// A window is used only if at least this fraction of the keys was measured in it.
const MIN_COVERAGE: f64 = 0.5;

/// The run time per shard key that was measured in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostWindow(BTreeMap<String, Duration>);

impl CostWindow {
    /// The window with these run times.
    pub fn new(costs: BTreeMap<String, Duration>) -> Self {
        Self(costs)
    }

    /// The window with these run times in seconds. A value that is not a duration is an error.
    pub fn from_seconds(seconds: &BTreeMap<String, f64>) -> Result<Self, BalanceError> {
        let parse = |(key, seconds): (&String, &f64)| match Duration::try_from_secs_f64(*seconds) {
            Ok(cost) => Ok((key.clone(), cost)),
            Err(_) => Err(BalanceError::Cost { key: key.clone(), seconds: *seconds }),
        };
        seconds.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// The measured run time of a key.
    pub fn cost(&self, key: &str) -> Option<Duration> {
        self.0.get(key).copied()
    }

    /// Whether enough of these keys were measured.
    #[expect(clippy::cast_precision_loss, reason = "numbers of keys are small")]
    fn covers(&self, keys: &BTreeSet<String>) -> bool {
        let measured = keys.iter().filter(|key| self.0.contains_key(*key)).count();
        measured > 0 && measured as f64 >= keys.len() as f64 * MIN_COVERAGE
    }
}

/// The origin of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// The median of the windows in which the key was measured.
    Measured,
    /// The median of all measured keys, because the key itself was not measured.
    Median,
    /// A constant, because nothing was measured.
    Default,
}

/// The estimated run time of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCost {
    /// The run time.
    pub cost: Duration,
    /// Its origin.
    pub source: CostSource,
}

/// The estimated run time of every declared key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate(BTreeMap<String, KeyCost>);

impl CostEstimate {
    /// The estimate with these costs, all of them measured.
    pub fn of(costs: BTreeMap<String, Duration>) -> Self {
        let measured = |(key, cost)| (key, KeyCost { cost, source: CostSource::Measured });
        Self(costs.into_iter().map(measured).collect())
    }

    /// The cost of a key.
    pub fn get(&self, key: &str) -> Option<KeyCost> {
        self.0.get(key).copied()
    }

    /// All keys with their costs, in the order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, KeyCost)> {
        self.0.iter().map(|(key, cost)| (key.as_str(), *cost))
    }

    /// The estimate in which keys that were never measured cost nothing.
    pub(super) fn measured(&self) -> Self {
        let cost = |cost: &KeyCost| match cost.source {
            CostSource::Measured => *cost,
            CostSource::Median | CostSource::Default => KeyCost { cost: Duration::ZERO, ..*cost },
        };
        Self(self.0.iter().map(|(key, one)| (key.clone(), cost(one))).collect())
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The windows of the recent past, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostHistory {
    windows: Vec<CostWindow>,
}

impl CostHistory {
    /// The history with these windows, oldest first.
    pub fn new(windows: Vec<CostWindow>) -> Self {
        Self { windows }
    }

    /// Adds the newest window, and drops all but the newest `limit` windows
    /// ([`BalancePolicy::history_windows`](super::BalancePolicy::history_windows)).
    pub fn push(&mut self, window: CostWindow, limit: usize) {
        self.windows.push(window);
        let surplus = self.windows.len().saturating_sub(limit);
        self.windows.drain(..surplus);
    }

    /// The estimated cost of each of these keys: the median of its measurements, else the median of all measured
    /// keys, else a constant.
    pub fn estimate(&self, keys: &BTreeSet<String>) -> CostEstimate {
        let measured: BTreeMap<&String, Duration> = keys
            .iter()
            .filter_map(|key| Some((key, median(self.windows.iter().filter_map(|one| one.cost(key)))?)))
            .collect();
        let substitute = match median(measured.values().copied()) {
            Some(cost) => KeyCost { cost, source: CostSource::Median },
            None => KeyCost { cost: DEFAULT_COST, source: CostSource::Default },
        };
        let cost = |key: &String| match measured.get(key) {
            Some(cost) => KeyCost { cost: *cost, source: CostSource::Measured },
            None => substitute,
        };
        CostEstimate(keys.iter().map(|key| (key.clone(), cost(key))).collect())
    }

    /// The evidence for a decision about these keys, if `count` windows have to agree.
    pub(super) fn evidence(&self, keys: &BTreeSet<String>, count: usize) -> Evidence {
        let usable: Vec<&CostWindow> =
            self.windows.iter().rev().take_while(|window| window.covers(keys)).take(count).collect();
        let estimate = self.estimate(keys);
        if usable.len() < count || count == 0 {
            return Evidence { estimate, windows: Err(usable.len()) };
        }
        let complete = |window: &&CostWindow| {
            let cost = |(key, estimated): (&String, &KeyCost)| {
                let cost = window.cost(key).map(|cost| KeyCost { cost, source: CostSource::Measured });
                (key.clone(), cost.unwrap_or(*estimated))
            };
            CostEstimate(estimate.0.iter().map(cost).collect())
        };
        let windows = usable.iter().map(complete).collect();
        Evidence { estimate, windows: Ok(windows) }
    }
}

/// What the windows of a history say about the declared keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The estimated cost of every key.
    pub(super) estimate: CostEstimate,
    /// The newest windows, newest first, each with a cost for every key: the measured one, else the estimate. `Err`
    /// is the number of windows that can be used, if these are not enough: a window in which too few keys were
    /// measured decides nothing, and ends the sequence.
    pub(super) windows: Result<Vec<CostEstimate>, usize>,
}

/// The median; of an even number of values, the lower one of the two in the middle.
fn median(values: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut values: Vec<Duration> = values.collect();
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{CostHistory, CostSource, CostWindow, KeyCost};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn window(seconds: &[(&str, f64)]) -> CostWindow {
        let seconds: BTreeMap<String, f64> =
            seconds.iter().map(|(key, cost)| ((*key).to_owned(), *cost)).collect();
        CostWindow::from_seconds(&seconds).unwrap()
    }

    fn check(windows: &[&[(&str, f64)]], key: &str, expect: f64, source: CostSource) {
        let history = CostHistory::new(windows.iter().map(|one| window(one)).collect());
        let keys = ["a", "b", "c", "d"].map(str::to_owned).into();
        let cost = KeyCost { cost: Duration::from_secs_f64(expect), source };
        assert_eq!(history.estimate(&keys).get(key), Some(cost));
    }

    #[test]
    fn the_cost_of_a_key_is_its_median() {
        check(&[&[("a", 1.0)], &[("a", 90.0)], &[("a", 3.0)]], "a", 3.0, CostSource::Measured);
        check(&[&[("a", 1.0)], &[], &[("a", 3.0)]], "a", 1.0, CostSource::Measured);
    }

    #[test]
    fn a_key_without_a_measurement_costs_the_median_of_the_others() {
        check(&[&[("a", 1.0), ("b", 5.0), ("c", 6.0)]], "d", 5.0, CostSource::Median);
        // A key that is no longer declared does not count.
        check(&[&[("a", 1.0), ("old", 500.0), ("older", 500.0)]], "d", 1.0, CostSource::Median);
        check(&[], "d", 1.0, CostSource::Default);
    }

    #[test]
    fn a_value_that_is_not_a_duration_is_refused() {
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            let error = CostWindow::from_seconds(&[("a".to_owned(), seconds)].into()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the run time of `a` is {seconds} seconds, which is not a duration")
            );
        }
    }

    #[test]
    fn a_window_without_enough_data_ends_the_sequence() {
        let keys = ["a", "b", "c"].map(str::to_owned).into();
        let full = window(&[("a", 1.0), ("b", 1.0)]);
        let sparse = window(&[("a", 1.0), ("other", 1.0)]);
        let usable = |windows: &[&CostWindow]| {
            let history = CostHistory::new(windows.iter().map(|one| (*one).clone()).collect());
            history.evidence(&keys, 3).windows.map(|windows| windows.len())
        };
        assert_eq!(usable(&[&full, &full, &full]), Ok(3));
        assert_eq!(usable(&[&full, &full, &full, &sparse]), Err(0));
        assert_eq!(usable(&[&full, &sparse, &full, &full]), Err(2));
        assert_eq!(usable(&[&sparse, &full, &full, &full]), Ok(3));
    }

    #[test]
    fn the_oldest_windows_are_dropped() {
        let mut history = CostHistory::default();
        for cost in 1..=5 {
            history.push(window(&[("a", f64::from(cost))]), 3);
        }
        let expected = [3.0, 4.0, 5.0].map(|cost| window(&[("a", cost)]));
        assert_eq!(history, CostHistory::new(expected.into()));
    }
}
