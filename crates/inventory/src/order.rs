//! In which order objects are written and removed: what is needed comes before what needs it, and goes after it.

use std::cmp::Reverse;

/// When an object is written, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Where objects are, and what objects there can be: namespaces, and definitions of kinds.
    Grounds,
    /// What is needed and needs nothing: quotas, policies, accounts, configuration, volumes, roles.
    Supplies,
    /// What connects these: bindings, and services.
    Ties,
    /// Kinds of which nothing is known.
    Others,
    /// What runs, and mounts all of the above.
    Workloads,
    /// What stands in front of what runs: scaling, disruption budgets, ways in, webhooks.
    Fronts,
}

/// The place of a step in a run: everything is written before anything is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// It is written.
    Write(Stage),
    /// It is removed: what was written last goes first.
    Remove(Reverse<Stage>),
}

impl Stage {
    /// The stage of a kind in a group; the group of the core is empty.
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
    /// The turn of a removal.
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
    fn what_is_needed_comes_first() {
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
