//! Desired and current state. Both may call clients, which take the read permit.

use std::collections::BTreeMap;

use qontract_runtime::{Observed, Scope, Thing, View, Want, Wanted, World};

use crate::declare::{App, Target};

/// The desired state of a thing: every field that can differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item;

/// The current state of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentItem {
    /// Its name.
    pub name: String,
}

/// The desired state of a shard: `Present`, `Delete` if the data explicitly says so, or `Unresolved` if an input
/// could not be read.
pub fn wants(view: &View<'_, (), Target, App>) -> Vec<Want<Item>> {
    let want = |name: &String| Want {
        thing: Thing { scope: scope(&view.shard.target), kind: "thing".to_owned(), name: name.clone() },
        place: view.shard.places.get("").cloned(),
        wanted: Wanted::Present(Item),
    };
    view.shard.state.things.iter().map(want).collect()
}

/// The current state of everything the integration owns in a shard. If a client fails, return `Unknown` for its
/// scope: nothing in it is removed.
pub fn observe(target: &Target) -> World<CurrentItem> {
    // Replace this with what a client lists.
    BTreeMap::from([(scope(target), Observed::Known(Vec::new()))])
}

/// The scope of one read.
fn scope(target: &Target) -> Scope {
    Scope::new([("app", target.app.as_str())])
}
