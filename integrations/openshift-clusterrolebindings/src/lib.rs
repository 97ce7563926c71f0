//! Binds users and bots to `ClusterRoles` of whole clusters.

mod declare;
mod query;

use qontract_objects::{Declared, DeclaredObjects, ObjectIntegration, cluster_integration};
use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-clusterrolebindings";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftClusterrolebindings;

impl ObjectIntegration for OpenshiftClusterrolebindings {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        let meta = cluster_integration::<query::ClusterRoleBindings>(
            NAME,
            "Manages ClusterRoleBindings of users and bots",
        );
        // Two clusters conflict if they have the same name or the same server.
        meta.independent_list("clusters_v1", &["name", "serverUrl"]).joined_lists(&["roles_v1"])
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("ClusterRoleBinding.rbac.authorization.k8s.io")
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data)
    }
}
