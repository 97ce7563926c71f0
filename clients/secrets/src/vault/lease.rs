//! How long a token lives, and when it is to be prolonged. Pure: the time comes in as an argument.

use std::time::Duration;

use tokio::time::Instant;

/// The life of a token that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    due: Instant,
    ends: Instant,
    renewable: bool,
}

impl Lease {
    /// A life of so many seconds from now, of which the last third is for prolonging it. None and zero seconds are a life
    /// without an end.
    pub fn new(seconds: Option<u64>, renewable: Option<bool>, now: Instant) -> Option<Self> {
        let length = Duration::from_secs(seconds.filter(|seconds| *seconds > 0)?);
        let ends = now.checked_add(length)?;
        Some(Self { due: now + length * 2 / 3, ends, renewable: renewable.unwrap_or(false) })
    }

    /// Whether it is time for a longer one.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Whether it is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }

    /// Whether it can be prolonged.
    pub fn is_renewable(&self) -> bool {
        self.renewable
    }

    /// The same, not to be prolonged again if that did not make it longer than the old one: the token has reached the
    /// greatest age it may have.
    pub fn unless_spent(self, old: &Self, now: Instant) -> Self {
        let spent = self.ends <= old.ends.max(now) + Duration::from_secs(1);
        Self { renewable: self.renewable && !spent, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Lease;

    #[test]
    fn the_last_third_is_for_prolonging() {
        let start = Instant::now();
        let lease = Lease::new(Some(90), Some(true), start).unwrap();
        for (after, due, over) in [(0, false, false), (59, false, false), (60, true, false), (90, true, true)]
        {
            let now = start + Duration::from_secs(after);
            assert_eq!((lease.is_due(now), lease.is_over(now)), (due, over), "{after}");
        }
    }

    #[test]
    fn a_token_without_an_end_has_no_lease() {
        for seconds in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(Lease::new(seconds, Some(true), Instant::now()), None, "{seconds:?}");
        }
    }

    #[test]
    fn what_gains_nothing_is_not_prolonged_again() {
        let start = Instant::now();
        let later = start + Duration::from_mins(1);
        let old = Lease::new(Some(90), Some(true), start).unwrap();
        for (seconds, renewable) in [(90, true), (31, false), (30, false), (3, false)] {
            let new = Lease::new(Some(seconds), Some(true), later).unwrap().unless_spent(&old, later);
            assert_eq!(new.is_renewable(), renewable, "{seconds}");
        }
    }
}
