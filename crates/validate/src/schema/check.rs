//! Checks values against compiled schemas.
//!
//! A first pass only decides whether the value is valid, and stops at the first failure. Only for invalid
//! values a second pass collects all failures. Both together take a bounded number of steps.

use qontract_bundle::{Map, Value};

use super::compile::Compiled;
use super::memo::Memo;
use super::own;
use super::parts::{self, Step, each};
use super::rule::{Keyword, Node, NodeId, Own, Rule};
use crate::failure::{Failure, Wrong};
use crate::keywords;
use crate::pattern::TooCostly;

/// Base limit of schema applications for a document, whatever its size.
const STEPS: u64 = 2_000_000;
/// Additional schema applications for each value in the document.
const STEPS_PER_VALUE: u64 = 256;
/// Maximum nesting depth of schema applications. Python's recursion limit is lower.
const DEEPEST: usize = 500;
/// Maximum number of failures of a document, including those of alternatives.
const FAILURES: usize = 1_000_000;

/// All failures of `value` against `node`.
pub fn failures(compiled: &Compiled<'_>, node: NodeId, value: &Value, memo: &mut Memo) -> Vec<Failure> {
    let mut run = Run { compiled, memo, left: STEPS, root: Some(value), depth: 0, kept: 0 };
    let mut found = Vec::new();
    let stop = match run.fits(node, value) {
        Ok(true) => return found,
        Ok(false) | Err(Stop::Costly) => {
            run.depth = 0;
            match run.collect(node, value, &mut String::new(), &mut found) {
                Ok(()) => return found,
                Err(stop) => stop,
            }
        }
        Err(stop) => stop,
    };
    let wrong = match stop {
        Stop::Many => Wrong::TooMany,
        Stop::Complex | Stop::Costly => Wrong::TooComplex,
    };
    let Node { file, pointer, .. } = &compiled.nodes[node];
    let keyword = Some(((*file).to_owned(), format!("{pointer}/")));
    vec![Failure { pointer: String::new(), keyword, wrong }]
}

/// The reason a check was aborted.
#[derive(Debug)]
pub enum Stop {
    /// A pattern exceeded the backtracking limit.
    Costly,
    /// The step or depth limit was exceeded.
    Complex,
    /// The failure limit was exceeded.
    Many,
}

impl From<TooCostly> for Stop {
    fn from(_: TooCostly) -> Self {
        Stop::Costly
    }
}

struct Run<'c, 'v> {
    compiled: &'c Compiled<'c>,
    memo: &'c mut Memo,
    /// Number of steps left.
    left: u64,
    /// The document, until the steps for its size have been added.
    root: Option<&'v Value>,
    depth: usize,
    /// Number of failures so far.
    kept: usize,
}

impl Run<'_, '_> {
    fn step(&mut self, cost: usize) -> Result<(), Stop> {
        self.spend(cost as u64)
    }

    fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        if cost > self.left {
            // Large documents get more steps. The size is counted only when the base limit is used up.
            let root = self.root.take().ok_or(Stop::Complex)?;
            self.left += STEPS_PER_VALUE * own::count(root) as u64;
            return self.spend(cost);
        }
        self.left -= cost;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(Stop::Complex) } else { self.step(1) }
    }

    /// Whether `value` is valid against `node`.
    fn fits(&mut self, node: NodeId, value: &Value) -> Result<bool, Stop> {
        self.enter()?;
        let compiled = self.compiled;
        let mut fits = true;
        for Keyword { rule, .. } in &compiled.nodes[node].rules {
            fits = match rule {
                Rule::Own(own) => self.keeps(own, value)?,
                Rule::Parts(parts) => {
                    self.step(parts::cost(parts, value))?;
                    each(parts, value, &mut |_, part, node| self.fits(node, part))?
                }
                other => self.holds(other, value)?,
            };
            if !fits {
                break;
            }
        }
        self.depth -= 1;
        Ok(fits)
    }

    /// Whether a rule about alternatives, items or names holds.
    fn holds(&mut self, rule: &Rule<'_>, value: &Value) -> Result<bool, Stop> {
        match rule {
            Rule::AnyOf(nodes) => self.any(nodes, value),
            Rule::OneOf(nodes) => {
                let mut count = 0;
                for node in nodes {
                    count += usize::from(self.fits(*node, value)?);
                    if count > 1 {
                        break;
                    }
                }
                Ok(count == 1)
            }
            Rule::Not(node) => Ok(!self.fits(*node, value)?),
            Rule::Contains(node) => {
                let Some(items) = value.as_list() else { return Ok(true) };
                for item in items {
                    if self.fits(*node, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Rule::Names(node) => {
                for (name, _) in value.as_map().into_iter().flat_map(Map::iter) {
                    if !self.fits(*node, &Value::str(name.as_str()))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Rule::Own(_) | Rule::Parts(_) => Ok(true),
        }
    }

    fn any(&mut self, nodes: &[NodeId], value: &Value) -> Result<bool, Stop> {
        for node in nodes {
            if self.fits(*node, value)? {
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
        found: &mut Vec<Failure>,
    ) -> Result<(), Stop> {
        self.enter()?;
        let compiled = self.compiled;
        let node = &compiled.nodes[node];
        for keyword in &node.rules {
            let depth = self.depth;
            let (before, length) = (found.len(), pointer.len());
            match self.wrongs(keyword, value, pointer, found) {
                Ok(wrongs) => {
                    self.keep(wrongs.iter().map(size).sum())?;
                    found.extend(wrongs.into_iter().map(|wrong| failure(node, keyword, pointer, wrong)));
                }
                // Report the aborted pattern at the innermost value that is known.
                Err(Stop::Costly) => {
                    self.depth = depth;
                    found.truncate(before);
                    pointer.truncate(length);
                    found.push(failure(node, keyword, pointer, Wrong::CostlyPattern));
                }
                Err(stop @ (Stop::Complex | Stop::Many)) => return Err(stop),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// The failures of `value` itself; failures of its parts are added to `found`.
    fn wrongs(
        &mut self,
        keyword: &Keyword<'_>,
        value: &Value,
        pointer: &mut String,
        found: &mut Vec<Failure>,
    ) -> Result<Vec<Wrong>, Stop> {
        match &keyword.rule {
            Rule::Own(own) => Ok(if self.keeps(own, value)? { Vec::new() } else { own::wrong(own, value)? }),
            Rule::Parts(parts) => {
                self.step(parts::cost(parts, value))?;
                each(parts, value, &mut |step, part, node| {
                    let length = pointer.len();
                    match step {
                        Step::Here => {}
                        Step::Field(name) => keywords::push(pointer, name),
                        Step::Item(index) => keywords::push(pointer, &index.to_string()),
                    }
                    self.collect(node, part, pointer, found)?;
                    pointer.truncate(length);
                    Ok(true)
                })?;
                Ok(Vec::new())
            }
            Rule::AnyOf(nodes) if self.any(nodes, value)? => Ok(Vec::new()),
            Rule::AnyOf(nodes) => Ok(vec![self.no_branch(nodes, value, pointer)?]),
            Rule::OneOf(nodes) => {
                let mut fitting = Vec::new();
                for (index, node) in nodes.iter().enumerate() {
                    fitting.extend(self.fits(*node, value)?.then_some(index));
                }
                match fitting.len() {
                    0 => Ok(vec![self.no_branch(nodes, value, pointer)?]),
                    1 => Ok(Vec::new()),
                    _ => Ok(vec![Wrong::ManyBranches(fitting)]),
                }
            }
            Rule::Names(node) => {
                for name in value.as_map().into_iter().flat_map(Map::iter).map(|(name, _)| name.as_str()) {
                    let mut of_name = Vec::new();
                    self.collect(*node, &Value::str(name), pointer, &mut of_name)?;
                    // Report only the first failure of a name.
                    if let Some(Failure { keyword, wrong, .. }) = of_name.into_iter().next() {
                        let wrong = Wrong::Name(name.to_owned(), Box::new(wrong));
                        found.push(Failure { pointer: keywords::below(pointer, name), keyword, wrong });
                    }
                }
                Ok(Vec::new())
            }
            Rule::Not(_) | Rule::Contains(_) if self.holds(&keyword.rule, value)? => Ok(Vec::new()),
            Rule::Not(_) => Ok(vec![Wrong::Forbidden]),
            Rule::Contains(node) => {
                // Mostly a certain value is required: name it in the message.
                let allowed =
                    self.compiled.nodes[*node].rules.iter().find_map(|keyword| match &keyword.rule {
                        Rule::Own(Own::Const(_, allowed) | Own::Enum(_, allowed)) => Some(allowed.clone()),
                        _ => None,
                    });
                let other = || Wrong::Count("no item of the required kind".to_owned());
                Ok(vec![allowed.map_or_else(other, Wrong::NotContained)])
            }
        }
    }

    fn no_branch(&mut self, nodes: &[NodeId], value: &Value, pointer: &mut String) -> Result<Wrong, Stop> {
        let mut branches = Vec::new();
        for node in nodes {
            let mut of_branch = Vec::new();
            self.collect(*node, value, pointer, &mut of_branch)?;
            branches.push(of_branch);
        }
        Ok(Wrong::NoBranch(branches))
    }

    /// Counts failures against the limit.
    fn keep(&mut self, failures: usize) -> Result<(), Stop> {
        self.kept += failures;
        if self.kept > FAILURES { Err(Stop::Many) } else { Ok(()) }
    }

    /// Whether an assertion holds for `value`; cached if it depends on the keys of a map only.
    fn keeps(&mut self, own: &Own<'_>, value: &Value) -> Result<bool, Stop> {
        self.step(own::cost(own, value))?;
        let keeps = || own::keeps(own, value);
        Ok(match value.as_map().filter(|_| own::is_told_by_keys(own)) {
            Some(map) => self.memo.keeps(own, map, keeps)?,
            None => keeps()?,
        })
    }
}

fn failure(node: &Node<'_>, keyword: &Keyword<'_>, pointer: &str, wrong: Wrong) -> Failure {
    let at = if keyword.name.is_empty() {
        node.pointer.clone()
    } else {
        keywords::below(&node.pointer, keyword.name)
    };
    Failure { pointer: pointer.to_owned(), keyword: Some((node.file.to_owned(), at)), wrong }
}

/// The number of failures that a failure counts for.
fn size(wrong: &Wrong) -> usize {
    match wrong {
        Wrong::Unknown(names) => names.len(),
        _ => 1,
    }
}
