//! An object and who owns its fields, as one file.
//!
//! The file is the object as people write it. Who owns which fields stands below it, in a comment per manager: so the object
//! itself stays readable, and the file is still one file. What Kubernetes has in `metadata.managedFields` is read, too.

use serde_json::{Value, json};

use crate::fields::{Entry, FieldSet, LAST_APPLIED, Ownership, hand_over, last_applied, to_be_moved};
use crate::object::Fields;

/// What a line begins with that says who owns what.
const MARK: &str = "# managed: ";

/// An object and who owns its fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub body: Value,
    pub entries: Vec<Entry>,
}

impl Record {
    /// What a file says.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut body = qontract_yaml::json::read(bytes)?;
        if !body.is_object() {
            return Err("it is not a map".to_owned());
        }
        let text = String::from_utf8_lossy(bytes);
        let below = text.lines().rev().map_while(|line| line.strip_prefix(MARK));
        let mut managed: Vec<Value> = below.filter_map(|line| serde_json::from_str(line).ok()).collect();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(Value::Array(said)) = metadata.remove("managedFields")
        {
            managed.extend(said);
        }
        let mut entries: Vec<_> = managed.iter().filter_map(Entry::read).collect();
        if entries.is_empty() {
            entries.extend(applied_before(&body));
        }
        entries.sort();
        Ok(Self { body, entries })
    }

    /// The text of the file.
    pub fn print(&self) -> String {
        let mut text = qontract_yaml::json::print(&self.body);
        for entry in &self.entries {
            text.push_str(&format!("{MARK}{}\n", entry.print()));
        }
        text
    }

    /// Whether others own fields that are to be ours.
    pub fn fields(&self) -> Fields {
        to_be_moved(&self.managed())
    }

    /// Who owns which fields.
    pub fn ownership(&self) -> Ownership {
        Ownership::new(&self.managed())
    }

    /// Moves them, as far as `fields` goes.
    pub fn hand_over(&mut self, manager: &str, fields: Fields) {
        if let Some(managed) = hand_over(&self.body, &self.managed(), manager, "", fields) {
            self.entries = managed.as_array().into_iter().flatten().filter_map(Entry::read).collect();
        }
    }

    fn managed(&self) -> Value {
        let entry = |entry: &Entry| {
            let mut entry = entry.print();
            // In a file everything is of one version.
            entry["apiVersion"] = json!("");
            entry
        };
        self.entries.iter().map(entry).collect()
    }
}

/// What a tool says that it applied on the client's side.
fn applied_before(body: &Value) -> Option<Entry> {
    let said = body["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let mut fields = FieldSet::of(&serde_json::from_str(said).ok()?);
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
    fn what_kubernetes_writes_is_read() {
        let text = "metadata: {name: a, managedFields: [{manager: m, operation: Update, fieldsV1: {'f:data': {}}}, \
                    {manager: s, operation: Update, subresource: status, fieldsV1: {'f:status': {}}}]}\n";
        let record = Record::read(text.as_bytes()).unwrap();
        assert_eq!(record.body, json!({"metadata": {"name": "a"}}));
        assert_eq!(record.entries.len(), 1);
        assert_eq!(record.fields(), Fields::Settled);
    }

    #[test]
    fn what_a_tool_applied_before_is_to_be_moved() {
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
    fn a_file_that_is_no_map_is_no_object() {
        assert!(Record::read(b"[]").is_err());
        assert!(Record::read(b"a: [").is_err());
    }
}
