//! Differences between objects, as they may be shown. **Invariant:** sensitive values are never part of a
//! difference.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

/// One side of a difference, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// No value.
    Absent,
    /// The whole value. Reports redact and then shorten it.
    Shown(Value),
    /// A value that is not shown.
    Hidden,
    /// Content that depends on a secret; nothing of it is shown.
    SecretContent,
    /// Number of differing fields below that come from a secret; not even their names are shown.
    SecretFields(usize),
}

/// Which parts of an object may be shown.
#[derive(Clone, Copy, Debug)]
pub enum Disclosure<'a> {
    /// Everything; of a `Secret`, only paths.
    Everything,
    /// Only the fact that the object differs.
    Nothing,
    /// Paths of fields, without values.
    Paths,
    /// The paths that this object has. Of fields below them that come from a secret, only the number.
    PathsOf(&'a Value),
}

/// Whether values may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Values,
    Paths,
}

impl Side {
    /// A value, or its absence.
    pub(crate) fn of(value: Option<&Value>, show: Show) -> Self {
        match (value, show) {
            (None, _) => Side::Absent,
            (Some(_), Show::Paths) => Side::Hidden,
            (Some(value), Show::Values) => Side::Shown(value.clone()),
        }
    }

    /// A text, or its absence.
    pub(crate) fn text(text: Option<&str>) -> Self {
        text.map_or(Side::Absent, |text| Side::of(Some(&text.into()), Show::Values))
    }
}

/// One difference between declared and live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path: `spec.template.spec.containers[web].image`.
    pub path: String,
    /// The live value.
    pub before: Side,
    /// The declared value.
    pub after: Side,
}

/// Differences in discovery order. Fields that come from a secret are counted: one difference for each path.
#[derive(Debug, Default)]
pub(crate) struct DifferenceList {
    all: Vec<Difference>,
    /// Positions in `all` of the differences that count secret fields, by path.
    secret: HashMap<String, usize>,
}

impl DifferenceList {
    pub fn push(&mut self, difference: Difference) {
        self.all.push(difference);
    }

    /// Counts a field, whose name may come from a secret, below the visible path `path`. The empty path
    /// denotes the object.
    pub fn count_secret(&mut self, path: String) {
        let path = if path.is_empty() { "object".to_owned() } else { path };
        let position = *self.secret.entry(path.clone()).or_insert(self.all.len());
        match self.all.get_mut(position) {
            Some(Difference { after: Side::SecretFields(count), .. }) => *count += 1,
            _ => self.push(Difference { path, before: Side::Hidden, after: Side::SecretFields(1) }),
        }
    }

    pub fn into_vec(self) -> Vec<Difference> {
        self.all
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Side| match side {
            Side::Absent => "absent".to_owned(),
            Side::Shown(value) => value.to_string(),
            Side::Hidden | Side::SecretContent | Side::SecretFields(_) => "…".to_owned(),
        };
        match (&self.before, &self.after) {
            (_, Side::SecretContent) => {
                write!(f, "{}: content that depends on a secret differs", self.path)
            }
            (_, Side::SecretFields(1)) => {
                write!(f, "{}: 1 field that comes from a secret differs", self.path)
            }
            (_, Side::SecretFields(count)) => {
                write!(f, "{}: {count} fields that come from a secret differ", self.path)
            }
            (Side::Absent, Side::Hidden) => write!(f, "{}: added", self.path),
            (Side::Hidden, Side::Absent) => write!(f, "{}: removed", self.path),
            (Side::Hidden, _) | (_, Side::Hidden) => write!(f, "{}: changed", self.path),
            (before, after) => write!(f, "{}: {} → {}", self.path, side(before), side(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Show, Side};
    use serde_json::json;

    fn check(before: Side, after: Side, expect: &str) {
        assert_eq!(Difference { path: "data.x".to_owned(), before, after }.to_string(), expect);
    }

    #[test]
    fn a_difference_shows_before_and_after() {
        let shown = |value: serde_json::Value| Side::of(Some(&value), Show::Values);
        check(shown(json!("1")), shown(json!("2")), "data.x: \"1\" → \"2\"");
        check(Side::Absent, shown(json!(3)), "data.x: absent → 3");
        check(shown(json!("a\nb")), shown(json!({"a": []})), "data.x: \"a\\nb\" → {\"a\":[]}");
    }

    #[test]
    fn a_hidden_value_is_not_printed() {
        let hidden = || Side::of(Some(&json!("secret")), Show::Paths);
        check(hidden(), hidden(), "data.x: changed");
        check(Side::Absent, hidden(), "data.x: added");
        check(hidden(), Side::Absent, "data.x: removed");
    }

    #[test]
    fn fields_that_come_from_a_secret_are_counted() {
        check(Side::Hidden, Side::SecretFields(1), "data.x: 1 field that comes from a secret differs");
        check(Side::Hidden, Side::SecretFields(2), "data.x: 2 fields that come from a secret differ");
    }
}
