//! The real clusters of the configuration: their settings and tokens are read when a cluster is used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::ReadPermit;
use qontract_client_http::Settings;
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, ClusterToken, Clusters, SettingsSource, TokenError, TokenRef, TokenSource,
};
use qontract_client_secrets::{SecretReader, SecretsError};
use qontract_config::{ClusterTable, ConfigError, KubernetesTable};

use super::kubeconfig;

/// The first line of a PEM certificate.
const PEM_HEADER: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The real clusters of the configuration, with their tokens. The files that the configuration names for a cluster
/// are read when the cluster is used, so that a broken file affects only this cluster.
pub struct RealClusters {
    table: KubernetesTable,
    secrets: Arc<dyn SecretReader>,
}

impl RealClusters {
    /// Creates access to the clusters of this table, whose tokens are in the secret store or in kubeconfigs.
    pub fn new(table: KubernetesTable, secrets: Arc<dyn SecretReader>) -> Self {
        Self { table, secrets }
    }

    /// Creates a client for the run of the permit. No file is read yet.
    pub fn client(self, permit: &ReadPermit, limits: Settings) -> Clusters {
        let own = Arc::new(self);
        Clusters::new(permit, limits, Arc::clone(&own) as _, own)
    }

    /// Reads the files of all clusters and returns the errors: at most one for the default table and one for each
    /// cluster. An error of the default table is not repeated for the clusters that inherit it.
    pub fn errors(&self) -> Vec<ConfigError> {
        let key = self.table.key();
        let default = cluster_settings(&ClusterTable::default(), &self.table.defaults(), key, key).err();
        let is_default =
            |error: &ConfigError| default.as_ref().is_some_and(|it| it.to_string() == error.to_string());
        let own = self.table.clusters.keys().filter_map(|name| self.open(name).err());
        let own: Vec<ConfigError> = own.filter(|error| !is_default(error)).collect();
        default.into_iter().chain(own).collect()
    }

    /// Reads the settings of a cluster.
    fn open(&self, name: &str) -> Result<ClusterSettings, ConfigError> {
        let (own, key) = self.table_of(name);
        let mut settings = cluster_settings(&own, &self.table.defaults(), &key, self.table.key())?;
        if let Some(login) = kubeconfig::login(&own, &key)? {
            if own.ca.is_none() {
                settings.ca = login.ca.or(settings.ca);
            }
            settings.certificate = login.certificate;
        }
        Ok(settings)
    }

    /// The table of a cluster, with the key of the table. For a cluster without a table, the table is empty.
    fn table_of(&self, name: &str) -> (ClusterTable, String) {
        let own = self.table.clusters.get(name).cloned().unwrap_or_default();
        (own, format!("{}.clusters.{name}", self.table.key()))
    }
}

impl SettingsSource for RealClusters {
    fn settings(&self, cluster: &str) -> Result<ClusterSettings, String> {
        self.open(cluster).map_err(|error| error.to_string())
    }
}

/// The settings of a cluster; `own_key` is the key of the cluster in the configuration, and `default_key` is the key
/// of the table that contains the defaults.
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
    let seconds = own.deadline_seconds.or(defaults.deadline_seconds);
    settings.deadline = seconds.map(|seconds| Duration::from_secs(seconds.get().into()));
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

impl TokenSource for RealClusters {
    fn token<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>> {
        async move {
            let (own, key) = self.table_of(&cluster.name);
            let login = kubeconfig::login(&own, &key).map_err(|error| error.to_string())?;
            let server = login.as_ref().map(|login| login.server.clone()).or(own.server);
            if let Some(token) = login.and_then(|login| login.token) {
                return Ok(ClusterToken { secret: token.read()?, server });
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
            Ok(ClusterToken { secret, server: server.or_else(secret_server) })
        }
        .boxed()
    }
}
