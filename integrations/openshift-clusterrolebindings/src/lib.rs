//! Binds users and bots to ClusterRoles of whole clusters.

mod declare;
mod query;

use qontract_objects::{Declared, DeclaredObjects, ObjectIntegration, about_clusters};
use qontract_runtime::{About, Data, Fault, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-clusterrolebindings";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftClusterrolebindings;

impl ObjectIntegration for OpenshiftClusterrolebindings {
    type State = DeclaredObjects;

    fn about(&self) -> About {
        let about = about_clusters::<query::ClusterRoleBindings>(
            NAME,
            "Manages ClusterRoleBindings of users and bots",
        );
        // Two clusters conflict if they have the same name or the same server.
        about.one_by_one("clusters_v1", &["name", "serverUrl"]).joined(&["roles_v1"])
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data)
    }
}
