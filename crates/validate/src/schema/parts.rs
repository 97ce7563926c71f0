//! Applicator keywords: those that apply subschemas to a value or its parts.
//!
//! Each kind has its own function, to keep stack frames small: there is one per nested schema.

use std::sync::Arc;

use qontract_bundle::{Map, Value};

use super::check::Stop;
use super::own::{cost_of_names, cost_of_others, is_other};
use super::rule::{NodeId, Others, Parts};
use crate::pattern::Pattern;

/// Number of compared names that count as one step.
const NAMES_PER_STEP: usize = 16;

/// The step from a value to one of its parts.
pub enum Step<'v> {
    /// The value itself.
    Here,
    /// A field.
    Field(&'v str),
    /// An item.
    Item(usize),
}

/// A callback for a part and its schema; returns whether to continue.
type Visit<'f, 'v> = dyn FnMut(Step<'v>, &'v Value, NodeId) -> Result<bool, Stop> + 'f;

/// Visits the parts of `value` with the schema of each, until `visit` returns `false`; returns whether it
/// never did.
pub fn each<'v>(parts: &Parts<'_>, value: &'v Value, visit: &mut Visit<'_, 'v>) -> Result<bool, Stop> {
    match parts {
        Parts::Whole(node) => visit(Step::Here, value, *node),
        Parts::All(nodes) => all(nodes, value, visit),
        Parts::Dependent(nodes) => dependent(nodes, value, visit),
        Parts::Fields(nodes) => fields(nodes, value, visit),
        Parts::Matching(nodes) => matching(nodes, value, visit),
        Parts::Others(others, node) => remaining(others, *node, value, visit),
        Parts::Items(node) => items(0, *node, value, visit),
        Parts::Rest(from, node) => items(*from, *node, value, visit),
        Parts::Each(nodes) => one_by_one(nodes, value, visit),
    }
}

/// Number of additional steps to find the parts.
pub fn cost(parts: &Parts<'_>, value: &Value) -> usize {
    match parts {
        Parts::Matching(nodes) => cost_of_names(nodes.len(), value),
        Parts::Others(others, _) => cost_of_others(others, value),
        Parts::Dependent(nodes) => value.as_map().map_or(0, |_| nodes.len() / NAMES_PER_STEP),
        Parts::Fields(nodes) => value.as_map().map_or(0, |_| nodes.len() / NAMES_PER_STEP),
        Parts::Whole(_) | Parts::All(_) | Parts::Items(_) | Parts::Rest(..) | Parts::Each(_) => 0,
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_map().into_iter().flat_map(Map::iter).map(|(name, field)| (name.as_str(), field))
}

fn all<'v>(nodes: &[NodeId], value: &'v Value, visit: &mut Visit<'_, 'v>) -> Result<bool, Stop> {
    for node in nodes {
        if !visit(Step::Here, value, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn dependent<'v>(
    nodes: &[(&str, NodeId)],
    value: &'v Value,
    visit: &mut Visit<'_, 'v>,
) -> Result<bool, Stop> {
    for (name, node) in nodes {
        if value.get(name).is_some() && !visit(Step::Here, value, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Both lists are sorted, so one pass over them is enough.
fn fields<'v>(nodes: &[(&str, NodeId)], value: &'v Value, visit: &mut Visit<'_, 'v>) -> Result<bool, Stop> {
    let mut rest = nodes;
    for (name, field) in entries(value) {
        while let Some(((known, node), after)) = rest.split_first() {
            if *known > name {
                break;
            }
            rest = after;
            if *known == name && !visit(Step::Field(name), field, *node)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn matching<'v>(
    nodes: &[(Arc<Pattern>, NodeId)],
    value: &'v Value,
    visit: &mut Visit<'_, 'v>,
) -> Result<bool, Stop> {
    for (pattern, node) in nodes {
        for (name, field) in entries(value) {
            if pattern.finds(name)? && !visit(Step::Field(name), field, *node)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn remaining<'v>(
    others: &Others<'_>,
    node: NodeId,
    value: &'v Value,
    visit: &mut Visit<'_, 'v>,
) -> Result<bool, Stop> {
    for (name, field) in entries(value) {
        if is_other(others, name)? && !visit(Step::Field(name), field, node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn items<'v>(from: usize, node: NodeId, value: &'v Value, visit: &mut Visit<'_, 'v>) -> Result<bool, Stop> {
    let items = value.as_list().unwrap_or_default();
    for (index, item) in items.iter().enumerate().skip(from) {
        if !visit(Step::Item(index), item, node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn one_by_one<'v>(nodes: &[NodeId], value: &'v Value, visit: &mut Visit<'_, 'v>) -> Result<bool, Stop> {
    let items = value.as_list().unwrap_or_default();
    for ((index, item), node) in items.iter().enumerate().zip(nodes) {
        if !visit(Step::Item(index), item, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}
