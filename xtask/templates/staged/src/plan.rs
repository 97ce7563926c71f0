//! The plan. Pure: the same desired and current state give the same plan.

use qontract_runtime::{Change, ChangeKind, Observed, Plan, Thing, Want, Wanted, World};

use crate::observe::{CurrentItem, Item};

/// The action of a step. It leaves no decision to `apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the thing.
    Create(Thing),
    /// Remove the thing.
    Remove(Thing),
}

/// Creates what is desired and missing, removes what is to be deleted and exists, and leaves everything else
/// alone.
pub fn plan(wanted: &[Want<Item>], world: &World<CurrentItem>) -> Plan<Action> {
    let mut plan = Plan::default();
    for want in wanted {
        let thing = &want.thing;
        // Nothing is planned in a scope that could not be read; the runner reports why.
        let Some(Observed::Known(all)) = world.get(&thing.scope) else { continue };
        let there = all.iter().find(|seen| seen.name == thing.name);
        let change = |kind, what: &str| Change::new(kind, thing.clone(), what).at(want.place.clone());
        match (&want.wanted, there) {
            (Wanted::Present(Item), None) => {
                plan.step(change(ChangeKind::Add, "create thing"), Action::Create(thing.clone()));
            }
            (Wanted::Delete, Some(_)) => {
                plan.step(change(ChangeKind::Remove, "remove thing"), Action::Remove(thing.clone()));
            }
            (Wanted::Present(Item), Some(_)) | (Wanted::Delete, None) | (Wanted::Unresolved(_), _) => {}
        }
    }
    plan
}
