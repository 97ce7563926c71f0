//! Cluster addresses, tokens and disabled integrations, read from the shared GraphQL fragments.

use qontract_client_kubernetes::{Cluster, TokenRef};
use qontract_runtime::state::DisabledReason;
use qontract_runtime::{ShardKey, SourceLocation, normalize_key};

use crate::fragments::{ClusterAccess, DisabledIntegrations, VaultSecretRef};

impl From<VaultSecretRef> for TokenRef {
    fn from(VaultSecretRef { path, field, version }: VaultSecretRef) -> Self {
        Self { path, field, version }
    }
}

impl DisabledIntegrations {
    /// Whether the data disables an integration on the cluster.
    pub fn contains(&self, integration: &str) -> bool {
        let disabled = self.disable.as_ref().and_then(|disable| disable.integrations.as_ref());
        disabled.is_some_and(|names| names.iter().any(|name| name == integration))
    }
}

impl ClusterAccess {
    /// The cluster, with the token for its namespaces.
    pub fn cluster(&self) -> Cluster {
        Cluster {
            name: self.name.clone(),
            server: self.server_url.clone(),
            token: self.automation_token.clone().map(TokenRef::from),
        }
    }

    /// The cluster with its administrator token; an error if the data does not name this token.
    pub fn admin_cluster(&self) -> Result<Cluster, String> {
        match &self.cluster_admin_automation_token {
            Some(token) => Ok(Cluster { token: Some(token.clone().into()), ..self.cluster() }),
            None => Err(format!("the cluster `{}` has no `clusterAdminAutomationToken`", self.name)),
        }
    }

    /// Whether the data marks the cluster as internal; `--internal` and `--external` select by this.
    pub fn is_internal(&self) -> bool {
        self.internal == Some(true)
    }

    /// The key of a shard with the address of this cluster in place of its name. This key does not change if
    /// the data renames the cluster.
    pub fn target_key(&self, key: &ShardKey) -> ShardKey {
        let address = normalize_key(&self.server_url);
        ShardKey::new(key.parts().map(|(dimension, value)| match dimension {
            "cluster" => (dimension, address.as_str()),
            _ => (dimension, value),
        }))
    }

    /// The reason why the data disables an integration on this cluster, if it does. `place` is the provenance
    /// of the cluster.
    pub fn disabled(&self, integration: &str, place: Option<SourceLocation>) -> Option<DisabledReason> {
        let is_disabled = self.disabled_integrations.contains(integration);
        is_disabled.then(|| DisabledReason::new(format!("cluster `{}`", self.name), place))
    }
}
