//! Removal budgets: the maximum number of removals without approval.

use jiff::{SignedDuration, Timestamp};

use super::keys::KeyLimits;

/// A removal budget: an absolute number or a percentage of objects, whichever is greater.
///
/// ```
/// use qontract_runtime::guard::Budget;
///
/// let budget = Budget { count: 10, percent: 10 };
/// assert_eq!(budget.max_removals(40), 10);
/// assert_eq!(budget.max_removals(500), 50);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The absolute number of objects.
    pub count: usize,
    /// The percentage of objects.
    pub percent: usize,
}

impl Budget {
    /// Maximum number of removals out of `objects`.
    pub fn max_removals(self, objects: usize) -> usize {
        self.count.max(objects.saturating_mul(self.percent) / 100)
    }
}

/// The removal budgets at each level. Removals are counted across all processes, in a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// The budget of each shard.
    pub shard: Budget,
    /// The budget of each caller, across shards.
    pub caller: Budget,
    /// The budget of the integration as a whole.
    pub integration: Budget,
    /// The length of the window.
    pub window: SignedDuration,
    /// The limits at which a change counts as a removal.
    pub keys: KeyLimits,
}

impl Budgets {
    /// The start of the window that ends at `now`.
    pub fn window_start(&self, now: Timestamp) -> Timestamp {
        now.checked_sub(self.window).unwrap_or(Timestamp::MIN)
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            shard: Budget { count: 10, percent: 10 },
            caller: Budget { count: 20, percent: 10 },
            integration: Budget { count: 30, percent: 10 },
            window: SignedDuration::from_hours(24),
            keys: KeyLimits::default(),
        }
    }
}
