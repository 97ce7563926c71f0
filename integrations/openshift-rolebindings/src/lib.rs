//! Binds users and bots to roles in namespaces.

mod declare;
mod query;

use qontract_objects::{Declared, DeclaredObjects, ObjectIntegration, namespace_integration};
use qontract_runtime::{Data, Fault, FlagKind, IntegrationMeta, ManagedKinds, Options, Switch};

/// The name of the integration.
pub const NAME: &str = "openshift-rolebindings";

/// The switch that makes `role` refer to a Role of the namespace.
const SUPPORT_ROLE_REF: &str = "support-role-ref";

/// The integration.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenshiftRolebindings;

impl ObjectIntegration for OpenshiftRolebindings {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        namespace_integration::<query::RoleBindings>(
            NAME,
            "Manages RoleBindings of users and bots in namespaces",
        )
        .joined_lists(&["roles_v1"])
        .switches(
            Switch {
                name: SUPPORT_ROLE_REF,
                help: "Bind `role` to a Role of the namespace instead of a ClusterRole",
                kind: FlagKind::Switch,
            },
            Switch {
                name: "no-support-role-ref",
                help: "Bind `role` to a ClusterRole; this is the default",
                kind: FlagKind::Switch,
            },
        )
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("RoleBinding.rbac.authorization.k8s.io")
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        declare::declare(data, options.is_on(SUPPORT_ROLE_REF))
    }
}
