//! Makes the namespaces that the data names, and removes those that say so.

mod apply;
mod declare;
mod observe;
mod plan;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kubernetes};
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Staged, View, Want, World, Write,
};

pub use declare::Namespace;
pub use plan::{Action, Seen};

/// The name of the integration.
pub const NAME: &str = "openshift-namespaces";

/// The integration.
pub struct OpenshiftNamespaces {
    about: About,
    kubernetes: Arc<dyn Kubernetes>,
}

/// What it says about itself.
pub fn about() -> About {
    About::new(NAME, "Makes the namespaces that the data names, and removes those that say so")
        .query::<query::Namespaces>()
        .selects("cluster-name", "cluster")
        .excludes("exclude-cluster", "cluster")
        .selects("namespace-name", "namespace")
}

impl OpenshiftNamespaces {
    /// The integration on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { about: about(), kubernetes }
    }
}

impl Staged for OpenshiftNamespaces {
    type Common = ();
    type Target = Cluster;
    type State = Namespace;
    type Item = Cluster;
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
    ) -> Result<Vec<Want<Cluster>>, Fault> {
        Ok(vec![observe::want(&view)])
    }

    async fn observe(
        &self,
        read: &Read,
        target: &Cluster,
        wanted: &[Want<Cluster>],
    ) -> Result<World<Seen>, Fault> {
        observe::observe(&*self.kubernetes, read, target, wanted).await
    }

    fn plan(&self, wanted: &[Want<Cluster>], world: &World<Seen>) -> Plan<Action> {
        plan::plan(wanted, world)
    }

    async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        apply::apply(&*self.kubernetes, write, action).await
    }
}
