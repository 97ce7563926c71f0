//! Binds people and bots to roles in namespaces.

mod declare;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::{Kept, Plain, reads_members, reads_namespaces};
use qontract_runtime::{About, FlagKind, Switch};

reads_namespaces!(query);
reads_members!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-rolebindings";

/// The switch by which `role` means a Role of the namespace.
const SUPPORT_ROLE_REF: &str = "support-role-ref";

/// What it says about itself.
pub fn about() -> About {
    Plain::of_namespaces::<query::RoleBindings>(NAME, "Manages RoleBindings of users and bots in namespaces")
        .joined(&["roles_v1"])
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

/// The integration on these clusters.
pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Plain> {
    Plain::room(about(), declare::declare, kubernetes)
}
