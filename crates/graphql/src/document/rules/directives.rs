//! Checks directives and arguments.

use std::collections::HashMap;

use super::Checker;
use super::types::{ExpectedType, FieldInfo};
use crate::document::syntax::tree::{Argument, Definition, Directive, DirectiveRules, Name, SchemaPart};
use crate::schema::{DirectiveDef, Schema, TypeId};
use crate::suggestions::{did_you_mean, similar};

/// The definition of a directive that a request uses.
#[derive(Clone, Copy)]
enum KnownDirective<'c, 't> {
    OfSchema(&'c DirectiveDef),
    /// A directive that the request itself defines.
    OfRequest(&'c DirectiveRules<'t>),
}

impl<'c> KnownDirective<'c, '_> {
    fn repeatable(self) -> bool {
        matches!(self, KnownDirective::OfRequest(DirectiveRules { repeatable: true, .. }))
    }

    fn allows(self, location: &str) -> bool {
        match self {
            KnownDirective::OfSchema(directive) => directive.locations.iter().any(|one| &**one == location),
            KnownDirective::OfRequest(directive) => directive.locations.contains(&location),
        }
    }

    /// Names of the arguments. A required argument has its type, any other has `None`.
    fn arguments(self, schema: &Schema) -> Vec<(&'c str, Option<String>)> {
        match self {
            KnownDirective::OfSchema(directive) => {
                let argument = |argument: &'c crate::schema::ArgumentDef| {
                    let required = argument.shape.required && argument.default.is_none();
                    (&*argument.name, required.then(|| schema.show(argument.shape)))
                };
                directive.arguments.iter().map(argument).collect()
            }
            KnownDirective::OfRequest(directive) => directive.arguments.clone(),
        }
    }
}

/// Offsets by name, in order of first occurrence.
fn group_by_name<'t>(names: impl Iterator<Item = Name<'t>>) -> Vec<(&'t str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for Name { text, at } in names {
        let group = *index.entry(text).or_insert_with(|| {
            groups.push((text, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(at);
    }
    groups
}

impl<'c, 't> Checker<'c, 't> {
    fn known_directive(&self, name: &str) -> Option<KnownDirective<'c, 't>> {
        // Uses the last definition in the request, otherwise the definition in the schema.
        let own = self.document.definitions.iter().rev().find_map(|definition| match definition {
            Definition::Schema(SchemaPart { name: Some(known), directive: Some(rules), .. })
                if *known == name =>
            {
                Some(rules)
            }
            _ => None,
        });
        own.map(KnownDirective::OfRequest)
            .or_else(|| self.schema_directive(name).map(KnownDirective::OfSchema))
    }

    fn schema_directive(&self, name: &str) -> Option<&'c DirectiveDef> {
        self.schema.directives().iter().find(|directive| &*directive.name == name)
    }

    /// Checks the directives at a location and their arguments. `field` is the field that has or contains the
    /// directives.
    pub(super) fn directives(
        &mut self,
        directives: &'c [Directive<'t>],
        location: &str,
        field: Option<FieldInfo<'c>>,
    ) {
        for directive in directives {
            self.directive(directive, location, field);
        }
    }

    fn directive(&mut self, directive: &'c Directive<'t>, location: &str, field: Option<FieldInfo<'c>>) {
        let Directive { at, name, arguments } = directive;
        let rules = self.known_directive(name);
        match rules {
            None => self.report(format!("Unknown directive \"@{name}\"."), [*at]),
            Some(rules) if !rules.allows(location) => {
                self.report(format!("Directive \"@{name}\" may not be used on {location}."), [*at]);
            }
            Some(_) => {}
        }
        let defined = rules.map(|rules| rules.arguments(self.schema));
        for Argument { name: Name { text: given, at }, .. } in arguments {
            if let Some(defined) = &defined
                && !defined.iter().any(|(name, _)| name == given)
            {
                let hint = did_you_mean(None, &similar(given, defined.iter().map(|(name, _)| *name)));
                let message = format!("Unknown argument \"{given}\" on directive \"@{name}\".{hint}");
                self.report(message, [*at]);
            }
        }
        self.unique_arguments(arguments);
        // graphql-js matches the arguments of an unknown directive against those of the field.
        let wanted = match self.schema_directive(name) {
            Some(directive) => directive.arguments.as_slice(),
            None => field.map(|field| field.arguments).unwrap_or_default(),
        };
        for argument in arguments {
            let wanted = wanted.iter().find(|wanted| &*wanted.name == argument.name.text);
            self.value(&argument.value, wanted.map(ExpectedType::of_argument), false);
        }
        for (wanted, type_) in defined.unwrap_or_default() {
            if let Some(type_) = type_
                && !arguments.iter().any(|given| given.name.text == wanted)
            {
                let message = format!(
                    "Directive \"@{name}\" argument \"{wanted}\" of type \"{type_}\" is required, but it was not provided."
                );
                self.report(message, [*at]);
            }
        }
    }

    /// Checks an argument of a field.
    pub(super) fn argument(
        &mut self,
        argument: &'c Argument<'t>,
        parent: Option<TypeId>,
        field: Option<FieldInfo<'c>>,
    ) {
        let Name { text: name, at } = argument.name;
        let wanted = field.and_then(|field| field.arguments.iter().find(|wanted| &*wanted.name == name));
        if let (None, Some(field), Some(parent)) = (wanted, field, parent) {
            let hint = did_you_mean(None, &similar(name, field.arguments.iter().map(|one| &*one.name)));
            let (parent, field) = (&self.schema.type_(parent).name, field.name);
            self.report(format!("Unknown argument \"{name}\" on field \"{parent}.{field}\".{hint}"), [at]);
        }
        self.value(&argument.value, wanted.map(ExpectedType::of_argument), false);
    }

    pub(super) fn unique_arguments(&mut self, arguments: &[Argument<'t>]) {
        if arguments.len() < 2 {
            return;
        }
        for (name, places) in group_by_name(arguments.iter().map(|argument| argument.name)) {
            if places.len() > 1 {
                self.report(format!("There can be only one argument named \"{name}\"."), places);
            }
        }
    }

    pub(super) fn unique_variables(&mut self, variables: &[crate::document::syntax::tree::Variable<'t>]) {
        if variables.len() < 2 {
            return;
        }
        for (name, places) in group_by_name(variables.iter().map(|variable| variable.name)) {
            if places.len() > 1 {
                self.report(format!("There can be only one variable named \"${name}\"."), places);
            }
        }
    }

    pub(super) fn unique_directives(&mut self, directives: &[Directive<'t>]) {
        if directives.len() > 1 {
            self.unique_among(&mut HashMap::new(), directives);
        }
    }

    /// Checks directives of a type and its extensions.
    pub(super) fn unique_directives_of(&mut self, owner: &'t str, directives: &[Directive<'t>]) {
        let mut seen = self.seen_on_types.remove(owner).unwrap_or_default();
        self.unique_among(&mut seen, directives);
        self.seen_on_types.insert(owner, seen);
    }

    fn unique_among(&mut self, seen: &mut HashMap<&'t str, usize>, directives: &[Directive<'t>]) {
        for Directive { name, at, .. } in directives {
            if self.known_directive(name).is_none_or(KnownDirective::repeatable) {
                continue;
            }
            if let Some(first) = seen.get(name) {
                let message = format!("The directive \"@{name}\" can only be used once at this location.");
                self.report(message, [*first, *at]);
            } else {
                seen.insert(name, *at);
            }
        }
    }
}
