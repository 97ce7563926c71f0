//! Manages the declared labels of namespaces.

mod declare;
mod label;
mod observe;
mod plan;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kubernetes, Object};
use qontract_objects::{about_namespaces, applied, rehearsed};
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Rehearsed, Staged, View, Want, World, Write,
};

pub use declare::Labels;
pub use plan::{Item, Step};

/// The name of the integration.
pub const NAME: &str = "openshift-namespace-labels";

/// Its field manager. It owns the labels of namespaces, whoever created them.
pub const MANAGER: &str = "qontract-namespace-labels";

/// The integration.
pub struct OpenshiftNamespaceLabels {
    about: About,
    kubernetes: Arc<dyn Kubernetes>,
}

/// Metadata of the integration.
pub fn about() -> About {
    about_namespaces::<query::NamespaceLabels>(NAME, "Manages labels of namespaces")
}

impl OpenshiftNamespaceLabels {
    /// Creates the integration on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { about: about(), kubernetes }
    }
}

impl Staged for OpenshiftNamespaceLabels {
    type Common = ();
    type Target = Cluster;
    type State = Labels;
    type Item = Item;
    type Found = Object;
    type Action = Step;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredOf<Self>, Fault> {
        declare::declare(data)
    }

    async fn resolve(&self, _: &Read, view: View<'_, (), Cluster, Labels>) -> Result<Vec<Want<Item>>, Fault> {
        Ok(vec![observe::want(&view)])
    }

    async fn observe(
        &self,
        read: &Read,
        view: View<'_, (), Cluster, Labels>,
        _: &[Want<Item>],
    ) -> Result<World<Object>, Fault> {
        Ok(observe::observe(&*self.kubernetes, read, &view).await)
    }

    fn plan(&self, wanted: &[Want<Item>], world: &World<Object>) -> Plan<Step> {
        plan::plan(wanted, world)
    }

    async fn rehearse(&self, read: &Read, step: &Step) -> Result<Rehearsed, Fault> {
        match step {
            Step::Put(cluster, draft) => {
                rehearsed(self.kubernetes.rehearse(&read.permit, cluster, MANAGER, draft).await)
            }
            Step::Await(name) => {
                Ok(Rehearsed::NotValidated(format!("Namespace `{name}` does not exist yet")))
            }
        }
    }

    async fn apply(&self, write: &Write<'_>, step: &Step) -> Result<Applied, Fault> {
        match step {
            Step::Put(cluster, draft) => {
                applied(self.kubernetes.put(write.permit, cluster, MANAGER, draft).await)
            }
            // A later run succeeds.
            Step::Await(name) => Err(Fault::remote(format!("Namespace `{name}` does not exist yet"))),
        }
    }
}
