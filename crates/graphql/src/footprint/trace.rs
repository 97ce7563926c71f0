//! Computes the footprint of a plan.

use std::collections::HashMap;

use super::{FieldRef, Footprint, Keys};
use crate::arguments::Arguments;
use crate::filter::Filter;
use crate::plan::{FieldPlan, FieldTarget, Plan, SelectionId, ValueForm};
use crate::schema::{Dispatch, Kind, Resolver, Schema, TypeId};
use crate::variables::Variables;
use qontract_bundle::types::Type;

/// Computes the footprint of a plan with these variables.
pub fn trace(schema: &Schema, plan: &Plan, variables: &Variables) -> Footprint {
    let mut trace = FootprintBuilder {
        schema,
        plan,
        variables,
        footprint: Footprint::default(),
        keys_by_selection: HashMap::new(),
    };
    trace.selection(plan.root);
    trace.footprint
}

struct FootprintBuilder<'a> {
    schema: &'a Schema,
    plan: &'a Plan,
    variables: &'a Variables,
    footprint: Footprint,
    /// Memoized keys, by selection.
    keys_by_selection: HashMap<SelectionId, Keys>,
}

impl FootprintBuilder<'_> {
    /// The keys of an object that a selection reads, regardless of its position.
    fn selection(&mut self, id: SelectionId) -> Keys {
        if let Some(keys) = self.keys_by_selection.get(&id) {
            return keys.clone();
        }
        let selection = &self.plan.selections[id];
        let mut keys = Keys::default();
        keys.key("$schema", &Keys::All);
        for field in &selection.fields {
            self.field(selection.type_, field, &mut keys);
        }
        self.keys_by_selection.insert(id, keys.clone());
        keys
    }

    fn field(&mut self, type_: TypeId, field: &FieldPlan, keys: &mut Keys) {
        let FieldTarget::Field(number) = field.target else {
            if field.target != FieldTarget::TypeName {
                self.footprint.whole_schema();
            }
            return;
        };
        let schema = self.schema;
        let type_ = schema.type_(type_);
        let definition = &type_.fields[number];
        if matches!(definition.resolver, Resolver::Meta) {
            return;
        }
        self.footprint.field(&type_.name, &definition.name);
        let inner = self.form(&field.form);
        let way = FieldRef { type_name: &type_.name, name: &definition.name };
        match &definition.resolver {
            Resolver::Key => match field.form {
                ValueForm::Scalar(_) | ValueForm::Enum => keys.key(&definition.name, &Keys::All),
                ValueForm::Object(_) | ValueForm::Abstract(_) => {
                    self.refer(way, field.shape.named, &inner, keys);
                }
            },
            Resolver::SchemaKey | Resolver::Meta => {}
            Resolver::Datafiles(name) => {
                self.footprint.file(name, &inner, way);
                self.arguments(name, field, way);
            }
            Resolver::BackReferences(reference) => {
                let reference = &schema.back_references()[*reference];
                let mut path = Keys::default();
                path.key("$ref", &Keys::All);
                for key in reference.path.iter().rev() {
                    let mut outer = Keys::default();
                    outer.key(key, &path);
                    path = outer;
                }
                self.footprint.file(&reference.schema, &path, way);
                self.footprint.file(&reference.schema, &inner, way);
                keys.key("path", &Keys::All);
            }
            Resolver::Resource => {
                keys.key(&definition.name, &Keys::All);
                self.footprint.any_resource(&inner);
            }
            Resolver::Resources => self.footprint.any_resource(&inner),
        }
    }

    /// Adds a key that contains an object or a reference to one.
    fn refer(&mut self, way: FieldRef<'_>, type_: TypeId, inner: &Keys, keys: &mut Keys) {
        let mut here = inner.clone();
        here.key("$ref", &Keys::All);
        keys.key(way.name, &here);
        for schema in self.schema.schemas_of(type_) {
            self.footprint.file(&schema, inner, way);
        }
    }

    fn form(&mut self, form: &ValueForm) -> Keys {
        match form {
            ValueForm::Scalar(_) | ValueForm::Enum => Keys::All,
            ValueForm::Object(selection) => self.selection(*selection),
            ValueForm::Abstract(selections) => {
                let mut keys = Keys::default();
                keys.key("$schema", &Keys::All);
                for (type_, selection) in selections {
                    keys.add(&self.selection(*selection));
                    // The key that determines the type is read as well.
                    for interface in &self.schema.type_(*type_).interfaces {
                        if let Kind::Interface(Dispatch::Key { key, .. }) =
                            &self.schema.type_(*interface).kind
                        {
                            keys.key(key, &Keys::All);
                        }
                    }
                }
                keys
            }
        }
    }

    fn arguments(&mut self, schema_name: &str, field: &FieldPlan, way: FieldRef<'_>) {
        let Some((_, given)) = &field.arguments else { return };
        let type_name = &self.schema.type_(field.shape.named).name;
        let arguments = Arguments::read(self.schema, type_name, given, self.variables);
        let mut keys = Keys::default();
        for name in arguments.names() {
            keys.key(name, &Keys::All);
        }
        if let (Some(filter), Some(type_)) = (arguments.filter(), self.schema.described().get(type_name)) {
            self.filter(filter, type_, &mut keys);
        }
        self.footprint.file(schema_name, &keys, way);
    }

    fn filter(&mut self, filter: &Filter, type_: &Type, keys: &mut Keys) {
        let schema = self.schema;
        filter.visit(&mut |key, inner| {
            let field = crate::filter::find(schema, type_, key);
            if let Some(field) = field {
                self.footprint.field(&type_.name, &field.name);
            }
            let target = field.and_then(|field| schema.described().of_field(field));
            match (inner, target) {
                (Some(inner), Some(target)) => {
                    let mut below = Keys::default();
                    self.filter(inner, target, &mut below);
                    match schema.type_id(&target.name) {
                        Some(id) => {
                            self.refer(FieldRef { type_name: &type_.name, name: key }, id, &below, keys);
                        }
                        None => keys.key(key, &Keys::All),
                    }
                }
                _ => keys.key(key, &Keys::All),
            }
        });
    }
}
