//! Binds people and bots to roles of whole clusters.

mod declare;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::{Kept, Plain, reads_clusters, reads_members};
use qontract_runtime::About;

reads_clusters!(query);
reads_members!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-clusterrolebindings";

/// What it says about itself.
pub fn about() -> About {
    let about = Plain::of_clusters::<query::ClusterRoleBindings>(
        NAME,
        "Manages ClusterRoleBindings of users and bots",
    );
    // Two of one name are one, and so are two of one server.
    about.one_by_one("clusters_v1", &["name", "serverUrl"]).joined(&["roles_v1"])
}

/// The integration on these clusters.
pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Plain> {
    Plain::room(about(), declare::declare, kubernetes)
}
