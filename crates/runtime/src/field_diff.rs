//! The diff of a changed object, field by field.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a diff. In JSON, a field is an object, and a remark is a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiffEntry {
    /// A field, list item or key that differs.
    Field(FieldDiff),
    /// A remark that does not belong to a single field: `it uses ConfigMap a, which changed`.
    Note(String),
}

/// A field, list item or key that differs. **Invariant:** it contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDiff {
    /// Whether the field is added, changed or removed.
    pub change: FieldChange,
    /// The path of the field: `spec.hard.limits.memory`.
    pub path: String,
    /// The value before. Absent if there was no value, or if the value is sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after. Absent if there is no value, or if the value is sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The kind of change of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldChange {
    /// The field is added.
    Added,
    /// The value changes.
    Changed,
    /// The field is removed.
    Removed,
}

impl From<String> for DiffEntry {
    fn from(text: String) -> Self {
        Self::Note(text)
    }
}

impl From<&str> for DiffEntry {
    fn from(text: &str) -> Self {
        Self::Note(text.to_owned())
    }
}

impl From<FieldDiff> for DiffEntry {
    fn from(field: FieldDiff) -> Self {
        Self::Field(field)
    }
}

impl fmt::Display for DiffEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => field.fmt(f),
            Self::Note(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for FieldDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, path, before, after } = self;
        let sign = match change {
            FieldChange::Added => '+',
            FieldChange::Changed => '~',
            FieldChange::Removed => '-',
        };
        write!(f, "{sign} {path}")?;
        match (before, after) {
            (None, None) => Ok(()),
            (Some(value), None) | (None, Some(value)) => write!(f, ": {value}"),
            (Some(before), Some(after)) => write!(f, ": {before} → {after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DiffEntry, FieldChange, FieldDiff};

    fn check(change: FieldChange, before: Option<Value>, after: Option<Value>, expect: &str) {
        let field = FieldDiff { change, path: "data.x".to_owned(), before, after };
        assert_eq!(field.to_string(), expect);
        let json = serde_json::to_value(DiffEntry::from(field.clone())).unwrap();
        assert_eq!(serde_json::from_value::<DiffEntry>(json).unwrap(), DiffEntry::Field(field));
    }

    #[test]
    fn a_field_is_printed_with_its_sign_and_values() {
        check(FieldChange::Added, None, Some(json!("1")), "+ data.x: \"1\"");
        check(FieldChange::Changed, Some(json!(1)), Some(json!(2)), "~ data.x: 1 → 2");
        check(FieldChange::Removed, Some(json!(["a"])), None, "- data.x: [\"a\"]");
    }

    #[test]
    fn a_sensitive_field_is_printed_without_values() {
        check(FieldChange::Added, None, None, "+ data.x");
        check(FieldChange::Changed, None, None, "~ data.x");
        check(FieldChange::Removed, None, None, "- data.x");
    }

    #[test]
    fn a_remark_is_a_string_in_json() {
        let note = DiffEntry::from("restarted");
        assert_eq!(serde_json::to_value(&note).unwrap(), json!("restarted"));
        assert_eq!(serde_json::from_value::<DiffEntry>(json!("restarted")).unwrap(), note);
    }
}
