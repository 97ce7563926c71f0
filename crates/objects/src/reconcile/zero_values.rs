//! Completes live objects with declared zero values that the API server does not store, so that they are not
//! planned again in every run. Pure.

use std::borrow::Cow;

use qontract_client_kubernetes::{DeclarationState, MANAGER, ZeroValues};
use qontract_inventory::{
    DesiredBody, DifferenceSide, Disclosure, FieldDifference, LiveBody, SENSITIVE, is_written,
};
use serde_json::Value;

use super::observe::LiveObject;

/// A live object with the declared zero values that the API server does not store.
pub struct CompleteObject<'a> {
    pub live: Cow<'a, LiveObject>,
    /// The declared empty maps and lists that were removed from the object, with their paths.
    removed: Vec<(String, Value)>,
}

impl<'a> CompleteObject<'a> {
    /// Completes the live object of a declared one.
    pub fn new(live: &'a LiveObject, desired: &DesiredBody) -> Self {
        let state = || {
            if is_written(desired, &live.live) {
                DeclarationState::Written
            } else {
                DeclarationState::Changed
            }
        };
        let ZeroValues { live: body, removed } =
            live.managed_fields.zero_values(live.live.body(), MANAGER, desired.body(), state);
        let live = match body {
            Cow::Borrowed(_) => Cow::Borrowed(live),
            Cow::Owned(body) => Cow::Owned(LiveObject { live: LiveBody::new(body), ..live.clone() }),
        };
        Self { live, removed }
    }

    /// Whether an empty map or list was removed from the object.
    pub fn lacks_empty_values(&self) -> bool {
        !self.removed.is_empty()
    }

    /// The removed empty maps and lists, limited to the parts that may be shown.
    pub fn differences(&self, disclosure: Disclosure<'_>) -> Vec<FieldDifference> {
        let was_sensitive = self.live.live.body()["metadata"]["annotations"][SENSITIVE] == "true";
        if was_sensitive || !matches!(disclosure, Disclosure::Everything) {
            let difference = FieldDifference {
                path: "object".to_owned(),
                before: DifferenceSide::Hidden,
                after: DifferenceSide::SecretContent,
            };
            return self.removed.first().map(|_| difference).into_iter().collect();
        }
        let difference = |(path, value): &(String, Value)| FieldDifference {
            path: path.clone(),
            before: DifferenceSide::Absent,
            after: DifferenceSide::Shown(value.clone()),
        };
        self.removed.iter().map(difference).collect()
    }
}
