//! Applicator keywords: those that apply subschemas to a value or its parts.
//!
//! Each kind has its own function, so that stack frames stay small: every nested schema adds a frame.

use std::sync::Arc;

use qontract_bundle::{Map, Value};

use super::assertions::{additional_fields_cost, field_names_cost, is_additional};
use super::check::CheckAbort;
use super::rule::{AdditionalFields, NodeId, Subschemas};
use crate::pattern::Pattern;

/// Number of compared names that count as one step.
const NAMES_PER_STEP: usize = 16;

/// The step from a value to one of its parts.
pub enum PartStep<'v> {
    /// The value itself.
    Here,
    /// A field.
    Field(&'v str),
    /// An item.
    Item(usize),
}

/// A callback for a part and its schema; returns whether to continue.
type PartVisitor<'f, 'v> = dyn FnMut(PartStep<'v>, &'v Value, NodeId) -> Result<bool, CheckAbort> + 'f;

/// Visits the parts of `value` with the schema of each, until `visit` returns `false`. Returns whether all
/// parts were visited.
pub fn visit_parts<'v>(
    parts: &Subschemas<'_>,
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    match parts {
        Subschemas::Ref(node) => visit(PartStep::Here, value, *node),
        Subschemas::AllOf(nodes) => all(nodes, value, visit),
        Subschemas::Dependent(nodes) => dependent(nodes, value, visit),
        Subschemas::Fields(nodes) => fields(nodes, value, visit),
        Subschemas::Matching(nodes) => matching(nodes, value, visit),
        Subschemas::AdditionalFields(others, node) => remaining(others, *node, value, visit),
        Subschemas::Items(node) => items(0, *node, value, visit),
        Subschemas::AdditionalItems(from, node) => items(*from, *node, value, visit),
        Subschemas::PositionalItems(nodes) => positional_items(nodes, value, visit),
    }
}

/// Number of additional steps to find the parts.
pub fn cost(parts: &Subschemas<'_>, value: &Value) -> usize {
    match parts {
        Subschemas::Matching(nodes) => field_names_cost(nodes.len(), value),
        Subschemas::AdditionalFields(others, _) => additional_fields_cost(others, value),
        Subschemas::Dependent(nodes) => value.as_map().map_or(0, |_| nodes.len() / NAMES_PER_STEP),
        Subschemas::Fields(nodes) => value.as_map().map_or(0, |_| nodes.len() / NAMES_PER_STEP),
        Subschemas::Ref(_)
        | Subschemas::AllOf(_)
        | Subschemas::Items(_)
        | Subschemas::AdditionalItems(..)
        | Subschemas::PositionalItems(_) => 0,
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_map().into_iter().flat_map(Map::iter).map(|(name, field)| (name.as_str(), field))
}

fn all<'v>(nodes: &[NodeId], value: &'v Value, visit: &mut PartVisitor<'_, 'v>) -> Result<bool, CheckAbort> {
    for node in nodes {
        if !visit(PartStep::Here, value, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn dependent<'v>(
    nodes: &[(&str, NodeId)],
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    for (name, node) in nodes {
        if value.get(name).is_some() && !visit(PartStep::Here, value, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Both lists are sorted, so one pass over them is enough.
fn fields<'v>(
    nodes: &[(&str, NodeId)],
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    let mut rest = nodes;
    for (name, field) in entries(value) {
        while let Some(((known, node), after)) = rest.split_first() {
            if *known > name {
                break;
            }
            rest = after;
            if *known == name && !visit(PartStep::Field(name), field, *node)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn matching<'v>(
    nodes: &[(Arc<Pattern>, NodeId)],
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    for (pattern, node) in nodes {
        for (name, field) in entries(value) {
            if pattern.is_match(name)? && !visit(PartStep::Field(name), field, *node)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn remaining<'v>(
    others: &AdditionalFields<'_>,
    node: NodeId,
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    for (name, field) in entries(value) {
        if is_additional(others, name)? && !visit(PartStep::Field(name), field, node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn items<'v>(
    from: usize,
    node: NodeId,
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    let items = value.as_list().unwrap_or_default();
    for (index, item) in items.iter().enumerate().skip(from) {
        if !visit(PartStep::Item(index), item, node)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn positional_items<'v>(
    nodes: &[NodeId],
    value: &'v Value,
    visit: &mut PartVisitor<'_, 'v>,
) -> Result<bool, CheckAbort> {
    let items = value.as_list().unwrap_or_default();
    for ((index, item), node) in items.iter().enumerate().zip(nodes) {
        if !visit(PartStep::Item(index), item, *node)? {
            return Ok(false);
        }
    }
    Ok(true)
}
