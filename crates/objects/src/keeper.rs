//! Rooms that keep objects of Kubernetes: they say what is wanted where; all else is the same for each of them.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kind, Kubernetes};
use qontract_inventory::{Callers, Desired, Owner};
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Place, Plan, Read, Rehearsed, SecretLookup, Staged,
    View, Want, Wanted, World, Write,
};
use serde::Serialize;
use serde_json::Value;

use crate::act::Action;
use crate::estate::{Estate, Item, Managed, Sensitivity};
use crate::observe::Seen;
use crate::{Declared, Steward};

/// One shard of a keeper.
pub type Plot<'d, S> = View<'d, (), Cluster, S>;

/// What a room of Kubernetes says; [`Kept`] makes an integration of it.
pub trait Keeper: Send + Sync + 'static {
    /// What is declared for a shard.
    type State: Serialize + Send + Sync + 'static;

    /// What it says about itself.
    fn about(&self) -> &About;

    /// What does the data say?
    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<Self::State>, Fault>;

    /// Where a shard looks after what: the namespace, or none for the cluster itself, and the kinds.
    fn estate(&self, plot: Plot<'_, Self::State>) -> (Option<String>, Vec<Managed>);

    /// Whether what nobody marked is looked after there, too: if it is not wanted, it goes.
    fn takes_over(&self, _: Plot<'_, Self::State>) -> bool {
        false
    }

    /// The secrets that the data names for a shard; see [`Staged::secret_lookups`].
    fn secret_lookups(&self, _: Plot<'_, Self::State>) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }

    /// Text that follows from the data alone; see [`Staged::public_texts`].
    fn public_texts(&self, _: Plot<'_, Self::State>) -> Vec<String> {
        Vec::new()
    }

    /// What is wanted there.
    fn wanted(
        &self,
        read: &Read,
        plot: Plot<'_, Self::State>,
        estate: &Arc<Estate>,
    ) -> impl Future<Output = Result<Vec<Want<Item>>, Fault>> + Send;
}

/// A keeper, as an integration.
pub struct Kept<K> {
    keeper: K,
    steward: Steward,
}

impl<K: Keeper> Kept<K> {
    /// A keeper on these clusters.
    pub fn new(keeper: K, kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { keeper, steward: Steward::new(kubernetes) }
    }

    fn estate(&self, plot: Plot<'_, K::State>) -> Arc<Estate> {
        let (namespace, kinds) = self.keeper.estate(plot);
        let name = &self.keeper.about().name;
        Arc::new(Estate {
            cluster: plot.shard.target.clone(),
            namespace,
            kinds,
            owner: Arc::new(Owner::of(name, None).expect("the marks of every room are in the table")),
            callers: Arc::new(Callers::Unknown),
            takes_over: self.keeper.takes_over(plot),
        })
    }
}

impl Estate {
    /// An object that is wanted here. One that cannot be is wanted all the same, and nothing is removed because of it.
    ///
    /// **Invariant:** kind and name come from the data alone, also of an object that holds secrets: they are shown.
    pub fn want(self: &Arc<Self>, body: Value, sensitivity: Sensitivity, place: Option<Place>) -> Want<Item> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = self.kind_of(&body).cloned() else {
            let fault = Fault::author("its kind is not among those that are looked after here")
                .hint("add it to `managedResourceTypes`");
            let kind = Kind::of(&body).unwrap_or_else(|| Kind::named("object"));
            return Want { thing: self.thing(&kind, name), place, wanted: Wanted::Unresolved(fault) };
        };
        let names =
            self.kinds.iter().find(|managed| managed.kind == kind).and_then(|managed| managed.names.as_ref());
        let is_listed = names.is_none_or(|names| names.contains(&name));
        let thing = self.thing(&kind, name);
        if !is_listed {
            let fault = Fault::author("its name is not in `managedResourceNames`");
            return Want { thing, place, wanted: Wanted::Unresolved(fault) };
        }
        let wanted = match Desired::new(body) {
            Ok(desired) => {
                let (estate, moved_from) = (Arc::clone(self), BTreeSet::new());
                Wanted::Present(Item { estate, kind, desired, sensitivity, moved_from })
            }
            Err(why) => Wanted::Unresolved(Fault::author(why.to_string())),
        };
        Want { thing, place, wanted }
    }
}

impl<K: Keeper> Staged for Kept<K> {
    type Common = ();
    type Target = Cluster;
    type State = K::State;
    type Item = Item;
    type Found = Seen;
    type Action = Action;

    fn about(&self) -> &About {
        self.keeper.about()
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<DeclaredOf<Self>, Fault> {
        self.keeper.declare(data, options)
    }

    fn secret_lookups(&self, plot: Plot<'_, K::State>) -> BTreeSet<SecretLookup> {
        self.keeper.secret_lookups(plot)
    }

    fn public_texts(&self, plot: Plot<'_, K::State>) -> Vec<String> {
        self.keeper.public_texts(plot)
    }

    async fn resolve(&self, read: &Read, plot: Plot<'_, K::State>) -> Result<Vec<Want<Item>>, Fault> {
        self.keeper.wanted(read, plot, &self.estate(plot)).await
    }

    async fn observe(
        &self,
        read: &Read,
        plot: Plot<'_, K::State>,
        wanted: &[Want<Item>],
    ) -> Result<World<Seen>, Fault> {
        Ok(self.steward.observe(read, &self.estate(plot), wanted).await)
    }

    fn plan(&self, wanted: &[Want<Item>], world: &World<Seen>) -> Plan<Action> {
        self.steward.plan(wanted, world)
    }

    async fn rehearse(&self, read: &Read, action: &Action) -> Result<Rehearsed, Fault> {
        self.steward.rehearse(read, action).await
    }

    async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        self.steward.apply(write, action).await
    }
}
