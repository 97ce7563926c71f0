//! Converts cluster errors into faults, which name the party that has to act.

use qontract_client_kubernetes::KubernetesError;
use qontract_runtime::Fault;

/// Converts a cluster error into a fault that names the party that has to act.
pub fn cluster_fault(error: &KubernetesError) -> Fault {
    let text = error.full_message();
    match error {
        // A full disk fails every write.
        KubernetesError::File { source, .. } => {
            Fault::remote(text).caused_by(format!("cannot use the sandbox: {source}"))
        }
        _ if error.is_transient() => Fault::remote(text),
        KubernetesError::Conflict { .. } => {
            Fault::operator(text).hint("remove these fields from the data, or from the other manager")
        }
        // Another integration creates the namespace; a later run succeeds.
        KubernetesError::NamespaceMissing { .. } => Fault::remote(text),
        KubernetesError::Credentials { .. } => {
            Fault::operator(text).hint("check the cluster's `automationToken` and the secret that it names")
        }
        KubernetesError::Settings { .. } => {
            Fault::operator(text).hint("correct the configuration, or the file that the key names")
        }
        KubernetesError::Unreachable { .. } => {
            Fault::operator(text).hint("check the cluster's `serverUrl`, and `ca` in the configuration")
        }
        KubernetesError::Invalid { .. }
        | KubernetesError::Unserved { .. }
        | KubernetesError::Ambiguous { .. }
        | KubernetesError::Name { .. } => Fault::author(text),
        _ => Fault::operator(text),
    }
}
