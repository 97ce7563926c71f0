//! Detects drift: compares a live object with the declared one, by its hash annotation and field by field.
//!
//! **Invariant:** an object that compares equal has the declared value in every declared field
//! (`tests/suite/properties.rs`). Fields that only the live object has are tolerated: server defaults, and
//! fields added by other writers.

mod replaced;
mod walk;

use serde_json::Value;

use crate::difference::{DifferenceSide, Disclosure, FieldDifference, Visibility};
use crate::mark::{SENSITIVE, SHA256SUM, annotation};
use crate::normalize;
use crate::object::{DesiredBody, LiveBody};
use crate::restart::{hash, preserve_restarts};

use walk::CompareWalk;

/// The result of comparing two objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectComparison {
    /// Nothing has to be written.
    Equal,
    /// At least one field differs.
    Differs(Vec<FieldDifference>),
}

impl ObjectComparison {
    /// The differences.
    pub fn differences(self) -> Vec<FieldDifference> {
        match self {
            ObjectComparison::Equal => Vec::new(),
            ObjectComparison::Differs(differences) => differences,
        }
    }
}

/// Compares the declared object with the live one.
///
/// They are equal if the hash annotation of the live object matches the declared object, and every declared
/// field has the declared value. Values of Secrets and of objects that are or were sensitive are never shown.
///
/// ```
/// use qontract_inventory::{DesiredBody, Disclosure, LiveBody, ObjectComparison, Owner, compare, to_write};
/// # use serde_json::json;
/// let body = |x: &str| {
///     json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": x}})
/// };
/// let owner = Owner::new("groups", "0.1.0", None)?;
/// let desired = DesiredBody::new(body("1"))?;
/// let mut live = to_write(&desired, None, &owner, "2026-01-01T12:00:00");
/// live["data"]["added-by-another"] = "2".into();
/// let compared = |live| compare(&desired, &LiveBody::new(live), Disclosure::Everything);
/// assert_eq!(compared(live.clone()), ObjectComparison::Equal);
///
/// live["data"]["x"] = "3".into();
/// assert_eq!(compared(live).differences()[0].path, "data.x");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn compare(desired: &DesiredBody, live: &LiveBody, disclosure: Disclosure<'_>) -> ObjectComparison {
    let was_sensitive = annotation(live.body(), SENSITIVE) == Some("true");
    let is_open =
        matches!(disclosure, Disclosure::Everything) && !was_sensitive && desired.kind() != "Secret";
    let show = if is_open { Visibility::Values } else { Visibility::Paths };
    let body = preserve_restarts(desired, live);
    let declared = match disclosure {
        Disclosure::PathsOf(declared) => Some(normalize::normalize_desired(declared)),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let mut differences = field_differences(&body, live.body(), show, declared.as_ref());
    let stored = live.mark().and_then(|mark| mark.sha256sum.as_deref());
    let declared = hash(&body).to_string();
    if differences.is_empty() && stored != Some(&declared) {
        let side =
            |hash: &str| DifferenceSide::of(Some(&hash.chars().take(12).collect::<String>().into()), show);
        let (before, after) = (stored.map_or(DifferenceSide::Absent, side), side(&declared));
        differences.push(FieldDifference { path: SHA256SUM.to_owned(), before, after });
    }
    if differences.is_empty() {
        return ObjectComparison::Equal;
    }
    if matches!(disclosure, Disclosure::Nothing) {
        let (before, after) = (DifferenceSide::Hidden, DifferenceSide::SecretContent);
        differences = vec![FieldDifference { path: "object".to_owned(), before, after }];
    }
    ObjectComparison::Differs(differences)
}

/// Whether the last write of the live object wrote this declaration, according to the hash annotation.
pub fn is_written(desired: &DesiredBody, live: &LiveBody) -> bool {
    let stored = live.mark().and_then(|mark| mark.sha256sum.as_deref());
    stored.is_some_and(|stored| *stored == hash(&preserve_restarts(desired, live)).to_string())
}

/// The declared fields whose live values differ.
fn field_differences(
    desired: &Value,
    live: &Value,
    show: Visibility,
    declared: Option<&Value>,
) -> Vec<FieldDifference> {
    let kind = desired["kind"].as_str().unwrap_or_default();
    let mut walk = CompareWalk::new(kind, show, declared);
    walk.value(&normalize::normalize_desired(desired), Some(&normalize::normalize_live(live)));
    let mut differences = walk.differences();
    differences.extend(replaced::replaced_empty_maps(desired, live, show));
    differences
}

/// Whether the live value equals the declared value.
pub(crate) fn holds(desired: &Value, live: Option<&Value>) -> bool {
    let mut walk = CompareWalk::new("", Visibility::Paths, None);
    walk.value(desired, live);
    walk.differences().is_empty()
}

#[cfg(test)]
mod tests;
