//! The lifetime of a token, and when to renew it. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// The lifetime of a token that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    due: Instant,
    ends: Instant,
    renewable: bool,
}

impl Lease {
    /// A lifetime in seconds from now; renewal is due in its last third. `None` and zero mean that the token
    /// never expires.
    pub fn new(seconds: Option<u64>, renewable: Option<bool>, now: Instant) -> Option<Self> {
        let length = Duration::from_secs(seconds.filter(|seconds| *seconds > 0)?);
        let ends = now.checked_add(length)?;
        Some(Self { due: now + length * 2 / 3, ends, renewable: renewable.unwrap_or(false) })
    }

    /// Whether renewal is due.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Whether the token has expired.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }

    /// Whether the token can be renewed.
    pub fn is_renewable(&self) -> bool {
        self.renewable
    }

    /// The lease after a renewal. If it does not end later than the old one, the token has reached its
    /// maximum lifetime and is not renewed again.
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
    fn renewal_is_due_in_the_last_third() {
        let start = Instant::now();
        let lease = Lease::new(Some(90), Some(true), start).unwrap();
        for (after, due, over) in [(0, false, false), (59, false, false), (60, true, false), (90, true, true)]
        {
            let now = start + Duration::from_secs(after);
            assert_eq!((lease.is_due(now), lease.is_over(now)), (due, over), "{after}");
        }
    }

    #[test]
    fn a_token_that_never_expires_has_no_lease() {
        for seconds in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(Lease::new(seconds, Some(true), Instant::now()), None, "{seconds:?}");
        }
    }

    #[test]
    fn a_token_at_its_maximum_lifetime_is_not_renewed_again() {
        let start = Instant::now();
        let later = start + Duration::from_mins(1);
        let old = Lease::new(Some(90), Some(true), start).unwrap();
        for (seconds, renewable) in [(90, true), (31, false), (30, false), (3, false)] {
            let new = Lease::new(Some(seconds), Some(true), later).unwrap().unless_spent(&old, later);
            assert_eq!(new.is_renewable(), renewable, "{seconds}");
        }
    }
}
