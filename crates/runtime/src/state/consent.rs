//! Consent: removals that the declaration of a shard approves as a whole, such as an account with
//! `enableDeletion: true`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "ConsentText")]
pub enum RemovalConsent {
    /// Only removals that are approved by name.
    #[default]
    Named,
    /// Objects of these kinds may be removed and may lose keys. Protected kinds are included, because the consent
    /// names them.
    Kinds(BTreeSet<String>),
    /// All objects may be removed, except those of protected kinds.
    Any,
}

/// The form in which programs write consent: `"any"`, or a list of kinds.
#[derive(Deserialize)]
#[serde(untagged)]
enum ConsentText {
    Any(AnyKind),
    Kinds(BTreeSet<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum AnyKind {
    Any,
}

impl From<ConsentText> for RemovalConsent {
    fn from(text: ConsentText) -> Self {
        match text {
            ConsentText::Any(AnyKind::Any) => Self::Any,
            ConsentText::Kinds(kinds) => Self::Kinds(kinds),
        }
    }
}

impl RemovalConsent {
    /// Creates the consent for these kinds, spelled as in [`ObjectKey::kind`](crate::ObjectKey::kind).
    pub fn kinds<K: Into<String>>(kinds: impl IntoIterator<Item = K>) -> Self {
        Self::Kinds(kinds.into_iter().map(Into::into).collect())
    }

    /// Whether only removals that are approved by name are allowed.
    pub fn is_named(&self) -> bool {
        *self == Self::Named
    }
}
