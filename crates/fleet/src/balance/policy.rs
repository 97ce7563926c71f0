//! The policy of an integration whose shards scale themselves.

use super::BalanceError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The lowest number of windows that have to agree before anything changes.
const MIN_WINDOWS: u32 = 3;

/// The highest number of slots of an integration.
const MAX_SLOTS: u32 = 10_000;

/// The highest target: a year.
const MAX_TARGET: Duration = Duration::from_hours(365 * 24);

/// The fields of a policy, not validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyInput {
    /// The run time that a slot should have, in seconds.
    pub target: f64,
    /// The lowest number of slots.
    pub min_slots: u32,
    /// The highest number of slots.
    pub max_slots: u32,
    /// How many consecutive windows have to agree before anything changes.
    pub windows: u32,
    /// How many keys may move per decision to improve the balance. Keys that have to move are not counted: those
    /// whose slot is gone, and the share of a new slot.
    pub move_budget: u32,
    /// A rebalance ends when the difference of the largest and the smallest load, relative to the mean load, is
    /// at most this.
    pub tolerance: f64,
    /// Changes begin when a load differs from its goal by more than this fraction, in all windows.
    pub dead_band: f64,
}

impl Default for PolicyInput {
    fn default() -> Self {
        Self {
            target: 300.0,
            min_slots: 1,
            max_slots: 10,
            windows: 5,
            move_budget: 8,
            tolerance: 0.025,
            dead_band: 0.15,
        }
    }
}

/// A valid policy.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancePolicy {
    input: PolicyInput,
    target: Duration,
}

impl BalancePolicy {
    /// Validates a policy.
    pub fn new(input: PolicyInput) -> Result<Self, BalanceError> {
        let invalid = |field, reason: &str| Err(BalanceError::Policy { field, reason: reason.to_owned() });
        let target = match Duration::try_from_secs_f64(input.target) {
            Ok(target) if (Duration::from_millis(1)..=MAX_TARGET).contains(&target) => target,
            _ => return invalid("target", "it must be at least a millisecond, and at most a year"),
        };
        if input.min_slots == 0 {
            return invalid("minSlots", "it must be at least 1");
        }
        if input.max_slots < input.min_slots {
            return invalid("maxSlots", "it must not be less than `minSlots`");
        }
        if input.max_slots > MAX_SLOTS {
            return invalid("maxSlots", &format!("it must not exceed {MAX_SLOTS}"));
        }
        if input.windows < MIN_WINDOWS {
            return invalid("windows", &format!("it must be at least {MIN_WINDOWS}"));
        }
        if !(0.0..1.0).contains(&input.tolerance) {
            return invalid("tolerance", "it must be at least 0 and less than 1");
        }
        if !(0.0..1.0).contains(&input.dead_band) || input.dead_band < input.tolerance {
            return invalid("deadBand", "it must be at least `tolerance` and less than 1");
        }
        Ok(Self { input, target })
    }

    /// The run time that a slot should have.
    pub fn target(&self) -> Duration {
        self.target
    }

    /// The lowest number of slots.
    pub fn min_slots(&self) -> u32 {
        self.input.min_slots
    }

    /// The highest number of slots.
    pub fn max_slots(&self) -> u32 {
        self.input.max_slots
    }

    /// How many consecutive windows have to agree before anything changes.
    pub fn windows(&self) -> usize {
        self.input.windows as usize
    }

    /// How many windows a history should keep: the estimates of costs follow a change only if more than half of these
    /// windows show it.
    pub fn history_windows(&self) -> usize {
        2 * self.windows() + 1
    }

    /// How many keys may move per decision to improve the balance.
    pub fn move_budget(&self) -> usize {
        self.input.move_budget as usize
    }

    /// The spread at which a rebalance ends.
    pub fn tolerance(&self) -> f64 {
        self.input.tolerance
    }

    /// The deviation at which changes begin.
    pub fn dead_band(&self) -> f64 {
        self.input.dead_band
    }
}

#[cfg(test)]
mod tests {
    use super::{BalancePolicy, PolicyInput};

    fn check(input: PolicyInput, expect: &str) {
        assert_eq!(BalancePolicy::new(input).unwrap_err().to_string(), expect);
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_refused() {
        let valid = PolicyInput::default;
        assert!(BalancePolicy::new(valid()).is_ok());
        let invalid =
            |field: &str, reason: &str| format!("`{field}` of the balance policy is invalid: {reason}");
        for target in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 1e9] {
            check(
                PolicyInput { target, ..valid() },
                &invalid("target", "it must be at least a millisecond, and at most a year"),
            );
        }
        check(PolicyInput { min_slots: 0, ..valid() }, &invalid("minSlots", "it must be at least 1"));
        check(
            PolicyInput { min_slots: 11, ..valid() },
            &invalid("maxSlots", "it must not be less than `minSlots`"),
        );
        check(PolicyInput { max_slots: 10_001, ..valid() }, &invalid("maxSlots", "it must not exceed 10000"));
        check(PolicyInput { windows: 2, ..valid() }, &invalid("windows", "it must be at least 3"));
        for tolerance in [-0.1, 1.0, f64::NAN] {
            check(
                PolicyInput { tolerance, ..valid() },
                &invalid("tolerance", "it must be at least 0 and less than 1"),
            );
        }
        for dead_band in [0.01, 1.0, f64::NAN] {
            check(
                PolicyInput { dead_band, ..valid() },
                &invalid("deadBand", "it must be at least `tolerance` and less than 1"),
            );
        }
    }

    #[test]
    fn an_unknown_field_is_refused_and_a_missing_field_has_its_default() {
        let read = |text: &str| serde_json::from_str::<PolicyInput>(text);
        assert_eq!(
            read(r#"{"target": 60}"#).unwrap(),
            PolicyInput { target: 60.0, ..PolicyInput::default() }
        );
        assert!(read(r#"{"targets": 60}"#).unwrap_err().to_string().contains("unknown field"));
    }
}
