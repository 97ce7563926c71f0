//! Validates a request in the same way as graphql-js 16: the same rules, in the same order, with the same
//! messages and locations.
//!
//! The request is walked once, in source order. The checks of an operation's variables need all fragments.
//! Therefore they run after the walk, and their errors are inserted at the end of the operation.

mod directives;
mod fragments;
mod introspection;
mod overlap;
mod print;
mod types;
mod values;
mod variables;
mod walk;

use std::collections::{HashMap, HashSet};

use super::syntax::tree::{Definition, Document, Fragment};
use crate::failure::{Code, Failure};
use crate::location::RequestLines;
use crate::schema::{ArgumentDef, Schema, Shape};
use fragments::FragmentUsages;
use overlap::Overlap;
use types::ExpectedType;

/// Maximum number of reported errors.
const MAX_ERRORS: usize = 100;
/// Maximum length of a chain of fragments.
const MAX_FRAGMENT_DEPTH: usize = 400;

type Fragments<'c, 't> = HashMap<&'t str, &'c Fragment<'t>>;

/// The request is nested too deeply to be validated.
#[derive(Debug)]
pub struct TooDeep;

/// All validation errors of a request.
pub fn check(
    schema: &Schema,
    lines: &RequestLines,
    document: &Document<'_>,
) -> Result<Vec<Failure>, TooDeep> {
    let mut fragments = Fragments::new();
    for definition in &document.definitions {
        if let Definition::Fragment(fragment) = definition {
            // If several fragments have the same name, the last one is used.
            fragments.insert(fragment.name.text, fragment);
        }
    }
    let text_id = schema.type_id("String").unwrap_or_default();
    let name = ArgumentDef {
        name: "name".into(),
        description: None,
        shape: Shape { named: text_id, list: false, required: true },
        default: None,
    };
    let type_arguments = [name];
    let mut checker = Checker {
        schema,
        document,
        fragments: &fragments,
        type_arguments: &type_arguments,
        entries: Vec::new(),
        reported: 0,
        operations: document.operations().count(),
        aborted: false,
        too_deep: false,
        usages: Vec::with_capacity(document.definitions.len()),
        operation_names: HashMap::new(),
        fragment_names: HashMap::new(),
        visited: HashSet::new(),
        seen_on_types: HashMap::new(),
        introspection: introspection::IntrospectionState::default(),
        overlap: Overlap::new(schema, &fragments),
    };
    checker.walk();
    if checker.too_deep {
        return Err(TooDeep);
    }
    let Checker { entries, usages, .. } = checker;
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let mut report = ErrorReport { list: Vec::new(), lines };
    let end = DeferredChecks { schema, document, recursion: FragmentUsages::new(&fragments), usages };
    // Reaching the limit is reported as a separate error.
    let _ = end.report(entries, &mut report);
    Ok(report.list)
}

/// A result of the walk, in source order.
enum WalkEntry {
    /// An error and its locations.
    Mistake(String, Vec<usize>),
    /// The end of an operation: the index of its definition.
    Operation(usize),
    /// The end of the document.
    End,
    /// Validation would take too long.
    Aborted,
}

/// A use of a variable.
struct Usage<'t> {
    name: &'t str,
    at: usize,
    expected: Option<ExpectedType>,
}

struct Checker<'c, 't> {
    schema: &'c Schema,
    document: &'c Document<'t>,
    fragments: &'c Fragments<'c, 't>,
    /// The arguments of `__type`.
    type_arguments: &'c [ArgumentDef],
    entries: Vec<WalkEntry>,
    reported: usize,
    /// Number of operations.
    operations: usize,
    aborted: bool,
    too_deep: bool,
    /// Uses of variables, per definition.
    usages: Vec<Vec<Usage<'t>>>,
    operation_names: HashMap<&'t str, usize>,
    fragment_names: HashMap<&'t str, usize>,
    /// Fragments that were searched for cycles.
    visited: HashSet<&'t str>,
    /// Directives by the name of the schema type on which they occur; the schema itself has no name.
    seen_on_types: HashMap<&'t str, HashMap<&'t str, usize>>,
    introspection: introspection::IntrospectionState<'t>,
    overlap: Overlap<'c, 't>,
}

impl Checker<'_, '_> {
    fn report(&mut self, message: String, places: impl Into<Vec<usize>>) {
        // One more error than the limit is recorded, so that the report can state that more errors exist.
        if !self.aborted && self.reported <= MAX_ERRORS {
            self.reported += 1;
            self.entries.push(WalkEntry::Mistake(message, places.into()));
        }
    }

    fn mark(&mut self, entry: WalkEntry) {
        if !self.aborted {
            self.entries.push(entry);
        }
    }

    fn abort(&mut self) {
        self.mark(WalkEntry::Aborted);
        self.aborted = true;
    }
}

/// The reported errors.
struct ErrorReport<'t> {
    list: Vec<Failure>,
    lines: &'t RequestLines,
}

/// The report has ended: the error limit is reached, or validation was aborted.
struct ReportEnded;

impl ErrorReport<'_> {
    fn add(&mut self, message: impl Into<String>, places: &[usize]) -> Result<(), ReportEnded> {
        if self.list.len() >= MAX_ERRORS {
            let message = "Too many validation errors, error limit reached. Validation aborted.";
            self.list.push(Failure::new(Code::ValidationFailed, message));
            return Err(ReportEnded);
        }
        let mut failure = Failure::new(Code::ValidationFailed, message);
        failure.locations = places.iter().map(|place| self.lines.location(*place)).collect();
        self.list.push(failure);
        Ok(())
    }

    fn aborted(&mut self) -> ReportEnded {
        self.list.push(Failure::new(Code::ValidationFailed, "Validation aborted."));
        ReportEnded
    }
}

/// The checks that run after the walk.
struct DeferredChecks<'c, 't> {
    schema: &'c Schema,
    document: &'c Document<'t>,
    recursion: FragmentUsages<'c, 't>,
    usages: Vec<Vec<Usage<'t>>>,
}

impl DeferredChecks<'_, '_> {
    fn report(mut self, entries: Vec<WalkEntry>, report: &mut ErrorReport<'_>) -> Result<(), ReportEnded> {
        for entry in entries {
            match entry {
                WalkEntry::Mistake(message, places) => report.add(message, &places)?,
                WalkEntry::Operation(index) => self.variables(index, report)?,
                WalkEntry::End => self.unused_fragments(report)?,
                WalkEntry::Aborted => return Err(report.aborted()),
            }
        }
        Ok(())
    }
}
