//! The target systems: real ones, or the sandbox.

mod clusters;
mod kubeconfig;
mod lazy_secrets;
mod modes;
mod no_clusters;
mod queues;
mod sandbox;
mod stores;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use lazy_secrets::LazySecrets;
use no_clusters::NoClusters;
use qontract_access::{Mode, ReadPermit};
use qontract_client_blobs::{Blobs, StateStore};
use qontract_client_http::{Http, Secret, Settings, Url};
use qontract_client_kubernetes::{Kubernetes, Sandbox};
use qontract_client_prometheus::{Prometheus, PrometheusLogin};
use qontract_client_promtool::{self as promtool, Promtool};
use qontract_client_queue::Queue;
use qontract_client_secrets::{ConfigSecrets, SecretReader, Secrets, Vault, VaultSettings};
use qontract_config::{Config, ConfigError, FleetTable, PrometheusTable, TemplatesTable, VaultTable};
use qontract_objects::templates::{ExternalLookups, HttpLookups};
use qontract_runtime::process::{Program, StderrLog};
use qontract_telemetry::log::Log;
use sandbox::SandboxFolders;

use crate::exit::UsageError;
use crate::program_log::ProgramLog;
use crate::sandbox_folder;
use crate::simulation;

pub use clusters::RealClusters;
pub use modes::ClientModes;
pub use queues::QueueStores;
pub use sandbox::made_up_secrets;
pub use stores::{BlobStores, state_settings};

/// The target systems of this process, the sources that templates read, and the external tools.
pub struct Targets {
    kubernetes: Option<Arc<dyn Kubernetes>>,
    secrets: Arc<dyn Secrets>,
    stores: BlobStores,
    queues: QueueStores,
    lookups: Arc<ExternalLookups>,
    promtool: Promtool,
    fleet: FleetTable,
    prometheus: Option<PrometheusTable>,
    /// The sandbox directory, if a sandbox is used.
    sandbox: Option<PathBuf>,
    mode: Mode,
    /// Log for the stderr of process integrations.
    stderr_log: Option<Arc<dyn StderrLog>>,
}

/// The location of a sandbox and of its data repo.
#[derive(Clone, Copy, Debug)]
pub struct SandboxLocation<'a> {
    /// The sandbox directory, if the command line requests one.
    pub folder: Option<&'a Path>,
    /// The data repo, which may contain made-up secrets for the sandbox.
    pub repo: Option<&'a Path>,
}

/// The clients of all target systems, and the tools, as arguments of [`Targets::of`].
pub struct TargetClients {
    /// The client of the clusters.
    pub kubernetes: Arc<dyn Kubernetes>,
    /// The client of the secret store.
    pub secrets: Arc<dyn Secrets>,
    /// The store that is used for every bucket and for the state store.
    pub blobs: Arc<dyn Blobs>,
    /// The queue that is used for every name.
    pub queue: Arc<dyn Queue>,
    /// The program that checks Prometheus rules.
    pub promtool: Promtool,
}

impl Targets {
    /// Creates the targets of the configuration: the sandbox, if one is used, or real targets. `mode` is the mode of
    /// the run for all clients, or a separate mode for each client.
    pub fn new(
        config: &Config,
        sandbox: SandboxLocation<'_>,
        modes: impl Into<ClientModes>,
    ) -> anyhow::Result<Self> {
        let modes = modes.into();
        let folder = config.sandbox_folder(sandbox.folder);
        if folder.is_none() {
            simulation::refuse()?;
        }
        folder.map(sandbox_folder::check).transpose()?;
        let secrets: Arc<dyn Secrets> = Arc::new(match folder {
            Some(folder) => sandbox_secret_store(config, folder, sandbox.repo, modes),
            None => configured_secret_store(config, modes.secrets),
        });
        let kubernetes: Option<Arc<dyn Kubernetes>> = match (folder, &config.kubernetes) {
            (Some(folder), _) => {
                let permit = ReadPermit::for_targets(modes.kubernetes);
                let sandbox = Sandbox::new(PathBuf::from(folder)).for_run(&permit);
                Some(match simulation::kill_after()? {
                    Some(writes) => Arc::new(sandbox.aborting_after(writes)),
                    None => Arc::new(sandbox),
                })
            }
            (None, Some(table)) => {
                let permit = ReadPermit::for_targets(modes.kubernetes);
                let clusters = RealClusters::new(table.clone(), Arc::clone(&secrets) as _);
                Some(Arc::new(clusters.client(&permit, Settings::default())))
            }
            (None, None) => None,
        };
        let permit = ReadPermit::for_targets(modes.blobs);
        let stores = match folder {
            Some(folder) => BlobStores::in_sandbox(&permit, folder),
            None => BlobStores::in_buckets(&permit, config.targets.clone(), Arc::clone(&secrets) as _),
        };
        let permit = ReadPermit::for_targets(modes.queue);
        let queues = match folder {
            Some(folder) => QueueStores::in_sandbox(&permit, folder, &config.targets),
            None => QueueStores::configured(&permit, &config.targets, Arc::clone(&secrets) as _),
        };
        let path = std::env::var_os("PATH");
        let promtool = Promtool::new(promtool::find(config.promtool.path.as_deref(), path.as_deref()));
        let sandbox =
            folder.map(std::path::absolute).transpose().context("the working directory does not exist")?;
        let lookups = Arc::new(external_lookups(config, Arc::clone(&secrets) as _, modes.lookups));
        Ok(Self {
            kubernetes,
            secrets,
            stores,
            queues,
            lookups,
            promtool,
            fleet: config.fleet.clone(),
            // A sandbox stands in for all targets.
            prometheus: config.targets.prometheus.clone().filter(|_| folder.is_none()),
            sandbox,
            mode: modes.kubernetes,
            stderr_log: None,
        })
    }

    /// Sets the log for the stderr of process integrations.
    #[must_use]
    pub fn with_log(mut self, log: &Arc<Log>) -> Self {
        self.stderr_log = Some(Arc::new(ProgramLog(Arc::clone(log))));
        self
    }

    /// Sets up the program of a process integration for these targets.
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

    /// Creates targets with these clients.
    pub fn of(clients: TargetClients) -> Self {
        let TargetClients { kubernetes, secrets, blobs, queue, promtool } = clients;
        let lookups = Arc::new(ExternalLookups::secrets(Arc::clone(&secrets) as _));
        Self {
            kubernetes: Some(kubernetes),
            secrets,
            stores: BlobStores::of(blobs),
            queues: QueueStores::of(queue),
            lookups,
            promtool,
            fleet: FleetTable::default(),
            prometheus: None,
            sandbox: None,
            mode: Mode::DryRun,
            stderr_log: None,
        }
    }

    /// Creates the targets of commands that only read data: every use is an error.
    pub fn none() -> Self {
        let unused = "a command that only reads data does not use it".to_owned();
        let secrets: Arc<dyn Secrets> = Arc::new(ConfigSecrets::new(toml::Table::new()));
        Self {
            kubernetes: Some(Arc::new(NoClusters)),
            lookups: Arc::new(ExternalLookups::secrets(Arc::clone(&secrets) as _)),
            secrets,
            stores: BlobStores::unused(),
            queues: QueueStores::unused(),
            promtool: Promtool::new(Err(unused)),
            fleet: FleetTable::default(),
            prometheus: None,
            sandbox: None,
            mode: Mode::DryRun,
            stderr_log: None,
        }
    }

    /// The program that checks Prometheus rules. If the program is not installed, its use fails.
    pub fn promtool(&self) -> &Promtool {
        &self.promtool
    }

    /// The commands that pods run and that are not part of this binary.
    pub fn fleet(&self) -> &FleetTable {
        &self.fleet
    }

    /// The Prometheus server with the metrics of the loops, if one is configured.
    pub fn prometheus(&self) -> anyhow::Result<Option<Prometheus>> {
        let Some(table) = &self.prometheus else { return Ok(None) };
        let url = Url::parse(&table.url)
            .map_err(|error| ConfigError::new(format!("`targets.prometheus.url` is not a URL: {error}")))?;
        let token = table.token.as_ref().map(|token| PrometheusLogin::Token(Secret::new(token.clone())));
        let http = Http::new(&ReadPermit::for_targets(self.mode), Settings::default())?;
        Ok(Some(Prometheus::new(&http, url, &token.unwrap_or(PrometheusLogin::None))))
    }

    /// The sources that templates may read: secrets, and the allow-list of the configuration.
    pub fn lookups(&self) -> &Arc<ExternalLookups> {
        &self.lookups
    }

    /// The secret store. In a sandbox, only secrets that are stored in the sandbox can be written; a configured
    /// secret store is never written from a sandbox.
    pub fn secrets(&self) -> &Arc<dyn Secrets> {
        &self.secrets
    }

    /// The bucket that the configuration lists as `targets.blobs.NAME`, opened by the first call. Fails if the
    /// configuration does not list it. In a sandbox, every name is a directory.
    pub fn blobs(&self, name: &str) -> anyhow::Result<Arc<dyn Blobs>> {
        self.stores.blobs(name)
    }

    /// The queue that the configuration lists as `targets.queue.NAME`, opened by the first call. Fails if the
    /// configuration does not list it. In a sandbox, every name is a directory.
    pub fn queue(&self, name: &str) -> anyhow::Result<Arc<dyn Queue>> {
        self.queues.queue(name)
    }

    /// The state store of an integration, opened by the first call. Fails if no state store is configured.
    pub fn state(&self, integration: &str) -> anyhow::Result<StateStore> {
        Ok(StateStore::new(self.stores.state()?, integration))
    }

    /// The clusters. Fails if no target is configured.
    pub fn kubernetes(&self) -> Result<&Arc<dyn Kubernetes>, UsageError> {
        self.kubernetes.as_ref().ok_or_else(|| {
            UsageError(
                "no target is configured: pass `--sandbox DIR`, or set `sandbox.directory` or `[kubernetes]` in the configuration"
                    .to_owned(),
            )
        })
    }
}

/// The secret store: Vault, or the tables of the configuration.
pub fn secret_store(config: &Config, mode: Mode) -> anyhow::Result<Arc<dyn Secrets>> {
    let Some(table) = &config.vault else { return Ok(Arc::new(ConfigSecrets::new(config.secret_tables()))) };
    let (http, server) = vault_http(table, mode, Settings::default())?;
    Ok(Arc::new(Vault::new(&http, VaultSettings::new(server, table.login()?))))
}

/// The secret store that holds the key of the journal's bucket, opened by the first use.
pub fn journal_secrets(config: &Config) -> Arc<dyn SecretReader> {
    Arc::new(configured_secret_store(config, Mode::DryRun))
}

/// The HTTP client for Vault and the URL of Vault.
pub fn vault_http(table: &VaultTable, mode: Mode, limits: Settings) -> anyhow::Result<(Http, Url)> {
    let server = Url::parse(&table.server)
        .map_err(|error| ConfigError::new(format!("`vault.server` is not a URL: {error}")))?;
    Ok((Http::new(&ReadPermit::for_targets(mode), limits)?, server))
}

/// The secret store of the configuration, opened by the first use.
fn configured_secret_store(config: &Config, mode: Mode) -> LazySecrets {
    let config = config.clone();
    LazySecrets::new(move || secret_store(&config, mode))
}

/// The secret store of a sandbox: the file in the sandbox, or the configured store. The configured store is opened
/// for a dry run, so that no write leaves the sandbox.
fn sandbox_secret_store(
    config: &Config,
    folder: &Path,
    repo: Option<&Path>,
    modes: ClientModes,
) -> LazySecrets {
    if config.vault.is_some() || !config.secret_tables().is_empty() {
        return configured_secret_store(config, Mode::DryRun);
    }
    let permit = ReadPermit::for_targets(modes.secrets);
    let (folders, repo) = (SandboxFolders::new(folder), repo.map(Path::to_owned));
    LazySecrets::new(move || Ok(Arc::new(folders.secret_store(&permit, repo.as_deref())?)))
}

/// The sources that templates may read. The settings of the sources are read by the first lookup of an address, and
/// the HTTP client is created only if the allow-list is not empty.
fn external_lookups(config: &Config, secrets: Arc<dyn SecretReader>, mode: Mode) -> ExternalLookups {
    let templates = config.templates.clone();
    ExternalLookups::on_demand(secrets, move || {
        http_lookups(&templates, mode).map_err(|error| format!("{error:#}"))
    })
}

/// The lookups over HTTP that the configuration allows; `None` if it allows none.
fn http_lookups(templates: &TemplatesTable, mode: Mode) -> anyhow::Result<Option<HttpLookups>> {
    let allowed = templates.allowed()?;
    let deadline = allowed.limits.deadline;
    let settings = Settings {
        deadline,
        attempt_timeout: deadline / 2,
        retries: 2,
        max_body_bytes: allowed.limits.max_bytes,
        ..Settings::default()
    };
    let http = Http::new(&ReadPermit::for_targets(mode), settings)?;
    Ok(Some(HttpLookups { allowed, http }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
