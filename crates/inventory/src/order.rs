//! The order in which objects are written and removed: dependencies are written first and removed last.

use std::cmp::Reverse;

/// The phase in which an object is written, from first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplyPhase {
    /// Namespaces and custom resource definitions, which must exist before other objects are written.
    Foundation,
    /// Objects without dependencies: quotas, policies, accounts, configuration, volumes, roles.
    Config,
    /// Bindings and services, which connect the objects of the previous phase.
    Bindings,
    /// All other kinds.
    Other,
    /// Workloads, which use the objects of all previous phases.
    Workloads,
    /// Objects in front of workloads: scaling, disruption budgets, ingress, webhooks.
    Exposure,
}

/// The order of a step in a run: all writes precede all removals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplyOrder {
    /// A write.
    Write(ApplyPhase),
    /// A removal, in reverse order of phases.
    Remove(Reverse<ApplyPhase>),
}

impl ApplyPhase {
    /// The apply phase of a kind in an API group; the core group is the empty string.
    ///
    /// ```
    /// use qontract_inventory::{ApplyOrder, ApplyPhase};
    /// let (secret, deployment) = (ApplyPhase::of("Secret", ""), ApplyPhase::of("Deployment", "apps"));
    /// assert!(secret < deployment);
    /// assert!(ApplyOrder::removal(deployment) < ApplyOrder::removal(secret));
    /// assert!(ApplyOrder::Write(deployment) < ApplyOrder::removal(deployment));
    /// ```
    pub fn of(kind: &str, group: &str) -> Self {
        match (group, kind) {
            ("", "Namespace")
            | ("project.openshift.io", "Project" | "ProjectRequest")
            | ("apiextensions.k8s.io", "CustomResourceDefinition") => ApplyPhase::Foundation,
            (
                "",
                "ResourceQuota"
                | "LimitRange"
                | "ServiceAccount"
                | "ConfigMap"
                | "Secret"
                | "PersistentVolume"
                | "PersistentVolumeClaim",
            )
            | ("quota.openshift.io", "ClusterResourceQuota" | "AppliedClusterResourceQuota")
            | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
            | ("network.openshift.io", "EgressNetworkPolicy" | "NetNamespace")
            | ("policy" | "extensions", "PodSecurityPolicy")
            | ("security.openshift.io", "SecurityContextConstraints")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("node.k8s.io", "RuntimeClass")
            | ("storage.k8s.io", "StorageClass" | "CSIDriver")
            | ("rbac.authorization.k8s.io" | "authorization.openshift.io", "Role" | "ClusterRole") => {
                ApplyPhase::Config
            }
            ("", "Service" | "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | (
                "rbac.authorization.k8s.io" | "authorization.openshift.io",
                "RoleBinding" | "ClusterRoleBinding",
            ) => ApplyPhase::Bindings,
            ("", "Pod" | "ReplicationController")
            | ("apps" | "extensions", "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet")
            | ("apps.openshift.io", "DeploymentConfig")
            | ("batch", "Job" | "CronJob") => ApplyPhase::Workloads,
            ("autoscaling", "HorizontalPodAutoscaler")
            | ("policy", "PodDisruptionBudget")
            | ("networking.k8s.io" | "extensions", "Ingress")
            | ("route.openshift.io", "Route")
            | ("apiregistration.k8s.io", "APIService")
            | (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration"
                | "ValidatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding",
            ) => ApplyPhase::Exposure,
            _ => ApplyPhase::Other,
        }
    }
}

impl ApplyOrder {
    /// The order of a removal.
    pub fn removal(stage: ApplyPhase) -> Self {
        ApplyOrder::Remove(Reverse(stage))
    }
}

#[cfg(test)]
mod tests {
    use super::{ApplyOrder, ApplyPhase};

    fn check(kinds: &[(&str, &str)], expect: ApplyPhase) {
        for (kind, group) in kinds {
            assert_eq!(ApplyPhase::of(kind, group), expect, "{kind}.{group}");
        }
    }

    #[test]
    fn dependencies_come_first() {
        check(
            &[("Namespace", ""), ("CustomResourceDefinition", "apiextensions.k8s.io")],
            ApplyPhase::Foundation,
        );
        check(
            &[("Secret", ""), ("PersistentVolumeClaim", ""), ("Role", "rbac.authorization.k8s.io")],
            ApplyPhase::Config,
        );
        check(&[("Service", ""), ("RoleBinding", "authorization.openshift.io")], ApplyPhase::Bindings);
        check(
            &[("StatefulSet", "apps"), ("DeploymentConfig", "apps.openshift.io"), ("CronJob", "batch")],
            ApplyPhase::Workloads,
        );
        check(
            &[
                ("Route", "route.openshift.io"),
                ("PodDisruptionBudget", "policy"),
                ("APIService", "apiregistration.k8s.io"),
            ],
            ApplyPhase::Exposure,
        );
    }

    #[test]
    fn a_kind_of_another_group_is_another_kind() {
        check(
            &[("Service", "serving.knative.dev"), ("Job", "batch.volcano.sh"), ("Widget", ""), ("", "")],
            ApplyPhase::Other,
        );
    }

    #[test]
    fn removals_come_last_and_in_reverse() {
        let mut turns = [
            ApplyOrder::removal(ApplyPhase::Foundation),
            ApplyOrder::Write(ApplyPhase::Exposure),
            ApplyOrder::removal(ApplyPhase::Exposure),
            ApplyOrder::Write(ApplyPhase::Foundation),
        ];
        turns.sort();
        let expect = [
            ApplyOrder::Write(ApplyPhase::Foundation),
            ApplyOrder::Write(ApplyPhase::Exposure),
            ApplyOrder::removal(ApplyPhase::Exposure),
            ApplyOrder::removal(ApplyPhase::Foundation),
        ];
        assert_eq!(turns, expect);
    }
}
