//! Compares a live object with the declared one: by the hash on it, and field by field.
//!
//! **Invariant:** every declared field holds in an equal object (`tests/properties.rs`). Fields that only the
//! live object has are tolerated: defaults, and additions of others.

pub(crate) mod items;
mod walk;

use serde_json::Value;

use crate::difference::{Difference, Disclosure, Show, Side};
use crate::mark::{SENSITIVE, SHA256SUM, annotation};
use crate::normal;
use crate::object::{Desired, Live};
use crate::restart::{hash, keep_restarts};

use walk::Walk;

/// The result of comparing two objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing has to be written.
    Equal,
    /// The differences; never empty.
    Differs(Vec<Difference>),
}

impl Comparison {
    /// The differences.
    pub fn differences(self) -> Vec<Difference> {
        match self {
            Comparison::Equal => Vec::new(),
            Comparison::Differs(differences) => differences,
        }
    }
}

/// Compares the declared object with the live one.
///
/// They are equal if the hash on the live object is that of the declared one, and every declared field holds.
/// Values of Secrets are never shown, nor are values of an object that is or was sensitive.
pub fn compare(desired: &Desired, live: &Live, disclosure: Disclosure<'_>) -> Comparison {
    let was_sensitive = annotation(live.body(), SENSITIVE) == Some("true");
    let is_open =
        matches!(disclosure, Disclosure::Everything) && !was_sensitive && desired.kind() != "Secret";
    let show = if is_open { Show::Values } else { Show::Paths };
    let body = keep_restarts(desired, live);
    let declared = match disclosure {
        Disclosure::PathsOf(declared) => Some(normal::of_desired(declared)),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let mut differences = fields(&body, live.body(), show, declared.as_ref());
    let stored = live.mark().and_then(|mark| mark.sha256sum.as_deref());
    let declared = hash(&body).to_string();
    if differences.is_empty() && stored != Some(&declared) {
        let side = |hash: &str| Side::of(Some(&hash.chars().take(12).collect::<String>().into()), show);
        let (before, after) = (stored.map_or(Side::Absent, side), side(&declared));
        differences.push(Difference { path: SHA256SUM.to_owned(), before, after });
    }
    if differences.is_empty() {
        return Comparison::Equal;
    }
    if matches!(disclosure, Disclosure::Nothing) {
        let (before, after) = (Side::Hidden, Side::SecretContent);
        differences = vec![Difference { path: "object".to_owned(), before, after }];
    }
    Comparison::Differs(differences)
}

/// The declared fields that do not hold.
fn fields(desired: &Value, live: &Value, show: Show, declared: Option<&Value>) -> Vec<Difference> {
    let kind = desired["kind"].as_str().unwrap_or_default();
    let mut walk = Walk::new(kind, show, declared);
    walk.value(&normal::of_desired(desired), Some(&normal::of_live(live)));
    walk.differences()
}

/// Whether a declared value holds.
pub(crate) fn holds(desired: &Value, live: Option<&Value>) -> bool {
    let mut walk = Walk::new("", Show::Paths, None);
    walk.value(desired, live);
    walk.differences().is_empty()
}

#[cfg(test)]
mod tests;
