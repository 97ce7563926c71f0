//! The operator's configuration, `config.toml`: the keys of qontract-reconcile, and additional keys.

pub mod environment;
mod fleet;
mod foreign;
pub mod keys;
mod located;
mod location;
pub mod ownership;
mod read;
mod targets;
mod usage;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::SignedDuration;
use qontract_access::{BoundError, WriteBound, WriteBounds};
use qontract_client_http::Url;
use qontract_client_secrets::{Login, Secret, SecretRef};
use qontract_diagnostics::MessageSink;
use qontract_objects::templates::{AllowList, LookupLimits};
use qontract_runtime::guard::{Budget, Budgets, KeyLimits};
use qontract_runtime::process::Program;
use serde::Deserialize;

pub use environment::variable;
pub use fleet::{FleetCommandTable, FleetTable};
pub use foreign::ForeignTable;
pub use located::LocatedConfig;
pub use location::{ConfigLocation, IgnoreReason, IgnoredFile};
pub use read::ConfigError;
pub use targets::{BucketTable, PrometheusTable, QueueTable, TargetsTable};
pub use usage::UsageError;

/// The configuration. All other tables hold secrets.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Config {
    /// The data server.
    #[serde(default)]
    pub graphql: Option<GraphqlTable>,
    /// The sandbox: a directory that is used instead of the target systems.
    #[serde(default)]
    pub sandbox: Option<SandboxTable>,
    /// Process integrations, by name.
    #[serde(default)]
    pub integrations: BTreeMap<String, ProgramTable>,
    /// Existing commands that are run as integrations, by name.
    #[serde(default)]
    pub foreign: BTreeMap<String, ForeignTable>,
    /// Limits on removals without approval.
    #[serde(default)]
    pub guards: GuardsTable,
    /// The Vault that stores secrets; without this table, secrets are tables of this file.
    #[serde(default)]
    pub vault: Option<VaultTable>,
    /// Real clusters. Without this table, no cluster is contacted.
    #[serde(default)]
    pub kubernetes: Option<KubernetesTable>,
    /// Other target systems.
    #[serde(default)]
    pub targets: TargetsTable,
    /// The location of promtool; by default on the `PATH`.
    #[serde(default)]
    pub promtool: PromtoolTable,
    /// Allow-list of sources that templates may read besides secrets and the data.
    #[serde(default)]
    pub templates: TemplatesTable,
    /// The commands that pods run and that are not part of this binary.
    #[serde(default)]
    pub fleet: FleetTable,
    /// All other tables. If there is no Vault, they are the secret store.
    #[serde(flatten)]
    store: SecretTables,
}

/// A Vault server and its login: with a token, with `AppRole`, or as a pod.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultTable {
    /// The address.
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

/// File in which Kubernetes mounts the token of a pod.
const POD_TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl VaultTable {
    /// The login method.
    pub fn login(&self) -> anyhow::Result<Login> {
        let secret = |text: &Option<String>| text.as_deref().map(Secret::new);
        if let (Some(role_id), Some(secret_id)) = (secret(&self.role_id), secret(&self.secret_id)) {
            return Ok(Login::AppRole { mount: "approle".to_owned(), role_id, secret_id });
        }
        if let Some(role) = self.kube_auth_role.clone() {
            let mount = self.kube_auth_mount.clone().unwrap_or_else(|| "kubernetes".to_owned());
            let token_file =
                variable("KUBE_SA_TOKEN_PATH").unwrap_or_else(|| POD_TOKEN_FILE.to_owned()).into();
            return Ok(Login::Kubernetes { mount, role, token_file });
        }
        secret(&self.token).map(Login::Token).context(
            "`[vault]` has no credentials: set `token`, `role_id` and `secret_id`, or `kube_auth_role`",
        )
    }
}

/// Real clusters and their connection settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTable {
    /// CA file for clusters that do not have their own CA file.
    pub ca: Option<PathBuf>,
    requests_per_second: Option<NonZeroU32>,
    deadline_seconds: Option<NonZeroU32>,
    validate_in_dry_run: Option<bool>,
    /// Clusters by their names in the data.
    #[serde(default)]
    pub clusters: BTreeMap<String, ClusterTable>,
    /// Whether the table was written as `[targets.kubernetes]`.
    #[serde(skip)]
    is_below_targets: bool,
}

impl KubernetesTable {
    /// Default settings of clusters.
    pub fn defaults(&self) -> ClusterTable {
        let Self { ca, requests_per_second, deadline_seconds, validate_in_dry_run, .. } = self.clone();
        ClusterTable {
            ca,
            requests_per_second,
            deadline_seconds,
            validate_in_dry_run,
            ..ClusterTable::default()
        }
    }

    /// The key of the table in the file, for messages.
    pub fn key(&self) -> &'static str {
        if self.is_below_targets { "targets.kubernetes" } else { "kubernetes" }
    }
}

/// Connection settings of a cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterTable {
    /// The only server that gets the token of this cluster.
    pub server: Option<String>,
    /// PEM file of CAs, in addition to the system's.
    pub ca: Option<PathBuf>,
    /// Maximum number of requests per second.
    pub requests_per_second: Option<NonZeroU32>,
    /// Timeout of a request, including retries, in seconds.
    pub deadline_seconds: Option<NonZeroU32>,
    /// Whether dry runs send planned objects to the cluster with `dryRun=All`.
    pub validate_in_dry_run: Option<bool>,
    /// Kubeconfig with server, CA and credentials, instead of the token that the data names.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current context.
    pub context: Option<String>,
}

/// The program that checks Prometheus rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromtoolTable {
    /// The path.
    pub path: Option<PathBuf>,
}

/// Allow-list of sources that templates may read besides secrets and the data; empty by default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TemplatesTable {
    /// URLs that `url` may read. A URL that ends with a slash allows every URL below it.
    allow_urls: Vec<String>,
    /// Repositories that `github` may read, as `owner/name` or `owner/*`.
    allow_github: Vec<String>,
    /// Address of the GitHub API.
    github_api: String,
    /// The secret with the GitHub token.
    github_token: Option<SecretTable>,
    /// Buckets that `s3` and `s3_ls` may read, as `account/bucket`.
    pub allow_s3: Vec<String>,
    /// URL of an S3 server other than AWS.
    pub s3_endpoint: Option<String>,
    /// Time limit of one lookup.
    deadline_seconds: u64,
    /// Maximum number of bytes that one lookup may return.
    largest_bytes: usize,
}

impl Default for TemplatesTable {
    fn default() -> Self {
        let LookupLimits { deadline, max_bytes: largest } = LookupLimits::default();
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
    /// The allow-list with its limits.
    pub fn allowed(&self) -> anyhow::Result<AllowList> {
        let address = |setting: &str, text: &str| {
            Url::parse(text).with_context(|| format!("`templates.{setting}` is not a URL"))
        };
        let api = address("github_api", &self.github_api)?;
        let allowed = AllowList::new(&self.allow_urls, &self.allow_github, &self.allow_s3, api);
        let mut allowed = allowed.map_err(|why| anyhow!(why))?;
        let token = self.github_token.as_ref();
        allowed.github_token = token.map(|SecretTable { path, field }| SecretRef::new(path, field));
        let endpoint = self.s3_endpoint.as_deref().map(|text| {
            text.parse().map_err(|error| UsageError(format!("`templates.s3_endpoint`: {error}")))
        });
        allowed.s3_endpoint = endpoint.transpose()?;
        allowed.limits = LookupLimits {
            deadline: Duration::from_secs(self.deadline_seconds),
            max_bytes: self.largest_bytes,
        };
        Ok(allowed)
    }
}

/// The location of a secret.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    path: String,
    field: String,
}

/// The data server.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphqlTable {
    /// The address: `http://host:port/graphql`.
    pub server: String,
    /// Value of the `Authorization` header.
    pub token: Option<String>,
}

impl std::fmt::Debug for GraphqlTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphqlTable").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The sandbox: a directory that is used instead of the target systems.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxTable {
    /// The directory.
    pub directory: PathBuf,
}

/// A process integration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramTable {
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// Environment variables that are passed to the program.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Environment variables that are passed only to `plan`, `print` and `apply`. Their values are secret.
    #[serde(default)]
    pub secret_environment: Vec<String>,
    /// Environment variables that are passed only to `apply`. Their values are secret.
    #[serde(default)]
    pub write_environment: Vec<String>,
    /// Time limit of one response.
    #[serde(default = "default_deadline_seconds")]
    pub deadline_seconds: u64,
    /// Time that the program needs to exit after `SIGINT` while it applies a step.
    pub shutdown_seconds: Option<u64>,
}

fn default_deadline_seconds() -> u64 {
    60
}

impl ProgramTable {
    /// The program, with the current values of the environment variables that are passed to it.
    pub fn program(&self) -> Program {
        let values = |names: &[String]| {
            names.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect()
        };
        Program {
            command: self.command.clone(),
            environment: values(&self.environment),
            variables: self.environment.iter().cloned().collect(),
            secret_environment: values(&self.secret_environment),
            write_environment: values(&self.write_environment),
            deadline: Duration::from_secs(self.deadline_seconds),
            shutdown: self.shutdown_seconds.map(Duration::from_secs),
            ..Program::default()
        }
    }
}

/// Limits on removals without approval, and on writes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardsTable {
    shard_removals: Option<usize>,
    shard_percent: Option<usize>,
    caller_removals: Option<usize>,
    caller_percent: Option<usize>,
    #[serde(alias = "run_removals")]
    integration_removals: Option<usize>,
    #[serde(alias = "run_percent")]
    integration_percent: Option<usize>,
    /// Number of hours that a removal counts towards the limits.
    window_hours: Option<NonZeroU32>,
    /// The limits beyond which a change counts as a removal.
    #[serde(default)]
    keys: GuardKeysTable,
    /// The only writes that real runs may make; without the key, all writes are allowed.
    writes: Option<Vec<WriteBoundTable>>,
}

/// Requests to one origin that real runs may use to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteBoundTable {
    /// Scheme, host, and the port if it is not the default.
    origin: String,
    /// Methods in capital letters.
    methods: Vec<String>,
    /// Paths, or prefixes that end in a slash.
    paths: Vec<String>,
}

/// The number of removed keys at which a change counts as a removal.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardKeysTable {
    /// Number of keys.
    count: Option<usize>,
    /// Percentage of keys.
    percent: Option<usize>,
    /// Whether a change that removes all items of a list counts as a removal.
    lists: Option<bool>,
}

impl GuardsTable {
    /// The only requests with which real runs may write; `None` if all are allowed.
    pub fn write_bounds(&self) -> Result<Option<WriteBounds>, BoundError> {
        let Some(tables) = &self.writes else { return Ok(None) };
        let mut bounds = Vec::new();
        for WriteBoundTable { origin, methods, paths } in tables {
            let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
            for path in paths {
                bounds.push(WriteBound::new(origin, &methods, path)?);
            }
        }
        Ok(Some(WriteBounds::new(bounds)))
    }

    /// The removal budgets.
    pub fn budgets(&self) -> Budgets {
        let defaults = Budgets::default();
        let budget = |count: Option<usize>, percent: Option<usize>, default: Budget| Budget {
            count: count.unwrap_or(default.count),
            percent: percent.unwrap_or(default.percent),
        };
        Budgets {
            shard: budget(self.shard_removals, self.shard_percent, defaults.shard),
            caller: budget(self.caller_removals, self.caller_percent, defaults.caller),
            integration: budget(self.integration_removals, self.integration_percent, defaults.integration),
            window: self
                .window_hours
                .map_or(defaults.window, |hours| SignedDuration::from_hours(i64::from(hours.get()))),
            keys: KeyLimits {
                count: self.keys.count.unwrap_or(defaults.keys.count),
                percent: self.keys.percent.unwrap_or(defaults.keys.percent),
                lists: self.keys.lists.unwrap_or(defaults.keys.lists),
            },
        }
    }
}

/// Tables of secrets. Their `Debug` output is redacted.
#[derive(Clone, Default, Deserialize)]
struct SecretTables(toml::Table);

impl std::fmt::Debug for SecretTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Config {
    /// The data server: the server at the URL `word`, or the configured server if `word` is `None`. The token
    /// is the configured token if it is for that server, otherwise `$QONTRACT_SERVER_TOKEN`.
    pub fn server(&self, word: Option<&str>) -> Option<GraphqlTable> {
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
        Some(GraphqlTable { server, token: token.or_else(|| variable("QONTRACT_SERVER_TOKEN")) })
    }

    /// The sandbox directory: `requested`, otherwise the configured directory.
    pub fn sandbox_folder<'a>(&'a self, requested: Option<&'a Path>) -> Option<&'a Path> {
        requested.or(self.sandbox.as_ref().map(|sandbox| sandbox.directory.as_path()))
    }

    /// Uses the clusters of the data as real targets even without `[kubernetes]`, as the peer does.
    #[must_use]
    pub fn with_data_clusters(mut self) -> Self {
        self.kubernetes.get_or_insert_default();
        self
    }

    /// The tables of secrets, for use without a Vault.
    pub fn secret_tables(&self) -> toml::Table {
        self.store.0.clone()
    }

    /// Reads `file`, otherwise the file that `QONTRACT_CONFIG` names. Without either, the configuration is
    /// empty.
    pub fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self::load(&ConfigLocation::named(file))?)
    }

    /// Reads `file`, otherwise the file that `QONTRACT_CONFIG` names or that is in a default location.
    /// Without a file, the configuration is empty.
    pub fn find(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self::load(&ConfigLocation::find(file))?)
    }

    /// Reads the configuration as [`Self::find`] does, and also prints a note about an ignored file.
    pub fn find_and_note(file: Option<&Path>, messages: &dyn MessageSink) -> anyhow::Result<Self> {
        let location = ConfigLocation::find(file);
        location.note().iter().for_each(|note| messages.note(note));
        Ok(Self::load(&location)?)
    }

    /// Reads the file at a location.
    pub fn load(location: &ConfigLocation) -> Result<Self, ConfigError> {
        let Some(file) = location.file() else { return Ok(Self::default()) };
        read::read(file)
    }

    /// Moves the tables below `[targets]` that may also be at the top level to the top level. Each table may
    /// be used at only one of the two positions.
    fn unify_targets(&mut self) {
        if let Some(table) = self.targets.kubernetes.take() {
            self.kubernetes = Some(KubernetesTable { is_below_targets: true, ..table });
        }
        if let Some(table) = self.targets.vault.take() {
            self.vault = Some(table);
        }
    }

    /// Resolves paths relative to the directory of the configuration file.
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
        self.foreign.values_mut().for_each(|command| command.resolve(folder));
        for program in self.integrations.values_mut() {
            resolve_command(&mut program.command, folder);
        }
    }
}

/// Resolves each word of a command that is the relative path of a file in the directory of the configuration
/// file. Other words are not changed, so other relative paths start at the working directory. The first word
/// is not changed either if it has no slash and names a program on `PATH`.
fn resolve_command(command: &mut [String], folder: &Path) {
    for (index, word) in command.iter_mut().enumerate() {
        let is_on_path = || index == 0 && !word.contains('/') && is_on_path(word);
        let file = folder.join(&*word);
        if Path::new(word).is_relative()
            && file.is_file()
            && !is_on_path()
            && let Some(text) = file.to_str()
        {
            text.clone_into(word);
        }
    }
}

fn is_on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH");
    let mut folders = folders.iter().flat_map(std::env::split_paths);
    folders.any(|folder| folder.join(program).is_file())
}
