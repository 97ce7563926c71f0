//! What would change? Pure: the same wants and the same world, the same plan.

use qontract_runtime::{Change, ChangeKind, Observed, Plan, Thing, Want, Wanted, World};

use crate::observe::{Item, Seen};

/// What is done in a step. It leaves nothing to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the thing.
    Create(Thing),
    /// Remove the thing.
    Remove(Thing),
}

/// What is wanted and not there is created; what is wanted gone and there is removed. What nobody names is left alone.
pub fn plan(wanted: &[Want<Item>], world: &World<Seen>) -> Plan<Action> {
    let mut plan = Plan::default();
    for want in wanted {
        let thing = &want.thing;
        // What could not be read is not planned for; the runner tells why.
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
