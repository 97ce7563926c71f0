//! Observes, plans, rehearses and applies owned objects according to the decisions of `qontract-inventory`.

mod apply;
mod conflict;
mod diff;
mod fault;
mod masking;
mod observe;
mod plan;
mod plan_inputs;
mod recycle;
mod zero_values;

use std::fmt;
use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;

pub use apply::{ObjectAction, apply_result, namespaced_body, rehearsal_result};
pub use conflict::ExpectedConflict;
pub use fault::cluster_fault;
pub use observe::LiveObject;
pub use plan::plan_objects;
pub use plan_inputs::{record_inputs, restore_inputs};

/// Observes, rehearses and applies the objects of an integration on clusters.
#[derive(Clone)]
pub struct ObjectReconciler {
    kubernetes: Arc<dyn Kubernetes>,
}

impl fmt::Debug for ObjectReconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReconciler").finish_non_exhaustive()
    }
}

impl ObjectReconciler {
    /// Creates a reconciler for these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { kubernetes }
    }
}
