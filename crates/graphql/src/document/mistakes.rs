//! What is wrong with a request, told with the places that graphql-js tells.
//!
//! apollo-compiler finds the mistakes; it names one place where graphql-js names another or several, and it reports
//! what only follows from another mistake. Both are put right here, from the syntax tree.

use std::collections::{HashMap, HashSet};

use apollo_compiler::Node;
use apollo_compiler::ast::{self, Argument, Definition, DirectiveList, Field, Selection, Value};
use apollo_compiler::diagnostic::{Diagnostic, ToCliReport as _};
use apollo_compiler::parser::SourceSpan;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList};

use super::literals;
use crate::failure::{Code, Failure};
use crate::location;
use crate::schema::Schema;

/// The first mistake of a text that is no GraphQL; the peers stop there too.
pub fn syntax(text: &str, errors: &DiagnosticList) -> Vec<Failure> {
    let first = errors.iter().next();
    first
        .map(|error| {
            let offset = error.error.location().map(|span| literals::fault(text, span.offset()));
            failure(text, Code::ParseFailed, message(&error), offset)
        })
        .into_iter()
        .collect()
}

/// All mistakes of a text that does not fit the schema.
pub fn validation(
    schema: &Schema,
    text: &str,
    document: &ast::Document,
    errors: &DiagnosticList,
) -> Vec<Failure> {
    let tree = Tree::of(document);
    let mut failures: Vec<Failure> = Vec::new();
    let mut conflicts = HashSet::new();
    for error in errors.iter() {
        let name = error.error.unstable_error_name().unwrap_or_default();
        let Some(offset) = error.error.location().map(|span| span.offset()) else {
            failures.push(failure(text, Code::ValidationFailed, message(&error), None));
            continue;
        };
        if tree.only_follows(schema, name, offset)
            || name.starts_with("Conflicting") && !conflicts.insert(offset)
        {
            continue;
        }
        let places = tree.places(text, name, offset);
        failures.push(failure(text, Code::ValidationFailed, message(&error), places));
    }
    failures
}

fn message(error: &Diagnostic<'_, DiagnosticData>) -> String {
    error.error.unstable_compat_message().unwrap_or_else(|| error.error.to_string())
}

/// A mistake at some places of the text.
pub fn failure(
    text: &str,
    code: Code,
    message: impl Into<String>,
    offsets: impl IntoIterator<Item = usize>,
) -> Failure {
    let mut failure = Failure::new(code, message);
    failure.locations = offsets.into_iter().map(|offset| location::of_offset(text, offset)).collect();
    failure
}

/// The parts of a request by the place where they begin.
struct Tree<'d> {
    document: &'d ast::Document,
    fields: Vec<(usize, &'d Field)>,
    arguments: HashMap<usize, (&'d [Node<Argument>], &'d Argument)>,
    spreads: HashMap<usize, &'d ast::FragmentSpread>,
    inlines: HashMap<usize, &'d ast::InlineFragment>,
    directives: HashMap<usize, &'d DirectiveList>,
}

fn offset(span: Option<SourceSpan>) -> Option<usize> {
    span.map(|span| span.offset())
}

impl<'d> Tree<'d> {
    fn of(document: &'d ast::Document) -> Self {
        let mut tree = Self {
            document,
            fields: Vec::new(),
            arguments: HashMap::new(),
            spreads: HashMap::new(),
            inlines: HashMap::new(),
            directives: HashMap::new(),
        };
        for definition in &document.definitions {
            match definition {
                Definition::OperationDefinition(operation) => {
                    tree.directives(&operation.directives);
                    tree.set(&operation.selection_set);
                }
                Definition::FragmentDefinition(fragment) => {
                    tree.directives(&fragment.directives);
                    tree.set(&fragment.selection_set);
                }
                _ => {}
            }
        }
        tree
    }

    fn set(&mut self, set: &'d [Selection]) {
        for selection in set {
            match selection {
                Selection::Field(field) => {
                    self.fields.extend(offset(field.location()).map(|offset| (offset, &**field)));
                    self.arguments(&field.arguments);
                    self.directives(&field.directives);
                    self.set(&field.selection_set);
                }
                Selection::InlineFragment(inline) => {
                    self.inlines.extend(offset(inline.location()).map(|offset| (offset, &**inline)));
                    self.directives(&inline.directives);
                    self.set(&inline.selection_set);
                }
                Selection::FragmentSpread(spread) => {
                    self.spreads.extend(offset(spread.location()).map(|offset| (offset, &**spread)));
                    self.directives(&spread.directives);
                }
            }
        }
    }

    fn arguments(&mut self, arguments: &'d [Node<Argument>]) {
        for argument in arguments {
            self.arguments
                .extend(offset(argument.location()).map(|offset| (offset, (arguments, &**argument))));
        }
    }

    fn directives(&mut self, directives: &'d DirectiveList) {
        for directive in directives {
            self.directives.extend(offset(directive.location()).map(|offset| (offset, directives)));
            self.arguments(&directive.arguments);
        }
    }

    fn field(&self, at: usize) -> Option<&'d Field> {
        self.fields.iter().find(|(offset, _)| *offset == at).map(|(_, field)| *field)
    }

    fn operations(&self) -> impl Iterator<Item = &'d Node<ast::OperationDefinition>> + Clone + use<'d> {
        self.document.definitions.iter().filter_map(|definition| definition.as_operation_definition())
    }

    fn fragments(&self) -> impl Iterator<Item = &'d Node<ast::FragmentDefinition>> + Clone + use<'d> {
        self.document.definitions.iter().filter_map(|definition| definition.as_fragment_definition())
    }

    /// The declaration of a variable that is used at `at`.
    fn declaration(&self, name: &str, at: usize) -> Option<&'d Node<ast::VariableDefinition>> {
        let declares = |operation: &&Node<ast::OperationDefinition>| {
            operation.location().is_some_and(|span| (span.offset()..span.end_offset()).contains(&at))
        };
        let within = self.operations().find(declares);
        let operations = within.into_iter().chain(self.operations());
        operations.flat_map(|operation| &operation.variables).find(|variable| variable.name == name)
    }

    /// Whether a mistake is nothing but another one, seen again.
    fn only_follows(&self, schema: &Schema, name: &str, at: usize) -> bool {
        let composite = |name: &str| schema.type_id(name).is_some_and(|id| schema.type_(id).is_composite());
        match name {
            // Fields that do not exist are dropped, then missed.
            "MissingSubselection" => self.field(at).is_some_and(|field| !field.selection_set.is_empty()),
            // So are fragments on types that do not exist.
            "UndefinedFragment" | "InvalidFragmentSpread" => self.spreads.get(&at).is_some_and(|spread| {
                let mut defined = self.fragments().filter(|fragment| fragment.name == spread.fragment_name);
                defined.any(|fragment| !composite(&fragment.type_condition))
            }),
            "UndefinedField" => {
                let inside = |set: &[Selection]| {
                    set.iter().any(|selection| match selection {
                        Selection::Field(field) => offset(field.location()) == Some(at),
                        _ => false,
                    })
                };
                let inline = self.inlines.values().any(|inline| {
                    let condition = inline.type_condition.as_ref();
                    condition.is_some_and(|condition| !composite(condition)) && inside(&inline.selection_set)
                });
                inline
                    || self.fragments().any(|fragment| {
                        !composite(&fragment.type_condition) && inside(&fragment.selection_set)
                    })
            }
            "DisallowedVariableUsage" => {
                let used = self.arguments.get(&at).and_then(|(_, argument)| argument.value.as_variable());
                let declared = used.and_then(|used| self.declaration(used, at));
                declared.is_some_and(|variable| schema.type_id(variable.ty.inner_named_type()).is_none())
            }
            _ => false,
        }
    }

    /// Where graphql-js says that a mistake is.
    fn places(&self, text: &str, name: &str, at: usize) -> Vec<usize> {
        self.better_places(text, name, at).filter(|places| !places.is_empty()).unwrap_or_else(|| vec![at])
    }

    fn better_places(&self, text: &str, name: &str, at: usize) -> Option<Vec<usize>> {
        Some(match name {
            "SubselectionOnScalarType" | "SubselectionOnEnumType" => {
                let first = self.field(at)?.selection_set.first()?;
                let first = offset(match first {
                    Selection::Field(field) => field.location(),
                    Selection::FragmentSpread(spread) => spread.location(),
                    Selection::InlineFragment(inline) => inline.location(),
                })?;
                vec![at + text.get(at..first)?.rfind('{')?]
            }
            "UniqueArgument" => {
                let (all, given) = self.arguments.get(&at)?;
                let same = all.iter().filter(|argument| argument.name == given.name);
                same.filter_map(|argument| offset(argument.location())).collect()
            }
            "UniqueDirective" => {
                let all = self.directives.get(&at)?;
                let repeated = all.iter().find(|directive| offset(directive.location()) == Some(at))?;
                // The first of them and this one, however many there are.
                let mut same =
                    all.get_all(&repeated.name).filter_map(|directive| offset(directive.location()));
                let first = same.next()?;
                if first == at {
                    std::iter::once(first).chain(same.take(1)).collect()
                } else {
                    vec![first, at]
                }
            }
            "UniqueVariable" => {
                let variables = self.operations().flat_map(|operation| &operation.variables);
                let repeated = variables.clone().find(|variable| {
                    variable.location().is_some_and(|span| (span.offset()..span.end_offset()).contains(&at))
                })?;
                // Past the `$`.
                let same = variables.filter(|variable| variable.name == repeated.name);
                same.filter_map(|variable| Some(offset(variable.location())? + 1)).collect()
            }
            "UndefinedVariable" => {
                let inside = |operation: &&Node<ast::OperationDefinition>| {
                    operation.location().is_some_and(|span| (span.offset()..span.end_offset()).contains(&at))
                };
                let operation = self.operations().find(inside).or_else(|| self.operations().next());
                std::iter::once(at)
                    .chain(operation.and_then(|operation| offset(operation.location())))
                    .collect()
            }
            "DisallowedVariableUsage" => {
                let (_, argument) = self.arguments.get(&at)?;
                let declared = self.declaration(argument.value.as_variable()?, at)?;
                vec![offset(declared.location())?, offset(argument.value.location())?]
            }
            "UndefinedDefinition" | "VariableInputType" => {
                let mut variables = self.operations().flat_map(|operation| &operation.variables);
                let declared = variables.find(|variable| offset(variable.location()) == Some(at))?;
                vec![offset(declared.ty.location()).or(offset(declared.ty.inner_named_type().location()))?]
            }
            "UndefinedFragment" => vec![offset(self.spreads.get(&at)?.fragment_name.location())?],
            "InvalidFragmentTarget" => {
                let inline = self.inlines.get(&at).and_then(|inline| inline.type_condition.as_ref());
                let named = self.fragments().find(|fragment| offset(fragment.location()) == Some(at));
                let condition = inline.or_else(|| Some(&named?.type_condition))?;
                vec![offset(condition.location())?]
            }
            "RecursiveFragmentDefinition" => {
                let fragment = self.fragments().find(|fragment| offset(fragment.location()) == Some(at))?;
                self.cycle(fragment)
            }
            "FragmentNameCollision" => {
                let names = self.fragments().map(|fragment| &fragment.name);
                same_names(names, at)
            }
            "OperationNameCollision" => {
                let names = self.operations().filter_map(|operation| operation.name.as_ref());
                same_names(names, at)
            }
            name if name.starts_with("Conflicting") => {
                let field = self.field(at)?;
                let key = |field: &'d Field| field.alias.as_ref().unwrap_or(&field.name);
                let others = self.fields.iter().filter(|(_, other)| key(other) == key(field));
                let (other, _) = others.min_by_key(|(offset, _)| *offset)?;
                vec![*other, at]
            }
            _ => return None,
        })
    }

    /// The spreads that lead from a fragment back to it.
    fn cycle(&self, from: &'d ast::FragmentDefinition) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        self.search(from, &from.name, &mut seen, &mut path);
        path
    }

    fn search(
        &self,
        at: &'d ast::FragmentDefinition,
        goal: &str,
        seen: &mut HashSet<&'d str>,
        path: &mut Vec<usize>,
    ) -> bool {
        let mut spreads = Vec::new();
        collect_spreads(&at.selection_set, &mut spreads);
        for spread in spreads {
            path.extend(offset(spread.location()));
            let next = self.fragments().find(|fragment| fragment.name == spread.fragment_name);
            let found = spread.fragment_name == goal
                || seen.insert(&spread.fragment_name)
                    && next.is_some_and(|next| self.search(next, goal, seen, path));
            if found {
                return true;
            }
            path.pop();
        }
        false
    }
}

fn collect_spreads<'d>(set: &'d [Selection], spreads: &mut Vec<&'d Node<ast::FragmentSpread>>) {
    for selection in set {
        match selection {
            Selection::Field(field) => collect_spreads(&field.selection_set, spreads),
            Selection::InlineFragment(inline) => collect_spreads(&inline.selection_set, spreads),
            Selection::FragmentSpread(spread) => spreads.push(spread),
        }
    }
}

/// Where the name that stands at `at` stands.
fn same_names<'d>(names: impl Iterator<Item = &'d apollo_compiler::Name> + Clone, at: usize) -> Vec<usize> {
    let Some(repeated) = names.clone().find(|name| offset(name.location()) == Some(at)) else {
        return Vec::new();
    };
    names.filter(|name| *name == repeated).filter_map(|name| offset(name.location())).collect()
}

/// The variables and keys of literals: what apollo-compiler does not look into, because the schema has no opinion.
pub fn in_literals(text: &str, document: &ast::Document) -> Vec<Failure> {
    let tree = Tree::of(document);
    let mut failures = Vec::new();
    let mut arguments: Vec<_> =
        tree.arguments.iter().map(|(offset, (_, argument))| (*offset, *argument)).collect();
    arguments.sort_by_key(|(offset, _)| *offset);
    for (at, argument) in arguments {
        visit(&argument.value, &mut |value| match &**value {
            Value::Object(entries) => {
                for (index, (name, _)) in entries.iter().enumerate() {
                    if let Some((first, _)) = entries[..index].iter().find(|(earlier, _)| earlier == name) {
                        let message = format!("There can be only one input field named \"{name}\".");
                        let places =
                            [offset(first.location()), offset(name.location())].into_iter().flatten();
                        failures.push(failure(text, Code::ValidationFailed, message, places));
                    }
                }
            }
            Value::Variable(name) if tree.declaration(name, at).is_none() => {
                let place = offset(value.location()).unwrap_or(at);
                let message = format!("Variable \"${name}\" is not defined.");
                let places = tree.places(text, "UndefinedVariable", place);
                failures.push(failure(text, Code::ValidationFailed, message, places));
            }
            _ => {}
        });
    }
    failures
}

fn visit(value: &Node<Value>, visitor: &mut dyn FnMut(&Node<Value>)) {
    visitor(value);
    match &**value {
        Value::List(items) => items.iter().for_each(|item| visit(item, visitor)),
        Value::Object(entries) => entries.iter().for_each(|(_, value)| visit(value, visitor)),
        _ => {}
    }
}
