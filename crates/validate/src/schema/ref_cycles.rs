//! Finds cycles of references that never descend into the value. Checking a value against such a cycle would
//! not end.

use super::rule::{KeywordRule, NodeId, SchemaNode, Subschemas};
use crate::failure::SchemaPlace;

/// A cycle of references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefCycle {
    /// The first of the references.
    pub place: SchemaPlace,
    /// Number of references in the cycle.
    pub references: usize,
}

/// Removes all cycles from `nodes` and returns them. A keyword that is part of a cycle is removed as a whole,
/// because a part of the keyword would have a different meaning: an empty `not` would reject every value.
pub fn remove_ref_cycles(nodes: &mut [SchemaNode<'_>]) -> Vec<RefCycle> {
    let mut loops = Vec::new();
    for group in cyclic_components(nodes) {
        let is_inside = |id: NodeId| group.binary_search(&id).is_ok();
        let mut places = Vec::new();
        for &id in &group {
            let node = &mut nodes[id];
            let (file, pointer) = (node.file, &node.pointer);
            node.rules.retain(|keyword| {
                let stays = !in_place_subschemas(&keyword.rule).into_iter().any(is_inside);
                if !stays && matches!(keyword.rule, KeywordRule::Subschemas(Subschemas::Ref(_))) {
                    places.push(SchemaPlace { file: file.to_owned(), pointer: format!("{pointer}/$ref") });
                }
                stays
            });
        }
        places.sort();
        if let Some(first) = places.first() {
            loops.push(RefCycle { place: first.clone(), references: places.len() });
        }
    }
    loops.sort_by(|one, other| one.place.cmp(&other.place));
    loops
}

/// The schemas that a rule applies to the same value.
fn in_place_subschemas(rule: &KeywordRule<'_>) -> Vec<NodeId> {
    match rule {
        KeywordRule::Subschemas(Subschemas::Ref(id)) | KeywordRule::Not(id) => vec![*id],
        KeywordRule::Subschemas(Subschemas::AllOf(ids))
        | KeywordRule::AnyOf(ids)
        | KeywordRule::OneOf(ids) => ids.clone(),
        KeywordRule::Subschemas(Subschemas::Dependent(ids)) => ids.iter().map(|(_, id)| *id).collect(),
        KeywordRule::Assertion(_)
        | KeywordRule::Subschemas(_)
        | KeywordRule::Contains(_)
        | KeywordRule::PropertyNames(_) => Vec::new(),
    }
}

/// The schemas that a node applies to the same value.
fn successors(node: &SchemaNode<'_>) -> Vec<NodeId> {
    node.rules.iter().flat_map(|keyword| in_place_subschemas(&keyword.rule)).collect()
}

/// The strongly connected components that are cycles (Tarjan's algorithm), each sorted. The function is not
/// recursive, because chains may be long.
fn cyclic_components(nodes: &[SchemaNode<'_>]) -> Vec<Vec<NodeId>> {
    const UNVISITED: usize = usize::MAX;
    let mut order = vec![UNVISITED; nodes.len()];
    let mut low = vec![UNVISITED; nodes.len()];
    let mut open = vec![false; nodes.len()];
    let (mut stack, mut groups) = (Vec::new(), Vec::new());
    let mut next = 0;
    for start in 0..nodes.len() {
        if order[start] != UNVISITED {
            continue;
        }
        let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(id) = enter.take() {
                (order[id], low[id], open[id]) = (next, next, true);
                next += 1;
                stack.push(id);
                path.push((id, successors(&nodes[id])));
            }
            let Some((id, children)) = path.last_mut() else { break };
            let id = *id;
            match children.pop() {
                Some(child) if order[child] == UNVISITED => enter = Some(child),
                Some(child) if open[child] => low[id] = low[id].min(order[child]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        low[*parent] = low[*parent].min(low[id]);
                    }
                    if low[id] == order[id] {
                        let mut group = Vec::new();
                        while let Some(member) = stack.pop() {
                            open[member] = false;
                            group.push(member);
                            if member == id {
                                break;
                            }
                        }
                        group.sort_unstable();
                        if group.len() > 1 || successors(&nodes[id]).contains(&id) {
                            groups.push(group);
                        }
                    }
                }
            }
        }
    }
    groups
}
