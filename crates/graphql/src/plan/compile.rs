//! Compiles an operation into a plan.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;

use apollo_compiler::Node;
use apollo_compiler::ast;
use apollo_compiler::executable::{Field, Operation, Selection as RequestSelection, SelectionSet};
use qontract_bundle::json::JavaScriptWriter;

use super::{Argument, FieldPlan, FieldTarget, Plan, PlanSource, ReadKey, Selection, SelectionId, ValueForm};
use crate::failure::{Code, Failure};
use crate::input::Input;
use crate::introspection::named;
use crate::schema::{Kind, Resolver, Schema, Shape, TypeId};
use crate::variables::Variables;

/// Maximum number of selections in a plan; typical queries have dozens.
const MAX_SELECTIONS: usize = 50_000;

impl Plan {
    /// Compiles an operation of a document. The values in `variables` decide `@skip` and `@include`.
    pub fn compile(
        schema: &Schema,
        source: PlanSource<'_>,
        operation: &Operation,
        variables: &Variables,
    ) -> Result<Self, Failure> {
        let known = HashMap::new();
        let mut compiler = Compiler {
            schema,
            source,
            variables,
            selections: Vec::new(),
            selection_ids: known,
            argument_sets: 0,
        };
        let root = compiler.selection(schema.query(), &[&operation.selection_set])?;
        let Compiler { selections, argument_sets, .. } = compiler;
        let selections: Vec<Selection> = selections.into_iter().flatten().collect();
        let only_meta =
            selections[root].fields.iter().all(|field| !matches!(field.target, FieldTarget::Field(_)));
        Ok(Plan {
            selections,
            root,
            argument_sets,
            only_introspection: only_meta,
            last_size: AtomicUsize::new(0),
        })
    }
}

struct Compiler<'c> {
    schema: &'c Schema,
    source: PlanSource<'c>,
    variables: &'c Variables,
    /// The compiled selections; `None` while a selection is being compiled.
    selections: Vec<Option<Selection>>,
    /// Ids by object type and addresses of the selection sets, so that each combination is compiled once.
    selection_ids: HashMap<(TypeId, Vec<usize>), SelectionId>,
    argument_sets: usize,
}

/// Fields by response key, in order of appearance.
type FieldsByKey<'c> = Vec<(&'c str, Vec<&'c Node<Field>>)>;

impl<'c> Compiler<'c> {
    fn selection(&mut self, type_: TypeId, sets: &[&'c SelectionSet]) -> Result<SelectionId, Failure> {
        let addresses = sets.iter().map(|set| std::ptr::from_ref(*set).addr()).collect();
        let key = (type_, addresses);
        if let Some(known) = self.selection_ids.get(&key) {
            return Ok(*known);
        }
        let id = self.selections.len();
        if id >= MAX_SELECTIONS {
            return Err(Failure::limit(format!("The request has more than {MAX_SELECTIONS} selections.")));
        }
        self.selection_ids.insert(key, id);
        self.selections.push(None);
        let mut grouped = FieldsByKey::new();
        let mut visited = HashSet::new();
        for set in sets {
            self.collect(type_, set, &mut visited, &mut grouped)?;
        }
        let mut fields = Vec::with_capacity(grouped.len());
        for (key, nodes) in grouped {
            fields.push(self.field(type_, key, &nodes)?);
        }
        self.selections[id] = Some(Selection { type_, fields });
        Ok(id)
    }

    fn collect(
        &self,
        type_: TypeId,
        set: &'c SelectionSet,
        visited: &mut HashSet<&'c str>,
        grouped: &mut FieldsByKey<'c>,
    ) -> Result<(), Failure> {
        for requested in &set.selections {
            if !self.included(requested)? {
                continue;
            }
            match requested {
                RequestSelection::Field(field) => {
                    let key = field.response_key().as_str();
                    match grouped.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, nodes)) => nodes.push(field),
                        None => grouped.push((key, vec![field])),
                    }
                }
                RequestSelection::InlineFragment(fragment) => {
                    let condition = fragment.type_condition.as_deref();
                    if condition.is_none_or(|name| self.applies(name, type_)) {
                        self.collect(type_, &fragment.selection_set, visited, grouped)?;
                    }
                }
                RequestSelection::FragmentSpread(spread) => {
                    let name = spread.fragment_name.as_str();
                    let Some(fragment) = self.source.executable.fragments.get(name) else { continue };
                    if visited.insert(name) && self.applies(fragment.type_condition(), type_) {
                        self.collect(type_, &fragment.selection_set, visited, grouped)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn applies(&self, condition: &str, type_: TypeId) -> bool {
        let condition = self.schema.type_id(condition);
        condition.is_some_and(|id| id == type_ || self.schema.type_(id).possible.contains(&type_))
    }

    fn included(&self, requested: &RequestSelection) -> Result<bool, Failure> {
        for (name, wanted) in [("skip", false), ("include", true)] {
            let Some(directive) = requested.directives().get(name) else { continue };
            let Some(argument) = directive.arguments.iter().find(|argument| argument.name == "if") else {
                continue;
            };
            match self.variables.resolve(&argument.value) {
                Input::Bool(value) if value == wanted => {}
                Input::Bool(_) => return Ok(false),
                _ => {
                    let message = "Argument \"if\" of non-null type \"Boolean!\" must not be null.";
                    let mut failure = Failure::new(Code::Internal, message);
                    let place = self.source.lines.of_span(argument.value.location());
                    failure.locations.extend(place);
                    return Err(failure);
                }
            }
        }
        Ok(true)
    }

    fn field(&mut self, type_: TypeId, key: &str, nodes: &[&'c Node<Field>]) -> Result<FieldPlan, Failure> {
        let first = nodes[0];
        let schema = self.schema;
        let (what, shape) = match first.name.as_str() {
            "__typename" => (FieldTarget::TypeName, Shape { required: true, ..self.shape("String")? }),
            "__schema" => (FieldTarget::Schema, Shape { required: true, ..self.shape("__Schema")? }),
            "__type" => (FieldTarget::Type, self.shape("__Type")?),
            name => {
                let fields = &schema.type_(type_).fields;
                let number = fields.iter().position(|field| &*field.name == name);
                let number = number.ok_or_else(|| unexpected(name))?;
                (FieldTarget::Field(number), fields[number].shape)
            }
        };
        let sets: Vec<&'c SelectionSet> = nodes.iter().map(|node| &node.selection_set).collect();
        let form = match &schema.type_(shape.named).kind {
            Kind::Scalar(scalar) => ValueForm::Scalar(*scalar),
            Kind::Enum => ValueForm::Enum,
            Kind::Object => ValueForm::Object(self.selection(shape.named, &sets)?),
            Kind::Interface(_) => {
                let mut possible = schema.type_(shape.named).possible.clone();
                possible.sort_unstable();
                let select = |type_| Ok((type_, self.selection(type_, &sets)?));
                ValueForm::Abstract(possible.into_iter().map(select).collect::<Result<_, Failure>>()?)
            }
        };
        let mut encoded = Vec::new();
        JavaScriptWriter(&mut encoded).str(key);
        encoded.push(b':');
        let lines = self.source.lines;
        Ok(FieldPlan {
            key: key.into(),
            encoded_key: encoded.into(),
            target: what,
            read: self.read(type_, what),
            shape,
            form,
            locations: nodes.iter().filter_map(|node| lines.of_span(node.location())).collect(),
            arguments: self.arguments(type_, what, &first.arguments),
        })
    }

    fn read(&self, type_: TypeId, what: FieldTarget) -> ReadKey {
        let FieldTarget::Field(number) = what else { return ReadKey::Nothing };
        let field = &self.schema.type_(type_).fields[number];
        match field.resolver {
            Resolver::Key if &*field.name == "path" => ReadKey::Path,
            Resolver::Key => ReadKey::Key(field.name.clone()),
            Resolver::SchemaKey => ReadKey::Schema,
            _ => ReadKey::Nothing,
        }
    }

    fn arguments(
        &mut self,
        type_: TypeId,
        what: FieldTarget,
        given: &'c [Node<ast::Argument>],
    ) -> Option<(usize, Vec<Argument>)> {
        let takes_any = match what {
            FieldTarget::Type => true,
            FieldTarget::Field(number) => {
                let resolver = &self.schema.type_(type_).fields[number].resolver;
                matches!(resolver, Resolver::Datafiles(_) | Resolver::Resources) && !given.is_empty()
            }
            FieldTarget::TypeName | FieldTarget::Schema => false,
        };
        takes_any.then(|| {
            let number = self.argument_sets;
            self.argument_sets += 1;
            let argument = |argument: &Node<ast::Argument>| Argument {
                name: argument.name.as_str().into(),
                value: argument.value.clone(),
            };
            (number, given.iter().map(argument).collect())
        })
    }

    fn shape(&self, name: &str) -> Result<Shape, Failure> {
        self.schema.type_id(name).map(named).ok_or_else(|| unexpected(name))
    }
}

/// The internal error for a name that is not in the schema. Validation rejects such requests earlier.
fn unexpected(name: &str) -> Failure {
    Failure::new(Code::Internal, format!("`{name}` is not part of the schema"))
}
