//! Migrates field ownership from client-side apply to server-side apply, like `kubectl apply --server-side`:
//! fields of previous writers become fields that we applied, so that they are removed when they are no longer
//! declared.

use serde_json::{Map, Value, json};

use super::legacy::{has_applied, has_written, is_ours};
use super::{FieldSet, LAST_APPLIED, ListTypes, last_applied};
use crate::object::Fields;

/// The ownership of an object, from its `managedFields`.
pub(crate) fn to_be_moved(managed: &Value) -> Fields {
    let entries = || managed.as_array().into_iter().flatten();
    let name = |entry: &Value| entry["manager"].as_str().unwrap_or_default().to_owned();
    let applied =
        entries().any(|entry| entry["operation"] == "Apply" && is_whole(entry) && is_ours(&name(entry)));
    if !applied && entries().any(|entry| gives(entry, is_ours, Fields::Written) && has_written(&name(entry)))
    {
        return Fields::Written;
    }
    let given = entries().any(|entry| gives(entry, is_ours, Fields::ToBeMoved));
    if given { Fields::ToBeMoved } else { Fields::Settled }
}

/// The entries after `manager` took over the fields of previous writers, as `fields` specifies; `None` if
/// there is nothing to take over.
///
/// Sets of another API version cannot be merged with ours, and are dropped: their fields have no owner then.
/// The same holds for fields that a tool owns but did not apply, according to the annotation of `live`: the
/// server set them by default.
pub(crate) fn hand_over(
    live: &Value,
    managed: &Value,
    manager: &str,
    api_version: &str,
    fields: Fields,
) -> Option<Value> {
    let entries = managed.as_array()?;
    let gives = |entry: &Value| gives(entry, |name| name == manager, fields);
    if !entries.iter().any(gives) {
        return None;
    }
    let is_own =
        |entry: &Value| entry["manager"] == manager && entry["operation"] == "Apply" && is_whole(entry);
    let own = entries.iter().find(|entry| is_own(entry));
    let version = own.and_then(|own| own["apiVersion"].as_str()).unwrap_or(api_version);
    let mut set = own.map(|own| FieldSet::read(&own["fieldsV1"])).unwrap_or_default();
    let applied = applied(live, entries);
    for entry in entries.iter().filter(|entry| gives(entry) && entry["apiVersion"] == version) {
        let mut given = FieldSet::read(&entry["fieldsV1"]);
        given.0.retain(|path| path.first().is_none_or(|first| first != "f:status"));
        let name = entry["manager"].as_str().unwrap_or_default();
        if let Some(applied) = applied.as_ref().filter(|_| has_applied(name, &entry["fieldsV1"])) {
            given.0.retain(|path| applied.reaches(path));
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

/// The fields that a tool applied client-side, according to its last-applied annotation.
fn applied(live: &Value, entries: &[Value]) -> Option<FieldSet> {
    let applied_json = live["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let body: Value = serde_json::from_str(applied_json).ok().filter(Value::is_object)?;
    let sets: Vec<FieldSet> = entries.iter().map(|entry| FieldSet::read(&entry["fieldsV1"])).collect();
    let mut applied = FieldSet::declared(&body, &ListTypes::of(sets.iter()));
    applied.0.insert(last_applied());
    Some(applied)
}

/// Whether the fields of this entry move to the manager with one of our names.
fn gives(entry: &Value, is_own: impl Fn(&str) -> bool, fields: Fields) -> bool {
    let name = entry["manager"].as_str().unwrap_or_default();
    let moves = || match fields {
        Fields::Settled => false,
        Fields::ToBeMoved => is_own(name) || has_applied(name, &entry["fieldsV1"]),
        Fields::Written => is_own(name) || has_written(name) || has_applied(name, &entry["fieldsV1"]),
    };
    entry["operation"] == "Update" && is_whole(entry) && moves()
}

/// Whether the entry concerns the object itself, not its status or scale.
fn is_whole(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LAST_APPLIED, hand_over, to_be_moved};
    use crate::object::Fields;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[track_caller]
    fn check(before: &[Value], expect: Option<&[Value]>) {
        let before = json!(before);
        let fields = to_be_moved(&before);
        assert_eq!(
            hand_over(&json!({}), &before, "qontract", "v1", fields),
            expect.map(|after| json!(after))
        );
        assert_eq!(fields != Fields::Settled, expect.is_some());
    }

    #[test]
    fn fields_of_whole_object_writers_are_moved_once_and_only_on_request() {
        let (old, fields) = (json!({"f:data": {"f:b": {}}}), json!({"f:data": {"f:a": {}}}));
        let created = entry("kubectl-create", "Update", &old);
        let before = json!([created]);
        assert_eq!(to_be_moved(&before), Fields::Written);
        assert_eq!(hand_over(&json!({}), &before, "qontract", "v1", Fields::ToBeMoved), None);
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
        let after = hand_over(&live, &before, "qontract", "v1", Fields::Written).unwrap();
        let mut expect = applied;
        expect["f:x"] = json!({});
        assert_eq!(after, json!([entry("qontract", "Apply", &expect)]));
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
