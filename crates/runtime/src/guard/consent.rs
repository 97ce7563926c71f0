//! Consent: removals that the declaration of a shard approves as a whole, such as an account with
//! `enableDeletion: true`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ProtectedKinds;
use crate::plan::Change;

/// The removals that the declaration of a shard approves as a whole, in addition to those that are approved by
/// name.
///
/// ```
/// use qontract_runtime::guard::{ProtectedKinds, RemovalConsent};
/// use qontract_runtime::{Change, ChangeKind, ObjectKey, Scope};
///
/// let protected = ProtectedKinds::new(["Database"]);
/// let remove = |kind: &str| {
///     let object = ObjectKey { scope: Scope::default(), kind: kind.to_owned(), name: "x".to_owned() };
///     Change::new(ChangeKind::Remove, object, "remove")
/// };
/// assert!(RemovalConsent::Any.covers(&remove("Record"), &protected));
/// assert!(!RemovalConsent::Any.covers(&remove("Database"), &protected), "only if it is named");
/// assert!(RemovalConsent::kinds(["Database"]).covers(&remove("Database"), &protected));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RemovalConsent {
    /// None: only removals that are approved by name.
    #[default]
    Named,
    /// Objects of these kinds may be removed, and may lose keys; also protected kinds, because they are named.
    Kinds(BTreeSet<String>),
    /// All objects may be removed, except those of protected kinds.
    Any,
}

impl RemovalConsent {
    /// Consent for these kinds, spelled as in [`ObjectKey::kind`](crate::ObjectKey::kind).
    pub fn kinds<K: Into<String>>(kinds: impl IntoIterator<Item = K>) -> Self {
        Self::Kinds(kinds.into_iter().map(Into::into).collect())
    }

    /// Whether nothing is approved as a whole.
    pub fn is_named(&self) -> bool {
        *self == Self::Named
    }

    /// Whether it approves a change that counts as a removal.
    pub fn covers(&self, change: &Change, protected: &ProtectedKinds) -> bool {
        let kind = &change.object.kind;
        match self {
            Self::Named => false,
            Self::Kinds(kinds) => kinds.contains(kind),
            Self::Any => change.kind.removes() && !protected.contains(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Scope;
    use crate::plan::{ChangeKind, ObjectKey};

    #[test]
    fn consent_covers_protected_kinds_and_losses_only_by_name() {
        let protected = ProtectedKinds::new(["Namespace"]);
        let check = |consent: &RemovalConsent, kind: ChangeKind, object: &str, expect: bool| {
            let (scope, name) = (Scope::default(), "x".to_owned());
            let change = Change::new(kind, ObjectKey { scope, kind: object.to_owned(), name }, "do");
            assert_eq!(consent.covers(&change, &protected), expect, "{consent:?} {kind:?} {object}");
        };
        for kind in ChangeKind::ALL {
            check(&RemovalConsent::Named, kind, "Role", false);
            check(&RemovalConsent::Any, kind, "Role", kind.removes());
            check(&RemovalConsent::Any, kind, "Namespace", false);
            let named = RemovalConsent::kinds(["Namespace", "Role"]);
            check(&named, kind, "Role", true);
            check(&named, kind, "Namespace", true);
            check(&named, kind, "role", false);
            check(&RemovalConsent::kinds([""; 0]), kind, "Role", false);
        }
        assert_eq!(RemovalConsent::default(), RemovalConsent::Named);
    }
}
