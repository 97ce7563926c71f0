//! Makes the namespaces that the data names, and removes those that say so.

mod declare;
mod query;
mod want;

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Kind, Kubernetes};
use qontract_objects::{
    Declared, Estate, Item, Keeper, Kept, Managed, Plot, reads_clusters, with_cluster_flags,
};
use qontract_runtime::{About, Data, Fault, Options, Read, Want};

pub use declare::Namespace;

reads_clusters!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-namespaces";

/// The integration.
pub struct OpenshiftNamespaces {
    about: About,
}

/// What it says about itself.
pub fn about() -> About {
    let description = "Creates namespaces, and deletes those with `delete: true`";
    with_cluster_flags(About::new(NAME, description).query::<query::Namespaces>())
        .selects("namespace-name", "namespace")
        .one_by_one("namespaces_v1", &["name"])
        .groundwork()
}

impl OpenshiftNamespaces {
    /// The integration on these clusters.
    pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Self> {
        Kept::new(Self { about: about() }, kubernetes)
    }
}

impl Keeper for OpenshiftNamespaces {
    type State = Namespace;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<Namespace>, Fault> {
        declare::declare(data)
    }

    /// The namespace of the shard: others are nobody's business here.
    fn estate(&self, plot: Plot<'_, Namespace>) -> (Option<String>, Vec<Managed>) {
        let name = plot.key.get("namespace").unwrap_or_default().to_owned();
        (None, vec![Managed { kind: Kind::namespace(), names: Some(BTreeSet::from([name])) }])
    }

    async fn wanted(
        &self,
        _: &Read,
        plot: Plot<'_, Namespace>,
        estate: &Arc<Estate>,
    ) -> Result<Vec<Want<Item>>, Fault> {
        Ok(vec![want::want(plot, estate)])
    }
}
