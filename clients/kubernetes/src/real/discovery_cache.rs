//! Discovery cache: the kinds that a cluster serves. API groups are requested on demand, once, and cached.
//!
//! **Invariant:** if the kinds of a group cannot be read, only kinds that may belong to that group are unknown.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use qontract_access::AccessPermit;
use serde::Deserialize;
use tokio::time::Instant;

use super::Clusters;
use super::request::ApiRequest;
use super::status::RequestSubject;
use crate::discovery::{KindGroups, choose_group};
use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, Kind};

/// Minimum time between two requests for all groups that are sent because a kind was not found.
const REDISCOVERY_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of groups of a cluster; each version of each group is one request.
const MAX_GROUPS: usize = 1000;

/// Maximum number of versions of a group.
const MAX_VERSIONS: usize = 20;

/// A kind that a cluster serves.
#[derive(Clone, Debug)]
pub(super) struct ServedKind {
    pub kind: Kind,
    pub resource: ApiResource,
    /// Whether the server stores the objects of the kind. Writes of a virtual resource cannot be rehearsed.
    pub is_stored: bool,
}

/// The discovery results of a cluster.
#[derive(Default)]
pub(super) struct DiscoveryCache {
    /// For each group name, the versions of the group, preferred first, with the kinds of each version.
    groups: BTreeMap<String, Vec<GroupVersionKinds>>,
    /// Time of the last request for all groups.
    completed_at: Option<Instant>,
}

/// The kinds of one version of a group.
#[derive(Clone)]
struct GroupVersionKinds {
    api_version: String,
    /// The kinds; `None` if they could not be read.
    kinds: Option<Vec<DiscoveredResource>>,
}

#[derive(Clone, Deserialize)]
struct DiscoveredResource {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ApiResourceList {
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<ApiGroup>,
}

#[derive(Deserialize)]
struct ApiGroup {
    name: String,
    versions: Vec<ApiGroupVersion>,
    #[serde(rename = "preferredVersion")]
    preferred: Option<ApiGroupVersion>,
}

#[derive(Deserialize, PartialEq)]
struct ApiGroupVersion {
    #[serde(rename = "groupVersion")]
    name: String,
}

impl DiscoveryCache {
    /// The groups that have a kind of this name.
    fn groups(&self, kind: &str) -> KindGroups {
        let mut found = KindGroups::new();
        for (group, versions) in &self.groups {
            let with = |loaded: &GroupVersionKinds| {
                Some((loaded.api_version.clone(), resource(loaded, kind)?.clone()))
            };
            let with: Vec<_> = versions.iter().filter_map(with).collect();
            if let Some((api_version, resource)) = with.first() {
                let served = ApiResource {
                    api_version: api_version.clone(),
                    versions: with.iter().map(|(version, _)| version.clone()).collect(),
                    plural: resource.name.clone(),
                    is_namespaced: resource.namespaced,
                };
                found.insert(group.clone(), served);
            }
        }
        found
    }

    fn served_kind(&self, cluster: &Cluster, kind: &Kind) -> Result<ServedKind, KubernetesError> {
        let (group, served) = choose_group(cluster, kind, &self.groups(&kind.name))?;
        let loaded =
            self.groups.get(&group).into_iter().flatten().find_map(|loaded| resource(loaded, &kind.name));
        let is_kept = loaded.is_some_and(|resource| {
            ["get", "create", "patch"].iter().all(|verb| resource.verbs.iter().any(|one| one == verb))
        });
        Ok(ServedKind {
            kind: Kind { name: kind.name.clone(), group: Some(group) },
            resource: served,
            is_stored: is_kept,
        })
    }

    /// Replaces the error "not served" by a transient error if the kind may be in a group that could not be
    /// read.
    fn check_complete(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        served: Result<ServedKind, KubernetesError>,
    ) -> Result<ServedKind, KubernetesError> {
        let mut groups =
            self.groups.iter().filter(|(name, _)| kind.group.as_ref().is_none_or(|group| group == *name));
        let is_unsure = groups.any(|(_, versions)| versions.iter().any(|version| version.kinds.is_none()));
        match served {
            Err(KubernetesError::Unserved { .. }) if is_unsure => Err(KubernetesError::Failed {
                cluster: cluster.name.clone(),
                status: 503,
                why: format!(
                    "cannot determine whether it serves `{kind}`: some of its API groups do not respond"
                ),
            }),
            served => served,
        }
    }
}

fn resource<'a>(loaded: &'a GroupVersionKinds, kind: &str) -> Option<&'a DiscoveredResource> {
    // A name with a slash is a subresource.
    loaded.kinds.as_ref()?.iter().find(|one| one.kind == kind && !one.name.contains('/'))
}

impl Clusters {
    /// Finds the API resource of a kind. A kind that is not in the cache is requested again; a kind without a
    /// group needs all groups to be cached.
    pub(super) async fn find_kind(
        &self,
        cluster: &Cluster,
        kind: &Kind,
    ) -> Result<ServedKind, KubernetesError> {
        let connection = self.connection(cluster)?;
        // The lock is held during the requests, so that concurrent callers wait for one result.
        let mut catalogue = connection.discovery.lock().await;
        let is_whole = kind.group.is_some() || catalogue.completed_at.is_some();
        let is_old = kind.group.is_some()
            || catalogue.completed_at.is_none_or(|then| then.elapsed() >= REDISCOVERY_INTERVAL);
        match catalogue.served_kind(cluster, kind) {
            // The groups are requested again, because the kind may have been created after the last request.
            Err(KubernetesError::Unserved { .. }) if is_old => {}
            served if is_whole => return catalogue.check_complete(cluster, kind, served),
            _ => {}
        }
        self.load_groups(cluster, kind, &mut catalogue).await?;
        let served = catalogue.served_kind(cluster, kind);
        catalogue.check_complete(cluster, kind, served)
    }

    /// Requests the group of a kind, or all groups if the kind does not name a group.
    async fn load_groups(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        catalogue: &mut DiscoveryCache,
    ) -> Result<(), KubernetesError> {
        let core = || ApiGroup {
            name: String::new(),
            versions: vec![ApiGroupVersion { name: "v1".to_owned() }],
            preferred: None,
        };
        let groups = match kind.group.as_deref() {
            Some("") => vec![core()],
            Some(group) => self.discover(cluster, &format!("/apis/{group}")).await?.into_iter().collect(),
            None => {
                let all: Option<GroupList> = self.discover(cluster, "/apis").await?;
                all.into_iter().flat_map(|all| all.groups).chain([core()]).collect()
            }
        };
        if groups.len() > MAX_GROUPS || groups.iter().any(|group| group.versions.len() > MAX_VERSIONS) {
            return Err(KubernetesError::Malformed {
                object: format!("`/apis` of the cluster `{}`", cluster.name),
                why: format!("it has more than {MAX_GROUPS} groups or {MAX_VERSIONS} versions of a group"),
            });
        }
        let is_gone = groups.is_empty();
        let loaded =
            join_all(groups.into_iter().map(|group| self.load_group(cluster, group, kind.group.is_none())))
                .await;
        let loaded: Vec<_> = loaded.into_iter().collect::<Result<_, _>>()?;
        // The cache is replaced only after all requests succeeded.
        if kind.group.is_none() {
            catalogue.groups.clear();
            catalogue.completed_at = Some(Instant::now());
        } else if is_gone {
            catalogue.groups.retain(|name, _| Some(name) != kind.group.as_ref());
        }
        catalogue.groups.extend(loaded);
        Ok(())
    }

    async fn load_group(
        &self,
        cluster: &Cluster,
        group: ApiGroup,
        among_many: bool,
    ) -> Result<(String, Vec<GroupVersionKinds>), KubernetesError> {
        let ApiGroup { name, mut versions, preferred } = group;
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        let load = async |version: ApiGroupVersion| {
            let root = if name.is_empty() { "/api" } else { "/apis" };
            let kinds = match self.discover(cluster, &format!("{root}/{}", version.name)).await {
                Ok(found) => Some(found.map(|found: ApiResourceList| found.resources).unwrap_or_default()),
                Err(KubernetesError::Failed { .. } | KubernetesError::Malformed { .. }) => None,
                // If the request for one group fails, the other groups are still used; only the kinds of the
                // failed group are unknown.
                Err(KubernetesError::Unreachable { .. } | KubernetesError::Denied { .. }) if among_many => {
                    None
                }
                Err(error) => return Err(error),
            };
            Ok(GroupVersionKinds { api_version: version.name, kinds })
        };
        let loaded = join_all(versions.into_iter().map(load)).await;
        let loaded = loaded.into_iter().collect::<Result<_, KubernetesError>>()?;
        Ok((name, loaded))
    }

    /// A discovery document, if it exists.
    async fn discover<T: for<'de> Deserialize<'de>>(
        &self,
        cluster: &Cluster,
        path: &str,
    ) -> Result<Option<T>, KubernetesError> {
        let subject = RequestSubject {
            cluster: cluster.name.clone(),
            object: format!("`{path}` of the cluster `{}`", cluster.name),
            namespace: None,
            is_secret: false,
        };
        let request = ApiRequest::document(path);
        let answer = self.send(AccessPermit::Read(&self.permit), cluster, &subject, request).await?;
        match answer.status {
            404 => Ok(None),
            _ if answer.is_success() => serde_json::from_slice(&answer.body)
                .map(Some)
                .map_err(|error| subject.malformed(error.to_string())),
            status => Err(subject.refusal(status, &answer.body)),
        }
    }
}
