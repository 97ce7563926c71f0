//! Ownership of an object, relative to one owner.

use std::collections::BTreeSet;

use crate::mark::{Mark, Owner};

/// The existing callers of an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Only a part of the data was read: it is unknown whether a caller still exists.
    Unknown,
    /// All callers of the integration in the whole bundle.
    Whole(BTreeSet<String>),
}

/// Whether another caller still exists in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It exists.
    Living,
    /// It was removed or renamed.
    Gone,
    /// It may exist.
    Unknown,
}

/// Ownership of an object, relative to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Ours: this integration, this caller, this major version, with a hash.
    Ours,
    /// Of this integration and caller, but of another major version or without a hash.
    Outdated,
    /// Of this integration, without a caller, while we have one.
    Unclaimed,
    /// Of another caller of this integration.
    Caller(&'a str, Life),
    /// Of another integration.
    Integration(&'a str),
    /// Without a mark.
    Unmarked,
}

impl<'a> Standing<'a> {
    /// The ownership of an object with this mark.
    pub fn of(owner: &Owner, callers: &Callers, mark: Option<&'a Mark>) -> Self {
        let Some(mark) = mark else { return Standing::Unmarked };
        if mark.integration != owner.integration() {
            return Standing::Integration(&mark.integration);
        }
        match (owner.caller(), mark.caller.as_deref()) {
            (Some(_), None) => Standing::Unclaimed,
            (ours, Some(theirs)) if ours != Some(theirs) => Standing::Caller(theirs, callers.life_of(theirs)),
            _ if mark.is_managed_by(owner) => Standing::Ours,
            _ => Standing::Outdated,
        }
    }
}

impl Callers {
    fn life_of(&self, caller: &str) -> Life {
        match self {
            Callers::Unknown => Life::Unknown,
            Callers::Whole(all) if all.contains(caller) => Life::Living,
            Callers::Whole(_) => Life::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Callers, Life, Standing};
    use crate::mark::{Mark, Owner};

    /// Checks the ownership of an object of `openshift-saas-deploy` with this caller and version.
    fn check(ours: Option<&str>, theirs: Option<&str>, version: &str, expect: Standing<'_>) {
        let owner = Owner::of("openshift-saas-deploy", ours.map(str::to_owned)).unwrap();
        let mark = Mark {
            integration: "openshift-saas-deploy".to_owned(),
            version: Some(version.to_owned()),
            sha256sum: Some("x".to_owned()),
            update: None,
            caller: theirs.map(str::to_owned),
        };
        let callers = Callers::Whole(["one".to_owned(), "two".to_owned()].into());
        assert_eq!(Standing::of(&owner, &callers, Some(&mark)), expect);
    }

    #[test]
    fn integration_caller_and_version_make_it_ours() {
        check(None, None, "0.1.0", Standing::Ours);
        check(Some("one"), Some("one"), "0.9.9", Standing::Ours);
        check(Some("one"), Some("one"), "1.0.0", Standing::Outdated);
        check(None, None, "", Standing::Outdated);
    }

    #[test]
    fn another_caller_owns_its_object_regardless_of_the_version() {
        check(Some("one"), Some("two"), "1.0.0", Standing::Caller("two", Life::Living));
        check(Some("one"), Some("old"), "0.1.0", Standing::Caller("old", Life::Gone));
        check(None, Some("two"), "0.1.0", Standing::Caller("two", Life::Living));
        check(None, Some("old"), "0.1.0", Standing::Caller("old", Life::Gone));
    }

    #[test]
    fn an_object_without_a_caller_is_unclaimed() {
        check(Some("one"), None, "0.1.0", Standing::Unclaimed);
        check(Some("one"), None, "1.0.0", Standing::Unclaimed);
    }
}
