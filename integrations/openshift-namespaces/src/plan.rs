//! What would change.

use qontract_client_kubernetes::{Address, Cluster, Kind, Object};
use qontract_runtime::{Change, ChangeKind, Observed, Plan, Wait, Want, Wanted, World};

/// What is done in a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create the namespace.
    Create(Cluster, Object),
    /// Remove the namespace, if it is still the one that was read.
    Remove(Cluster, Object),
}

/// A namespace, where it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace.
    pub object: Object,
}

/// What would change.
pub fn plan(wanted: &[Want<Cluster>], world: &World<Seen>) -> Plan<Action> {
    let mut plan = Plan::default();
    for want in wanted {
        let Some(Observed::Known(all)) = world.get(&want.thing.scope) else { continue };
        let there = all.iter().find(|seen| seen.object.address.name == want.thing.name);
        let change = |kind, what: &str| Change::new(kind, want.thing.clone(), what).at(want.place.clone());
        match (&want.wanted, there) {
            (Wanted::Present(_) | Wanted::Delete, Some(seen)) if seen.object.is_going() => {
                let text = format!("{} is being removed", want.thing);
                plan.waits.push(Wait { text, place: want.place.clone() });
            }
            (Wanted::Present(cluster), None) => {
                let object = Object::bare(Address::of_cluster(Kind::Namespace, want.thing.name.clone()));
                plan.step(
                    change(ChangeKind::Add, "create namespace"),
                    Action::Create(cluster.clone(), object),
                );
            }
            (Wanted::Delete, Some(seen)) => {
                let action = Action::Remove(seen.cluster.clone(), seen.object.clone());
                plan.step(change(ChangeKind::Remove, "remove namespace"), action);
            }
            (Wanted::Present(_), Some(_)) | (Wanted::Delete, None) | (Wanted::Unresolved(_), _) => {}
        }
    }
    plan
}
