//! Keeps the rules of Prometheus that namespaces name.
//!
//! What it declares and wants is one family of what `qontract-resources` knows.

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_objects::Kept;
use qontract_resources::{Family, Outside, Resources};
use qontract_runtime::About;

/// What it says about itself.
pub fn about() -> About {
    Family::Rules.about("Manages PrometheusRules from files and templates")
}

/// The integration, which looks up here what lies outside, and writes there.
pub fn room(outside: Arc<Outside>, kubernetes: Arc<dyn Kubernetes>) -> Kept<Resources> {
    Family::Rules.room(about(), outside, kubernetes)
}
