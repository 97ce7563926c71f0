//! The residue of a write: fields that server-side apply would leave behind although all owned fields in them
//! are removed. Pure.
//!
//! Server-side apply removes exactly the fields that we owned. If a probe is no longer declared, the defaults
//! that the API server added to it (`scheme`, `timeoutSeconds`) have no owner and stay, and so does an
//! emptied map in a map. The API server then rejects the object. The API server also rejects an object with a
//! field that excludes a declared field, so such a field is residue even if it was never ours.
//!
//! **Invariant:** nothing in a residue is declared, and no other manager owns anything in it, except that
//! overruled managers may own a part of a field that excludes a declared field
//! (`nothing_of_others_is_residue`, `an_excluding_field_is_residue_unless_its_manager_is_not_overruled`).

use std::collections::{BTreeMap, BTreeSet};

use qontract_kinds::is_free_form;
use serde_json::Value;

use super::exclusion::{ExcludingField, Exclusion, exclusions, removal_command};
use super::removal::remove;
use super::{FieldPath, FieldSet, ListTypes, ManagedFieldsEntry, display_path, is_overruled};
use crate::error::{ConflictingManager, ExcludedFields};

/// The residue of a write.
pub(super) struct Residue {
    /// The fields to remove, in descending order: the highest maps and list items in which we owned a field,
    /// declare nothing and no other manager owns a field; and the fields that exclude declared fields.
    paths: Vec<FieldPath>,
    /// The fields that we declare, or that other managers own.
    retained: FieldSet,
    /// The fields to remove that were not ours.
    pub excluding: Vec<ExcludingField>,
    /// The managers that own fields which exclude declared fields and that are not overruled. Because of
    /// these managers, the write is refused.
    pub refused: Vec<ConflictingManager>,
}

impl Residue {
    /// Whether server-side apply alone writes the object as declared.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.refused.is_empty()
    }

    /// Removes the residue from an object.
    pub fn remove_from(&self, object: &mut Value) {
        remove(object, &self.paths.iter().collect::<Vec<_>>(), 0, &self.retained);
    }

    /// Removes the residue from the fields of all managers.
    pub fn remove_owners(&self, entries: &mut Vec<ManagedFieldsEntry>) {
        for entry in entries.iter_mut() {
            entry.fields.0.retain(|field| !self.paths.iter().any(|path| field.starts_with(path)));
        }
        entries.retain(|entry| !entry.fields.0.is_empty());
    }
}

/// The residue of a write of `declared` to `live` by `manager`.
pub(super) fn residue(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> Residue {
    let lists = ListTypes::of_write(live, entries, declared);
    let (mut before, mut retained) = (FieldSet::default(), FieldSet::declared(declared, &lists));
    for entry in entries {
        let side = if entry.manager == manager && entry.is_applied { &mut before } else { &mut retained };
        side.0.extend(entry.fields.0.iter().cloned());
    }
    let search = ResidueSearch { before: &before, retained: &retained, lists: &lists };
    let mut found = Vec::new();
    let root = live.as_object().filter(|_| declared["kind"] != "Secret");
    for (key, value) in root.into_iter().flatten() {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            search.collect(value, vec![format!("f:{key}")], &mut found);
        }
    }
    let mut conflicts = BTreeMap::<&str, Vec<Exclusion<'_>>>::new();
    let mut excluding = Vec::new();
    for exclusion in exclusions(live, declared, &lists) {
        let is_other = |entry: &&ManagedFieldsEntry| {
            entry.manager != manager && entry.fields.contains_below(&exclusion.path)
        };
        let others: BTreeSet<&str> =
            entries.iter().filter(is_other).map(|entry| entry.manager.as_str()).collect();
        let refused: Vec<&str> = others.iter().copied().filter(|name| !is_overruled(name)).collect();
        if !refused.is_empty() {
            for name in refused {
                conflicts.entry(name).or_default().push(exclusion.clone());
            }
            continue;
        }
        let is_ours = others.is_empty() && before.contains_below(&exclusion.path);
        if !is_ours {
            excluding.push(ExcludingField {
                managers: others.into_iter().map(str::to_owned).collect(),
                field: display_path(&exclusion.path),
                declared: exclusion.declared_field(),
            });
        } else if search.is_cleared_by_apply(exclusion.value, &exclusion.path) {
            continue;
        }
        found.push(exclusion.path);
    }
    found.sort_by(|one, other| other.cmp(one));
    found.dedup();
    let refused = conflicts.into_iter().map(|(name, exclusions)| {
        let (fields, names) =
            exclusions.iter().map(|one| (display_path(&one.path), one.declared_field())).unzip();
        let in_backticks =
            |texts: Vec<String>| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>();
        let removal = Some(removal_command(live, declared, &exclusions));
        ConflictingManager {
            manager: name.to_owned(),
            fields: in_backticks(fields),
            excludes: Some(ExcludedFields { declared: in_backticks(names), removal }),
        }
    });
    let refused = refused.collect();
    Residue { paths: found, retained, excluding, refused }
}

/// The owners of fields, reduced to the facts that determine the residue.
struct ResidueSearch<'a> {
    /// The fields that we applied.
    before: &'a FieldSet,
    /// The fields that we declare, or that other managers own.
    retained: &'a FieldSet,
    lists: &'a ListTypes,
}

impl ResidueSearch<'_> {
    /// Adds the residue at and below `path`.
    fn collect(&self, value: &Value, path: FieldPath, found: &mut Vec<FieldPath>) {
        if !self.before.contains_below(&path) {
            return;
        }
        if self.retained.contains_below(&path) || !self.is_removable(value, &path) {
            for (path, value) in self.children(value, &path) {
                self.collect(value, path, found);
            }
        } else if !self.is_cleared_by_apply(value, &path) {
            found.push(path);
        }
    }

    /// Whether values below `path` that have no owner can only be defaults. Keys of a free-form map and items
    /// of a list are never defaults.
    fn is_removable(&self, value: &Value, path: &[String]) -> bool {
        let is_free_form = path.last().and_then(|part| part.strip_prefix("f:")).is_some_and(is_free_form);
        self.children(value, path).into_iter().all(|(path, value)| {
            let is_default = !is_free_form && !is_item(&path);
            (is_default || self.before.contains_below(&path)) && self.is_removable(value, &path)
        })
    }

    /// Whether server-side apply removes the value at `path`. Server-side apply removes list items, scalars,
    /// atomic lists and maps, and maps and lists without other content. It does not remove an empty map.
    fn is_cleared_by_apply(&self, value: &Value, path: &FieldPath) -> bool {
        let is_leaf = |path: &FieldPath, value: &Value| {
            self.before.0.contains(path)
                && (is_item(path)
                    || self.lists.is_atomic_map(path)
                    || !value.is_object() && self.children(value, path).is_empty())
        };
        let children = self.children(value, path);
        is_leaf(path, value)
            || !children.is_empty() && children.iter().all(|(path, value)| is_leaf(path, value))
    }

    /// The fields of a map that is merged field by field, or the items of a list that is merged item by item.
    fn children<'v>(&self, value: &'v Value, path: &[String]) -> Vec<(FieldPath, &'v Value)> {
        let child = |part: String| path.iter().cloned().chain([part]).collect();
        match value {
            Value::Object(_) if self.lists.is_atomic_map(path) => Vec::new(),
            Value::Object(map) => map.iter().map(|(key, value)| (child(format!("f:{key}")), value)).collect(),
            Value::Array(items) => {
                let parts = self.lists.parts(path, items).unwrap_or_default();
                parts.into_iter().zip(items).map(|(part, item)| (child(part), item)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }
}

fn is_item(path: &[String]) -> bool {
    path.last().is_some_and(|part| !part.starts_with("f:"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::residue;
    use crate::fields::{FieldSet, ManagedFieldsEntry, display_path};

    fn entry(manager: &str, is_applied: bool, fields: &Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry { manager: manager.to_owned(), is_applied, fields: FieldSet::of(fields) }
    }

    fn deployment(spec: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    /// A Deployment with these fields of its container.
    fn container(fields: &Value) -> Value {
        let mut container = fields.clone();
        container["name"] = json!("web");
        deployment(&json!({"template": {"spec": {"containers": [container]}}}))
    }

    /// `managed` are our previous declaration, and that of another manager.
    #[track_caller]
    fn check(live: &Value, managed: [&Value; 2], declared: &Value, expect: &[&str]) {
        let entries = [entry("qontract", true, managed[0]), entry("helm", false, managed[1])];
        let paths = residue(live, &entries, "qontract", declared).paths;
        assert_eq!(paths.iter().map(|path| display_path(path)).collect::<Vec<_>>(), expect);
    }

    const WEB: &str = "spec.template.spec.containers[web]";

    #[track_caller]
    fn check_container(live: &Value, before: &Value, declared: &Value, expect: &[&str]) {
        let expect: Vec<String> = expect.iter().map(|path| format!("{WEB}.{path}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        let [live, before, declared] = [live, before, declared].map(container);
        check(&live, [&before, &json!({})], &declared, &expect);
        check(&live, [&before, &before], &declared, &[]);
    }

    #[test]
    fn defaults_of_a_removed_probe_are_residue() {
        let probe = json!({"livenessProbe": {"httpGet": {"path": "/", "port": 80}}});
        let live = json!({"livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1}});
        check_container(&live, &probe, &json!({}), &["livenessProbe"]);
        check_container(&live, &probe, &probe, &[]);
        let exec = json!({"livenessProbe": {"exec": {"command": ["true"]}}});
        check_container(&live, &probe, &exec, &["livenessProbe.httpGet"]);
        let path_only = json!({"livenessProbe": {"httpGet": {"port": 80}}});
        check_container(&live, &probe, &path_only, &[]);
    }

    #[test]
    fn the_other_source_of_a_variable_is_residue() {
        let env = |variable: Value| {
            let mut variable = variable;
            variable["name"] = json!("B");
            json!({"env": [variable]})
        };
        let value = env(json!({"value": "2"}));
        let field = env(json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
        let live =
            env(json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}}));
        check_container(&live, &field, &value, &["env[B].valueFrom"]);
        check_container(&value, &value, &field, &[]);
        let key = env(json!({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}));
        check_container(&key, &key, &value, &["env[B].valueFrom"]);
        check_container(&live, &field, &key, &["env[B].valueFrom.fieldRef"]);
        check_container(&live, &field, &json!({}), &[]);
    }

    #[test]
    fn the_other_source_of_a_volume_is_residue() {
        let pod = |source: Value| {
            let mut volume = source;
            volume["name"] = json!("v");
            deployment(&json!({"template": {"spec": {"volumes": [volume]}}}))
        };
        let before = pod(json!({"secret": {"secretName": "s"}}));
        let live = pod(json!({"secret": {"secretName": "s", "defaultMode": 420}}));
        let expect = ["spec.template.spec.volumes[v].secret"];
        check(&live, [&before, &json!({})], &pod(json!({"emptyDir": {}})), &expect);
        check(&live, [&before, &json!({})], &deployment(&json!({"template": {"spec": {"x": 1}}})), &[]);
        let empty = pod(json!({"emptyDir": {}}));
        check(&empty, [&pod(json!({})), &json!({})], &before, &["spec.template.spec.volumes[v].emptyDir"]);
        check(&empty, [&pod(json!({})), &json!({})], &pod(json!({})), &[]);
        check(&empty, [&empty, &json!({})], &before, &["spec.template.spec.volumes[v].emptyDir"]);
    }

    #[test]
    fn defaults_of_a_rolling_update_are_residue_of_another_strategy() {
        let live =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        let live = deployment(&json!({"strategy": live}));
        let recreate = deployment(&json!({"strategy": {"type": "Recreate"}}));
        let surge = deployment(&json!({"strategy": {"rollingUpdate": {"maxSurge": "25%"}}}));
        let expect = ["spec.strategy.rollingUpdate"];
        for before in [&json!({}), &surge] {
            check(&live, [before, &json!({})], &recreate, &expect);
            check(&live, [before, &surge], &recreate, &[]);
            let mut custom = recreate.clone();
            custom["apiVersion"] = json!("example.com/v1");
            check(&live, [&json!({}), &json!({})], &custom, &[]);
        }
        check(&live, [&surge, &json!({})], &deployment(&json!({"x": 1})), &["spec.strategy"]);
    }

    #[test]
    fn nothing_of_others_is_residue() {
        let probe = container(&json!({"livenessProbe": {"httpGet": {"port": 80}}}));
        let timeout = container(&json!({"livenessProbe": {"timeoutSeconds": 5}}));
        let live = container(
            &json!({"livenessProbe": {"httpGet": {"port": 80, "scheme": "HTTP"}, "timeoutSeconds": 5}}),
        );
        let expect = [format!("{WEB}.livenessProbe.httpGet")];
        check(&live, [&probe, &timeout], &container(&json!({})), &[&expect[0]]);
    }

    #[test]
    fn an_excluding_field_is_residue_unless_its_manager_is_not_overruled() {
        let live = container(&json!({"livenessProbe": {"exec": {"command": ["true"]}, "timeoutSeconds": 5}}));
        let declared = container(&json!({"livenessProbe": {"httpGet": {"port": 80}}}));
        let exec = format!("{WEB}.livenessProbe.exec");
        let check = |manager: Option<&str>, expect: &[&str], refused: &[&str]| {
            let entries: Vec<_> = manager.map(|name| entry(name, false, &live)).into_iter().collect();
            let residue = residue(&live, &entries, "qontract", &declared);
            assert_eq!(residue.paths.iter().map(|path| display_path(path)).collect::<Vec<_>>(), expect);
            let texts: Vec<String> = residue.refused.iter().map(ToString::to_string).collect();
            assert_eq!(texts, refused);
            assert_eq!(residue.excluding.is_empty(), expect.is_empty());
            assert!(!residue.is_empty());
        };
        check(None, &[&exec], &[]);
        check(Some("kubectl-edit"), &[&exec], &[]);
        check(Some("before-first-apply"), &[&exec], &[]);
        let text = format!("`helm` owns `{exec}`, which excludes the declared `httpGet`");
        check(Some("helm"), &[], &[&text]);
    }

    #[test]
    fn unowned_keys_and_items_are_not_defaults() {
        let live = json!({"map": {"matchLabels": {"a": "1", "b": "2"}, "x": {"y": 1}}});
        let before = json!({"map": {"matchLabels": {"a": "1"}, "x": {"y": 1}}});
        check(&deployment(&live), [&deployment(&before), &json!({})], &deployment(&json!({"z": 1})), &[]);
        for map in ["limits", "nodeSelector", "requests", "selector"] {
            let live = json!({"map": {map: {"a": "1", "b": "2"}, "x": {"y": 1}}});
            let before = json!({"map": {map: {"a": "1"}, "x": {"y": 1}}});
            check(&deployment(&live), [&deployment(&before), &json!({})], &deployment(&json!({"z": 1})), &[]);
        }
        let [a, b] = [json!({"name": "A", "value": "1"}), json!({"name": "B", "value": "2"})];
        let (live, before) = (json!({"c": {"env": [a, b]}}), json!({"c": {"env": [a]}}));
        check(&deployment(&live), [&deployment(&before), &json!({})], &deployment(&json!({"z": 1})), &[]);
    }

    #[test]
    fn metadata_status_and_secrets_have_no_residue() {
        let live = json!({"kind": "X", "metadata": {"a": {"b": {"c": 1, "d": 2}}}, "status": {"a": {"b": {"c": 1}}}});
        check(&live, [&live, &json!({})], &json!({"kind": "X"}), &[]);
        let live = json!({"kind": "Secret", "x": {"b": {"c": 1, "d": 2}}});
        check(&live, [&live, &json!({})], &json!({"kind": "Secret"}), &[]);
    }

    #[test]
    fn what_server_side_apply_removes_alone_is_not_residue() {
        let live = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2"}, "list": [{"x": 1}]});
        check(&live, [&live, &json!({})], &json!({"kind": "ConfigMap"}), &[]);
    }
}
