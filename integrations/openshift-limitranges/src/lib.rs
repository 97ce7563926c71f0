//! Manages the `LimitRanges` of namespaces.

mod declare;
mod query;

use qontract_objects::{
    Declared, DeclaredObjects, ObjectIntegration, namespace_integration, with_take_over_flags,
};
use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-limitranges";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftLimitranges;

impl ObjectIntegration for OpenshiftLimitranges {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        with_take_over_flags(namespace_integration::<query::LimitRanges>(
            NAME,
            "Manages LimitRanges of namespaces",
        ))
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("LimitRange")
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data, options)
    }
}
