//! What does the data say? Pure: the same data, the same answer.

use std::collections::BTreeSet;

use qontract_runtime::state::{Declared, Shard};
use qontract_runtime::{Data, Fault, ShardKey};
use serde::Serialize;

use crate::query::Apps;

/// How a shard is reached: what is needed to look at it even when nothing is wanted there any more. Addresses and
/// references to credentials belong here, never credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The app.
    pub app: String,
}

/// What is declared for an app. What is compared between two bundles is this, so lists whose order does not matter are
/// sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct App {
    /// Names of the things that it is to have.
    pub things: BTreeSet<String>,
}

/// A shard for each app.
pub fn declare(data: &Data) -> Result<Declared<(), Target, App>, Fault> {
    let answer = data.query::<Apps>()?;
    let mut declared = Declared::new(());
    for (index, app) in answer.data.apps_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/apps_v1/{index}"));
        let key = ShardKey::new([("app", app.name.as_str())]);
        // Here goes what the data says of the app; nothing yet.
        let state = App::default();
        declared.add(key, Shard::new(Target { app: app.name }, state, place));
    }
    Ok(declared)
}
