//! The declared state. Pure: the same data produces the same result.

use std::collections::BTreeSet;

use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{Data, Fault, ShardKey};
use serde::Serialize;

use crate::query::Apps;

/// The target of a shard: all that is needed to observe it, even if nothing is declared there anymore. Put
/// addresses and references to credentials here, never credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The app.
    pub app: String,
}

/// The declared state of an app. It is compared between two bundles, so use sets for lists whose order does
/// not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct App {
    /// Names of the things that the app should have.
    pub things: BTreeSet<String>,
}

/// A shard for each app.
pub fn declare(data: &Data) -> Result<DeclaredState<(), Target, App>, Fault> {
    let answer = data.query::<Apps>()?;
    let mut declared = DeclaredState::new(());
    for (index, app) in answer.data.apps_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/apps_v1/{index}"));
        let key = ShardKey::new([("app", app.name.as_str())]);
        // Replace this with the state that the data declares for the app.
        let state = App::default();
        declared.add(key, Shard::new(Target { app: app.name }, state, place));
    }
    Ok(declared)
}
