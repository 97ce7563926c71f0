//! One entry of `managedFields`: a manager and the fields that it owns.

use serde_json::{Value, json};

use super::FieldSet;

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagedFieldsEntry {
    pub manager: String,
    /// Whether the manager owns the fields by server-side apply.
    pub is_applied: bool,
    pub fields: FieldSet,
}

impl ManagedFieldsEntry {
    /// Parses an entry; `None` for an entry of a subresource.
    pub fn read(entry: &Value) -> Option<Self> {
        if !entry["subresource"].as_str().unwrap_or_default().is_empty() {
            return None;
        }
        Self::read_any(entry)
    }

    /// Parses an entry. A field that was written through a subresource, such as `spec.replicas` through
    /// `scale`, belongs to its writer like any other.
    pub fn read_any(entry: &Value) -> Option<Self> {
        Some(Self {
            manager: entry["manager"].as_str()?.to_owned(),
            is_applied: entry["operation"] == "Apply",
            fields: FieldSet::read(&entry["fieldsV1"]),
        })
    }

    /// Prints the entry in the Kubernetes format.
    pub fn print(&self) -> Value {
        let operation = if self.is_applied { "Apply" } else { "Update" };
        json!({"manager": self.manager, "operation": operation, "fieldsV1": self.fields.print()})
    }
}
