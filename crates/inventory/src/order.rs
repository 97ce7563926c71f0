//! The order in which objects are written and removed: dependencies are written first and removed last.

use std::cmp::Reverse;

/// The phase in which an object is written, from first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Namespaces and custom resource definitions, which other objects need to exist.
    Grounds,
    /// Objects without dependencies: quotas, policies, accounts, configuration, volumes, roles.
    Supplies,
    /// Objects that connect these: bindings and services.
    Ties,
    /// All other kinds.
    Others,
    /// Workloads, which mount all of the above.
    Workloads,
    /// Objects in front of workloads: scaling, disruption budgets, ingress, webhooks.
    Fronts,
}

/// The order of a step in a run: all writes precede all removals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// A write.
    Write(Stage),
    /// A removal, in reverse order of phases.
    Remove(Reverse<Stage>),
}

impl Stage {
    /// The phase of a kind in a group; the core group is empty.
    ///
    /// ```
    /// use qontract_inventory::{Stage, Turn};
    /// let (secret, deployment) = (Stage::of("Secret", ""), Stage::of("Deployment", "apps"));
    /// assert!(secret < deployment);
    /// assert!(Turn::removing(deployment) < Turn::removing(secret));
    /// assert!(Turn::Write(deployment) < Turn::removing(deployment));
    /// ```
    pub fn of(kind: &str, group: &str) -> Self {
        match (group, kind) {
            ("", "Namespace")
            | ("project.openshift.io", "Project" | "ProjectRequest")
            | ("apiextensions.k8s.io", "CustomResourceDefinition") => Stage::Grounds,
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
                Stage::Supplies
            }
            ("", "Service" | "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | (
                "rbac.authorization.k8s.io" | "authorization.openshift.io",
                "RoleBinding" | "ClusterRoleBinding",
            ) => Stage::Ties,
            ("", "Pod" | "ReplicationController")
            | ("apps" | "extensions", "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet")
            | ("apps.openshift.io", "DeploymentConfig")
            | ("batch", "Job" | "CronJob") => Stage::Workloads,
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
            ) => Stage::Fronts,
            _ => Stage::Others,
        }
    }
}

impl Turn {
    /// The order of a removal.
    pub fn removing(stage: Stage) -> Self {
        Turn::Remove(Reverse(stage))
    }
}

#[cfg(test)]
mod tests {
    use super::{Stage, Turn};

    fn check(kinds: &[(&str, &str)], expect: Stage) {
        for (kind, group) in kinds {
            assert_eq!(Stage::of(kind, group), expect, "{kind}.{group}");
        }
    }

    #[test]
    fn dependencies_come_first() {
        check(&[("Namespace", ""), ("CustomResourceDefinition", "apiextensions.k8s.io")], Stage::Grounds);
        check(
            &[("Secret", ""), ("PersistentVolumeClaim", ""), ("Role", "rbac.authorization.k8s.io")],
            Stage::Supplies,
        );
        check(&[("Service", ""), ("RoleBinding", "authorization.openshift.io")], Stage::Ties);
        check(
            &[("StatefulSet", "apps"), ("DeploymentConfig", "apps.openshift.io"), ("CronJob", "batch")],
            Stage::Workloads,
        );
        check(
            &[
                ("Route", "route.openshift.io"),
                ("PodDisruptionBudget", "policy"),
                ("APIService", "apiregistration.k8s.io"),
            ],
            Stage::Fronts,
        );
    }

    #[test]
    fn a_kind_of_another_group_is_another_kind() {
        check(
            &[("Service", "serving.knative.dev"), ("Job", "batch.volcano.sh"), ("Widget", ""), ("", "")],
            Stage::Others,
        );
    }

    #[test]
    fn removals_come_last_and_in_reverse() {
        let mut turns = [
            Turn::removing(Stage::Grounds),
            Turn::Write(Stage::Fronts),
            Turn::removing(Stage::Fronts),
            Turn::Write(Stage::Grounds),
        ];
        turns.sort();
        let expect = [
            Turn::Write(Stage::Grounds),
            Turn::Write(Stage::Fronts),
            Turn::removing(Stage::Fronts),
            Turn::removing(Stage::Grounds),
        ];
        assert_eq!(turns, expect);
    }
}
