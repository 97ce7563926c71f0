//! Keeps the limit ranges of namespaces.

mod declare;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::{Kept, Plain, reads_namespaces, with_take_over_flags};
use qontract_runtime::About;

reads_namespaces!(query);

/// The name of the integration.
pub const NAME: &str = "openshift-limitranges";

/// What it says about itself.
pub fn about() -> About {
    with_take_over_flags(Plain::of_namespaces::<query::LimitRanges>(
        NAME,
        "Manages LimitRanges of namespaces",
    ))
}

/// The integration on these clusters.
pub fn room(kubernetes: Arc<dyn Kubernetes>) -> Kept<Plain> {
    Plain::room(about(), declare::declare, kubernetes)
}
