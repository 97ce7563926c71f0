//! How much may go without being asked for by name.

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

/// The budgets of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Of each shard.
    pub shard: Budget,
    /// Of the run as a whole.
    pub run: Budget,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { shard: Budget { count: 10, percent: 10 }, run: Budget { count: 30, percent: 10 } }
    }
}
