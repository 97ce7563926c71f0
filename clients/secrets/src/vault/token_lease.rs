//! The lifetime of a token, and when to renew it. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// The lifetime of a token that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenLease {
    renew_at: Instant,
    expires_at: Instant,
    renewable: bool,
}

impl TokenLease {
    /// A lifetime in seconds from now; renewal is due in its last third. `None` and zero mean that the token
    /// never expires.
    pub fn new(seconds: Option<u64>, renewable: Option<bool>, now: Instant) -> Option<Self> {
        let length = Duration::from_secs(seconds.filter(|seconds| *seconds > 0)?);
        let ends = now.checked_add(length)?;
        Some(Self { renew_at: now + length * 2 / 3, expires_at: ends, renewable: renewable.unwrap_or(false) })
    }

    /// Whether renewal is due.
    pub fn needs_renewal(&self, now: Instant) -> bool {
        now >= self.renew_at
    }

    /// Whether the token has expired.
    pub fn is_expired(&self, now: Instant) -> bool {
        now >= self.expires_at
    }

    /// Whether the token can be renewed.
    pub fn is_renewable(&self) -> bool {
        self.renewable
    }

    /// The lease after a renewal. If the new lease does not end later than the old lease, the token has
    /// reached its maximum lifetime and is not renewed again.
    pub fn cap_renewal(self, old: &Self, now: Instant) -> Self {
        let spent = self.expires_at <= old.expires_at.max(now) + Duration::from_secs(1);
        Self { renewable: self.renewable && !spent, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::TokenLease;

    #[test]
    fn renewal_is_due_in_the_last_third() {
        let start = Instant::now();
        let lease = TokenLease::new(Some(90), Some(true), start).unwrap();
        for (after, due, over) in [(0, false, false), (59, false, false), (60, true, false), (90, true, true)]
        {
            let now = start + Duration::from_secs(after);
            assert_eq!((lease.needs_renewal(now), lease.is_expired(now)), (due, over), "{after}");
        }
    }

    #[test]
    fn a_token_that_never_expires_has_no_lease() {
        for seconds in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(TokenLease::new(seconds, Some(true), Instant::now()), None, "{seconds:?}");
        }
    }

    #[test]
    fn a_token_at_its_maximum_lifetime_is_not_renewed_again() {
        let start = Instant::now();
        let later = start + Duration::from_mins(1);
        let old = TokenLease::new(Some(90), Some(true), start).unwrap();
        for (seconds, renewable) in [(90, true), (31, false), (30, false), (3, false)] {
            let new = TokenLease::new(Some(seconds), Some(true), later).unwrap().cap_renewal(&old, later);
            assert_eq!(new.is_renewable(), renewable, "{seconds}");
        }
    }
}
