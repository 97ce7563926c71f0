//! The file of an object: the object and its managed fields.
//!
//! The file is the object in plain YAML. Managed fields follow it, in one comment per manager, so that the
//! object stays readable. `metadata.managedFields`, as Kubernetes prints it, is read, too.

use serde_json::{Value, json};

use crate::fields::{Entry, FieldSet, LAST_APPLIED, Ownership, hand_over, last_applied, to_be_moved};
use crate::object::Fields;

/// Prefix of a line with managed fields.
const MARK: &str = "# managed: ";

/// An object and its managed fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub body: Value,
    pub entries: Vec<Entry>,
}

impl Record {
    /// Parses a file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut body = qontract_yaml::json::read(bytes)?;
        if !body.is_object() {
            return Err("it is not a map".to_owned());
        }
        let text = String::from_utf8_lossy(bytes);
        let below = text.lines().rev().map_while(|line| line.strip_prefix(MARK));
        let mut managed: Vec<Value> = below.filter_map(|line| serde_json::from_str(line).ok()).collect();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(Value::Array(stored)) = metadata.remove("managedFields")
        {
            managed.extend(stored);
        }
        let mut entries: Vec<_> = managed.iter().filter_map(Entry::read).collect();
        if entries.is_empty() {
            entries.extend(applied_before(&body));
        }
        entries.sort();
        Ok(Self { body, entries })
    }

    /// Prints the file.
    pub fn print(&self) -> String {
        let mut text = qontract_yaml::json::print(&self.body);
        for entry in &self.entries {
            text.push_str(&format!("{MARK}{}\n", entry.print()));
        }
        text
    }

    /// Ownership of the fields, as far as the next write depends on it.
    pub fn fields(&self) -> Fields {
        to_be_moved(&self.managed())
    }

    /// Ownership of each field.
    pub fn ownership(&self) -> Ownership {
        Ownership::new(&self.managed())
    }

    /// Migrates fields to `manager`, as `fields` specifies.
    pub fn hand_over(&mut self, manager: &str, fields: Fields) {
        if let Some(managed) = hand_over(&self.body, &self.managed(), manager, "", fields) {
            self.entries = managed.as_array().into_iter().flatten().filter_map(Entry::read).collect();
        }
    }

    fn managed(&self) -> Value {
        let entry = |entry: &Entry| {
            let mut entry = entry.print();
            // A file has one API version only.
            entry["apiVersion"] = json!("");
            entry
        };
        self.entries.iter().map(entry).collect()
    }
}

/// The fields that a tool applied client-side, from its annotation.
fn applied_before(body: &Value) -> Option<Entry> {
    let stored = body["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let mut fields = FieldSet::of(&serde_json::from_str(stored).ok()?);
    fields.0.insert(last_applied());
    Some(Entry { manager: "kubectl-client-side-apply".to_owned(), is_applied: false, fields })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Entry, FieldSet, Record};
    use crate::object::Fields;

    #[test]
    fn a_record_is_a_readable_file_and_reads_back() {
        let body = json!({"kind": "ConfigMap", "data": {"a": "1"}});
        let fields = FieldSet::of(&json!({"data": {"a": "1"}}));
        let entries = vec![Entry { manager: "qontract".to_owned(), is_applied: true, fields }];
        let record = Record { body, entries };
        let text = record.print();
        let last =
            r#"# managed: {"fieldsV1":{"f:data":{"f:a":{}}},"manager":"qontract","operation":"Apply"}"#;
        assert_eq!(text, format!("---\ndata:\n  a: \"1\"\nkind: ConfigMap\n{last}\n"));
        assert_eq!(Record::read(text.as_bytes()), Ok(record));
    }

    #[test]
    fn managed_fields_of_kubernetes_are_read() {
        let text = "metadata: {name: a, managedFields: [{manager: m, operation: Update, fieldsV1: {'f:data': {}}}, \
                    {manager: s, operation: Update, subresource: status, fieldsV1: {'f:status': {}}}]}\n";
        let record = Record::read(text.as_bytes()).unwrap();
        assert_eq!(record.body, json!({"metadata": {"name": "a"}}));
        assert_eq!(record.entries.len(), 1);
        assert_eq!(record.fields(), Fields::Settled);
    }

    #[test]
    fn client_side_applied_fields_are_to_be_moved() {
        let text = "data: {a: '1', b: '2'}\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: \
                    '{\"data\": {\"a\": \"1\"}}'\n";
        let mut record = Record::read(text.as_bytes()).unwrap();
        assert_eq!(record.fields(), Fields::ToBeMoved);
        record.hand_over("qontract", Fields::ToBeMoved);
        assert_eq!(record.fields(), Fields::Settled);
        assert_eq!(record.entries[0].manager, "qontract");
        assert_eq!(record.entries[0].fields.0.len(), 2);
    }

    #[test]
    fn a_file_that_is_not_a_map_is_an_error() {
        assert!(Record::read(b"[]").is_err());
        assert!(Record::read(b"a: [").is_err());
    }
}
