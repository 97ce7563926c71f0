//! Differences between objects, reduced to the parts that may be shown. **Invariant:** sensitive values are
//! never part of a difference.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

/// One side of a difference, reduced to the parts that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceSide {
    /// No value.
    Absent,
    /// The whole value. Reports redact and then shorten it.
    Shown(Value),
    /// A value that is not shown.
    Hidden,
    /// Content that depends on a secret and is not shown at all.
    SecretContent,
    /// Number of differing fields below the path that come from a secret; not even the names of these fields
    /// are shown.
    SecretFields(usize),
}

/// The parts of an object that may be shown.
#[derive(Clone, Copy, Debug)]
pub enum Disclosure<'a> {
    /// Everything; for a `Secret`, only paths.
    Everything,
    /// Only the fact that the object differs.
    Nothing,
    /// Only the paths of fields, without values.
    Paths,
    /// Only the paths of this object. Other fields come from a secret and are only counted.
    PathsOf(&'a Value),
}

/// Whether values may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Values,
    Paths,
}

impl DifferenceSide {
    /// The side that holds `value`, or [`Self::Absent`].
    pub(crate) fn of(value: Option<&Value>, show: Visibility) -> Self {
        match (value, show) {
            (None, _) => DifferenceSide::Absent,
            (Some(_), Visibility::Paths) => DifferenceSide::Hidden,
            (Some(value), Visibility::Values) => DifferenceSide::Shown(value.clone()),
        }
    }

    /// The side that holds a string, or [`Self::Absent`].
    pub(crate) fn text(text: Option<&str>) -> Self {
        text.map_or(DifferenceSide::Absent, |text| DifferenceSide::of(Some(&text.into()), Visibility::Values))
    }
}

/// One difference between the declared object and the live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// The path, as in `spec.template.spec.containers[web].image`.
    pub path: String,
    /// The live value.
    pub before: DifferenceSide,
    /// The declared value.
    pub after: DifferenceSide,
}

/// Differences in the order in which they were found. Fields that come from a secret are only counted, in one
/// difference for each visible path.
#[derive(Debug, Default)]
pub(crate) struct DifferenceList {
    all: Vec<FieldDifference>,
    /// For each path, the position in `all` of the difference that counts secret fields.
    secret: HashMap<String, usize>,
}

impl DifferenceList {
    pub fn push(&mut self, difference: FieldDifference) {
        self.all.push(difference);
    }

    /// Counts a field, whose name may come from a secret, below the visible path `path`. The empty path
    /// denotes the whole object.
    pub fn count_secret(&mut self, path: String) {
        let path = if path.is_empty() { "object".to_owned() } else { path };
        let position = *self.secret.entry(path.clone()).or_insert(self.all.len());
        match self.all.get_mut(position) {
            Some(FieldDifference { after: DifferenceSide::SecretFields(count), .. }) => *count += 1,
            _ => self.push(FieldDifference {
                path,
                before: DifferenceSide::Hidden,
                after: DifferenceSide::SecretFields(1),
            }),
        }
    }

    pub fn into_vec(self) -> Vec<FieldDifference> {
        self.all
    }
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &DifferenceSide| match side {
            DifferenceSide::Absent => "absent".to_owned(),
            DifferenceSide::Shown(value) => value.to_string(),
            DifferenceSide::Hidden | DifferenceSide::SecretContent | DifferenceSide::SecretFields(_) => {
                "…".to_owned()
            }
        };
        match (&self.before, &self.after) {
            (_, DifferenceSide::SecretContent) => {
                write!(f, "{}: content that depends on a secret differs", self.path)
            }
            (_, DifferenceSide::SecretFields(1)) => {
                write!(f, "{}: 1 field that comes from a secret differs", self.path)
            }
            (_, DifferenceSide::SecretFields(count)) => {
                write!(f, "{}: {count} fields that come from a secret differ", self.path)
            }
            (DifferenceSide::Absent, DifferenceSide::Hidden) => write!(f, "{}: added", self.path),
            (DifferenceSide::Hidden, DifferenceSide::Absent) => write!(f, "{}: removed", self.path),
            (DifferenceSide::Hidden, _) | (_, DifferenceSide::Hidden) => write!(f, "{}: changed", self.path),
            (before, after) => write!(f, "{}: {} → {}", self.path, side(before), side(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DifferenceSide, FieldDifference, Visibility};
    use serde_json::json;

    fn check(before: DifferenceSide, after: DifferenceSide, expect: &str) {
        assert_eq!(FieldDifference { path: "data.x".to_owned(), before, after }.to_string(), expect);
    }

    #[test]
    fn a_difference_shows_before_and_after() {
        let shown = |value: serde_json::Value| DifferenceSide::of(Some(&value), Visibility::Values);
        check(shown(json!("1")), shown(json!("2")), "data.x: \"1\" → \"2\"");
        check(DifferenceSide::Absent, shown(json!(3)), "data.x: absent → 3");
        check(shown(json!("a\nb")), shown(json!({"a": []})), "data.x: \"a\\nb\" → {\"a\":[]}");
    }

    #[test]
    fn a_hidden_value_is_not_printed() {
        let hidden = || DifferenceSide::of(Some(&json!("secret")), Visibility::Paths);
        check(hidden(), hidden(), "data.x: changed");
        check(DifferenceSide::Absent, hidden(), "data.x: added");
        check(hidden(), DifferenceSide::Absent, "data.x: removed");
    }

    #[test]
    fn fields_that_come_from_a_secret_are_counted() {
        check(
            DifferenceSide::Hidden,
            DifferenceSide::SecretFields(1),
            "data.x: 1 field that comes from a secret differs",
        );
        check(
            DifferenceSide::Hidden,
            DifferenceSide::SecretFields(2),
            "data.x: 2 fields that come from a secret differ",
        );
    }
}
