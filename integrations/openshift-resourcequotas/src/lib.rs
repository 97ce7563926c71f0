//! Manages the `ResourceQuotas` of namespaces.

mod declare;
mod query;

use qontract_objects::{
    Declared, DeclaredObjects, ObjectIntegration, namespace_integration, with_take_over_flags,
};
use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-resourcequotas";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftResourcequotas;

impl ObjectIntegration for OpenshiftResourcequotas {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        with_take_over_flags(namespace_integration::<query::Quotas>(
            NAME,
            "Manages ResourceQuotas of namespaces",
        ))
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("ResourceQuota")
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data)
    }
}
