//! How a cluster is reached, as the data of every room tells it.

use qontract_client_kubernetes::{Cluster, TokenRef};
use qontract_runtime::Place;
use qontract_runtime::state::Disabled;

/// A cluster as rooms ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The cluster.
    pub cluster: Cluster,
    /// The token for namespaces that ask for more, if there is one.
    pub admin: Option<TokenRef>,
    /// Whether the data says that it is internal, which `--internal` and `--external` select by.
    pub is_internal: bool,
    /// Integrations that are to leave it alone.
    pub off: Vec<String>,
}

impl Contact {
    /// Set if the cluster is to be left alone by an integration; `place` is the cluster's.
    pub fn disabled(&self, integration: &str, place: Option<Place>) -> Option<Disabled> {
        let is_off = self.off.iter().any(|name| name == integration);
        is_off.then(|| Disabled { by: format!("the cluster `{}`", self.cluster.name), place })
    }

    /// The cluster with the token for what takes more; without one, an answer that says so.
    pub fn as_admin(&self) -> Result<Cluster, String> {
        match &self.admin {
            Some(token) => Ok(Cluster { token: Some(token.clone()), ..self.cluster.clone() }),
            None => Err(format!("the cluster `{}` has no `clusterAdminAutomationToken`", self.cluster.name)),
        }
    }
}

/// Lets the clusters of a room's own answers be read as what all rooms ask of them.
///
/// The room's request asks of each cluster `name`, `serverUrl`, `internal`, `automationToken`, `clusterAdminAutomationToken` (both with `path`, `field`
/// and `version`), and `disable { integrations }`.
#[macro_export]
macro_rules! reads_clusters {
    ($query:ident) => {
        impl From<$query::Cluster> for $crate::Contact {
            fn from(cluster: $query::Cluster) -> Self {
                Self {
                    cluster: $crate::Cluster {
                        name: cluster.name,
                        server: cluster.server_url,
                        token: cluster.automation_token.map(|secret| $crate::TokenRef {
                            path: secret.path,
                            field: secret.field,
                            version: secret.version,
                        }),
                    },
                    admin: cluster.cluster_admin_automation_token.map(|secret| $crate::TokenRef {
                        path: secret.path,
                        field: secret.field,
                        version: secret.version,
                    }),
                    is_internal: cluster.internal == Some(true),
                    off: cluster.disable.and_then(|disable| disable.integrations).unwrap_or_default(),
                }
            }
        }
    };
}

/// Lets the namespaces of a room's own answers be read as what all rooms ask of them; its clusters, too.
///
/// The room's request asks of each namespace `name`, `delete`, `managedByExternal`, `clusterAdmin`, and of its `cluster` what
/// [`reads_clusters!`](crate::reads_clusters) says.
#[macro_export]
macro_rules! reads_namespaces {
    ($query:ident) => {
        $crate::reads_clusters!($query);

        impl $crate::Grounded for $query::Namespace {
            fn ground(&self) -> $crate::Ground {
                $crate::Ground {
                    contact: self.cluster.clone().into(),
                    namespace: self.name.clone(),
                    is_external: self.managed_by_external == Some(true),
                    is_admin: self.cluster_admin == Some(true),
                    place: None,
                    cluster_place: None,
                }
            }

            fn is_to_go(&self) -> bool {
                self.delete == Some(true)
            }
        }
    };
}
