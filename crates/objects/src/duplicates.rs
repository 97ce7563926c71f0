//! Handles objects that are declared more than once. It is unknown which declaration is intended, so none is
//! written.

use std::collections::BTreeMap;

use qontract_runtime::{DesiredItem, DesiredState, Fault, ObjectKey};

use crate::scope::DesiredObject;

/// The handling of several declarations of one object with equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualContent {
    /// The declarations count as one.
    Merge,
    /// The declarations are an error as well, because in the data one of them is redundant or has a wrong
    /// name.
    Reject,
}

/// Marks objects that are declared more than once as unresolved, even if one of the declarations is already
/// unresolved.
///
/// **Invariant:** at most one item per object is present, so that a plan never writes an object twice
/// (`an_object_that_is_declared_twice_with_different_content_is_not_written`).
pub fn reject_duplicates(
    items: Vec<DesiredItem<DesiredObject>>,
    equal: EqualContent,
) -> Vec<DesiredItem<DesiredObject>> {
    let mut entries: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        entries.entry(item.object.clone()).or_default().push(index);
    }
    // Objects with only unresolved declarations are not merged: several of them may come from the same file.
    let is_duplicate = |named: &[usize]| match equal {
        EqualContent::Reject => named.len() > 1,
        EqualContent::Merge => named.len() > 1 && named.iter().any(|index| is_resolved(&items[*index])),
    };
    entries.retain(|_, named| is_duplicate(named));
    let is_mergeable = |named: &[usize]| {
        equal == EqualContent::Merge
            && named.iter().all(|index| is_resolved(&items[*index]))
            && named.windows(2).all(|pair| body(&items[pair[0]]) == body(&items[pair[1]]))
    };
    let faults: BTreeMap<ObjectKey, Option<Fault>> = entries
        .iter()
        .map(|(object, named)| {
            let fault = (!is_mergeable(named)).then(|| duplicate_fault(&items, named));
            (object.clone(), fault)
        })
        .collect();
    let mut unique = Vec::new();
    for (index, mut item) in items.into_iter().enumerate() {
        if let Some(named) = entries.get(&item.object) {
            if named.first() != Some(&index) {
                continue;
            }
            if let Some(Some(fault)) = faults.get(&item.object) {
                item.state = DesiredState::Unresolved(fault.clone());
            }
        }
        unique.push(item);
    }
    unique
}

/// The error of items that declare one object. It names the locations of the items or, if the locations are
/// equal, the positions of the items in the list of the shard's objects.
fn duplicate_fault(items: &[DesiredItem<DesiredObject>], named: &[usize]) -> Fault {
    let mut places: Vec<_> = named.iter().map(|index| items[*index].place.clone()).collect();
    places.dedup();
    let mut text = format!("{} entries declare the same object", named.len());
    if places.len() < named.len() {
        let positions: Vec<String> = named.iter().map(|index| (index + 1).to_string()).collect();
        text = format!("{text}: numbers {} of the objects of the shard", positions.join(" and "));
    }
    places.into_iter().fold(Fault::author(text), Fault::at)
}

fn is_resolved(item: &DesiredItem<DesiredObject>) -> bool {
    match item.state {
        DesiredState::Present(_) | DesiredState::Delete => true,
        DesiredState::Unresolved(_) => false,
    }
}

/// The declared content; `None` for an object that is to be deleted.
fn body(item: &DesiredItem<DesiredObject>) -> Option<&serde_json::Value> {
    match &item.state {
        DesiredState::Present(object) => Some(object.desired.body()),
        DesiredState::Delete | DesiredState::Unresolved(_) => None,
    }
}
