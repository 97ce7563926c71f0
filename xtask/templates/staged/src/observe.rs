//! What is wanted, and what is there. Both may ask clients, which take the permit to read.

use std::collections::BTreeMap;

use qontract_runtime::{Observed, Scope, Thing, View, Want, Wanted, World};

use crate::declare::{App, Target};

/// A thing as it is to be. What of it can differ is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item;

/// A thing as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
}

/// What is wanted in a shard: `Present`, `Delete` if the data says so in as many words, or `Unresolved` if it cannot be
/// found out.
pub fn wants(view: &View<'_, (), Target, App>) -> Vec<Want<Item>> {
    let want = |name: &String| Want {
        thing: Thing { scope: scope(&view.shard.target), kind: "thing".to_owned(), name: name.clone() },
        place: view.shard.places.get("").cloned(),
        wanted: Wanted::Present(Item),
    };
    view.shard.state.things.iter().map(want).collect()
}

/// All that is ours in a shard. A client that fails makes its scope `Unknown`: nothing in it is removed.
pub fn observe(target: &Target) -> World<Seen> {
    // Here goes what a client lists; nothing yet.
    BTreeMap::from([(scope(target), Observed::Known(Vec::new()))])
}

/// What one read lists.
fn scope(target: &Target) -> Scope {
    Scope::new([("app", target.app.as_str())])
}
