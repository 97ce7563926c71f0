//! Finds cycles of references that never descend into the value: checking a value against them would not end.

use super::rule::{Node, NodeId, Parts, Rule};

/// A cycle of references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The path of the schema, and the JSON pointer in it, of the first of the references.
    pub place: (String, String),
    /// Number of references in the cycle.
    pub references: usize,
}

/// Removes all cycles from `nodes`, and returns them. A keyword that is part of a cycle is removed as a
/// whole, so that it does not get another meaning: an emptied `not` would reject everything.
pub fn cut(nodes: &mut [Node<'_>]) -> Vec<Loop> {
    let mut loops = Vec::new();
    for group in groups(nodes) {
        let is_inside = |id: NodeId| group.binary_search(&id).is_ok();
        let mut places = Vec::new();
        for &id in &group {
            let node = &mut nodes[id];
            let (file, pointer) = (node.file, &node.pointer);
            node.rules.retain(|keyword| {
                let stays = !same_value(&keyword.rule).into_iter().any(is_inside);
                if !stays && matches!(keyword.rule, Rule::Parts(Parts::Whole(_))) {
                    places.push((file.to_owned(), format!("{pointer}/$ref")));
                }
                stays
            });
        }
        places.sort();
        if let Some(first) = places.first() {
            loops.push(Loop { place: first.clone(), references: places.len() });
        }
    }
    loops.sort_by(|one, other| one.place.cmp(&other.place));
    loops
}

/// The schemas that a rule applies to the same value.
fn same_value(rule: &Rule<'_>) -> Vec<NodeId> {
    match rule {
        Rule::Parts(Parts::Whole(id)) | Rule::Not(id) => vec![*id],
        Rule::Parts(Parts::All(ids)) | Rule::AnyOf(ids) | Rule::OneOf(ids) => ids.clone(),
        Rule::Parts(Parts::Dependent(ids)) => ids.iter().map(|(_, id)| *id).collect(),
        Rule::Own(_) | Rule::Parts(_) | Rule::Contains(_) | Rule::Names(_) => Vec::new(),
    }
}

/// The schemas that a node applies to the same value.
fn next_to(node: &Node<'_>) -> Vec<NodeId> {
    node.rules.iter().flat_map(|keyword| same_value(&keyword.rule)).collect()
}

/// The strongly connected components that are cycles (Tarjan's algorithm), each sorted. Not recursive: chains
/// may be long.
fn groups(nodes: &[Node<'_>]) -> Vec<Vec<NodeId>> {
    const NEW: usize = usize::MAX;
    let mut order = vec![NEW; nodes.len()];
    let mut low = vec![NEW; nodes.len()];
    let mut open = vec![false; nodes.len()];
    let (mut stack, mut groups) = (Vec::new(), Vec::new());
    let mut next = 0;
    for start in 0..nodes.len() {
        if order[start] != NEW {
            continue;
        }
        let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(id) = enter.take() {
                (order[id], low[id], open[id]) = (next, next, true);
                next += 1;
                stack.push(id);
                path.push((id, next_to(&nodes[id])));
            }
            let Some((id, children)) = path.last_mut() else { break };
            let id = *id;
            match children.pop() {
                Some(child) if order[child] == NEW => enter = Some(child),
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
                        if group.len() > 1 || next_to(&nodes[id]).contains(&id) {
                            groups.push(group);
                        }
                    }
                }
            }
        }
    }
    groups
}
