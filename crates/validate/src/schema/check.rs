//! Checks values against compiled schemas.
//!
//! A first pass only decides whether the value is valid, and stops at the first failure. If the value is
//! invalid, a second pass collects all failures. The steps of both passes together are limited.

use qontract_bundle::{Map, Value};

use super::applicators::{self, PartStep, visit_parts};
use super::assertions;
use super::compile::CompiledSchemas;
use super::key_cache::KeyCheckCache;
use super::rule::{Assertion, Keyword, KeywordRule, NodeId, SchemaNode};
use crate::failure::{FailureKind, SchemaFailure, SchemaPlace};
use crate::keywords;
use crate::pattern::BacktrackLimitError;

/// Base limit of schema applications for a document, regardless of its size.
const MAX_STEPS: u64 = 2_000_000;
/// Additional schema applications for each value in the document.
const STEPS_PER_VALUE: u64 = 256;
/// Maximum nesting depth of schema applications. Python's recursion limit is lower.
const MAX_DEPTH: usize = 500;
/// Maximum number of failures of a document, including those of alternatives.
const MAX_FAILURES: usize = 1_000_000;

/// All failures of `value` against `node`.
pub fn failures(
    compiled: &CompiledSchemas<'_>,
    node: NodeId,
    value: &Value,
    memo: &mut KeyCheckCache,
) -> Vec<SchemaFailure> {
    let mut run = Evaluation {
        compiled,
        cache: memo,
        steps_left: MAX_STEPS,
        root: Some(value),
        depth: 0,
        failure_count: 0,
    };
    let mut found = Vec::new();
    let stop = match run.is_valid(node, value) {
        Ok(true) => return found,
        Ok(false) | Err(CheckAbort::CostlyPattern) => {
            run.depth = 0;
            match run.collect(node, value, &mut String::new(), &mut found) {
                Ok(()) => return found,
                Err(stop) => stop,
            }
        }
        Err(stop) => stop,
    };
    let kind = match stop {
        CheckAbort::TooManyFailures => FailureKind::TooMany,
        CheckAbort::TooComplex | CheckAbort::CostlyPattern => FailureKind::TooComplex,
    };
    let SchemaNode { file, pointer, .. } = &compiled.nodes[node];
    let keyword = Some(SchemaPlace { file: (*file).to_owned(), pointer: format!("{pointer}/") });
    vec![SchemaFailure { pointer: String::new(), keyword, kind }]
}

/// The reason why a check was aborted.
#[derive(Debug)]
pub enum CheckAbort {
    /// A pattern exceeded the backtracking limit.
    CostlyPattern,
    /// The step or depth limit was exceeded.
    TooComplex,
    /// The failure limit was exceeded.
    TooManyFailures,
}

impl From<BacktrackLimitError> for CheckAbort {
    fn from(_: BacktrackLimitError) -> Self {
        CheckAbort::CostlyPattern
    }
}

struct Evaluation<'c, 'v> {
    compiled: &'c CompiledSchemas<'c>,
    cache: &'c mut KeyCheckCache,
    /// Number of steps left.
    steps_left: u64,
    /// The document; `None` once the steps for its size have been added.
    root: Option<&'v Value>,
    depth: usize,
    /// Number of failures so far.
    failure_count: usize,
}

impl Evaluation<'_, '_> {
    fn step(&mut self, cost: usize) -> Result<(), CheckAbort> {
        self.spend(cost as u64)
    }

    fn spend(&mut self, cost: u64) -> Result<(), CheckAbort> {
        if cost > self.steps_left {
            // Large documents get more steps. The size is counted only when the base limit is used up.
            let root = self.root.take().ok_or(CheckAbort::TooComplex)?;
            self.steps_left += STEPS_PER_VALUE * assertions::count(root) as u64;
            return self.spend(cost);
        }
        self.steps_left -= cost;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), CheckAbort> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(CheckAbort::TooComplex) } else { self.step(1) }
    }

    /// Whether `value` is valid against `node`.
    fn is_valid(&mut self, node: NodeId, value: &Value) -> Result<bool, CheckAbort> {
        self.enter()?;
        let compiled = self.compiled;
        let mut fits = true;
        for Keyword { rule, .. } in &compiled.nodes[node].rules {
            fits = match rule {
                KeywordRule::Assertion(own) => self.assertion_holds(own, value)?,
                KeywordRule::Subschemas(parts) => {
                    self.step(applicators::cost(parts, value))?;
                    visit_parts(parts, value, &mut |_, part, node| self.is_valid(node, part))?
                }
                other => self.applicator_holds(other, value)?,
            };
            if !fits {
                break;
            }
        }
        self.depth -= 1;
        Ok(fits)
    }

    /// Whether a rule about alternatives, items or names is satisfied.
    fn applicator_holds(&mut self, rule: &KeywordRule<'_>, value: &Value) -> Result<bool, CheckAbort> {
        match rule {
            KeywordRule::AnyOf(nodes) => self.any_valid(nodes, value),
            KeywordRule::OneOf(nodes) => {
                let mut count = 0;
                for node in nodes {
                    count += usize::from(self.is_valid(*node, value)?);
                    if count > 1 {
                        break;
                    }
                }
                Ok(count == 1)
            }
            KeywordRule::Not(node) => Ok(!self.is_valid(*node, value)?),
            KeywordRule::Contains(node) => {
                let Some(items) = value.as_list() else { return Ok(true) };
                for item in items {
                    if self.is_valid(*node, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            KeywordRule::PropertyNames(node) => {
                for (name, _) in value.as_map().into_iter().flat_map(Map::iter) {
                    if !self.is_valid(*node, &Value::str(name.as_str()))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            KeywordRule::Assertion(_) | KeywordRule::Subschemas(_) => Ok(true),
        }
    }

    fn any_valid(&mut self, nodes: &[NodeId], value: &Value) -> Result<bool, CheckAbort> {
        for node in nodes {
            if self.is_valid(*node, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collects all failures of `value` against `node`.
    fn collect(
        &mut self,
        node: NodeId,
        value: &Value,
        pointer: &mut String,
        found: &mut Vec<SchemaFailure>,
    ) -> Result<(), CheckAbort> {
        self.enter()?;
        let compiled = self.compiled;
        let node = &compiled.nodes[node];
        for keyword in &node.rules {
            let depth = self.depth;
            let (before, length) = (found.len(), pointer.len());
            match self.keyword_failures(keyword, value, pointer, found) {
                Ok(wrongs) => {
                    self.count_failures(wrongs.iter().map(failure_weight).sum())?;
                    found.extend(wrongs.into_iter().map(|wrong| failure(node, keyword, pointer, wrong)));
                }
                // The aborted pattern is reported at the innermost value.
                Err(CheckAbort::CostlyPattern) => {
                    self.depth = depth;
                    found.truncate(before);
                    pointer.truncate(length);
                    found.push(failure(node, keyword, pointer, FailureKind::CostlyPattern));
                }
                Err(stop @ (CheckAbort::TooComplex | CheckAbort::TooManyFailures)) => return Err(stop),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// The failures of `value` itself; failures of its parts are added to `found`.
    fn keyword_failures(
        &mut self,
        keyword: &Keyword<'_>,
        value: &Value,
        pointer: &mut String,
        found: &mut Vec<SchemaFailure>,
    ) -> Result<Vec<FailureKind>, CheckAbort> {
        match &keyword.rule {
            KeywordRule::Assertion(own) => Ok(if self.assertion_holds(own, value)? {
                Vec::new()
            } else {
                assertions::assertion_failures(own, value)?
            }),
            KeywordRule::Subschemas(parts) => {
                self.step(applicators::cost(parts, value))?;
                visit_parts(parts, value, &mut |step, part, node| {
                    let length = pointer.len();
                    match step {
                        PartStep::Here => {}
                        PartStep::Field(name) => keywords::push_token(pointer, name),
                        PartStep::Item(index) => keywords::push_token(pointer, &index.to_string()),
                    }
                    self.collect(node, part, pointer, found)?;
                    pointer.truncate(length);
                    Ok(true)
                })?;
                Ok(Vec::new())
            }
            KeywordRule::AnyOf(nodes) if self.any_valid(nodes, value)? => Ok(Vec::new()),
            KeywordRule::AnyOf(nodes) => Ok(vec![self.no_branch(nodes, value, pointer)?]),
            KeywordRule::OneOf(nodes) => {
                let mut fitting = Vec::new();
                for (index, node) in nodes.iter().enumerate() {
                    fitting.extend(self.is_valid(*node, value)?.then_some(index));
                }
                match fitting.len() {
                    0 => Ok(vec![self.no_branch(nodes, value, pointer)?]),
                    1 => Ok(Vec::new()),
                    _ => Ok(vec![FailureKind::ManyBranches(fitting)]),
                }
            }
            KeywordRule::PropertyNames(node) => {
                for name in value.as_map().into_iter().flat_map(Map::iter).map(|(name, _)| name.as_str()) {
                    let mut of_name = Vec::new();
                    self.collect(*node, &Value::str(name), pointer, &mut of_name)?;
                    // Only the first failure of a name is reported.
                    if let Some(SchemaFailure { keyword, kind: wrong, .. }) = of_name.into_iter().next() {
                        let wrong = FailureKind::FieldName(name.to_owned(), Box::new(wrong));
                        found.push(SchemaFailure {
                            pointer: keywords::child_pointer(pointer, name),
                            keyword,
                            kind: wrong,
                        });
                    }
                }
                Ok(Vec::new())
            }
            KeywordRule::Not(_) | KeywordRule::Contains(_)
                if self.applicator_holds(&keyword.rule, value)? =>
            {
                Ok(Vec::new())
            }
            KeywordRule::Not(_) => Ok(vec![FailureKind::Forbidden]),
            KeywordRule::Contains(node) => {
                // Usually, one specific value is required, so the message names it.
                let allowed =
                    self.compiled.nodes[*node].rules.iter().find_map(|keyword| match &keyword.rule {
                        KeywordRule::Assertion(
                            Assertion::Const(_, allowed) | Assertion::Enum(_, allowed),
                        ) => Some(allowed.clone()),
                        _ => None,
                    });
                let other = || FailureKind::Count("no item of the required kind".to_owned());
                Ok(vec![allowed.map_or_else(other, FailureKind::NotContained)])
            }
        }
    }

    fn no_branch(
        &mut self,
        nodes: &[NodeId],
        value: &Value,
        pointer: &mut String,
    ) -> Result<FailureKind, CheckAbort> {
        let mut branches = Vec::new();
        for node in nodes {
            let mut of_branch = Vec::new();
            self.collect(*node, value, pointer, &mut of_branch)?;
            branches.push(of_branch);
        }
        Ok(FailureKind::NoBranch(branches))
    }

    /// Counts failures against the limit.
    fn count_failures(&mut self, failures: usize) -> Result<(), CheckAbort> {
        self.failure_count += failures;
        if self.failure_count > MAX_FAILURES { Err(CheckAbort::TooManyFailures) } else { Ok(()) }
    }

    /// Whether an assertion is true for `value`; cached if it depends only on the keys of a map.
    fn assertion_holds(&mut self, own: &Assertion<'_>, value: &Value) -> Result<bool, CheckAbort> {
        self.step(assertions::cost(own, value))?;
        let keeps = || assertions::holds(own, value);
        Ok(match value.as_map().filter(|_| assertions::depends_on_keys_only(own)) {
            Some(map) => self.cache.get_or_check(own, map, keeps)?,
            None => keeps()?,
        })
    }
}

fn failure(node: &SchemaNode<'_>, keyword: &Keyword<'_>, pointer: &str, wrong: FailureKind) -> SchemaFailure {
    let at = if keyword.name.is_empty() {
        node.pointer.clone()
    } else {
        keywords::child_pointer(&node.pointer, keyword.name)
    };
    let place = SchemaPlace { file: node.file.to_owned(), pointer: at };
    SchemaFailure { pointer: pointer.to_owned(), keyword: Some(place), kind: wrong }
}

/// The number of failures that a failure counts as.
fn failure_weight(wrong: &FailureKind) -> usize {
    match wrong {
        FailureKind::UnknownFields(names) => names.len(),
        _ => 1,
    }
}
