//! Creates declared namespaces, and removes those with `delete: true`.

mod declare;
mod query;
mod want;

use qontract_objects::{Declared, ObjectIntegration, about_namespaces};
use qontract_runtime::{About, Data, Fault, Options};

pub use declare::Namespace;

/// The name of the integration.
pub const NAME: &str = "openshift-namespaces";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftNamespaces;

impl ObjectIntegration for OpenshiftNamespaces {
    type State = Namespace;

    fn about(&self) -> About {
        let description = "Creates namespaces, and deletes those with `delete: true`";
        about_namespaces::<query::Namespaces>(NAME, description).groundwork()
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<Namespace>, Fault> {
        declare::declare(data)
    }
}
