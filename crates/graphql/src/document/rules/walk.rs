//! Walks a request and checks operations, fragments and fields.

use super::types::FieldInfo;
use super::{Checker, WalkEntry};
use crate::document::syntax::tree::{
    Definition, Field, Fragment, InlineFragment, Name, Operation, OperationKind, SchemaChild, SchemaNode,
    SchemaPart, Selection, SelectionSet, Spread,
};
use crate::schema::{Shape, TypeId};
use crate::suggestions::{did_you_mean, natural, similar, sort};

/// The context of a selection.
#[derive(Clone, Copy)]
struct SelectionScope<'c> {
    /// The named type of the selection set, if it exists in the schema.
    type_: Option<TypeId>,
    /// The field that contains the selection.
    field: Option<FieldInfo<'c>>,
}

impl<'c, 't> Checker<'c, 't> {
    pub(super) fn walk(&mut self) {
        let document = self.document;
        for definition in &document.definitions {
            if let Definition::Schema(SchemaPart { at, name, .. }) = definition {
                let what = name.map_or_else(|| "schema".to_owned(), |name| format!("\"{name}\""));
                self.report(format!("The {what} definition is not executable."), [*at]);
            }
        }
        for (index, definition) in document.definitions.iter().enumerate() {
            self.usages.push(Vec::new());
            match definition {
                Definition::Operation(operation) => {
                    self.operation(operation);
                    self.mark(WalkEntry::Operation(index));
                }
                Definition::Fragment(fragment) => self.fragment(fragment),
                Definition::Schema(part) => {
                    let owner = part.is_type || part.directive.is_none();
                    self.schema_node(&part.node, owner.then(|| part.name.unwrap_or_default()));
                }
            }
        }
        self.mark(WalkEntry::End);
    }

    fn operation(&mut self, operation: &'c Operation<'t>) {
        let Operation { at, kind: task, name, variables, directives, set } = operation;
        if let Some(Name { text, at }) = name {
            if let Some(first) = self.operation_names.get(text).copied() {
                self.report(format!("There can be only one operation named \"{text}\"."), [first, *at]);
            } else {
                self.operation_names.insert(text, *at);
            }
        } else if self.operations > 1 {
            let message = "This anonymous operation must be the only defined operation.";
            self.report(message.to_owned(), [*at]);
        }
        self.unique_variables(variables);
        self.unique_directives(directives);
        for variable in variables {
            self.variable(variable);
        }
        let (root, location) = match task {
            OperationKind::Query => (Some(self.schema.query()), "QUERY"),
            OperationKind::Mutation => (None, "MUTATION"),
            OperationKind::Subscription => (None, "SUBSCRIPTION"),
        };
        self.directives(directives, location, None);
        self.set(set, SelectionScope { type_: root, field: None }, false);
    }

    fn fragment(&mut self, fragment: &'c Fragment<'t>) {
        let Fragment { name: Name { text: name, at }, condition, directives, set, .. } = fragment;
        let type_ = self.schema.type_id(condition.text);
        if type_.is_some_and(|id| !self.schema.type_(id).is_composite()) {
            let condition = condition.text;
            let message =
                format!("Fragment \"{name}\" cannot condition on non composite type \"{condition}\".");
            self.report(message, [fragment.condition.at]);
        }
        if let Some(first) = self.fragment_names.get(name).copied() {
            self.report(format!("There can be only one fragment named \"{name}\"."), [first, *at]);
        } else {
            self.fragment_names.insert(name, *at);
        }
        self.cycles(fragment);
        self.unique_directives(directives);
        self.known_type(*condition, false);
        self.directives(directives, "FRAGMENT_DEFINITION", None);
        self.set(set, SelectionScope { type_, field: None }, false);
    }

    fn set(&mut self, set: &'c SelectionSet<'t>, scope: SelectionScope<'c>, in_inline: bool) {
        let parent = scope.type_.filter(|id| self.schema.type_(*id).is_composite());
        if !in_inline {
            self.check_overlap(parent, set);
        }
        for selection in &set.selections {
            match selection {
                Selection::Field(field) => self.field(field, parent),
                Selection::Spread(spread) => self.spread(spread, parent, scope.field),
                Selection::Inline(inline) => self.inline(inline, parent, scope),
            }
        }
    }

    fn check_overlap(&mut self, parent: Option<TypeId>, set: &'c SelectionSet<'t>) {
        if set.selections.len() <= 1 && !matches!(set.selections.first(), Some(Selection::Inline(_))) {
            return;
        }
        if self.aborted || self.too_deep {
            return;
        }
        match self.overlap.within(parent, set) {
            Ok(conflicts) => {
                for conflict in conflicts {
                    let (message, places) = conflict.into_message();
                    self.report(message, places);
                }
            }
            Err(super::overlap::OverlapAbort::Budget) => self.abort(),
            Err(super::overlap::OverlapAbort::TooDeep) => self.too_deep = true,
        }
    }

    fn field(&mut self, field: &'c Field<'t>, parent: Option<TypeId>) {
        let info = parent.and_then(|parent| self.field_info(parent, field.name));
        let name = field.name;
        if let Some(FieldInfo { shape, .. }) = info {
            let type_ = || self.schema.show(shape);
            match (&field.set, self.schema.type_(shape.named).is_composite()) {
                (Some(set), false) => {
                    let message = format!(
                        "Field \"{name}\" must not have a selection since type \"{}\" has no subfields.",
                        type_()
                    );
                    self.report(message, [set.at]);
                }
                (None, true) => {
                    let message = format!(
                        "Field \"{name}\" of type \"{}\" must have a selection of subfields. Did you mean \"{name} {{ ... }}\"?",
                        type_()
                    );
                    self.report(message, [field.at]);
                }
                _ => {}
            }
        }
        if let (Some(parent), None) = (parent, info) {
            self.unknown_field(parent, field);
        }
        self.unique_directives(&field.directives);
        self.unique_arguments(&field.arguments);
        let entered = self.introspection_depth(field);
        for argument in &field.arguments {
            self.argument(argument, parent, info);
        }
        self.directives(&field.directives, "FIELD", info);
        if let Some(set) = &field.set {
            self.set(set, SelectionScope { type_: info.map(|info| info.shape.named), field: info }, false);
        }
        if entered {
            self.introspection.leave();
        }
        for argument in info.map(|info| info.arguments).unwrap_or_default() {
            let required = argument.shape.required && argument.default.is_none();
            if required && !field.arguments.iter().any(|given| given.name.text == &*argument.name) {
                let (wanted, type_) = (&argument.name, self.schema.show(argument.shape));
                let message = format!(
                    "Field \"{name}\" argument \"{wanted}\" of type \"{type_}\" is required, but it was not provided."
                );
                self.report(message, [field.at]);
            }
        }
    }

    fn field_info(&self, parent: TypeId, name: &str) -> Option<FieldInfo<'c>> {
        let schema = self.schema;
        let meta = |name, named: &str, required, arguments| {
            let shape = Shape { named: schema.type_id(named)?, list: false, required };
            Some(FieldInfo { name, shape, arguments })
        };
        match name {
            "__typename" => return meta("__typename", "String", true, &[]),
            "__schema" if parent == schema.query() => return meta("__schema", "__Schema", true, &[]),
            "__type" if parent == schema.query() => {
                return meta("__type", "__Type", false, self.type_arguments);
            }
            _ => {}
        }
        let field = schema.type_(parent).field(name)?;
        Some(FieldInfo { name: &field.name, shape: field.shape, arguments: &field.arguments })
    }

    fn unknown_field(&mut self, parent: TypeId, field: &Field<'_>) {
        let schema = self.schema;
        let type_ = schema.type_(parent);
        let mut hint =
            did_you_mean(Some("to use an inline fragment on"), &self.types_with_field(parent, field.name));
        if hint.is_empty() {
            hint = did_you_mean(None, &similar(field.name, type_.fields.iter().map(|field| &*field.name)));
        }
        let message = format!("Cannot query field \"{}\" on type \"{}\".{hint}", field.name, type_.name);
        self.report(message, [field.at]);
    }

    /// The object types of an interface that have the field, and the interfaces of these types that have the
    /// field, most frequent first.
    fn types_with_field(&self, interface: TypeId, field: &str) -> Vec<&'c str> {
        let schema = self.schema;
        if !schema.is_abstract(interface) {
            return Vec::new();
        }
        let has = |id: TypeId| schema.type_(id).field(field).is_some();
        let mut counted: Vec<(TypeId, usize)> = Vec::new();
        for object in schema.type_(interface).possible.iter().copied().filter(|id| has(*id)) {
            counted.push((object, 1));
            for other in schema.type_(object).interfaces.iter().copied().filter(|id| has(*id)) {
                match counted.iter_mut().find(|(type_, _)| *type_ == other) {
                    Some((_, count)) => *count += 1,
                    None => counted.push((other, 1)),
                }
            }
        }
        sort(&mut counted, |(one, mine), (other, theirs)| {
            let above = |up, down| schema.is_abstract(up) && schema.implements(down, up);
            theirs.cmp(mine).then_with(|| match (above(*one, *other), above(*other, *one)) {
                (true, _) => std::cmp::Ordering::Less,
                (_, true) => std::cmp::Ordering::Greater,
                _ => natural(&schema.type_(*one).name, &schema.type_(*other).name),
            })
        });
        counted.into_iter().map(|(id, _)| &*schema.type_(id).name).collect()
    }

    fn spread(&mut self, spread: &'c Spread<'t>, parent: Option<TypeId>, field: Option<FieldInfo<'c>>) {
        let name = spread.name.text;
        match self.fragments.get(name) {
            None => self.report(format!("Unknown fragment \"{name}\"."), [spread.name.at]),
            Some(fragment) => {
                let type_ = self.schema.type_id(fragment.condition.text);
                let type_ = type_.filter(|id| self.schema.type_(*id).is_composite());
                self.possible(type_, parent, &format!("Fragment \"{name}\""), spread.at);
            }
        }
        self.unique_directives(&spread.directives);
        self.directives(&spread.directives, "FRAGMENT_SPREAD", field);
    }

    fn inline(&mut self, inline: &'c InlineFragment<'t>, parent: Option<TypeId>, scope: SelectionScope<'c>) {
        let type_ = match inline.condition {
            Some(condition) => self.schema.type_id(condition.text),
            None => scope.type_,
        };
        let composite = type_.filter(|id| self.schema.type_(*id).is_composite());
        if let Some(Name { text, at }) = inline.condition
            && type_.is_some()
            && composite.is_none()
        {
            let message = format!("Fragment cannot condition on non composite type \"{text}\".");
            self.report(message, [at]);
        }
        self.possible(composite, parent, "Fragment", inline.at);
        self.unique_directives(&inline.directives);
        if let Some(condition) = inline.condition {
            self.known_type(condition, false);
        }
        self.directives(&inline.directives, "INLINE_FRAGMENT", scope.field);
        self.set(&inline.set, SelectionScope { type_, ..scope }, true);
    }

    /// Reports a fragment if no object can have both types.
    fn possible(&mut self, type_: Option<TypeId>, parent: Option<TypeId>, what: &str, at: usize) {
        if let (Some(type_), Some(parent)) = (type_, parent)
            && !self.schema.overlap(type_, parent)
        {
            let name = |id| &self.schema.type_(id).name;
            let (parent, type_) = (name(parent), name(type_));
            let message = format!(
                "{what} cannot be spread here as objects of type \"{parent}\" can never be of type \"{type_}\"."
            );
            self.report(message, [at]);
        }
    }

    /// Reports an unknown type.
    pub(super) fn known_type(&mut self, Name { text: name, at }: Name<'t>, in_schema: bool) {
        const STANDARD: [&str; 13] = [
            "String",
            "Int",
            "Float",
            "Boolean",
            "ID",
            "__Schema",
            "__Directive",
            "__DirectiveLocation",
            "__Type",
            "__Field",
            "__InputValue",
            "__EnumValue",
            "__TypeKind",
        ];
        let standard = if in_schema { &STANDARD[..] } else { &[] };
        let defined = || {
            self.document.definitions.iter().filter_map(|definition| match definition {
                Definition::Schema(SchemaPart { name, is_type: true, .. }) => *name,
                _ => None,
            })
        };
        if self.schema.type_id(name).is_some() || standard.contains(&name) || defined().any(|one| one == name)
        {
            return;
        }
        let names = standard.iter().copied();
        let names = names.chain(self.schema.types().iter().map(|type_| &*type_.name)).chain(defined());
        let hint = did_you_mean(None, &similar(name, names));
        self.report(format!("Unknown type \"{name}\".{hint}"), [at]);
    }

    /// Checks a part of a schema. A type and its extensions share their directives: `owner` is the name of
    /// the type, or `None` for the schema.
    fn schema_node(&mut self, node: &'c SchemaNode<'t>, owner: Option<&'t str>) {
        match owner {
            Some(owner) => self.unique_directives_of(owner, &node.directives),
            None => self.unique_directives(&node.directives),
        }
        for child in &node.children {
            match child {
                SchemaChild::Type(name) => self.known_type(*name, true),
                SchemaChild::Directives => self.directives(&node.directives, node.location, None),
                SchemaChild::Value(value) => self.value(value, None, true),
                SchemaChild::Node(inner) => self.schema_node(inner, None),
            }
        }
    }
}
