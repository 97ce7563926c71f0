//! Manages `NetworkPolicies` that allow traffic between namespaces.

mod declare;
mod query;

use qontract_objects::{Declared, DeclaredObjects, ObjectIntegration, namespace_integration};
use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-network-policies";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftNetworkPolicies;

impl ObjectIntegration for OpenshiftNetworkPolicies {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        namespace_integration::<query::NetworkPolicies>(NAME, "Manages NetworkPolicies between namespaces")
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("NetworkPolicy.networking.k8s.io")
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data)
    }
}
