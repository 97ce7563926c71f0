//! How much may go without being asked for by name.

use jiff::{SignedDuration, Timestamp};

use super::keys::KeyLimits;

/// So many things, or such a part of them, whichever is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// So many things.
    pub count: usize,
    /// So many of a hundred.
    pub percent: usize,
}

impl Budget {
    /// How many of `objects` things may go.
    pub fn of(self, objects: usize) -> usize {
        self.count.max(objects.saturating_mul(self.percent) / 100)
    }
}

/// The budgets of removals without approval. Each is summed over all processes in a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Of each shard.
    pub shard: Budget,
    /// Of each caller, whichever shards its things are in.
    pub caller: Budget,
    /// Of the integration as a whole.
    pub integration: Budget,
    /// How long a removal counts.
    pub window: SignedDuration,
    /// When a change counts as a removal.
    pub keys: KeyLimits,
}

impl Budgets {
    /// When the window that ends `now` starts.
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
