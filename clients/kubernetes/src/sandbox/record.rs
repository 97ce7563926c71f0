//! The file of an object: the object and its managed fields.
//!
//! The file is the object in plain YAML. The managed fields follow the object, in one comment for each
//! manager, so that the object remains readable. `metadata.managedFields`, as printed by Kubernetes, is also
//! read.

use serde_json::{Value, json};

use crate::fields::{
    FieldSet, LAST_APPLIED, ListTypes, ManagedFields, ManagedFieldsEntry, field_ownership, last_applied,
    migrate,
};
use crate::object::FieldOwnership;

/// Prefix of a line with managed fields.
const MANAGED_PREFIX: &str = "# managed: ";

/// An object and its managed fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectFile {
    pub body: Value,
    pub entries: Vec<ManagedFieldsEntry>,
}

impl ObjectFile {
    /// Parses a file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut body = qontract_yaml::json::read(bytes)?;
        if !body.is_object() {
            return Err("it is not a map".to_owned());
        }
        let text = String::from_utf8_lossy(bytes);
        let below = text.lines().rev().map_while(|line| line.strip_prefix(MANAGED_PREFIX));
        let mut managed: Vec<Value> = below.filter_map(|line| serde_json::from_str(line).ok()).collect();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(Value::Array(stored)) = metadata.remove("managedFields")
        {
            managed.extend(stored);
        }
        let mut entries: Vec<_> = managed.iter().filter_map(ManagedFieldsEntry::read).collect();
        if entries.is_empty() {
            entries.extend(client_side_entry(&body));
        }
        drop_removed_fields(&body, &mut entries);
        entries.sort();
        Ok(Self { body, entries })
    }

    /// Prints the file.
    pub fn print(&self) -> String {
        let mut text = qontract_yaml::json::print(&self.body);
        for entry in &self.entries {
            text.push_str(&format!("{MANAGED_PREFIX}{}\n", entry.print()));
        }
        text
    }

    /// Ownership of the fields that affect the next write.
    pub fn field_ownership(&self) -> FieldOwnership {
        field_ownership(&self.managed())
    }

    /// Ownership of each field.
    pub fn managed_fields(&self) -> ManagedFields {
        ManagedFields::new(&self.managed())
    }

    /// Migrates fields to `manager`, as `fields` specifies.
    pub fn migrate(&mut self, manager: &str, fields: FieldOwnership) {
        if let Some(managed) = migrate(&self.body, &self.managed(), manager, "", fields) {
            self.entries =
                managed.as_array().into_iter().flatten().filter_map(ManagedFieldsEntry::read).collect();
        }
    }

    fn managed(&self) -> Value {
        let entry = |entry: &ManagedFieldsEntry| {
            let mut entry = entry.print();
            // A file has only one API version, so entries need no version.
            entry["apiVersion"] = json!("");
            entry
        };
        self.entries.iter().map(entry).collect()
    }
}

/// Removes the fields that the object lacks from their managers, as an API server does for a write that removes
/// fields: a user edited the file.
fn drop_removed_fields(body: &Value, entries: &mut [ManagedFieldsEntry]) {
    let existing = FieldSet::declared(body, &ListTypes::of(entries.iter().map(|entry| &entry.fields)));
    for entry in entries {
        entry.fields.0.retain(|path| existing.contains_below(path) || existing.contains_list_above(path));
    }
}

/// The fields that a tool applied client-side, from its annotation.
fn client_side_entry(body: &Value) -> Option<ManagedFieldsEntry> {
    let stored = body["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let mut fields = FieldSet::of(&serde_json::from_str(stored).ok()?);
    fields.0.insert(last_applied());
    Some(ManagedFieldsEntry { manager: "kubectl-client-side-apply".to_owned(), is_applied: false, fields })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldSet, ManagedFieldsEntry, ObjectFile};
    use crate::object::FieldOwnership;

    #[test]
    fn a_record_is_a_readable_file_and_reads_back() {
        let body = json!({"kind": "ConfigMap", "data": {"a": "1"}});
        let fields = FieldSet::of(&json!({"data": {"a": "1"}}));
        let entries = vec![ManagedFieldsEntry { manager: "qontract".to_owned(), is_applied: true, fields }];
        let record = ObjectFile { body, entries };
        let text = record.print();
        let last =
            r#"# managed: {"fieldsV1":{"f:data":{"f:a":{}}},"manager":"qontract","operation":"Apply"}"#;
        assert_eq!(text, format!("---\ndata:\n  a: \"1\"\nkind: ConfigMap\n{last}\n"));
        assert_eq!(ObjectFile::read(text.as_bytes()), Ok(record));
    }

    #[test]
    fn managed_fields_of_kubernetes_are_read() {
        let text = "metadata: {name: a, managedFields: [{manager: m, operation: Update, fieldsV1: {'f:data': {}}}, \
                    {manager: s, operation: Update, subresource: status, fieldsV1: {'f:status': {}}}]}\n";
        let record = ObjectFile::read(text.as_bytes()).unwrap();
        assert_eq!(record.body, json!({"metadata": {"name": "a"}}));
        assert_eq!(record.entries.len(), 1);
        assert_eq!(record.field_ownership(), FieldOwnership::Ours);
    }

    #[test]
    fn client_side_applied_fields_are_to_be_moved() {
        let text = "data: {a: '1', b: '2'}\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: \
                    '{\"data\": {\"a\": \"1\"}}'\n";
        let mut record = ObjectFile::read(text.as_bytes()).unwrap();
        assert_eq!(record.field_ownership(), FieldOwnership::ClientSideApplied);
        record.migrate("qontract", FieldOwnership::ClientSideApplied);
        assert_eq!(record.field_ownership(), FieldOwnership::Ours);
        assert_eq!(record.entries[0].manager, "qontract");
        assert_eq!(record.entries[0].fields.0.len(), 2);
    }

    #[test]
    fn fields_that_were_removed_from_a_file_have_no_owner() {
        let text = r#"data: {a: '1'}
spec: {}
l: [{name: x}, {name: x}]
# managed: {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}, "f:spec": {"f:selector": {}}, "f:l": {"k:{\"name\":\"x\"}": {"f:name": {}}}}, "manager": "qontract", "operation": "Apply"}
"#;
        let record = ObjectFile::read(text.as_bytes());
        let fields = record.unwrap().entries[0].fields.print();
        assert_eq!(fields, json!({"f:data": {"f:a": {}}, "f:l": {"k:{\"name\":\"x\"}": {"f:name": {}}}}));
    }

    #[test]
    fn a_file_that_is_not_a_map_is_an_error() {
        assert!(ObjectFile::read(b"[]").is_err());
        assert!(ObjectFile::read(b"a: [").is_err());
    }
}
