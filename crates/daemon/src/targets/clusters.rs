//! The real clusters of the configuration: their settings and tokens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit};
use qontract_client_http::Settings;
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, ClusterSettingsMap, ClusterToken, Clusters, TokenError, TokenRef, TokenSource,
};
use qontract_client_secrets::{SecretReader, SecretsError};
use qontract_config::{ClusterTable, ConfigError, KubernetesTable};

use super::kubeconfig::{self, KubeconfigToken};

/// The first line of a PEM certificate.
const PEM_HEADER: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The real clusters of the configuration.
pub(super) fn real_clusters(
    table: &KubernetesTable,
    mode: Mode,
    secrets: Arc<dyn SecretReader>,
) -> anyhow::Result<Clusters> {
    let permit = ReadPermit::for_targets(mode);
    let RealClusters { settings, tokens } = RealClusters::new(table, secrets)?;
    Ok(Clusters::new(&permit, Settings::default(), tokens, settings))
}

/// The settings and tokens of the real clusters of the configuration.
pub struct RealClusters {
    /// The settings of the clusters.
    pub settings: ClusterSettingsMap,
    /// The tokens of the clusters.
    pub tokens: Arc<dyn TokenSource>,
}

impl RealClusters {
    /// Reads the files that the configuration names.
    pub fn new(table: &KubernetesTable, secrets: Arc<dyn SecretReader>) -> Result<Self, ConfigError> {
        let defaults = table.defaults();
        let (mut by_name, mut servers, mut logins) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (name, cluster) in &table.clusters {
            let key = format!("{}.clusters.{name}", table.key());
            let mut settings = cluster_settings(cluster, &defaults, &key, table.key())?;
            servers.extend(cluster.server.clone().map(|server| (name.clone(), server)));
            if let Some(login) = kubeconfig::login(cluster, &key)? {
                servers.insert(name.clone(), login.server);
                if cluster.ca.is_none() {
                    settings.ca = login.ca.or(settings.ca);
                }
                settings.certificate = login.certificate;
                logins.extend(login.token.map(|token| (name.clone(), token)));
            }
            by_name.insert(name.clone(), settings);
        }
        let default = cluster_settings(&ClusterTable::default(), &defaults, table.key(), table.key())?;
        let tokens = Arc::new(StoredTokens { secrets, servers, logins });
        Ok(Self { settings: ClusterSettingsMap { by_name, default }, tokens })
    }
}

/// The settings of a cluster; `own_key` is its key in the configuration, and `default_key` that of the table.
fn cluster_settings(
    own: &ClusterTable,
    defaults: &ClusterTable,
    own_key: &str,
    default_key: &str,
) -> Result<ClusterSettings, ConfigError> {
    let mut settings = ClusterSettings::default();
    let ca =
        own.ca.as_ref().map(|file| (file, own_key)).or(defaults.ca.as_ref().map(|file| (file, default_key)));
    if let Some((file, key)) = ca {
        settings.ca = Some(certificates(file, &format!("{key}.ca"))?);
    }
    if let Some(rate) = own.requests_per_second.or(defaults.requests_per_second) {
        settings.per_second = rate;
    }
    settings.rehearses = own.validate_in_dry_run.or(defaults.validate_in_dry_run).unwrap_or_default();
    Ok(settings)
}

/// The certificates in the file that a key of the configuration names.
fn certificates(file: &Path, key: &str) -> Result<Vec<u8>, ConfigError> {
    let wrong = |why: String| ConfigError::new(format!("`{key}`: {why}"));
    let pem =
        std::fs::read(file).map_err(|error| wrong(format!("cannot read `{}`: {error}", file.display())))?;
    if !pem.windows(PEM_HEADER.len()).any(|part| part == PEM_HEADER) {
        return Err(wrong(format!("`{}` has no PEM certificate", file.display())));
    }
    Ok(pem)
}

/// Cluster tokens from kubeconfigs and the secret store.
struct StoredTokens {
    secrets: Arc<dyn SecretReader>,
    /// Servers of the configuration, by cluster.
    servers: BTreeMap<String, String>,
    /// Tokens of kubeconfigs, by cluster.
    logins: BTreeMap<String, KubeconfigToken>,
}

impl TokenSource for StoredTokens {
    fn token<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>> {
        async move {
            if let Some(token) = self.logins.get(&cluster.name) {
                return Ok(ClusterToken {
                    secret: token.read()?,
                    server: self.servers.get(&cluster.name).cloned(),
                });
            }
            let TokenRef { path, field, version } =
                cluster.token.as_ref().ok_or("the cluster has no `automationToken` in the data")?;
            let version = version.map(|version| version.unsigned_abs().into());
            let failed =
                |error: SecretsError| TokenError { why: error.to_string(), transient: error.is_transient() };
            let fields = self.secrets.read_all(permit, path, version).await.map_err(failed)?;
            let secret =
                fields.get(field).cloned().ok_or_else(|| format!("`{path}` has no field `{field}`"))?;
            let secret_server = || fields.get("server").map(|server| server.expose().to_owned());
            let server = self.servers.get(&cluster.name).cloned().or_else(secret_server);
            Ok(ClusterToken { secret, server })
        }
        .boxed()
    }
}
