//! Why a step is held, in words.

use jiff::Timestamp;

use crate::plan::Hold;

/// Why a step is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The scope is not known well enough.
    Blocked(String),
    /// An approval is needed.
    Unapproved(Unapproved),
    /// It comes after a step that is held.
    AfterHeld,
    /// It comes after a step that is blocked.
    AfterBlocked,
}

/// Why a step needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapproved {
    /// When it was held first, if that was an earlier run.
    pub since: Option<Timestamp>,
    /// What the thing loses, if it stays: `it loses 5 of 9 keys, which counts as a removal`.
    pub loss: Option<String>,
    /// The reason, as the removal ledger records it.
    pub reason: String,
}

impl Refusal {
    /// An approval is needed for this reason.
    pub fn unapproved(reason: impl Into<String>) -> Self {
        Refusal::Unapproved(Unapproved { since: None, loss: None, reason: reason.into() })
    }

    /// Why what comes after the step is not done either.
    pub(super) fn of_next(&self) -> Self {
        match self.hold() {
            Hold::Approval | Hold::Predecessor => Refusal::AfterHeld,
            Hold::Unresolved => Refusal::AfterBlocked,
        }
    }

    /// What the step waits for.
    pub fn hold(&self) -> Hold {
        match self {
            Refusal::Blocked(_) | Refusal::AfterBlocked => Hold::Unresolved,
            Refusal::Unapproved(_) => Hold::Approval,
            Refusal::AfterHeld => Hold::Predecessor,
        }
    }

    /// Why, in words.
    pub fn why(&self) -> String {
        match self {
            Refusal::Blocked(why) => why.clone(),
            Refusal::AfterHeld => "it comes after a step that is held".to_owned(),
            Refusal::AfterBlocked => "it comes after a step that is not done".to_owned(),
            Refusal::Unapproved(Unapproved { since, loss, reason }) => {
                let since = since.map(|since| {
                    format!("held since {} until it is approved", since.strftime("%Y-%m-%d %H:%M"))
                });
                let parts = [since, loss.clone(), Some(reason.clone())];
                parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hold, Refusal, Unapproved};
    use jiff::Timestamp;

    #[test]
    fn a_refusal_says_since_when_what_is_lost_and_why() {
        let check = |since: Option<Timestamp>, loss: Option<&str>, expect: &str| {
            let (loss, reason) = (loss.map(str::to_owned), "too many".to_owned());
            assert_eq!(Refusal::Unapproved(Unapproved { since, loss, reason }).why(), expect);
        };
        let noon = Timestamp::constant(1_774_958_400, 0);
        check(None, None, "too many");
        check(None, Some("it loses keys"), "it loses keys: too many");
        check(Some(noon), None, "held since 2026-03-31 12:00 until it is approved: too many");
        check(
            Some(noon),
            Some("it loses keys"),
            "held since 2026-03-31 12:00 until it is approved: it loses keys: too many",
        );
        assert_eq!(Refusal::Blocked("not read".to_owned()).why(), "not read");
    }

    #[test]
    fn only_what_an_approval_releases_is_held() {
        let check = |refusal: Refusal, hold: Hold, is_held: bool, next: Refusal| {
            assert_eq!((refusal.hold(), refusal.hold().is_held()), (hold, is_held), "{refusal:?}");
            assert_eq!(refusal.of_next(), next, "{refusal:?}");
        };
        check(Refusal::Blocked("not read".to_owned()), Hold::Unresolved, false, Refusal::AfterBlocked);
        check(Refusal::AfterBlocked, Hold::Unresolved, false, Refusal::AfterBlocked);
        check(Refusal::unapproved("too many"), Hold::Approval, true, Refusal::AfterHeld);
        check(Refusal::AfterHeld, Hold::Predecessor, true, Refusal::AfterHeld);
        assert_eq!(Refusal::AfterHeld.why(), "it comes after a step that is held");
        assert_eq!(Refusal::AfterBlocked.why(), "it comes after a step that is not done");
    }
}
