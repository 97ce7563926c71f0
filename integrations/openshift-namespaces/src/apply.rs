//! One step.

use qontract_client_kubernetes::{Kubernetes, KubernetesError};
use qontract_runtime::{Applied, Fault, Write};

use crate::observe::fault;
use crate::plan::Action;

/// Does one step.
pub async fn apply(
    kubernetes: &dyn Kubernetes,
    write: &Write<'_>,
    action: &Action,
) -> Result<Applied, Fault> {
    let done = match action {
        Action::Create(cluster, object) => kubernetes.create(write.permit, cluster, object).await,
        Action::Remove(cluster, object) => {
            kubernetes.remove(write.permit, cluster, &object.address, &object.version).await
        }
    };
    match done {
        Ok(()) => Ok(Applied::Done),
        Err(KubernetesError::Stale { .. }) => Ok(Applied::Stale),
        Err(error) => Err(fault(&error)),
    }
}
