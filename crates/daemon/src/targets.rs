//! The target systems: real ones, or the sandbox.

mod kubeconfig;
mod no_clusters;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kubeconfig::KubeconfigToken;
use no_clusters::NoClusters;
use qontract_access::{Mode, ReadPermit};
use qontract_bundle::repo::{FileReadError, RepoError};
use qontract_bundle::{Layout, Repo};
use qontract_client_http::{Http, Settings, Url};
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, ClusterSettingsMap, ClusterToken, Clusters, Kubernetes, Sandbox, TokenError,
    TokenRef, TokenSource,
};
use qontract_client_promtool::{self as promtool, Promtool};
use qontract_client_secrets::{ConfigSecrets, SecretReader, SecretsError, Vault, VaultSettings};
use qontract_config::{ClusterTable, Config, ConfigError, KubernetesTable, VaultTable};
use qontract_objects::templates::ExternalLookups;
use qontract_runtime::process::{Program, StderrLog};
use qontract_telemetry::log::Log;

use crate::exit::UsageError;
use crate::program_log::ProgramLog;

/// The target systems of this process, the sources that its templates read, and its external tools.
pub struct Targets {
    kubernetes: Option<Arc<dyn Kubernetes>>,
    lookups: Arc<ExternalLookups>,
    promtool: Promtool,
    /// The sandbox directory, if there is one.
    sandbox: Option<PathBuf>,
    mode: Mode,
    /// Log for the stderr of process integrations.
    stderr_log: Option<Arc<dyn StderrLog>>,
}

/// The location of a sandbox, and its data repo.
#[derive(Clone, Copy, Debug)]
pub struct SandboxLocation<'a> {
    /// The sandbox directory, if one is requested.
    pub folder: Option<&'a Path>,
    /// The data repo, which may contain made-up secrets for sandboxes.
    pub repo: Option<&'a Path>,
}

/// File of made-up secrets in a sandbox directory.
const SECRETS_FILE: &str = "secrets.toml";

/// File of made-up secrets in a data repo.
const REPO_SECRETS_FILE: &str = "sandbox/secrets.toml";

impl Targets {
    /// The targets of the configuration for a run of this mode: the sandbox, if there is one, or real ones.
    pub fn new(config: &Config, sandbox: SandboxLocation<'_>, mode: Mode) -> anyhow::Result<Self> {
        let folder = config.sandbox_folder(sandbox.folder);
        let mut secrets = secret_store(config, mode)?;
        let kubernetes: Option<Arc<dyn Kubernetes>> = match (folder, &config.kubernetes) {
            (Some(folder), _) => {
                if config.vault.is_none() && config.secret_tables().is_empty() {
                    secrets = Arc::new(ConfigSecrets::new(sandbox_secrets(folder, sandbox.repo)?));
                }
                Some(Arc::new(Sandbox::new(PathBuf::from(folder))))
            }
            (None, Some(table)) => Some(Arc::new(real_clusters(table, mode, Arc::clone(&secrets))?)),
            (None, None) => None,
        };
        let path = std::env::var_os("PATH");
        let promtool = Promtool::new(promtool::find(config.promtool.path.as_deref(), path.as_deref()));
        let sandbox =
            folder.map(std::path::absolute).transpose().context("the working directory does not exist")?;
        let lookups = Arc::new(external_lookups(config, secrets, mode)?);
        Ok(Self { kubernetes, lookups, promtool, sandbox, mode, stderr_log: None })
    }

    /// Logs the stderr of process integrations to this log.
    #[must_use]
    pub fn with_log(mut self, log: &Arc<Log>) -> Self {
        self.stderr_log = Some(Arc::new(ProgramLog(Arc::clone(log))));
        self
    }

    /// The program of a process integration, set up for these targets.
    pub fn program(&self, program: Program) -> Program {
        Program { sandbox: self.sandbox.clone(), stderr_log: self.stderr_log.clone(), ..program }
    }

    /// Whether runs may change the targets.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Log for the output of programs.
    pub fn program_log(&self) -> Option<Arc<dyn StderrLog>> {
        self.stderr_log.clone()
    }

    /// Whether the target is a sandbox.
    pub fn is_sandbox(&self) -> bool {
        self.sandbox.is_some()
    }

    /// The given clusters and promtool, with the made-up secrets of a data repo.
    pub fn of(kubernetes: Arc<dyn Kubernetes>, promtool: Promtool, repo: &Path) -> anyhow::Result<Self> {
        let secrets = Arc::new(ConfigSecrets::new(sandbox_secrets(Path::new("nowhere"), Some(repo))?));
        let lookups = Arc::new(ExternalLookups::secrets(secrets));
        Ok(Self {
            kubernetes: Some(kubernetes),
            lookups,
            promtool,
            sandbox: None,
            mode: Mode::DryRun,
            stderr_log: None,
        })
    }

    /// Targets of commands that only read data: every use is an error.
    pub fn none() -> Self {
        let unused = "a command that only reads data does not use it".to_owned();
        let (secrets, promtool) =
            (Arc::new(ConfigSecrets::new(toml::Table::new())), Promtool::new(Err(unused)));
        let lookups = Arc::new(ExternalLookups::secrets(secrets));
        Self {
            kubernetes: Some(Arc::new(NoClusters)),
            lookups,
            promtool,
            sandbox: None,
            mode: Mode::DryRun,
            stderr_log: None,
        }
    }

    /// The program that checks Prometheus rules. If it is missing, its use fails.
    pub fn promtool(&self) -> &Promtool {
        &self.promtool
    }

    /// The sources that templates may read: secrets, and the allow-list of the configuration.
    pub fn lookups(&self) -> &Arc<ExternalLookups> {
        &self.lookups
    }

    /// The clusters; an error if no target is configured.
    pub fn kubernetes(&self) -> Result<&Arc<dyn Kubernetes>, UsageError> {
        self.kubernetes.as_ref().ok_or_else(|| {
            UsageError(
                "no target is configured: pass `--sandbox DIR`, or set `sandbox.directory` or `[kubernetes]` in the configuration"
                    .to_owned(),
            )
        })
    }
}

/// The first line of a PEM certificate.
const PEM_HEADER: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The real clusters of the configuration.
fn real_clusters(
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
            let key = format!("kubernetes.clusters.{name}");
            let mut settings = cluster_settings(cluster, &defaults, &key)?;
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
        let default = cluster_settings(&ClusterTable::default(), &defaults, "kubernetes")?;
        let tokens = Arc::new(StoredTokens { secrets, servers, logins });
        Ok(Self { settings: ClusterSettingsMap { by_name, default }, tokens })
    }
}

/// The settings of a cluster; `key` is its key in the configuration.
fn cluster_settings(
    own: &ClusterTable,
    defaults: &ClusterTable,
    key: &str,
) -> Result<ClusterSettings, ConfigError> {
    let mut settings = ClusterSettings::default();
    let default_key = "kubernetes".to_owned();
    let ca = own
        .ca
        .as_ref()
        .map(|file| (file, key.to_owned()))
        .or(defaults.ca.as_ref().map(|file| (file, default_key)));
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

/// The secret store: Vault, or the tables of the configuration.
pub fn secret_store(config: &Config, mode: Mode) -> anyhow::Result<Arc<dyn SecretReader>> {
    let Some(table) = &config.vault else { return Ok(Arc::new(ConfigSecrets::new(config.secret_tables()))) };
    let (http, server) = vault_http(table, mode, Settings::default())?;
    Ok(Arc::new(Vault::new(&http, VaultSettings::new(server, table.login()?))))
}

/// The HTTP client for Vault, and its URL.
pub fn vault_http(table: &VaultTable, mode: Mode, limits: Settings) -> anyhow::Result<(Http, Url)> {
    let server = Url::parse(&table.server)
        .map_err(|error| ConfigError::new(format!("`vault.server` is not a URL: {error}")))?;
    Ok((Http::new(&ReadPermit::for_targets(mode), limits)?, server))
}

/// The sources that templates may read. The HTTP client is created only if the allow-list is not empty.
fn external_lookups(
    config: &Config,
    secrets: Arc<dyn SecretReader>,
    mode: Mode,
) -> anyhow::Result<ExternalLookups> {
    let allowed = config.templates.allowed()?;
    if allowed.is_empty() {
        return Ok(ExternalLookups::secrets(secrets));
    }
    let deadline = allowed.limits.deadline;
    let settings = Settings {
        deadline,
        attempt_timeout: deadline / 2,
        retries: 2,
        max_body_bytes: allowed.limits.max_bytes,
        ..Settings::default()
    };
    let http = Http::new(&ReadPermit::for_targets(mode), settings)?;
    Ok(ExternalLookups::with_allow_list(secrets, allowed, http))
}

/// The made-up secrets of a sandbox: its own, else those of the data repo.
fn sandbox_secrets(folder: &Path, repo: Option<&Path>) -> anyhow::Result<toml::Table> {
    let own = folder.join(SECRETS_FILE);
    let (file, text) = if own.is_file() {
        let text =
            std::fs::read_to_string(&own).with_context(|| format!("cannot read `{}`", own.display()))?;
        (own, text)
    } else {
        let Some(repo) = repo else { return Ok(toml::Table::new()) };
        let Some(text) = repo_secrets(repo)? else { return Ok(toml::Table::new()) };
        (repo.join(REPO_SECRETS_FILE), text)
    };
    // The content is not quoted: the file might hold real secrets by mistake.
    text.parse().map_err(|_| anyhow::anyhow!("`{}` is not valid TOML", file.display()))
}

/// The made-up secrets of a data repo, if there are any. The file is read like every file of a data repo:
/// links that leave the data repo and files that are too large are refused.
fn repo_secrets(repo: &Path) -> anyhow::Result<Option<String>> {
    let cannot = || format!("cannot read `{}`", repo.join(REPO_SECRETS_FILE).display());
    let file = match Repo::directory(repo, Layout::default()).file(REPO_SECRETS_FILE) {
        Err(RepoError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
        Ok(Err(finding)) => bail!("{}: {}", cannot(), finding.message),
        Ok(Ok(file)) => file,
    };
    let bytes = match file.read() {
        Ok(bytes) => bytes.into_owned(),
        Err(error @ FileReadError::TooLarge(_)) => bail!("{}: {error}", cannot()),
        Err(error) => return Err(error).with_context(cannot),
    };
    String::from_utf8(bytes).map(Some).map_err(|_| anyhow::anyhow!("{}: it is not UTF-8", cannot()))
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

#[cfg(test)]
mod tests {
    use qontract_testkit::Scratch;

    use super::*;

    #[test]
    fn secrets_of_a_sandbox_are_its_own_else_those_of_the_data_repo() {
        let scratch = Scratch::new();
        let (folder, repo) = (scratch.path().join("box"), scratch.path().join("repo"));
        let read = |repo: Option<&Path>| sandbox_secrets(&folder, repo);
        let keys = |repo| read(repo).expect("secrets").keys().cloned().collect::<Vec<_>>();
        assert_eq!((keys(None), keys(Some(&repo))), (Vec::new(), Vec::new()));
        scratch.write("repo/sandbox/secrets.toml", "[of-repo]\n");
        assert_eq!((keys(None), keys(Some(&repo))), (Vec::new(), vec!["of-repo".to_owned()]));
        scratch.write("box/secrets.toml", "[own]\n");
        assert_eq!(keys(Some(&repo)), ["own"]);
        scratch.write("box/secrets.toml", "token = hunter2");
        let error = format!("{:#}", read(None).expect_err("invalid TOML"));
        assert!(error.ends_with("is not valid TOML") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_sandbox_replaces_real_targets() {
        let config: Config = toml::from_str("[kubernetes]\n").expect("a configuration");
        let at = |folder| SandboxLocation { folder, repo: None };
        let is_sandbox =
            |folder| Targets::new(&config, at(folder), Mode::DryRun).expect("targets").is_sandbox();
        assert!(is_sandbox(Some(Path::new("box"))));
        let none = Targets::new(&Config::default(), at(None), Mode::DryRun).expect("targets");
        assert!(none.kubernetes().is_err());
    }
}
