//! A document: the query string of a request, parsed and validated once, with the plans compiled from it.

mod apollo_errors;
mod rules;
mod syntax;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use apollo_compiler::ast::{self, OperationType};
use apollo_compiler::executable::{ExecutableDocument, Operation, Selection, SelectionSet};
use apollo_compiler::validation::Valid;
use apollo_compiler::{Name, Node};
use parking_lot::Mutex;

use crate::failure::{Code, Failure};
use crate::input::Input;
use crate::limits::QueryLimits;
use crate::location::{Location, RequestLines};
use crate::plan::{Plan, PlanSource};
use crate::schema::Schema;
use crate::variables::Variables;
use syntax::QuerySyntaxError;
use syntax::tree::Document as Tree;

/// Maximum number of cached plans per document. Each combination of an operation and the values in its
/// conditions has its own plan.
const MAX_PLANS: usize = 64;
/// Maximum nesting of a document, regardless of the limits, because the stack is finite.
const MAX_NESTING: usize = 300;

/// A parsed and validated document.
#[derive(Debug)]
pub struct Document {
    lines: RequestLines,
    executable: Valid<ExecutableDocument>,
    /// Operations for which the schema has no root type.
    rootless: Vec<RootlessOperation>,
    /// Cached plans, at most [`MAX_PLANS`]; cleared when full. A plan depends only on the document, the
    /// schema and its key, so it never becomes invalid. The lock is not held while a plan is compiled.
    plans: Mutex<HashMap<PlanKey, Arc<Plan>>>,
}

/// The key of a cached plan.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PlanKey {
    /// The name of the operation.
    operation: Option<Box<str>>,
    /// The values of the variables in the conditions of the operation.
    conditions: Vec<Option<bool>>,
}

/// An operation for which the schema has no root type.
#[derive(Debug)]
struct RootlessOperation {
    type_: OperationType,
    name: Option<Name>,
    location: Option<Location>,
}

/// The operation that a request selects.
pub enum ChosenOperation<'d> {
    /// A query.
    Query(&'d Node<Operation>),
    /// An operation for which the schema has no root type.
    Rootless(OperationType, Option<Location>),
}

impl RootlessOperation {
    fn chosen<'d>(&self) -> ChosenOperation<'d> {
        ChosenOperation::Rootless(self.type_, self.location)
    }
}

impl Document {
    /// Parses and validates `text`.
    pub fn prepare(schema: &Schema, text: &str, limits: &QueryLimits) -> Result<Self, Vec<Failure>> {
        if text.len() > limits.query_bytes {
            let (bytes, max) = (text.len(), limits.query_bytes);
            return Err(vec![Failure::limit(format!(
                "The request has {bytes} bytes; at most {max} are allowed."
            ))]);
        }
        let max_depth = limits.depth.min(2000) * 4 + 50;
        let lines = RequestLines::new(text);
        let tree = syntax::parse(text, max_depth.min(MAX_NESTING)).map_err(|fault| match fault {
            QuerySyntaxError::Mistake { message, at } => {
                let mut failure = Failure::new(Code::ParseFailed, message);
                failure.locations.push(lines.location(at));
                vec![failure]
            }
            QuerySyntaxError::TooDeep => too_deep(),
        })?;
        let (selections, max) = (tree.selections(), limits.selections);
        if selections > max {
            let message =
                format!("The request has {selections} selections and directives; at most {max} are allowed.");
            return Err(vec![Failure::limit(message)]);
        }
        let failures = rules::check(schema, &lines, &tree).map_err(|rules::TooDeep| too_deep())?;
        if !failures.is_empty() {
            return Err(failures);
        }
        let mut document = apollo_compiler::parser::Parser::new()
            .recursion_limit(max_depth)
            .parse_ast(without_descriptions(text, &tree), "request")
            .map_err(|error| apollo_errors::syntax(&lines, &error.errors))?;
        let rootless = take_rootless(&mut document, &tree, &lines);
        let executable = document
            .to_executable_validate(schema.compiled())
            .map_err(|error| apollo_errors::validation(&lines, &error.errors))?;
        measure(&executable, limits)?;
        Ok(Self { lines, executable, rootless, plans: Mutex::default() })
    }

    /// The lines of the document.
    pub fn lines(&self) -> &RequestLines {
        &self.lines
    }

    /// The document as an apollo-compiler document.
    pub fn executable(&self) -> &ExecutableDocument {
        &self.executable
    }

    /// The operation with this name; without a name, the only operation.
    pub fn choose(&self, name: Option<&str>) -> Result<ChosenOperation<'_>, Failure> {
        let failure = |message: String| Failure::new(Code::OperationResolution, message);
        let operations = &self.executable.operations;
        let Some(name) = name else {
            if operations.len() + self.rootless.len() > 1 {
                let text = "Must provide operation name if query contains multiple operations.";
                return Err(failure(text.to_owned()));
            }
            if let Some(rootless) = self.rootless.first() {
                return Ok(rootless.chosen());
            }
            let only = operations.iter().next();
            return only
                .map(ChosenOperation::Query)
                .ok_or_else(|| failure("Must provide an operation.".to_owned()));
        };
        if let Some(operation) = operations.named.get(name) {
            return Ok(ChosenOperation::Query(operation));
        }
        let mut rootless = self.rootless.iter();
        match rootless.find(|rootless| rootless.name.as_ref().is_some_and(|other| other == name)) {
            Some(rootless) => Ok(rootless.chosen()),
            None => Err(failure(format!("Unknown operation named \"{name}\"."))),
        }
    }

    /// The plan of an operation for these variables, from the cache if it was compiled before. Concurrent
    /// requests may compile the same plan twice, but never wait for each other.
    pub fn plan(
        &self,
        schema: &Schema,
        operation: &Operation,
        variables: &Variables,
    ) -> Result<Arc<Plan>, Failure> {
        let mut names = BTreeSet::new();
        conditions(&operation.selection_set, &mut names);
        for fragment in self.executable.fragments.values() {
            conditions(&fragment.selection_set, &mut names);
        }
        let value = |name: &&str| match variables.get(name) {
            Some(Input::Bool(value)) => Some(*value),
            _ => None,
        };
        let key = PlanKey {
            operation: operation.name.as_ref().map(|name| name.as_str().into()),
            conditions: names.iter().map(value).collect(),
        };
        let lock = || self.plans.lock();
        if let Some(plan) = lock().get(&key) {
            return Ok(Arc::clone(plan));
        }
        let source = PlanSource { executable: &self.executable, lines: &self.lines };
        let plan = Arc::new(Plan::compile(schema, source, operation, variables)?);
        let mut plans = lock();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&plan));
        Ok(plan)
    }
}

/// Replaces descriptions by spaces, because apollo-compiler does not support them yet.
fn without_descriptions<'t>(text: &'t str, tree: &Tree<'t>) -> Cow<'t, str> {
    let mut blank = Cow::Borrowed(text);
    for Range { start, end } in &tree.descriptions {
        blank.to_mut().replace_range(start..end, &" ".repeat(end - start));
    }
    blank
}

fn too_deep() -> Vec<Failure> {
    vec![Failure::limit("The request is nested too deeply.".to_owned())]
}

/// Removes mutations and subscriptions, with the fragments that only these operations use: a schema without a
/// root type for an operation cannot validate its fields.
fn take_rootless(
    document: &mut ast::Document,
    tree: &Tree<'_>,
    lines: &RequestLines,
) -> Vec<RootlessOperation> {
    let mut rootless = Vec::new();
    document.definitions.retain(|definition| match definition {
        ast::Definition::OperationDefinition(operation)
            if operation.operation_type != OperationType::Query =>
        {
            let location = lines.of_span(operation.location());
            let (type_, name) = (operation.operation_type, operation.name.clone());
            rootless.push(RootlessOperation { type_, name, location });
            false
        }
        _ => true,
    });
    if !rootless.is_empty() {
        let used = tree.used_by_queries();
        document.definitions.retain(|definition| match definition {
            ast::Definition::FragmentDefinition(fragment) => used.contains(fragment.name.as_str()),
            _ => true,
        });
    }
    rootless
}

/// Adds the names of the variables that conditions use.
fn conditions<'d>(set: &'d SelectionSet, names: &mut BTreeSet<&'d str>) {
    for selection in &set.selections {
        for directive in selection.directives() {
            for argument in &directive.arguments {
                if let ast::Value::Variable(name) = &*argument.value {
                    names.insert(name.as_str());
                }
            }
        }
        match selection {
            Selection::Field(field) => conditions(&field.selection_set, names),
            Selection::InlineFragment(fragment) => conditions(&fragment.selection_set, names),
            Selection::FragmentSpread(_) => {}
        }
    }
}

/// Checks the depth and the number of aliases against their limits.
fn measure(document: &ExecutableDocument, limits: &QueryLimits) -> Result<(), Vec<Failure>> {
    let mut measured = QueryMeasure { document, depths: HashMap::new(), aliases: 0 };
    let mut depth = 0;
    for operation in document.operations.iter() {
        depth = depth.max(measured.set(&operation.selection_set));
    }
    for fragment in document.fragments.values() {
        measured.count_aliases(&fragment.selection_set);
    }
    for operation in document.operations.iter() {
        measured.count_aliases(&operation.selection_set);
    }
    let (aliases, max) = (measured.aliases, limits.aliases);
    if depth > limits.depth {
        let max_depth = limits.depth;
        let message =
            format!("The request nests fields {depth} levels deep; at most {max_depth} are allowed.");
        return Err(vec![Failure::limit(message)]);
    }
    if aliases > max {
        return Err(vec![Failure::limit(format!(
            "The request has {aliases} aliases; at most {max} are allowed."
        ))]);
    }
    Ok(())
}

struct QueryMeasure<'d> {
    document: &'d ExecutableDocument,
    /// Depths of measured fragments; a validated document has no fragment cycles.
    depths: HashMap<&'d str, usize>,
    aliases: usize,
}

impl<'d> QueryMeasure<'d> {
    fn set(&mut self, set: &'d SelectionSet) -> usize {
        let mut deepest = 0;
        for selection in &set.selections {
            deepest = deepest.max(match selection {
                Selection::Field(field) => 1 + self.set(&field.selection_set),
                Selection::InlineFragment(fragment) => self.set(&fragment.selection_set),
                Selection::FragmentSpread(spread) => self.fragment(&spread.fragment_name),
            });
        }
        deepest
    }

    fn fragment(&mut self, name: &'d str) -> usize {
        if let Some(depth) = self.depths.get(name) {
            return *depth;
        }
        let Some(fragment) = self.document.fragments.get(name) else { return 0 };
        let depth = self.set(&fragment.selection_set);
        self.depths.insert(name, depth);
        depth
    }

    fn count_aliases(&mut self, set: &SelectionSet) {
        for selection in &set.selections {
            match selection {
                Selection::Field(field) => {
                    self.aliases += usize::from(field.alias.is_some());
                    self.count_aliases(&field.selection_set);
                }
                Selection::InlineFragment(fragment) => self.count_aliases(&fragment.selection_set),
                Selection::FragmentSpread(_) => {}
            }
        }
    }
}
