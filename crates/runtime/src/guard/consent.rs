//! Decides which removals a consent covers.

use super::ProtectedKinds;
use crate::plan::Change;
use crate::state::RemovalConsent;

impl RemovalConsent {
    /// Whether the consent covers a change that counts as a removal.
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
