//! Checks a cluster: whether it is reachable, accepts the credentials, has its clock in sync, and grants the
//! permissions that integrations need.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use qontract_access::{Mode, ReadPermit};
use qontract_client_http::HttpError;
use qontract_client_kubernetes::{
    AccessRequest, ApiResource, Cluster, Clusters, Kind, KubernetesError, ObjectReader as _,
};
use qontract_runtime::{ClusterPermissions, ManagedKinds};

use crate::clusters::DataNamespace;
use crate::targets::RealClusters;

use super::report::CheckReport;
use super::request_limits;

/// Maximum clock skew. It is checked because the validity of tokens and leases depends on the clocks.
const MAX_SKEW: Duration = Duration::from_secs(30);

/// Maximum number of namespaces that are checked individually if a cluster does not grant a permission for all
/// namespaces.
const MAX_NAMESPACES: usize = 5;

/// The permissions that an integration needs.
pub struct NeededPermissions {
    /// The name of the integration.
    pub integration: String,
    /// The permissions that the integration needs.
    pub permissions: ClusterPermissions,
}

/// Checks clusters.
pub struct ClusterCheck<'a> {
    clusters: Clusters,
    permit: ReadPermit,
    namespaces: &'a [DataNamespace],
    needed: &'a [NeededPermissions],
}

impl<'a> ClusterCheck<'a> {
    /// Creates the check of clusters, with the namespaces of the data in which permissions are checked.
    pub fn new(real: RealClusters, namespaces: &'a [DataNamespace], needed: &'a [NeededPermissions]) -> Self {
        let permit = ReadPermit::for_targets(Mode::DryRun);
        let clusters = real.client(&permit, request_limits());
        Self { clusters, permit, namespaces, needed }
    }

    /// Checks one cluster.
    pub async fn run(&self, cluster: &Cluster) -> CheckReport {
        let (mut report, title) = (CheckReport::default(), format!("cluster {}", cluster.name));
        let probe = AccessRequest {
            verb: "list",
            group: String::new(),
            resource: "namespaces".to_owned(),
            namespace: None,
        };
        match self.clusters.review_access(&self.permit, cluster, &probe).await {
            Ok(answer) => {
                report.ok(&title, format!("{} reachable, credentials accepted", cluster.server));
                if let Some((skew, direction)) = answer.date.and_then(|date| skew(date, SystemTime::now())) {
                    report.failed(
                        &title,
                        format!("its clock is {} s {direction} the local clock", skew.as_secs()),
                        "synchronise the clocks (NTP)",
                    );
                }
            }
            Err(error) => {
                report.failed(&title, error.full_message(), hint(&error));
                return report;
            }
        }
        for need in self.needed {
            self.integration(cluster, need, &mut report).await;
        }
        report
    }

    /// Checks the permissions of an integration.
    async fn integration(&self, cluster: &Cluster, need: &NeededPermissions, report: &mut CheckReport) {
        let own: Vec<&DataNamespace> =
            self.namespaces.iter().filter(|namespace| namespace.cluster == cluster.name).collect();
        if own.is_empty() {
            return;
        }
        let title = format!("cluster {}, {}", cluster.name, need.integration);
        let ClusterPermissions { kinds, verbs } = need.permissions;
        let kinds: BTreeSet<&str> = match kinds {
            ManagedKinds::Fixed(kind) => BTreeSet::from([kind]),
            ManagedKinds::Several(kinds) => kinds.iter().copied().collect(),
            ManagedKinds::OfNamespaces => {
                own.iter().flat_map(|namespace| namespace.kinds.iter().map(String::as_str)).collect()
            }
            ManagedKinds::Declared => {
                report.ok(
                    &title,
                    "permissions not checked: its program declares the kinds in each run".to_owned(),
                );
                return;
            }
        };
        let (mut denied, mut unserved) = (Vec::new(), Vec::new());
        for name in &kinds {
            let served = match name.parse::<Kind>() {
                Ok(kind) => self.clusters.api_resource(&self.permit, cluster, &kind).await,
                Err(error) => Err(error),
            };
            let served = match served {
                Ok(served) => served,
                Err(KubernetesError::Unserved { .. }) => {
                    unserved.push(*name);
                    continue;
                }
                Err(error) => {
                    report.failed(&title, error.full_message(), hint(&error));
                    return;
                }
            };
            match self.denied(cluster, verbs, &served, &own).await {
                Ok(verbs) if verbs.is_empty() => {}
                Ok(verbs) => denied.push(format!("{} {}", verbs.join("/"), served.plural)),
                Err(error) => {
                    report.failed(&title, error.full_message(), hint(&error));
                    return;
                }
            }
        }
        if !unserved.is_empty() {
            report.warning(
                &title,
                format!("not served: {}", unserved.join(", ")),
                "install the API, or disable the integration for the cluster",
            );
        }
        let served: Vec<&str> = kinds.into_iter().filter(|kind| !unserved.contains(kind)).collect();
        if denied.is_empty() {
            if !served.is_empty() || unserved.is_empty() {
                report.ok(&title, format!("allowed: {} {}", verbs.join("/"), served.join(", ")));
            }
        } else {
            report.failed(
                &title,
                format!("not allowed: {}", denied.join(", ")),
                "grant it to the service account with a ClusterRole, or with Roles in the namespaces",
            );
        }
    }

    /// The verbs that the cluster does not allow for a kind: neither for all namespaces nor for each of the first
    /// namespaces of the data.
    async fn denied(
        &self,
        cluster: &Cluster,
        verbs: &'static [&'static str],
        served: &ApiResource,
        own: &[&DataNamespace],
    ) -> Result<Vec<&'static str>, KubernetesError> {
        let group = served.api_version.split_once('/').map_or("", |(group, _)| group);
        let mut denied = Vec::new();
        for verb in verbs {
            let request = |namespace: Option<&str>| AccessRequest {
                verb,
                group: group.to_owned(),
                resource: served.plural.clone(),
                namespace: namespace.map(str::to_owned),
            };
            if self.clusters.review_access(&self.permit, cluster, &request(None)).await?.is_allowed {
                continue;
            }
            let mut is_allowed = served.is_namespaced;
            for namespace in own.iter().take(MAX_NAMESPACES).filter(|_| served.is_namespaced) {
                is_allowed &= self
                    .clusters
                    .review_access(&self.permit, cluster, &request(Some(&namespace.name)))
                    .await?
                    .is_allowed;
            }
            if !is_allowed {
                denied.push(*verb);
            }
        }
        Ok(denied)
    }
}

/// The hint for an error of a cluster.
fn hint(error: &KubernetesError) -> &'static str {
    match error {
        KubernetesError::Unreachable { error: HttpError::SetUp(_), .. } => {
            "correct `ca`, and the client certificate of the kubeconfig"
        }
        KubernetesError::Unreachable { error, .. } => unreachable_hint(&error.reason()),
        KubernetesError::Credentials { .. } => {
            "check its kubeconfig and `server` in the configuration, and `automationToken` and `serverUrl` in the data"
        }
        KubernetesError::Settings { .. } => "correct the file that the key names",
        KubernetesError::Failed { .. } => "check the API server, and the load balancer in front of it",
        _ => "check the cluster",
    }
}

/// The hint for a cluster that cannot be reached, depending on the reason.
fn unreachable_hint(reason: &str) -> &'static str {
    let hints = [
        (
            "CA:TRUE",
            "have the CA sign a certificate for the address of the API server, and set `ca` of the cluster to the CA's PEM file",
        ),
        (
            "certificate not valid for",
            "use an address that the certificate of the API server names, in `serverUrl` of the data and `server` of the configuration; or have a certificate issued for this address",
        ),
        ("certificate expired", "renew the certificate of the API server"),
        (
            "certificate not valid yet",
            "correct the clock of this machine, or the certificate of the API server",
        ),
        ("certificate revoked", "replace the certificate of the API server"),
        (
            "certificate",
            "set `ca` of the cluster to the PEM file of the CA that signed the certificate of its API server",
        ),
    ];
    let hint = hints.iter().find(|(text, _)| reason.contains(text)).map(|(_, hint)| *hint);
    hint.unwrap_or("check the address of the cluster, the network and proxies")
}

/// The clock skew with its direction, if the skew exceeds [`MAX_SKEW`].
fn skew(theirs: SystemTime, ours: SystemTime) -> Option<(Duration, &'static str)> {
    let (skew, direction) = match theirs.duration_since(ours) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (skew > MAX_SKEW).then_some((skew, direction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_certificate_has_its_hint() {
        for (reason, expect) in [
            ("certificate signed by unknown authority", "set `ca` of the cluster"),
            ("certificate not valid for `api.example.com`", "use an address that the certificate"),
            ("certificate expired", "renew the certificate"),
            ("certificate not valid yet: check the clock", "correct the clock"),
            ("certificate revoked", "replace the certificate"),
            ("connection refused", "check the address of the cluster"),
        ] {
            assert!(unreachable_hint(reason).starts_with(expect), "{reason}: {}", unreachable_hint(reason));
        }
    }

    #[test]
    fn small_clock_skew_is_accepted() {
        let ours = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        for (theirs, expect) in [
            (ours + MAX_SKEW, None),
            (ours - MAX_SKEW, None),
            (ours + Duration::from_secs(31), Some((Duration::from_secs(31), "ahead of"))),
            (ours - Duration::from_secs(31), Some((Duration::from_secs(31), "behind"))),
        ] {
            assert_eq!(skew(theirs, ours), expect);
        }
    }
}
