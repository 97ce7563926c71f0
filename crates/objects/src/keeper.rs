//! Rooms that keep objects of Kubernetes: they say what is wanted where; all else is the same for each of them.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kind, Kubernetes};
use qontract_inventory::{Callers, Desired, Owner};
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Place, Plan, Read, Rehearsed, Staged, View, Want,
    Wanted, World, Write,
};
use serde::Serialize;
use serde_json::Value;

use crate::act::Action;
use crate::estate::{Estate, Item, Managed};
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
    pub fn want(self: &Arc<Self>, body: Value, is_sensitive: bool, place: Option<Place>) -> Want<Item> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let own = Kind::of(&body);
        let Some(kind) = self.kind_of(&body).cloned() else {
            let told = own.map_or_else(|| "something without a kind".to_owned(), |kind| kind.to_string());
            let fault = Fault::author(format!("{told} is not among the kinds that are looked after here"))
                .hint("add it to `managedResourceTypes`");
            // It is in no scope that is read: all of them stay as they are.
            let kind = self.kinds.first().map_or_else(Kind::namespace, |managed| managed.kind.clone());
            return Want { thing: self.thing(&kind, name), place, wanted: Wanted::Unresolved(fault) };
        };
        let thing = self.thing(&kind, name);
        let wanted = match Desired::new(body) {
            Ok(desired) => {
                let (estate, moved_from) = (Arc::clone(self), BTreeSet::new());
                Wanted::Present(Item { estate, kind, desired, is_sensitive, moved_from })
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
