//! Keeps the Routes that namespaces name, with their certificates.
//!
//! What it declares and wants is one family of what `qontract-resources` knows.

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::Kept;
use qontract_resources::{Family, Outside, Resources};
use qontract_runtime::About;

/// What it says about itself.
pub fn about() -> About {
    Family::Routes.about("Manages Routes and their TLS certificates")
}

/// The integration, which looks up here what lies outside, and writes there.
pub fn room(outside: Arc<Outside>, kubernetes: Arc<dyn Kubernetes>) -> Kept<Resources> {
    Family::Routes.room(about(), outside, kubernetes)
}
