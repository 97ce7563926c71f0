//! Generates the Rust types of interfaces.

use std::fmt::Write as _;

use apollo_compiler::executable::SelectionSet;

use super::names::{pascal, unversioned};
use super::{Generator, RequestedField, SelectedFields, failure};
use crate::failure::Failure;
use crate::schema::TypeId;

impl<'d> Generator<'d> {
    /// Merges the selections on the types of an interface; fields that are not selected on all of them are
    /// optional.
    fn merged(&self, all: Vec<SelectedFields<'d>>) -> Result<SelectedFields<'d>, Failure> {
        let count = all.len();
        let mut merged: Vec<(RequestedField<'d>, usize)> = Vec::new();
        for field in all.into_iter().flat_map(|selected| selected.fields) {
            match merged.iter_mut().find(|(other, _)| other.key == field.key) {
                None => merged.push((field, 1)),
                Some((other, times)) if self.below(other) == self.below(&field) => {
                    other.conditional |= field.conditional;
                    *times += 1;
                }
                Some(_) => {
                    let text =
                        format!("`{}` has different selections per type; select `__typename` too", field.key);
                    return Err(failure(text));
                }
            }
        }
        let fields = merged.into_iter().map(|(field, times)| {
            let conditional = field.conditional || times < count;
            RequestedField { conditional, ..field }
        });
        Ok(SelectedFields { fields: fields.collect(), ..SelectedFields::default() })
    }

    /// The selection on the type of a field as a string, down to the leaf fields.
    pub(super) fn below(&self, field: &RequestedField<'d>) -> String {
        let inner = self.schema.type_id(field.nodes[0].ty().inner_named_type()).unwrap_or_default();
        let sets: Vec<&'d SelectionSet> = field.nodes.iter().map(|node| &node.selection_set).collect();
        if sets.iter().all(|set| set.selections.is_empty()) {
            String::new()
        } else {
            self.signature(inner, &sets)
        }
    }

    /// Writes an enum if `__typename` and different fields are selected on the types of an interface;
    /// otherwise one struct, in which fields that are not selected on all types are optional.
    pub(super) fn interface(
        &mut self,
        name: &str,
        id: TypeId,
        sets: &[&'d SelectionSet],
    ) -> Result<(), Failure> {
        let schema = self.schema;
        let doc = format!("The type `{}`.", schema.type_(id).name);
        let keys = |selected: &SelectedFields<'_>| {
            selected.fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>()
        };
        let possible: Vec<(TypeId, SelectedFields<'d>)> =
            schema.type_(id).possible.iter().map(|type_| (*type_, self.fields(*type_, sets))).collect();
        let Some((_, first)) = possible.first() else {
            return self.structure(name, &doc, &SelectedFields::default()).map(drop);
        };
        if possible.iter().all(|(_, fields)| keys(fields) == keys(first)) {
            return self.structure(name, &doc, first).map(drop);
        }
        if possible.iter().any(|(_, fields)| !keys(fields).contains(&"__typename".to_owned())) {
            let merged = self.merged(possible.into_iter().map(|(_, fields)| fields).collect())?;
            return self.structure(name, &doc, &merged).map(drop);
        }
        // Types with only the common fields need no separate variant.
        let common: Vec<String> = keys(first)
            .into_iter()
            .filter(|key| possible.iter().all(|(_, fields)| keys(fields).contains(key)))
            .collect();
        let index = self.types.len();
        self.types.push(String::new());
        let mut variants = String::new();
        for (type_, mut fields) in possible {
            if fields.fields.len() == common.len() {
                continue;
            }
            fields.fields.retain(|field| field.key != "__typename");
            let type_name = &schema.type_(type_).name;
            let variant = unversioned(&pascal(type_name)).to_owned();
            let variant =
                variant.strip_prefix(name).filter(|rest| !rest.is_empty()).unwrap_or(&variant).to_owned();
            let inner = self.name(type_name, format!("{name}{variant}"));
            self.structure(&inner, &format!("The type `{type_name}`."), &fields)?;
            let _ = write!(
                variants,
                "    /// `{type_name}`\n    #[serde(rename = \"{type_name}\")]\n    {variant}({inner}),\n"
            );
        }
        variants.push_str("    /// Any other type.\n    #[serde(other)]\n    Other,\n");
        let derive = "#[derive(Clone, Debug, PartialEq, Deserialize)]\n#[serde(tag = \"__typename\")]";
        self.types[index] = format!("\n/// {doc}\n{derive}\npub enum {name} {{\n{variants}}}\n");
        Ok(())
    }
}
