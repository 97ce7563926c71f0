//! Desired and current state. Both may call clients, which take the read permit.

use std::collections::BTreeMap;

use qontract_runtime::{
    CurrentState, DeclaredShardView, DesiredItem, DesiredState, ObjectKey, Observed, Scope,
};

use crate::declare::{App, Target};

/// The desired state of a thing: every field that can differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item;

/// The current state of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentItem {
    /// The name.
    pub name: String,
}

/// The desired state of a shard: `Present`, `Delete` if the data explicitly deletes it, or `Unresolved` if an
/// input could not be read.
pub fn wants(view: &DeclaredShardView<'_, (), Target, App>) -> Vec<DesiredItem<Item>> {
    let want = |name: &String| DesiredItem {
        object: ObjectKey { scope: scope(&view.shard.target), kind: "thing".to_owned(), name: name.clone() },
        place: view.shard.places.get("").cloned(),
        state: DesiredState::Present(Item),
    };
    view.shard.state.things.iter().map(want).collect()
}

/// The current state of everything the integration owns in a shard. If a client fails, return `Unknown` for
/// its scope: nothing in it is removed.
pub fn observe(target: &Target) -> CurrentState<CurrentItem> {
    // Replace this with the items that a client lists.
    BTreeMap::from([(scope(target), Observed::Known(Vec::new()))])
}

/// The scope of one read.
fn scope(target: &Target) -> Scope {
    Scope::new([("app", target.app.as_str())])
}
