//! The operator's configuration: `config.toml`, with the names that the established runtime reads, and our own.

pub mod environment;
pub mod keys;
mod location;
pub mod ownership;
mod read;
mod usage;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::SignedDuration;
use qontract_client_http::Url;
use qontract_client_secrets::{Login, Secret, SecretRef};
use qontract_diagnostics::MessageSink;
use qontract_objects::templates::{Allowed, Limits};
use qontract_runtime::guard::{Budget, Budgets, KeyLimits};
use qontract_runtime::process::Program;
use serde::Deserialize;

pub use environment::variable;
pub use location::{IgnoreReason, IgnoredFile, Location};
pub use read::ConfigError;
pub use usage::UsageError;

/// The configuration. Tables that are not named here belong to others.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Config {
    /// The server that has the data.
    #[serde(default)]
    pub graphql: Option<Graphql>,
    /// A folder in place of every target system.
    #[serde(default)]
    pub sandbox: Option<SandboxFolder>,
    /// Integrations of the process form, by name.
    #[serde(default)]
    pub integrations: BTreeMap<String, Registered>,
    /// How much may be removed without approval.
    #[serde(default)]
    pub guards: Guards,
    /// Where secrets are kept; without it, in this file.
    #[serde(default)]
    pub vault: Option<VaultTable>,
    /// Real clusters. Without it none is spoken to.
    #[serde(default)]
    pub kubernetes: Option<KubernetesTable>,
    /// Where promtool is; without it, on the `PATH`.
    #[serde(default)]
    pub promtool: PromtoolTable,
    /// What templates may reach besides secrets and the data.
    #[serde(default)]
    pub templates: TemplatesTable,
    /// Everything else: the store of secrets where there is no other.
    #[serde(flatten)]
    store: Store,
}

/// A Vault, and how we are let in: by a token, by a role with its password, or as a pod.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultTable {
    /// Its address.
    pub server: String,
    token: Option<String>,
    role_id: Option<String>,
    secret_id: Option<String>,
    kube_auth_role: Option<String>,
    kube_auth_mount: Option<String>,
}

impl std::fmt::Debug for VaultTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultTable").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Where Kubernetes puts the token of a pod.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl VaultTable {
    /// How we are let in.
    pub fn login(&self) -> anyhow::Result<Login> {
        let secret = |text: &Option<String>| text.as_deref().map(Secret::new);
        if let (Some(role_id), Some(secret_id)) = (secret(&self.role_id), secret(&self.secret_id)) {
            return Ok(Login::AppRole { mount: "approle".to_owned(), role_id, secret_id });
        }
        if let Some(role) = self.kube_auth_role.clone() {
            let mount = self.kube_auth_mount.clone().unwrap_or_else(|| "kubernetes".to_owned());
            let token_file = variable("KUBE_SA_TOKEN_PATH").unwrap_or_else(|| POD_TOKEN.to_owned()).into();
            return Ok(Login::Kubernetes { mount, role, token_file });
        }
        secret(&self.token).map(Login::Token).context(
            "`[vault]` says how we are let in: `token`, `role_id` and `secret_id`, or `kube_auth_role`",
        )
    }
}

/// Real clusters, and how they are spoken to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTable {
    /// As of a cluster, for those that do not say otherwise.
    pub ca: Option<PathBuf>,
    requests_per_second: Option<NonZeroU32>,
    validate_in_dry_run: Option<bool>,
    /// Clusters by their names in the data.
    #[serde(default)]
    pub clusters: BTreeMap<String, ClusterTable>,
}

impl KubernetesTable {
    /// What holds for clusters that do not say otherwise.
    pub fn usual(&self) -> ClusterTable {
        let Self { ca, requests_per_second, validate_in_dry_run, clusters: _ } = self.clone();
        ClusterTable { ca, requests_per_second, validate_in_dry_run, ..ClusterTable::default() }
    }
}

/// How a cluster is spoken to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterTable {
    /// Its server: if it is given, the token goes to no other.
    pub server: Option<String>,
    /// A file with the certificates of those who may vouch for it, besides those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How many requests it gets per second.
    pub requests_per_second: Option<NonZeroU32>,
    /// Whether dry runs ask it if it would take what is planned.
    pub validate_in_dry_run: Option<bool>,
    /// A kubeconfig that has its server, CA and credentials, instead of the token that the data names.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current one.
    pub context: Option<String>,
}

/// The program that checks rules of Prometheus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromtoolTable {
    /// Its path.
    pub path: Option<PathBuf>,
}

/// What templates may reach besides secrets and the data: what is named here, and by default nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TemplatesTable {
    /// Addresses that `url` may ask: those that end with a slash stand for all below them.
    allow_urls: Vec<String>,
    /// Repositories that `github` may read, as `owner/name` or `owner/*`.
    allow_github: Vec<String>,
    /// Where GitHub is asked.
    github_api: String,
    /// The secret that GitHub is shown.
    github_token: Option<SecretTable>,
    /// Buckets that `s3` and `s3_ls` may read, as `account/bucket`.
    pub allow_s3: Vec<String>,
    /// Another server than the vendor's.
    pub s3_endpoint: Option<String>,
    /// How long a look-up may take.
    deadline_seconds: u64,
    /// How many bytes it may bring.
    largest_bytes: usize,
}

impl Default for TemplatesTable {
    fn default() -> Self {
        let Limits { deadline, largest } = Limits::default();
        Self {
            allow_urls: Vec::new(),
            allow_github: Vec::new(),
            github_api: "https://api.github.com".to_owned(),
            github_token: None,
            allow_s3: Vec::new(),
            s3_endpoint: None,
            deadline_seconds: deadline.as_secs(),
            largest_bytes: largest,
        }
    }
}

impl TemplatesTable {
    /// What may be reached.
    pub fn allowed(&self) -> anyhow::Result<Allowed> {
        let address = |setting: &str, text: &str| {
            Url::parse(text).with_context(|| format!("`templates.{setting}` is no address"))
        };
        let api = address("github_api", &self.github_api)?;
        let allowed = Allowed::new(&self.allow_urls, &self.allow_github, &self.allow_s3, api);
        let mut allowed = allowed.map_err(|why| anyhow!(why))?;
        let token = self.github_token.as_ref();
        allowed.github_token = token.map(|SecretTable { path, field }| SecretRef::new(path, field));
        let endpoint = self.s3_endpoint.as_deref().map(|text| {
            text.parse().map_err(|error| UsageError(format!("`templates.s3_endpoint`: {error}")))
        });
        allowed.s3_endpoint = endpoint.transpose()?;
        allowed.limits =
            Limits { deadline: Duration::from_secs(self.deadline_seconds), largest: self.largest_bytes };
        Ok(allowed)
    }
}

/// Where a secret is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    path: String,
    field: String,
}

/// The server that has the data.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graphql {
    /// Its address: `http://host:port/graphql`.
    pub server: String,
    /// What is sent as `Authorization`.
    pub token: Option<String>,
}

impl std::fmt::Debug for Graphql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graphql").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A folder in place of every target system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFolder {
    /// The folder.
    pub directory: PathBuf,
}

/// An integration of the process form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registered {
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// Variables of our environment that it gets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables that it gets only to plan and to apply, whose values are secret.
    #[serde(default)]
    pub secret_environment: Vec<String>,
    /// Variables that it gets only to apply a step, whose values are secret.
    #[serde(default)]
    pub write_environment: Vec<String>,
    /// How long one answer may take.
    #[serde(default = "usual_deadline")]
    pub deadline_seconds: u64,
}

fn usual_deadline() -> u64 {
    60
}

impl Registered {
    /// How it is started.
    pub fn program(&self) -> Program {
        let values = |names: &[String]| {
            names.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect()
        };
        Program {
            command: self.command.clone(),
            environment: values(&self.environment),
            secret_environment: values(&self.secret_environment),
            write_environment: values(&self.write_environment),
            deadline: Duration::from_secs(self.deadline_seconds),
            ..Program::default()
        }
    }
}

/// How much may be removed without approval.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guards {
    shard_removals: Option<usize>,
    shard_percent: Option<usize>,
    caller_removals: Option<usize>,
    caller_percent: Option<usize>,
    #[serde(alias = "run_removals")]
    integration_removals: Option<usize>,
    #[serde(alias = "run_percent")]
    integration_percent: Option<usize>,
    /// How long a removal counts.
    window_hours: Option<NonZeroU32>,
    /// When a change counts as a removal.
    #[serde(default)]
    keys: GuardKeys,
}

/// How many keys an object may lose until the change counts as a removal.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardKeys {
    /// So many keys.
    count: Option<usize>,
    /// So many of a hundred keys.
    percent: Option<usize>,
    /// Whether a list that loses all of its items counts.
    lists: Option<bool>,
}

impl Guards {
    /// The budgets.
    pub fn budgets(self) -> Budgets {
        let usual = Budgets::default();
        let budget = |count: Option<usize>, percent: Option<usize>, usual: Budget| Budget {
            count: count.unwrap_or(usual.count),
            percent: percent.unwrap_or(usual.percent),
        };
        Budgets {
            shard: budget(self.shard_removals, self.shard_percent, usual.shard),
            caller: budget(self.caller_removals, self.caller_percent, usual.caller),
            integration: budget(self.integration_removals, self.integration_percent, usual.integration),
            window: self
                .window_hours
                .map_or(usual.window, |hours| SignedDuration::from_hours(i64::from(hours.get()))),
            keys: KeyLimits {
                count: self.keys.count.unwrap_or(usual.keys.count),
                percent: self.keys.percent.unwrap_or(usual.keys.percent),
                lists: self.keys.lists.unwrap_or(usual.keys.lists),
            },
        }
    }
}

/// Tables of secrets. They do not print.
#[derive(Clone, Default, Deserialize)]
struct Store(toml::Table);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Config {
    /// The server that has the data: the one that a word names by its address, or without a word, the configured one. The
    /// token is the configured one if it is for that server, or `$QONTRACT_SERVER_TOKEN`.
    pub fn server(&self, word: Option<&str>) -> Option<Graphql> {
        let Some(word) = word else { return self.graphql.clone() };
        if !word.starts_with("http://") && !word.starts_with("https://") {
            return None;
        }
        let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
        let has_path = rest.split_once('/').is_some_and(|(_, path)| !path.is_empty());
        let server =
            if has_path { word.to_owned() } else { format!("{}/graphql", word.trim_end_matches('/')) };
        let configured = self.graphql.as_ref().filter(|graphql| graphql.server == server);
        let token = configured.and_then(|graphql| graphql.token.clone());
        Some(Graphql { server, token: token.or_else(|| variable("QONTRACT_SERVER_TOKEN")) })
    }

    /// The folder in place of every target system: the one that is asked for, else the configured one.
    pub fn sandbox_folder<'a>(&'a self, asked: Option<&'a Path>) -> Option<&'a Path> {
        asked.or(self.sandbox.as_ref().map(|sandbox| sandbox.directory.as_path()))
    }

    /// The configuration with the clusters of the data as real targets, as the established runtime has them: `[kubernetes]` is
    /// not needed.
    #[must_use]
    pub fn with_data_clusters(mut self) -> Self {
        self.kubernetes.get_or_insert_default();
        self
    }

    /// The tables that are the store of secrets where there is no other.
    pub fn tables(&self) -> toml::Table {
        self.store.0.clone()
    }

    /// Reads the file that is named, here or by `QONTRACT_CONFIG`; without one, the configuration is empty.
    pub fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self::at(&Location::named(file))?)
    }

    /// Reads the file that is named, or the one in a default place; without one, the configuration is empty.
    pub fn find(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self::at(&Location::find(file))?)
    }

    /// As [`Self::find`]; a file that is not read is reported.
    pub fn find_and_note(file: Option<&Path>, messages: &dyn MessageSink) -> anyhow::Result<Self> {
        let location = Location::find(file);
        location.note().iter().for_each(|note| messages.note(note));
        Ok(Self::at(&location)?)
    }

    /// Reads the file at a location.
    pub fn at(location: &Location) -> Result<Self, ConfigError> {
        let Some(file) = location.file() else { return Ok(Self::default()) };
        read::read(file)
    }

    /// Makes paths relative to the folder of the configuration file.
    fn resolve(&mut self, folder: &Path) {
        let clusters = self.kubernetes.iter_mut().flat_map(|table| {
            let own =
                table.clusters.values_mut().flat_map(|cluster| [&mut cluster.ca, &mut cluster.kubeconfig]);
            std::iter::once(&mut table.ca).chain(own)
        });
        let paths = clusters.chain([&mut self.promtool.path]).flatten();
        for path in paths.chain(self.sandbox.iter_mut().map(|sandbox| &mut sandbox.directory)) {
            *path = folder.join(&*path);
        }
    }
}
