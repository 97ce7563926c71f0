//! Migrates field ownership from client-side apply to server-side apply, as `kubectl apply --server-side`
//! does. Fields of previous writers become fields that we applied, so that they are removed when they are no
//! longer declared.

use serde_json::{Map, Value, json};

use super::legacy::{is_client_side_apply, is_ours, writes_whole_objects};
use super::{FieldSet, LAST_APPLIED, ListTypes, last_applied};
use crate::object::FieldOwnership;

/// The ownership of an object, from its `managedFields`.
pub(crate) fn field_ownership(managed: &Value) -> FieldOwnership {
    let entries = || managed.as_array().into_iter().flatten();
    let name = |entry: &Value| entry["manager"].as_str().unwrap_or_default().to_owned();
    let applied = entries()
        .any(|entry| entry["operation"] == "Apply" && is_main_resource(entry) && is_ours(&name(entry)));
    if !applied
        && entries().any(|entry| {
            is_migrated(entry, is_ours, FieldOwnership::Updated) && writes_whole_objects(&name(entry))
        })
    {
        return FieldOwnership::Updated;
    }
    let given = entries().any(|entry| is_migrated(entry, is_ours, FieldOwnership::ClientSideApplied));
    if given { FieldOwnership::ClientSideApplied } else { FieldOwnership::Ours }
}

/// The entries after `manager` took over the fields of previous writers, as `fields` specifies; `None` if
/// there is nothing to take over.
///
/// Sets of another API version cannot be merged with ours. They are dropped, so their fields have no owner
/// afterwards. Fields that a tool owns but did not apply, according to the annotation of `live`, are dropped
/// as well, because they are server defaults.
pub(crate) fn migrate(
    live: &Value,
    managed: &Value,
    manager: &str,
    api_version: &str,
    fields: FieldOwnership,
) -> Option<Value> {
    let entries = managed.as_array()?;
    let gives = |entry: &Value| is_migrated(entry, |name| name == manager, fields);
    if !entries.iter().any(gives) {
        return None;
    }
    let is_own = |entry: &Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && is_main_resource(entry)
    };
    let own = entries.iter().find(|entry| is_own(entry));
    let version = own.and_then(|own| own["apiVersion"].as_str()).unwrap_or(api_version);
    let mut set = own.map(|own| FieldSet::read(&own["fieldsV1"])).unwrap_or_default();
    let applied = last_applied_fields(live, entries);
    for entry in entries.iter().filter(|entry| gives(entry) && entry["apiVersion"] == version) {
        let mut given = FieldSet::read(&entry["fieldsV1"]);
        given.0.retain(|path| path.first().is_none_or(|first| first != "f:status"));
        let name = entry["manager"].as_str().unwrap_or_default();
        if let Some(applied) = applied.as_ref().filter(|_| is_client_side_apply(name, &entry["fieldsV1"])) {
            given.0.retain(|path| applied.contains_below(path));
        }
        set = set.union(&given);
    }
    let mut taken = own.and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    taken.insert("manager".to_owned(), manager.into());
    taken.insert("operation".to_owned(), "Apply".into());
    taken.insert("apiVersion".to_owned(), version.into());
    taken.insert("fieldsType".to_owned(), "FieldsV1".into());
    taken.insert("fieldsV1".to_owned(), set.print());
    let others = entries.iter().filter(|entry| !is_own(entry) && !gives(entry)).cloned();
    Some(others.chain([json!(taken)]).collect())
}

/// The entries after `manager` took over the fields of previous writers and, from its own update, the fields
/// that it declares. The other fields of the update are defaults that the server set, and have no owner
/// afterwards.
pub(crate) fn migrate_declared(
    live: &Value,
    manager: &str,
    declared: &Value,
    fields: FieldOwnership,
) -> Option<Value> {
    let mut managed = live["metadata"]["managedFields"].clone();
    let entries = managed.as_array_mut()?;
    let sets: Vec<FieldSet> = entries.iter().map(|entry| FieldSet::read(&entry["fieldsV1"])).collect();
    let wanted = FieldSet::declared(declared, &ListTypes::of(sets.iter()));
    let is_own_update = |entry: &Value| {
        entry["manager"] == manager && entry["operation"] == "Update" && is_main_resource(entry)
    };
    for (entry, mut fields) in entries.iter_mut().zip(sets).filter(|(entry, _)| is_own_update(entry)) {
        fields.0.retain(|path| wanted.contains_below(path));
        entry["fieldsV1"] = fields.print();
    }
    let fields = match fields {
        // Our own update is migrated even if `fields` requires no migration.
        FieldOwnership::Ours => FieldOwnership::ClientSideApplied,
        other => other,
    };
    migrate(live, &managed, manager, declared["apiVersion"].as_str().unwrap_or_default(), fields)
}

/// The fields that a tool applied client-side, according to its last-applied annotation.
fn last_applied_fields(live: &Value, entries: &[Value]) -> Option<FieldSet> {
    let applied_json = live["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let body: Value = serde_json::from_str(applied_json).ok().filter(Value::is_object)?;
    let sets: Vec<FieldSet> = entries.iter().map(|entry| FieldSet::read(&entry["fieldsV1"])).collect();
    let mut applied = FieldSet::declared(&body, &ListTypes::of(sets.iter()));
    applied.0.insert(last_applied());
    Some(applied)
}

/// Whether the fields of this entry are moved to our manager.
fn is_migrated(entry: &Value, is_own: impl Fn(&str) -> bool, fields: FieldOwnership) -> bool {
    let name = entry["manager"].as_str().unwrap_or_default();
    let moves = || match fields {
        FieldOwnership::Ours => false,
        FieldOwnership::ClientSideApplied => is_own(name) || is_client_side_apply(name, &entry["fieldsV1"]),
        FieldOwnership::Updated => {
            is_own(name) || writes_whole_objects(name) || is_client_side_apply(name, &entry["fieldsV1"])
        }
    };
    entry["operation"] == "Update" && is_main_resource(entry) && moves()
}

/// Whether the entry concerns the object itself, not its status or scale.
fn is_main_resource(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LAST_APPLIED, field_ownership, migrate, migrate_declared};
    use crate::object::FieldOwnership;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[track_caller]
    fn check(before: &[Value], expect: Option<&[Value]>) {
        let before = json!(before);
        let fields = field_ownership(&before);
        assert_eq!(migrate(&json!({}), &before, "qontract", "v1", fields), expect.map(|after| json!(after)));
        assert_eq!(fields != FieldOwnership::Ours, expect.is_some());
    }

    #[test]
    fn fields_of_whole_object_writers_are_moved_once_and_only_on_request() {
        let (old, fields) = (json!({"f:data": {"f:b": {}}}), json!({"f:data": {"f:a": {}}}));
        let created = entry("kubectl-create", "Update", &old);
        let before = json!([created]);
        assert_eq!(field_ownership(&before), FieldOwnership::Updated);
        assert_eq!(migrate(&json!({}), &before, "qontract", "v1", FieldOwnership::ClientSideApplied), None);
        check(std::slice::from_ref(&created), Some(&[entry("qontract", "Apply", &old)]));
        check(&[created, entry("qontract", "Apply", &fields)], None);
    }

    #[test]
    fn client_side_applied_fields_become_ours() {
        let fields = json!({"f:data": {"f:a": {}}});
        let old = entry("kubectl-client-side-apply", "Update", &fields);
        check(&[old], Some(&[entry("qontract", "Apply", &fields)]));
    }

    #[test]
    fn fields_that_a_tool_did_not_apply_are_not_moved() {
        let applied_json = json!({"kind": "X", "spec": {"ports": [{"port": 80}], "type": "A"}}).to_string();
        let live = json!({"metadata": {"annotations": {LAST_APPLIED: applied_json}}});
        let annotation = json!({"f:annotations": {".": {}, format!("f:{LAST_APPLIED}"): {}}});
        let port = |fields: Value| json!({"k:{\"port\":80,\"protocol\":\"TCP\"}": fields});
        let filled = json!({"f:metadata": annotation, "f:spec": {"f:type": {}, "f:affinity": {},
            "f:ports": port(json!({".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}))}});
        let applied = json!({"f:metadata": annotation, "f:spec": {"f:type": {}, "f:ports": port(json!({".": {}, "f:port": {}}))}});
        let before = json!([
            entry("kubectl-client-side-apply", "Update", &filled),
            entry("kubectl-create", "Update", &json!({"f:x": {}}))
        ]);
        let after = migrate(&live, &before, "qontract", "v1", FieldOwnership::Updated).unwrap();
        let mut expect = applied;
        expect["f:x"] = json!({});
        assert_eq!(after, json!([entry("qontract", "Apply", &expect)]));
    }

    #[test]
    fn defaults_that_the_server_set_during_our_update_get_no_owner() {
        let updated = json!({"f:spec": {"f:probe": {"f:port": {}, "f:timeoutSeconds": {}}}});
        let other = entry("helm", "Update", &json!({"f:spec": {"f:probe": {"f:timeoutSeconds": {}}}}));
        let applied = json!({"f:spec": {"f:replicas": {}}});
        let before =
            json!([entry("qontract", "Apply", &applied), other, entry("qontract", "Update", &updated)]);
        let live = json!({"metadata": {"managedFields": before}});
        let declared = json!({"apiVersion": "v1", "kind": "X", "spec": {"probe": {"port": 80}}});
        let after = migrate_declared(&live, "qontract", &declared, FieldOwnership::Ours).unwrap();
        let ours = json!({"f:spec": {"f:probe": {"f:port": {}}, "f:replicas": {}}});
        assert_eq!(after, json!([other, entry("qontract", "Apply", &ours)]));
        let live = json!({"metadata": {"managedFields": after}});
        assert_eq!(migrate_declared(&live, "qontract", &declared, FieldOwnership::Ours), None);
    }

    #[test]
    fn several_sets_are_merged_and_others_stay() {
        let other = entry("helm", "Update", &json!({"f:data": {"f:h": {}}}));
        let old = json!({"f:data": {"f:c": {}}, "f:status": {"f:d": {}}});
        let before = [
            entry("qontract", "Apply", &json!({"f:data": {"f:a": {}}})),
            other.clone(),
            entry("qontract", "Update", &json!({"f:data": {".": {}, "f:b": {}}})),
            entry("kubectl-client-side-apply", "Update", &old),
        ];
        let united = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}, "f:c": {}}});
        check(&before, Some(&[other, entry("qontract", "Apply", &united)]));
    }

    #[test]
    fn applied_fields_and_fields_of_others_are_left_alone() {
        let fields = json!({"f:data": {"f:a": {}}});
        check(&[entry("qontract", "Apply", &fields), entry("helm", "Update", &fields)], None);
        check(&[entry("kubectl-edit", "Update", &fields)], None);
        check(&[], None);
    }

    #[test]
    fn subresources_are_not_moved() {
        let mut status = entry("kubectl-client-side-apply", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        check(&[status], None);
    }

    #[test]
    fn a_set_of_another_version_is_dropped() {
        let mut old = entry("kubectl-create", "Update", &json!({"f:x": {}}));
        old["apiVersion"] = json!("v1beta1");
        let now = entry("kubectl-client-side-apply", "Update", &json!({"f:y": {}}));
        check(&[old, now], Some(&[entry("qontract", "Apply", &json!({"f:y": {}}))]));
    }
}
