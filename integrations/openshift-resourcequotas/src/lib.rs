//! Manages the ResourceQuotas of namespaces.

mod declare;
mod query;

use qontract_objects::{
    Declared, DeclaredObjects, ObjectIntegration, about_namespaces, with_take_over_flags,
};
use qontract_runtime::{About, Data, Fault, Options};

/// The name of the integration.
pub const NAME: &str = "openshift-resourcequotas";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftResourcequotas;

impl ObjectIntegration for OpenshiftResourcequotas {
    type State = DeclaredObjects;

    fn about(&self) -> About {
        with_take_over_flags(about_namespaces::<query::Quotas>(NAME, "Manages ResourceQuotas of namespaces"))
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data)
    }
}
