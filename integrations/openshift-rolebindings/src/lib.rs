//! Binds people and bots to roles in namespaces.

mod declare;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::{Kept, Plain, reads_members, reads_namespaces};
use qontract_runtime::About;

reads_namespaces!(query);
reads_members!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-rolebindings";

/// What it says about itself.
pub fn about() -> About {
    Plain::of_namespaces::<query::RoleBindings>(NAME, "Binds people and bots to roles in namespaces")
        .joined(&["roles_v1"])
}

/// The integration on these clusters.
pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Plain> {
    Plain::room(about(), declare::declare, kubernetes)
}
