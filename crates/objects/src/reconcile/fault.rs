//! Whose move it is when a cluster fails.

use qontract_client_kubernetes::KubernetesError;
use qontract_runtime::Fault;

/// Whose move it is when a cluster fails.
pub fn fault(error: &KubernetesError) -> Fault {
    let text = error.told();
    match error {
        _ if error.is_transient() => Fault::remote(text),
        KubernetesError::Conflict { .. } => Fault::operator(text)
            .hint("leave these fields out of the data, or let the other manager give them up"),
        // Another integration makes it, and the next run finds it.
        KubernetesError::Homeless { .. } => Fault::remote(text),
        KubernetesError::Credentials { .. } => {
            Fault::operator(text).hint("see `automationToken` of the cluster, and what is kept there")
        }
        KubernetesError::Unreachable { .. } => {
            Fault::operator(text).hint("see `serverUrl` of the cluster, and `ca` in the configuration")
        }
        KubernetesError::Invalid { .. }
        | KubernetesError::Unserved { .. }
        | KubernetesError::Ambiguous { .. }
        | KubernetesError::Name { .. } => Fault::author(text),
        _ => Fault::operator(text),
    }
}
