//! Converts cluster errors into faults, which name the party that has to act.

use qontract_client_kubernetes::{ConflictingManager, KubernetesError};
use qontract_runtime::Fault;

/// Converts a cluster error into a fault that names the party that has to act.
pub fn cluster_fault(error: &KubernetesError) -> Fault {
    let text = error.full_message();
    match error {
        // The fault names a common cause, because a full disk, for example, fails every write.
        KubernetesError::File { source, .. } => {
            Fault::remote(text).caused_by(format!("cannot use the sandbox: {source}"))
        }
        _ if error.is_transient() => Fault::remote(text),
        KubernetesError::Conflict { conflicts, .. } => Fault::operator(text).hint(conflict_hint(conflicts)),
        // The fault is temporary: another integration creates the namespace, and a later run succeeds.
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

/// A hint on how to resolve conflicts with other managers. A field that a manager no longer sets stays on the
/// object, so a field that excludes a declared field has to be removed by a command.
fn conflict_hint(conflicts: &[ConflictingManager]) -> String {
    let removals = conflicts.iter().filter_map(|one| one.excludes.as_ref()?.removal.as_deref());
    let commands = removals.map(|command| format!("`{command}`")).collect::<Vec<_>>();
    if commands.is_empty() {
        return "remove these fields from the data, or from the other manager".to_owned();
    }
    format!(
        "remove these fields from the data; or from the other manager's configuration, and then from the object: {}",
        commands.join(", ")
    )
}
