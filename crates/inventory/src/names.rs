//! Names and versions of integrations in marks. They are the same as in qontract-reconcile, so that objects
//! that it wrote are recognized as ours.

/// For each integration: its command-line name, its name in the mark, and its version in the mark.
const INTEGRATION_MARKS: [(&str, &str, &str); 24] = [
    ("blackbox-exporter-endpoint-monitoring", "blackbox-exporter-endpoint-monitoring", "0.1.0"),
    ("external-resources", "external_resources", "0.1.0"),
    ("external-resources-secrets-sync", "external_resources", "0.1.0"),
    ("gabi-authorized-users", "gabi-authorized-users", "0.1.0"),
    ("glitchtip-project-dsn", "glitchtip-project-dsn", "0.1.0"),
    ("integrations-manager", "integrations-manager", "0.1.0"),
    ("openshift-clusterrolebindings", "openshift-clusterrolebindings", "0.1.0"),
    ("openshift-limitranges", "openshift-limitranges", "0.1.0"),
    // qontract-reconcile does not mark namespaces, so this mark exists only in qontract.
    ("openshift-namespaces", "openshift-namespaces", "0.1.0"),
    ("openshift-network-policies", "openshift-network-policies", "0.1.0"),
    ("openshift-prometheus-rules", "openshift-prometheus-rules", "1.0.0"),
    ("openshift-resourcequotas", "openshift-resourcequotas", "0.1.0"),
    ("openshift-resources", "openshift_resources", "1.9.3"),
    ("openshift-rhcs-certs", "openshift-rhcs-certs", "1.9.3"),
    ("openshift-rolebindings", "openshift-rolebindings", "0.3.0"),
    ("openshift-routes", "openshift-routes", "1.9.3"),
    ("openshift-saas-deploy", "openshift-saas-deploy", "0.1.0"),
    ("openshift-serviceaccount-tokens", "openshift-serviceaccount-tokens", "0.1.0"),
    ("openshift-tekton-resources", "openshift-tekton-resources", "0.1.0"),
    ("openshift-vault-secrets", "openshift-vault-secrets", "1.9.3"),
    ("signalfx-prometheus-endpoint-monitoring", "signalfx-prometheus-endpoint-monitoring", "0.1.0"),
    ("skupper-network", "skupper-network", "0.1.0"),
    ("sql-query", "sql-query", "1.1.0"),
    ("terraform-resources", "terraform_resources", "0.5.5"),
];

/// The name and version of an integration in marks, by its command-line name.
///
/// ```
/// use qontract_inventory::marks_of;
/// assert_eq!(marks_of("openshift-resources"), Some(("openshift_resources", "1.9.3")));
/// assert_eq!(marks_of("query-validator"), None);
/// ```
pub fn marks_of(integration: &str) -> Option<(&'static str, &'static str)> {
    INTEGRATION_MARKS
        .iter()
        .find(|(command, ..)| *command == integration)
        .map(|(_, name, version)| (*name, *version))
}

#[cfg(test)]
mod tests {
    use super::INTEGRATION_MARKS;
    use crate::mark::Owner;

    #[test]
    fn rows_are_valid_owners_and_sorted_without_duplicates() {
        for (command, name, version) in INTEGRATION_MARKS {
            let owner = Owner::of(command, None).unwrap();
            assert_eq!((owner.integration(), owner.version()), (name, version));
        }
        assert!(INTEGRATION_MARKS.is_sorted_by(|one, next| one.0 < next.0));
    }
}
