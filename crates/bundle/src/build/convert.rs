//! Converts a YAML tree to the values of a bundle.

use std::collections::BTreeMap;

use qontract_diagnostics::{Diagnostic, code};
use qontract_yaml::{Node, NodeId, Value as Yaml};

use crate::value::{Map, Value};

/// Fields that bundling adds to maps of the tree. An alias is the same map as its anchor, so the fields also
/// appear wherever an alias refers to the map.
#[derive(Debug, Default)]
pub struct Additions(BTreeMap<NodeId, Vec<(&'static str, Value)>>);

impl Additions {
    /// Adds a field to a map. Replaces an added field of the same name.
    pub fn add(&mut self, node: NodeId, key: &'static str, value: Value) {
        let fields = self.0.entry(node).or_default();
        fields.retain(|(known, _)| *known != key);
        fields.push((key, value));
    }
}

/// Converts one file.
pub struct Converter<'a> {
    /// The fields to add.
    pub additions: &'a Additions,
    /// Findings about numbers that JSON cannot represent, without the file name.
    pub findings: &'a mut Vec<Diagnostic>,
}

impl Converter<'_> {
    /// Converts a node.
    pub fn value(&mut self, node: Node<'_>) -> Value {
        match node.value() {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(value),
            Yaml::Int(value) => Value::Int(value),
            Yaml::BigInt(digits) => Value::BigInt(digits.into()),
            Yaml::Float(value) if value.is_finite() => Value::Float(value),
            Yaml::Float(_) => {
                let finding =
                    Diagnostic::new(code::YAML_NOT_FINITE, "JSON has no such number").at(node.span());
                self.findings.push(finding.hint("put the value into quotes"));
                Value::Null
            }
            Yaml::Str(text) => Value::Str(text.into()),
            Yaml::List(list) => Value::List(list.iter().map(|item| self.value(item)).collect()),
            Yaml::Map(map) => {
                let mut entries: Vec<(&str, Value)> = Vec::with_capacity(map.iter().len() + 1);
                for entry in map.iter() {
                    entries.push((entry.key, self.value(entry.value)));
                }
                for (key, value) in self.additions.0.get(&node.id()).into_iter().flatten() {
                    entries.push((*key, value.clone()));
                }
                Value::Map(Map::new(entries))
            }
        }
    }
}
