//! Opens the way from one namespace to another.

mod declare;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::{Kept, Plain, reads_namespaces};
use qontract_runtime::About;

reads_namespaces!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-network-policies";

/// What it says about itself.
pub fn about() -> About {
    Plain::of_namespaces::<query::NetworkPolicies>(NAME, "Manages NetworkPolicies between namespaces")
}

/// The integration on these clusters.
pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Plain> {
    Plain::room(about(), declare::declare, kubernetes)
}
