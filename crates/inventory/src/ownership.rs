//! Ownership of an object, relative to one owner. An object of another caller of the same integration is ours
//! only if that caller no longer exists.

use std::collections::BTreeSet;

use crate::mark::{Owner, OwnerMark};

/// The existing callers of an integration.
///
/// An object of another caller is taken over once that caller no longer exists in the data:
///
/// ```
/// use qontract_inventory::{Callers, DesiredBody, Disclosure, LiveBody, ObjectIntent, Owner, Verdict};
/// use qontract_inventory::{PresentIntent, Replacement, decide, to_write};
/// # use serde_json::json;
/// # let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
/// let owner = |caller: &str| Owner::new("deploy", "0.1.0", Some(caller.to_owned()));
/// let desired = DesiredBody::new(body)?;
/// let live = LiveBody::new(to_write(&desired, None, &owner("old")?, "2026-01-01T12:00:00"));
/// # let moved_from = Default::default();
/// let intent = ObjectIntent::Present(PresentIntent {
///     body: &desired,
///     moved_from: &moved_from,
///     disclosure: Disclosure::Everything,
///     replacement: Replacement::WithoutPods,
/// });
///
/// let us = owner("shop")?;
/// let verdict = |callers: Callers| decide(&us, &callers, intent, Some(&live));
/// let both = ["old", "shop"].map(str::to_owned).into();
/// assert!(matches!(verdict(Callers::Whole(both)), Verdict::Refuse(_)));
/// assert!(matches!(verdict(Callers::Unknown), Verdict::Refuse(_)));
/// assert!(matches!(verdict(Callers::Whole(["shop".to_owned()].into())), Verdict::TakeOver { .. }));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Only a part of the data was read: it is unknown whether a caller still exists.
    Unknown,
    /// All callers of the integration in the whole bundle.
    Whole(BTreeSet<String>),
}

/// Whether another caller still exists in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerStatus {
    /// The caller exists.
    Present,
    /// The caller was removed or renamed.
    Gone,
    /// The caller may exist: only a part of the data was read.
    Unknown,
}

/// Ownership of an object, relative to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership<'a> {
    /// Owned by us: same integration, caller and major version, with a hash.
    Ours,
    /// Owned by this integration and caller, but written by a different major version or without a hash.
    Outdated,
    /// Owned by this integration without a caller, although our owner has a caller.
    Unclaimed,
    /// Owned by another caller of this integration.
    Caller(&'a str, CallerStatus),
    /// Owned by another integration.
    Integration(&'a str),
    /// The object has no mark.
    Unmarked,
}

impl<'a> Ownership<'a> {
    /// The ownership of an object with this mark.
    pub fn of(owner: &Owner, callers: &Callers, mark: Option<&'a OwnerMark>) -> Self {
        let Some(mark) = mark else { return Ownership::Unmarked };
        if mark.integration != owner.integration() {
            return Ownership::Integration(&mark.integration);
        }
        match (owner.caller(), mark.caller.as_deref()) {
            (Some(_), None) => Ownership::Unclaimed,
            (ours, Some(theirs)) if ours != Some(theirs) => {
                Ownership::Caller(theirs, callers.status_of(theirs))
            }
            _ if mark.is_managed_by(owner) => Ownership::Ours,
            _ => Ownership::Outdated,
        }
    }
}

impl Callers {
    fn status_of(&self, caller: &str) -> CallerStatus {
        match self {
            Callers::Unknown => CallerStatus::Unknown,
            Callers::Whole(all) if all.contains(caller) => CallerStatus::Present,
            Callers::Whole(_) => CallerStatus::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallerStatus, Callers, Ownership};
    use crate::mark::{Owner, OwnerMark};

    /// Checks the ownership of an object of `openshift-saas-deploy` with this caller and version.
    fn check(ours: Option<&str>, theirs: Option<&str>, version: &str, expect: Ownership<'_>) {
        let owner = Owner::of("openshift-saas-deploy", ours.map(str::to_owned)).unwrap();
        let mark = OwnerMark {
            integration: "openshift-saas-deploy".to_owned(),
            version: Some(version.to_owned()),
            sha256sum: Some("x".to_owned()),
            update: None,
            caller: theirs.map(str::to_owned),
        };
        let callers = Callers::Whole(["one".to_owned(), "two".to_owned()].into());
        assert_eq!(Ownership::of(&owner, &callers, Some(&mark)), expect);
    }

    #[test]
    fn integration_caller_and_version_make_it_ours() {
        check(None, None, "0.1.0", Ownership::Ours);
        check(Some("one"), Some("one"), "0.9.9", Ownership::Ours);
        check(Some("one"), Some("one"), "1.0.0", Ownership::Outdated);
        check(None, None, "", Ownership::Outdated);
    }

    #[test]
    fn another_caller_owns_its_object_regardless_of_the_version() {
        check(Some("one"), Some("two"), "1.0.0", Ownership::Caller("two", CallerStatus::Present));
        check(Some("one"), Some("old"), "0.1.0", Ownership::Caller("old", CallerStatus::Gone));
        check(None, Some("two"), "0.1.0", Ownership::Caller("two", CallerStatus::Present));
        check(None, Some("old"), "0.1.0", Ownership::Caller("old", CallerStatus::Gone));
    }

    #[test]
    fn an_object_without_a_caller_is_unclaimed() {
        check(Some("one"), None, "0.1.0", Ownership::Unclaimed);
        check(Some("one"), None, "1.0.0", Ownership::Unclaimed);
    }
}
