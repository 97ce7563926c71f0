//! Makes and labels the namespaces that the data names, and removes those that say so.

mod declare;
mod query;
mod want;

use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kubernetes};
use qontract_objects::{Action, Item, Seen, Steward};
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Rehearsed, Staged, View, Want, World, Write,
};

pub use declare::Namespace;

/// The name of the integration.
pub const NAME: &str = "openshift-namespaces";

/// The integration.
pub struct OpenshiftNamespaces {
    about: About,
    steward: Steward,
}

/// What it says about itself.
pub fn about() -> About {
    About::new(NAME, "Makes and labels the namespaces that the data names, and removes those that say so")
        .query::<query::Namespaces>()
        .selects("cluster-name", "cluster")
        .excludes("exclude-cluster", "cluster")
        .selects("namespace-name", "namespace")
}

impl OpenshiftNamespaces {
    /// The integration on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { about: about(), steward: Steward::new(kubernetes) }
    }
}

impl Staged for OpenshiftNamespaces {
    type Common = ();
    type Target = Cluster;
    type State = Namespace;
    type Item = Item;
    type Found = Seen;
    type Action = Action;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredOf<Self>, Fault> {
        declare::declare(data)
    }

    async fn resolve(
        &self,
        _: &Read,
        view: View<'_, (), Cluster, Namespace>,
    ) -> Result<Vec<Want<Item>>, Fault> {
        Ok(vec![want::want(&view)])
    }

    async fn observe(
        &self,
        read: &Read,
        target: &Cluster,
        wanted: &[Want<Item>],
    ) -> Result<World<Seen>, Fault> {
        Ok(self.steward.observe(read, &want::estate(target, wanted), wanted).await)
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
