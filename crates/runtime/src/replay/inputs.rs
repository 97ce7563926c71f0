//! The inputs of one plan, in a form that can be stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{CurrentState, DesiredItem, DesiredState, Observed, PlanInputs};
use crate::fault::Fault;
use crate::plan::ObjectKey;
use crate::wire_dimensions::WireDimensions;

/// The inputs of one plan as plain data. Provenance and the texts of faults are omitted, because no plan depends on
/// them.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedInputs {
    /// Values that all objects share.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    desired: Vec<RecordedItem>,
    current: Vec<RecordedScope>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedItem {
    scope: WireDimensions,
    kind: String,
    name: String,
    state: RecordedState,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedState {
    Present(Value),
    Delete,
    Unresolved,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedScope {
    scope: WireDimensions,
    /// The objects; `None` if the scope could not be read.
    objects: Option<Vec<Value>>,
}

impl RecordedInputs {
    /// Records the desired and the current state. `desired_value` and `current_value` convert the integration's types
    /// to JSON and omit secrets.
    pub fn new<D, C>(
        desired: &[DesiredItem<D>],
        current: &CurrentState<C>,
        desired_value: impl Fn(&ObjectKey, &D) -> Value,
        current_value: impl Fn(&crate::Scope, &C) -> Value,
    ) -> Self {
        let desired = desired.iter().map(|item| RecordedItem {
            scope: WireDimensions::from(&item.object.scope),
            kind: item.object.kind.clone(),
            name: item.object.name.clone(),
            state: match &item.state {
                DesiredState::Present(state) => RecordedState::Present(desired_value(&item.object, state)),
                DesiredState::Delete => RecordedState::Delete,
                DesiredState::Unresolved(_) => RecordedState::Unresolved,
            },
        });
        let current = current.iter().map(|(scope, observed)| RecordedScope {
            scope: WireDimensions::from(scope),
            objects: match observed {
                Observed::Known(objects) => {
                    Some(objects.iter().map(|object| current_value(scope, object)).collect())
                }
                Observed::Unknown(_) => None,
            },
        });
        Self { context: Value::Null, desired: desired.collect(), current: current.collect() }
    }

    /// Restores the inputs of the plan; `None` if a value cannot be converted back.
    pub fn restore<D, C>(
        &self,
        desired_of: impl Fn(&Value) -> Option<D>,
        current_of: impl Fn(&Value) -> Option<C>,
    ) -> Option<PlanInputs<D, C>> {
        let unknown = || Fault::remote("unknown when it was recorded");
        let desired = self.desired.iter().map(|item| {
            let object =
                ObjectKey { scope: item.scope.scope(), kind: item.kind.clone(), name: item.name.clone() };
            let state = match &item.state {
                RecordedState::Present(value) => DesiredState::Present(desired_of(value)?),
                RecordedState::Delete => DesiredState::Delete,
                RecordedState::Unresolved => DesiredState::Unresolved(unknown()),
            };
            Some(DesiredItem { object, place: None, state })
        });
        let current = self.current.iter().map(|recorded| {
            let observed = match &recorded.objects {
                Some(objects) => Observed::Known(objects.iter().map(&current_of).collect::<Option<_>>()?),
                None => Observed::Unknown(unknown()),
            };
            Some((recorded.scope.scope(), observed))
        });
        Some(PlanInputs {
            desired: desired.collect::<Option<_>>()?,
            current: current.collect::<Option<_>>()?,
        })
    }
}
