//! Previews the effect of a write on an object, from its managed fields. Pure.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{FieldConflicts, conflicts, merge_applied};
use super::kept::kept_fields;
use super::projection::Projection;
use super::residue::residue;
use super::zero_values::{DeclarationState, VersionedEntries, ZeroValues, zero_values};
use super::{FieldSet, ListTypes, ManagedFieldsEntry, migrate};
use crate::MANAGER;
use crate::WritePrecondition;
use crate::draft::fold_string_data;
use crate::object::{FieldOwnership, ObjectVersion};

/// The `managedFields` of an object, stored unparsed because few of them are ever used.
#[derive(Clone, PartialEq, Eq)]
pub struct ManagedFields(Arc<str>);

/// Prints nothing: keys of fields may be secret.
impl fmt::Debug for ManagedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ownership(…)")
    }
}

/// An object before and after a write.
#[derive(Clone, PartialEq)]
pub struct Preview {
    /// The object after the write. The object does not contain server defaults, unless they already existed
    /// without an owner.
    pub after: Value,
    /// The object without the fields that only we own, as if nothing were declared.
    pub without_ours: Value,
    /// The part of the object before the write that only we own, or that is declared.
    pub ours: Value,
    /// The declared object, as it is written.
    pub declared: Value,
    /// Other managers that own fields which the write changes.
    pub conflicts: FieldConflicts,
    /// Whether server-side apply alone would not write the object: it would leave behind defaults in maps
    /// that are no longer declared, emptied maps, or fields that exclude declared fields.
    pub needs_rewrite: bool,
}

impl Preview {
    /// The precondition of the write, for an object of this version.
    pub fn precondition(&self, version: ObjectVersion, fields: FieldOwnership) -> WritePrecondition {
        if self.needs_rewrite {
            WritePrecondition::Rewrite(version, fields)
        } else {
            WritePrecondition::Version(version, fields)
        }
    }
}

/// Prints nothing, because the object may be a secret.
impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preview(…)")
    }
}

impl ManagedFields {
    pub(crate) fn new(managed: &Value) -> Self {
        Self(managed.to_string().into())
    }

    /// The managed fields with this JSON, for example of a recorded object.
    pub fn from_json(json: impl Into<Arc<str>>) -> Self {
        Self(json.into())
    }

    /// The managed fields as JSON. Keys may be secret.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The zero values of `declared` that `live` lacks, if `manager` writes the object. `state` is only computed if
    /// there may be any.
    pub fn zero_values<'a>(
        &self,
        live: &'a Value,
        manager: &str,
        declared: &Value,
        state: impl FnOnce() -> DeclarationState,
    ) -> ZeroValues<'a> {
        let entries = || {
            let managed: Value = serde_json::from_str(&self.0).unwrap_or_default();
            let entries = managed.as_array().into_iter().flatten();
            VersionedEntries {
                is_versioned: is_versioned(&managed),
                entries: entries.filter_map(ManagedFieldsEntry::read_any).collect(),
            }
        };
        zero_values(live, declared, manager, state, entries)
    }

    /// The object `live` after `manager` writes `declared` to it, with fields migrated as `fields` specifies.
    /// Conflicts do not matter: the result is that of a write that is not refused.
    pub fn preview(&self, live: &Value, manager: &str, fields: FieldOwnership, declared: &Value) -> Preview {
        let managed: Value = serde_json::from_str(&self.0).unwrap_or_default();
        let api_version =
            if is_versioned(&managed) { declared["apiVersion"].as_str().unwrap_or_default() } else { "" };
        let managed = migrate(live, &managed, manager, api_version, fields).unwrap_or(managed);
        let entries: Vec<ManagedFieldsEntry> =
            managed.as_array().into_iter().flatten().filter_map(ManagedFieldsEntry::read_any).collect();
        let mut declared = declared.clone();
        if let Some(body) = declared.as_object_mut().filter(|body| body.get("kind") == Some(&json!("Secret")))
        {
            // An error is ignored here, because the write rejects a value that is not a map of strings.
            let _ = fold_string_data(body);
        }
        let nothing = json!({"apiVersion": live["apiVersion"], "kind": live["kind"]});
        let residue = residue(live, &entries, manager, &declared);
        let mut after = merge_applied(live, &entries, manager, &declared).0;
        residue.remove_from(&mut after);
        let needs_rewrite = !residue.is_empty();
        let conflicts = FieldConflicts {
            excluding: residue.refused,
            removed: residue.excluding,
            kept: kept_fields(&after, &entries, manager, &declared),
            ..conflicts(live, &entries, manager, &declared)
        };
        let without_ours = merge_applied(live, &entries, manager, &nothing).0;
        let ours = own_part(live, &entries, manager, &declared);
        Preview { after, without_ours, ours, declared, conflicts, needs_rewrite }
    }
}

/// Whether the entries of an object name the API version of their fields. Those of a sandbox do not.
fn is_versioned(managed: &Value) -> bool {
    let has_version = |entry: &Value| entry["apiVersion"].as_str().is_some_and(|version| !version.is_empty());
    managed.as_array().into_iter().flatten().any(has_version)
}

/// The part of an object that only `manager` owns, or that is declared.
fn own_part(live: &Value, entries: &[ManagedFieldsEntry], manager: &str, declared: &Value) -> Value {
    let lists = &ListTypes::of_write(live, entries, declared);
    let declared = &FieldSet::declared(declared, lists);
    let (mut own, mut others) = (FieldSet::default(), FieldSet::default());
    for entry in entries {
        let side = if entry.manager == manager && entry.is_applied { &mut own } else { &mut others };
        side.0.extend(entry.fields.0.iter().cloned());
    }
    own.0.retain(|path| !others.contains_below(path));
    let fields = &own.union(declared);
    let mut part = Projection { fields, declared, lists }.of(live, &mut Vec::new()).unwrap_or_default();
    for field in ["apiVersion", "kind"] {
        part[field] = live[field].clone();
    }
    part
}

impl ManagedFields {
    /// The effect of removing the object `live` and creating it again as `declared`: fields of other managers
    /// are also removed, and fields without an owner are set to their defaults again.
    pub fn replacement(&self, live: &Value, declared: &Value) -> Preview {
        let mut managed: Value = serde_json::from_str(&self.0).unwrap_or_default();
        for entry in managed.as_array_mut().into_iter().flatten() {
            (entry["manager"], entry["operation"]) = (json!(MANAGER), json!("Apply"));
        }
        Self::new(&managed).preview(live, MANAGER, FieldOwnership::Ours, declared)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ManagedFields;
    use crate::object::FieldOwnership;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[track_caller]
    fn check(managed: &[Value], live: &Value, fields: FieldOwnership, declared: &Value, expect: [&Value; 2]) {
        let preview = ManagedFields::new(&json!(managed)).preview(live, "qontract", fields, declared);
        assert_eq!([&preview.after, &preview.without_ours].map(|it| &it["data"]), expect);
    }

    #[test]
    fn fields_that_only_we_own_are_removed_and_others_stay() {
        let managed = [
            entry("qontract", "Apply", &json!({"f:data": {"f:a": {}, "f:b": {}, "f:shared": {}}})),
            entry("helm", "Apply", &json!({"f:data": {"f:shared": {}}})),
        ];
        let live = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2", "shared": "3", "free": "4"}});
        let declared = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "0"}});
        let after = json!({"a": "0", "shared": "3", "free": "4"});
        check(
            &managed,
            &live,
            FieldOwnership::Ours,
            &declared,
            [&after, &json!({"shared": "3", "free": "4"})],
        );
    }

    #[test]
    fn fields_of_another_tool_are_removed_only_if_they_are_migrated() {
        let managed = [entry(
            "kubectl-client-side-apply",
            "Update",
            &json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}),
        )];
        let live = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2"}});
        let declared = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}});
        check(
            &managed,
            &live,
            FieldOwnership::ClientSideApplied,
            &declared,
            [&json!({"a": "1"}), &Value::Null],
        );
        check(&managed, &live, FieldOwnership::Ours, &declared, [&live["data"], &live["data"]]);
    }

    #[test]
    fn a_replacement_has_no_fields_of_others() {
        let managed = [
            entry("qontract", "Apply", &json!({"f:data": {"f:a": {}}})),
            entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}})),
        ];
        let live = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2", "default": "3"}});
        let preview = ManagedFields::new(&json!(managed)).replacement(&live, &json!({"data": {"a": "4"}}));
        assert_eq!(preview.after["data"], json!({"a": "4", "default": "3"}));
    }

    #[test]
    fn texts_of_secrets_are_data() {
        let managed = [entry("qontract", "Apply", &json!({"f:data": {"f:a": {}, "f:b": {}}}))];
        let live = json!({"kind": "Secret", "data": {"a": "MQ==", "b": "Mg=="}});
        let declared = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "1"}});
        check(&managed, &live, FieldOwnership::Ours, &declared, [&json!({"a": "MQ=="}), &Value::Null]);
    }

    #[test]
    fn debug_output_has_no_content() {
        let ownership =
            ManagedFields::new(&json!([entry("qontract", "Apply", &json!({"f:data": {"f:hunter2": {}}}))]));
        let preview = ownership.preview(
            &json!({"data": {"hunter2": "x"}}),
            "qontract",
            FieldOwnership::Ours,
            &json!({}),
        );
        assert!(!format!("{ownership:?}{preview:?}").contains("hunter2"));
    }
}
