//! The plan. Pure: the same desired and current state produce the same plan.

use qontract_runtime::{
    Change, ChangeKind, CurrentState, DesiredItem, DesiredState, ObjectKey, Observed, Plan,
};

use crate::observe::{CurrentItem, Item};

/// The action of a step. It leaves no decision to `apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the thing.
    Create(ObjectKey),
    /// Remove the thing.
    Remove(ObjectKey),
}

/// Plans to create desired items that are missing and to remove existing items marked for deletion; other
/// items stay unchanged.
pub fn plan(desired: &[DesiredItem<Item>], current: &CurrentState<CurrentItem>) -> Plan<Action> {
    let mut plan = Plan::default();
    for want in desired {
        let thing = &want.object;
        // Nothing is planned in a scope that could not be read; the runner reports why.
        let Some(Observed::Known(all)) = current.get(&thing.scope) else { continue };
        let there = all.iter().find(|seen| seen.name == thing.name);
        let change = |kind, what: &str| Change::new(kind, thing.clone(), what).at(want.place.clone());
        match (&want.state, there) {
            (DesiredState::Present(Item), None) => {
                plan.add_step(change(ChangeKind::Add, "create thing"), Action::Create(thing.clone()));
            }
            (DesiredState::Delete, Some(_)) => {
                plan.add_step(change(ChangeKind::Remove, "remove thing"), Action::Remove(thing.clone()));
            }
            (DesiredState::Present(Item), Some(_))
            | (DesiredState::Delete, None)
            | (DesiredState::Unresolved(_), _) => {}
        }
    }
    plan
}
