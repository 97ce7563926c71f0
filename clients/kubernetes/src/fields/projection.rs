//! The part of an object that a set of fields selects. Pure.

use std::ops::Bound::{Excluded, Unbounded};

use serde_json::{Map, Value};

use super::lists::is_key;
use super::{FieldPath, FieldSet, ListTypes};

/// A selection of fields.
pub(super) struct Projection<'a> {
    /// The selected fields.
    pub fields: &'a FieldSet,
    /// The declared fields: a declared field without fields below it is an atomic map, or an empty map, whose
    /// content is not selected.
    pub declared: &'a FieldSet,
    pub lists: &'a ListTypes,
}

impl Projection<'_> {
    /// The selected part of the value at `path`; `None` if nothing in it is selected.
    pub fn of(&self, value: &Value, path: &mut FieldPath) -> Option<Value> {
        if !path.is_empty() && !self.fields.contains_below(path) {
            return None;
        }
        if !path.is_empty() && !self.has_fields_below(path) {
            let is_empty_map =
                value.is_object() && self.declared.0.contains(path) && !self.lists.is_atomic_map(path);
            return Some(if is_empty_map { Value::Object(Map::new()) } else { value.clone() });
        }
        match value {
            Value::Object(map) => {
                let part = |(key, value): (&String, &Value)| {
                    path.push(format!("f:{key}"));
                    let is_identity = path.len() > 1 && is_key(&path[path.len() - 2], &path[path.len() - 1]);
                    let value = if is_identity { Some(value.clone()) } else { self.of(value, path) };
                    path.pop();
                    Some((key.clone(), value?))
                };
                Some(Value::Object(map.iter().filter_map(part).collect()))
            }
            Value::Array(items) => {
                let parts = self.lists.parts(path, items).unwrap_or_default();
                let part = |(part, item): (String, &Value)| {
                    path.push(part);
                    let item = self.of(item, path);
                    path.pop();
                    item
                };
                Some(Value::Array(parts.into_iter().zip(items).filter_map(part).collect()))
            }
            scalar => Some(scalar.clone()),
        }
    }

    fn has_fields_below(&self, path: &FieldPath) -> bool {
        let mut below = self.fields.0.range::<FieldPath, _>((Excluded(path), Unbounded));
        below.next().is_some_and(|next| next.starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Projection;
    use crate::fields::{FieldSet, ListTypes};

    #[track_caller]
    fn check(object: &Value, fields: &Value, declared: &Value, expect: &Value) {
        let (fields, declared) = (&FieldSet::read(fields), &FieldSet::of(declared));
        let lists = &ListTypes::of([fields].into_iter());
        let selected = Projection { fields, declared, lists }.of(object, &mut Vec::new());
        assert_eq!(selected.as_ref(), Some(expect));
    }

    #[test]
    fn only_selected_fields_are_in_a_projection() {
        let object = json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "env": [{"name": "x", "v": 1, "w": 2}, {"name": "y"}]});
        let env = json!({"k:{\"name\":\"x\"}": {"f:v": {}}});
        let fields = json!({"f:a": {"f:c": {}}, "f:l": {}, "f:gone": {}, "f:env": env});
        let expect = json!({"a": {"c": 2}, "l": [1, 2], "env": [{"name": "x", "v": 1}]});
        check(&object, &fields, &json!({}), &expect);
    }

    #[test]
    fn a_declared_empty_map_does_not_select_what_others_added() {
        let (object, fields) = (json!({"a": {"b": 1}}), json!({"f:a": {}}));
        check(&object, &fields, &json!({"a": {}}), &json!({"a": {}}));
        check(&object, &fields, &json!({}), &object);
    }
}
