//! The reasons why steps are held.

use jiff::Timestamp;

use crate::plan::Hold;

/// The reason why a step is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The scope was not read, or an object in the scope is unresolved.
    Blocked(String),
    /// The step needs an approval.
    Unapproved(MissingApproval),
    /// The step follows a held step.
    AfterHeld,
    /// The step follows a blocked step.
    AfterBlocked,
}

/// The reason why a step needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingApproval {
    /// The start time of the earlier run that first held the step, if any.
    pub since: Option<Timestamp>,
    /// The loss of keys of an object that is not removed: `it loses 5 of 9 keys, which counts as a removal`.
    pub loss: Option<String>,
    /// The reason, as recorded in the removal ledger.
    pub reason: String,
}

impl Refusal {
    /// Creates a refusal that needs an approval, for this reason.
    pub fn unapproved(reason: impl Into<String>) -> Self {
        Refusal::Unapproved(MissingApproval { since: None, loss: None, reason: reason.into() })
    }

    /// The refusal of the steps that follow the refused step.
    pub(super) fn for_successor(&self) -> Self {
        match self.hold() {
            Hold::Approval | Hold::Predecessor => Refusal::AfterHeld,
            Hold::Unresolved => Refusal::AfterBlocked,
        }
    }

    /// The condition that releases the step.
    pub fn hold(&self) -> Hold {
        match self {
            Refusal::Blocked(_) | Refusal::AfterBlocked => Hold::Unresolved,
            Refusal::Unapproved(_) => Hold::Approval,
            Refusal::AfterHeld => Hold::Predecessor,
        }
    }

    /// The reason, as shown to people.
    pub fn why(&self) -> String {
        match self {
            Refusal::Blocked(why) => why.clone(),
            Refusal::AfterHeld => "it follows a step that is held".to_owned(),
            Refusal::AfterBlocked => "it follows a step that is not applied".to_owned(),
            Refusal::Unapproved(MissingApproval { since, loss, reason }) => {
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
    use super::{Hold, MissingApproval, Refusal};
    use jiff::Timestamp;

    #[test]
    fn a_refusal_names_time_loss_and_reason() {
        let check = |since: Option<Timestamp>, loss: Option<&str>, expect: &str| {
            let (loss, reason) = (loss.map(str::to_owned), "too many".to_owned());
            assert_eq!(Refusal::Unapproved(MissingApproval { since, loss, reason }).why(), expect);
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
    fn only_steps_that_an_approval_releases_are_held() {
        let check = |refusal: Refusal, hold: Hold, is_held: bool, next: Refusal| {
            assert_eq!((refusal.hold(), refusal.hold().is_held()), (hold, is_held), "{refusal:?}");
            assert_eq!(refusal.for_successor(), next, "{refusal:?}");
        };
        check(Refusal::Blocked("not read".to_owned()), Hold::Unresolved, false, Refusal::AfterBlocked);
        check(Refusal::AfterBlocked, Hold::Unresolved, false, Refusal::AfterBlocked);
        check(Refusal::unapproved("too many"), Hold::Approval, true, Refusal::AfterHeld);
        check(Refusal::AfterHeld, Hold::Predecessor, true, Refusal::AfterHeld);
        assert_eq!(Refusal::AfterHeld.why(), "it follows a step that is held");
        assert_eq!(Refusal::AfterBlocked.why(), "it follows a step that is not applied");
    }
}
