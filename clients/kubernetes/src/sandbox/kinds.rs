//! The well-known kinds of the sandbox: those of Kubernetes, OpenShift, and common operators.

/// The name of a group, its versions (preferred first), its namespaced kinds and its cluster-scoped kinds.
pub(super) struct WellKnownGroup {
    pub name: &'static str,
    pub versions: &'static [&'static str],
    pub namespaced: &'static [&'static str],
    pub cluster_scoped: &'static [&'static str],
}

const fn group(
    name: &'static str,
    versions: &'static [&'static str],
    namespaced: &'static [&'static str],
    of_cluster: &'static [&'static str],
) -> WellKnownGroup {
    WellKnownGroup { name, versions, namespaced, cluster_scoped: of_cluster }
}

const NONE: &[&str] = &[];
const V1: &[&str] = &["v1"];

/// Whether Kubernetes, OpenShift or a common operator has a kind of this name.
pub fn is_well_known(kind: &str) -> bool {
    WELL_KNOWN_GROUPS.iter().any(|group| {
        let WellKnownGroup { name: _, versions: _, namespaced, cluster_scoped } = group;
        namespaced.iter().chain(*cluster_scoped).any(|known| *known == kind)
    })
}

/// The well-known kinds.
pub(super) const WELL_KNOWN_GROUPS: &[WellKnownGroup] = &[
    group(
        "",
        V1,
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
        &["Namespace", "Node", "PersistentVolume"],
    ),
    group("apps", V1, &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], NONE),
    group("autoscaling", &["v2", "v1"], &["HorizontalPodAutoscaler"], NONE),
    group("batch", V1, &["CronJob", "Job"], NONE),
    group("policy", V1, &["PodDisruptionBudget"], NONE),
    group("networking.k8s.io", V1, &["Ingress", "NetworkPolicy"], &["IngressClass"]),
    group("rbac.authorization.k8s.io", V1, &["Role", "RoleBinding"], &["ClusterRole", "ClusterRoleBinding"]),
    group("events.k8s.io", V1, &["Event"], NONE),
    group("coordination.k8s.io", V1, &["Lease"], NONE),
    group("discovery.k8s.io", V1, &["EndpointSlice"], NONE),
    group("scheduling.k8s.io", V1, NONE, &["PriorityClass"]),
    group("storage.k8s.io", V1, &["CSIStorageCapacity"], &["CSIDriver", "StorageClass", "VolumeAttachment"]),
    group("snapshot.storage.k8s.io", V1, &["VolumeSnapshot"], &["VolumeSnapshotClass"]),
    group("apiextensions.k8s.io", V1, NONE, &["CustomResourceDefinition"]),
    group("apiregistration.k8s.io", V1, NONE, &["APIService"]),
    group(
        "admissionregistration.k8s.io",
        V1,
        NONE,
        &["MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"],
    ),
    group("apps.openshift.io", V1, &["DeploymentConfig"], NONE),
    group("build.openshift.io", V1, &["Build", "BuildConfig"], NONE),
    group("image.openshift.io", V1, &["ImageStream", "ImageStreamTag"], &["Image"]),
    group("project.openshift.io", V1, NONE, &["Project"]),
    group("route.openshift.io", V1, &["Route"], NONE),
    group("security.openshift.io", V1, NONE, &["SecurityContextConstraints"]),
    group("template.openshift.io", V1, &["Template"], NONE),
    group("user.openshift.io", V1, NONE, &["Group", "Identity", "User"]),
    group("operators.coreos.com", &["v1alpha1"], &["CatalogSource", "InstallPlan", "Subscription"], NONE),
    group("operators.coreos.com", V1, &["OperatorGroup"], NONE),
    group(
        "monitoring.coreos.com",
        V1,
        &["Alertmanager", "PodMonitor", "Probe", "Prometheus", "PrometheusRule", "ServiceMonitor"],
        NONE,
    ),
    group("tekton.dev", &["v1", "v1beta1"], &["Pipeline", "PipelineRun", "Task", "TaskRun"], NONE),
    group(
        "triggers.tekton.dev",
        &["v1beta1"],
        &["EventListener", "Trigger", "TriggerBinding", "TriggerTemplate"],
        NONE,
    ),
    group(
        "external-secrets.io",
        &["v1", "v1beta1"],
        &["ExternalSecret", "SecretStore"],
        &["ClusterSecretStore"],
    ),
    group("cert-manager.io", V1, &["Certificate", "Issuer"], &["ClusterIssuer"]),
    group("keda.sh", &["v1alpha1"], &["ScaledObject", "TriggerAuthentication"], NONE),
];

/// The plural name of a kind in URLs, formed as in Kubernetes.
pub(super) fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    match lower.as_bytes() {
        _ if matches!(kind, "Endpoints" | "SecurityContextConstraints" | "Prometheus") => {
            if kind == "Prometheus" { "prometheuses".to_owned() } else { lower }
        }
        [.., b's' | b'x'] | [.., b'c' | b's', b'h'] => format!("{lower}es"),
        [.., vowel, b'y'] if !b"aeiou".contains(vowel) => format!("{}ies", &lower[..lower.len() - 1]),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::plural;

    #[test]
    fn plurals_equal_those_of_kubernetes() {
        for (kind, expect) in [
            ("Secret", "secrets"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Endpoints", "endpoints"),
            ("StorageClass", "storageclasses"),
            ("Prometheus", "prometheuses"),
        ] {
            assert_eq!(plural(kind), expect);
        }
    }
}
