//! Creates declared namespaces, and removes namespaces with `delete: true`.

mod declare;
mod desired;
mod query;

use qontract_objects::{Declared, ObjectIntegration, namespace_integration};
use qontract_runtime::{Data, Fault, IntegrationMeta, ManagedKinds, Options};

pub use declare::DeclaredNamespace;

/// The name of the integration.
pub const NAME: &str = "openshift-namespaces";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftNamespaces;

impl ObjectIntegration for OpenshiftNamespaces {
    type State = DeclaredNamespace;

    fn meta(&self) -> IntegrationMeta {
        let description = "Creates namespaces, and deletes those with `delete: true`";
        // The second round observes the namespaces whose removal the first round has started.
        namespace_integration::<query::Namespaces>(NAME, description).runs_first().rounds(2)
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("Namespace")
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredNamespace>, Fault> {
        declare::declare(data)
    }
}
