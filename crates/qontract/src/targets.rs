//! The target systems: real ones, or the sandbox.

mod nowhere;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit};
use qontract_client_http::{Http, Settings, Url};
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, Clusters, KnownClusters, Kubernetes, Sandbox, Token, TokenRef, Tokens,
};
use qontract_client_promtool::{self as promtool, Promtool};
use qontract_client_secrets::{Reader, Tables, Vault, VaultSettings};

use crate::config::{ClusterTable, Config, KubernetesTable};
use crate::exit::UsageError;
use nowhere::Nowhere;

/// The target systems of this process, and the tools on its machine.
pub struct Targets {
    kubernetes: Option<Arc<dyn Kubernetes>>,
    promtool: Promtool,
}

impl Targets {
    /// Those of the configuration for a run of this mode: the sandbox, if there is one, or real ones.
    pub fn new(config: &Config, sandbox: Option<&Path>, mode: Mode) -> anyhow::Result<Self> {
        let sandbox = sandbox.or(config.sandbox.as_ref().map(|sandbox| sandbox.directory.as_path()));
        let kubernetes: Option<Arc<dyn Kubernetes>> = match (sandbox, &config.kubernetes) {
            (Some(folder), _) => Some(Arc::new(Sandbox::new(PathBuf::from(folder)))),
            (None, Some(table)) => Some(Arc::new(real(config, table, mode)?)),
            (None, None) => None,
        };
        let path = std::env::var_os("PATH");
        let promtool = Promtool::new(promtool::find(config.promtool.path.as_deref(), path.as_deref()));
        Ok(Self { kubernetes, promtool })
    }

    /// These clusters, and this promtool.
    #[cfg(test)]
    pub fn of(kubernetes: Arc<dyn Kubernetes>, promtool: Promtool) -> Self {
        Self { kubernetes: Some(kubernetes), promtool }
    }

    /// Targets of commands that only look at data: whoever asks them gets an error.
    pub fn none() -> Self {
        let nobody = "a command that only looks at data has no use for it".to_owned();
        Self { kubernetes: Some(Arc::new(Nowhere)), promtool: Promtool::new(Err(nobody)) }
    }

    /// The program that checks rules of Prometheus. Whether there is one is told when it is asked.
    pub fn promtool(&self) -> &Promtool {
        &self.promtool
    }

    /// Clusters.
    pub fn kubernetes(&self) -> Result<&Arc<dyn Kubernetes>, UsageError> {
        self.kubernetes.as_ref().ok_or_else(|| {
            UsageError(
                "no target is configured: pass `--sandbox DIR`, or set `sandbox.directory` or `[kubernetes]` in the configuration"
                    .to_owned(),
            )
        })
    }
}

/// How a certificate begins in a file.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Real clusters, as the configuration says.
fn real(config: &Config, table: &KubernetesTable, mode: Mode) -> anyhow::Result<Clusters> {
    let usual = table.usual();
    let mut named = BTreeMap::new();
    for (name, cluster) in &table.clusters {
        named.insert(name.clone(), cluster_settings(cluster, &usual)?);
    }
    let otherwise = cluster_settings(&ClusterTable::default(), &usual)?;
    let servers =
        table.clusters.iter().filter_map(|(name, table)| Some((name.clone(), table.server.clone()?)));
    let tokens = Arc::new(StoredTokens { secrets: secrets(config, mode)?, servers: servers.collect() });
    let permit = ReadPermit::for_targets(mode);
    let known = KnownClusters { named, otherwise };
    Ok(Clusters::new(&permit, Settings::default(), tokens, known))
}

fn cluster_settings(own: &ClusterTable, usual: &ClusterTable) -> anyhow::Result<ClusterSettings> {
    let mut settings = ClusterSettings::default();
    if let Some(file) = own.ca.as_ref().or(usual.ca.as_ref()) {
        let pem = std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
        if !pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
            bail!("there is no certificate in `{}`", file.display());
        }
        settings.ca = Some(pem);
    }
    if let Some(rate) = own.requests_per_second.or(usual.requests_per_second) {
        settings.per_second = rate;
    }
    settings.rehearses = own.validate_in_dry_run.or(usual.validate_in_dry_run).unwrap_or_default();
    Ok(settings)
}

/// Where secrets are kept: in Vault, or in the tables of the configuration.
fn secrets(config: &Config, mode: Mode) -> anyhow::Result<Arc<dyn Reader>> {
    let Some(table) = &config.vault else { return Ok(Arc::new(Tables::new(config.tables()))) };
    let server = Url::parse(&table.server).context("`vault.server` is no address")?;
    let http = Http::new(&ReadPermit::for_targets(mode), Settings::default())?;
    Ok(Arc::new(Vault::new(&http, VaultSettings::new(server, table.login()?))))
}

/// Tokens from the store of secrets.
struct StoredTokens {
    secrets: Arc<dyn Reader>,
    /// Servers that the operator names, by cluster.
    servers: BTreeMap<String, String>,
}

impl Tokens for StoredTokens {
    fn token<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
    ) -> BoxFuture<'a, Result<Token, String>> {
        async move {
            let TokenRef { path, field, version } =
                cluster.token.as_ref().ok_or("the data names no `automationToken`")?;
            let version = version.map(|version| version.unsigned_abs().into());
            let fields =
                self.secrets.read_all(permit, path, version).await.map_err(|error| error.to_string())?;
            let secret =
                fields.get(field).cloned().ok_or_else(|| format!("`{path}` has no field `{field}`"))?;
            let beside = || fields.get("server").map(|server| server.expose().to_owned());
            let server = self.servers.get(&cluster.name).cloned().or_else(beside);
            Ok(Token { secret, server })
        }
        .boxed()
    }
}
