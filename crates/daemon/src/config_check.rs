//! Checks the configuration, the tools, the data, and access to every target system. The check only reads.

mod bucket;
mod cluster;
mod programs;
mod report;
mod stores;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bucket::BucketCheck;
use cluster::{ClusterCheck, NeededPermissions};
use futures_util::future::join_all;
use qontract_access::{Mode, ReadPermit};
use qontract_bundle::Layout;
use qontract_bundle::repo::head_stamp;
use qontract_client_http::Settings;
use qontract_client_promtool as promtool;
use qontract_client_secrets::{Vault, VaultSettings};
use qontract_config::{Config, ConfigLocation, IgnoredFile};
use qontract_diagnostics::{MessageSink, pluralize};
use qontract_journal::{Journal, JournalStatus};
use qontract_runtime::definition;
use qontract_runtime::guard::LedgerError;
use qontract_telemetry::activity::Activities;
use tokio::runtime::Runtime;

use crate::clusters;
use crate::exit::UsageError;
use crate::input::{InputCheck, InputResolver};
use crate::journal::{self, JournalBucket};
use crate::pinned_data::{PinnedData, ServerConnection};
use crate::registry::Registry;
use crate::run_store::RunStore;
use crate::targets::{RealClusters, secret_store, vault_http};

pub use report::CheckReport;

/// The options of the check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The integrations of the binary.
    pub integrations: Registry,
    /// The configuration file, if the command line names one.
    pub config: Option<PathBuf>,
    /// The data: a directory, a bundle file, a Git revision or the URL of a server.
    pub data: Option<String>,
    /// The repo in which Git revisions are looked up.
    pub repo: PathBuf,
    /// The layout of the data repo.
    pub layout: Layout,
    /// Only these clusters; empty means all.
    pub clusters: Vec<String>,
    /// The directory of run records, if the command line names one.
    pub runs: Option<PathBuf>,
}

/// Checks everything that the configuration refers to. `activities` receives the current activity.
pub fn check(
    options: &CheckOptions,
    messages: &dyn MessageSink,
    activities: &Activities,
) -> anyhow::Result<CheckReport> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let mut report = CheckReport::default();
    if let Some(config) = configuration(options, &mut report) {
        let check = CheckContext { options, config: &config, runtime: &runtime, messages, activities };
        tools(&config, &mut report);
        let data = check.data(&mut report);
        let defined = defined_integrations(data.as_ref());
        let programs = programs::check(&config, defined.as_deref(), &mut report);
        let needed =
            needed_permissions(options.integrations, programs, defined.as_deref().unwrap_or_default());
        vault(&config, &runtime, &mut report);
        templates(&config, &mut report);
        buckets(&config, data.as_ref(), &runtime, &mut report);
        stores::check(&config, &runtime, &mut report);
        check.targets(data.as_ref(), &needed, &mut report)?;
        check.ledger(&mut report);
    }
    Ok(report)
}

/// The context that the checks share.
struct CheckContext<'a> {
    options: &'a CheckOptions,
    config: &'a Config,
    runtime: &'a Runtime,
    messages: &'a dyn MessageSink,
    activities: &'a Activities,
}

/// The request limits. A request is retried only once, because a person waits for the result.
fn request_limits() -> Settings {
    Settings {
        deadline: Duration::from_secs(15),
        attempt_timeout: Duration::from_secs(10),
        retries: 1,
        ..Settings::default()
    }
}

/// Reads the configuration.
fn configuration(options: &CheckOptions, report: &mut CheckReport) -> Option<Config> {
    let location = ConfigLocation::find(options.config.as_deref());
    let config = match Config::load(&location) {
        Ok(config) => config,
        Err(error) => {
            for text in error.errors() {
                let hint = "correct the file, or name another one with `--config`";
                report.failed("configuration", text.to_owned(), hint);
            }
            return None;
        }
    };
    if let Some(IgnoredFile { file, reason }) = location.ignored() {
        let file = file.display();
        report.warning(
            "configuration",
            format!("`{file}` is not read: {}", reason.as_str()),
            &format!("pass `--config {file}`"),
        );
    }
    let how = match &location {
        ConfigLocation::Option(_) => "--config",
        ConfigLocation::Variable(_) => "$QONTRACT_CONFIG",
        ConfigLocation::Default { .. } => "default location",
        ConfigLocation::None { ignored: Some(_) } => return Some(config),
        ConfigLocation::None { ignored: None } => {
            report.warning(
                "configuration",
                "none found".to_owned(),
                "write one with `qontract config init FILE`, and pass `--config FILE`",
            );
            return Some(config);
        }
    };
    let file = location.file().map(|file| file.display().to_string()).unwrap_or_default();
    report.ok("configuration", format!("{file} ({how})"));
    let tables = config.secret_tables();
    let (groups, values): (Vec<_>, Vec<_>) = tables.iter().partition(|(_, value)| value.is_table());
    for (name, _) in values {
        report.warning("configuration", format!("`{name}` has no effect at the top level"), "remove it");
    }
    if config.vault.is_some() && !groups.is_empty() {
        let names: Vec<String> = groups.iter().map(|(name, _)| format!("`[{name}]`")).collect();
        report.warning(
            "configuration",
            format!("{} not used: secrets come from Vault", names.join(", ")),
            "remove the tables if nothing else reads them",
        );
    }
    Some(config)
}

/// Checks that external tools are installed.
fn tools(config: &Config, report: &mut CheckReport) {
    let path = std::env::var_os("PATH");
    match promtool::find(config.promtool.path.as_deref(), path.as_deref()) {
        Ok(program) => report.ok("promtool", program.display().to_string()),
        Err(why) => {
            let hint =
                "install promtool or set `promtool.path`; without it `prometheus-rules-tester` does not run";
            report.warning("promtool", format!("not found {why}"), hint);
        }
    }
}

/// The integrations that the data defines, if data is available.
fn defined_integrations(data: Option<&PinnedData>) -> Option<Vec<String>> {
    // If the integrations of the data cannot be listed, the error is not reported here, but by the command that runs
    // an integration.
    let defined = definition::all(&*data?.source).ok()?;
    Some(defined.into_iter().map(|(name, _)| name).collect())
}

/// The permissions that the defined integrations need. `programs` contains the permissions that object programs need.
fn needed_permissions(
    integrations: Registry,
    programs: Vec<NeededPermissions>,
    defined: &[String],
) -> Vec<NeededPermissions> {
    let compiled = integrations.metas().filter_map(|meta| {
        Some(NeededPermissions { integration: meta.name, permissions: meta.permissions? })
    });
    let mut all: BTreeMap<String, NeededPermissions> =
        compiled.chain(programs).map(|one| (one.integration.clone(), one)).collect();
    defined.iter().filter_map(|name| all.remove(name)).collect()
}

/// The first digits of a hash.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Logs in to Vault.
fn vault(config: &Config, runtime: &Runtime, report: &mut CheckReport) {
    let Some(table) = &config.vault else { return };
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let login = || -> anyhow::Result<()> {
        let (http, server) = vault_http(table, Mode::DryRun, request_limits())?;
        let vault = Vault::new(&http, VaultSettings::new(server, table.login()?));
        runtime.block_on(vault.check_login(&permit))?;
        Ok(())
    };
    match login() {
        Ok(()) => report.ok("vault", format!("logged in to {}", table.server)),
        Err(error) => report.failed("vault", format!("{error:#}"), "check the keys of `[vault]`"),
    }
}

/// Checks the allow-lists of templates, which a run reads when a template looks up a value for the first time.
fn templates(config: &Config, report: &mut CheckReport) {
    if let Err(error) = config.templates.allowed() {
        report.failed("templates", format!("{error:#}"), "correct the keys of `[templates]`");
    }
}

/// Lists the buckets that templates may read.
fn buckets(config: &Config, data: Option<&PinnedData>, runtime: &Runtime, report: &mut CheckReport) {
    let (names, Some(data)) = (&config.templates.allow_s3, data) else { return };
    // If Vault cannot be used, another check reports it.
    let Ok(secrets) = secret_store(config, Mode::DryRun) else { return };
    // If the endpoint is invalid, another check reports it.
    let Ok(endpoint) = config.templates.s3_endpoint.as_deref().map(str::parse).transpose() else { return };
    let accounts = clusters::accounts(&*data.source).unwrap_or_default();
    let check = BucketCheck { secrets: &*secrets, accounts: &accounts, endpoint };
    runtime.block_on(async {
        for name in names {
            check.run(name, report).await;
        }
    });
}

impl CheckContext<'_> {
    /// Opens the data.
    fn data(&self, report: &mut CheckReport) -> Option<PinnedData> {
        let Self { options, config, runtime, messages, .. } = *self;
        let word = options.data.as_deref();
        if let Some(graphql) = config.server(word) {
            let opened = ServerConnection::with_limits(&graphql, runtime.handle().clone(), request_limits())
                .and_then(|connection| connection.head(true));
            return match opened {
                Ok(remote) => {
                    let side = PinnedData::remote(remote);
                    report.ok(
                        "data server",
                        format!("{}, bundle {}", graphql.server, short(side.source.sha())),
                    );
                    Some(side)
                }
                Err(error) => {
                    report.failed(
                        "data server",
                        format!("{error:#}"),
                        "check `graphql.server` and `graphql.token`",
                    );
                    None
                }
            };
        }
        let folder = std::path::Path::new(word.unwrap_or("."));
        if folder.is_dir() {
            match head_stamp(folder) {
                Ok(stamp) if stamp.commit.is_empty() => {
                    report.ok("git", "the data is not in a Git work tree".to_owned());
                }
                Ok(stamp) => report.ok("git", format!("commit {}", short(&stamp.commit))),
                Err(error) => report.failed(
                    "git",
                    format!("{:#}", anyhow::Error::new(error)),
                    "install Git, or repair the repository",
                ),
            }
        }
        let resolver = InputResolver::new(&options.repo, options.layout.clone(), messages);
        // Only the clusters and integrations of the data are needed. The data is not validated, because `qontract
        // validate` does that.
        match PinnedData::open(&resolver, word.unwrap_or("."), InputCheck::Nothing, None) {
            Ok(side) => {
                report.ok("data", format!("{}, bundle {}", word.unwrap_or("."), short(side.source.sha())));
                Some(side)
            }
            Err(error) if word.is_none() && error.is::<UsageError>() => {
                report.warning(
                    "data",
                    format!("{error:#}"),
                    "pass `--data`, or run the command in a data repo; without data, clusters are not checked",
                );
                None
            }
            Err(error) => {
                report.failed("data", format!("{error:#}"), "run `qontract validate`");
                None
            }
        }
    }

    /// The journal of real targets.
    fn journal(&self) -> anyhow::Result<Journal> {
        match JournalBucket::of_config(self.config, Mode::DryRun)? {
            Some(bucket) => Ok(bucket.journal()),
            None => Ok(journal::of_runs(&RunStore::new(self.options.runs.clone())?)),
        }
    }

    /// Checks the removal ledger of the targets.
    fn ledger(&self, report: &mut CheckReport) {
        const CHECK: &str = "removal ledger";
        let journal = match &self.config.sandbox {
            Some(sandbox) => journal::of_sandbox(&sandbox.directory),
            None => match self.journal() {
                Ok(journal) => journal,
                Err(error) => return report.failed(CHECK, format!("{error:#}"), "pass `--runs DIR`"),
            },
        };
        let place = &journal.location().place;
        let init = || format!("run `{}`", journal.location().init);
        match self.runtime.block_on(journal.check(&ReadPermit::for_data())) {
            Ok(JournalStatus::Whole { ledgers }) => {
                report.ok(CHECK, format!("{place}, {}", pluralize(ledgers, "integration")));
            }
            Ok(JournalStatus::New) => report.ok(CHECK, format!("{place}, created with the first write")),
            Err(error @ LedgerError::NotInitialised { .. }) => {
                report.warning(CHECK, format!("{error}; nothing is removed without approval"), &init());
            }
            Err(error) => report.failed(CHECK, error.to_string(), &init()),
        }
    }

    /// Checks the clusters of the data.
    fn targets(
        &self,
        data: Option<&PinnedData>,
        needed: &[NeededPermissions],
        report: &mut CheckReport,
    ) -> anyhow::Result<()> {
        let Self { options, config, runtime, activities, .. } = *self;
        if let Some(sandbox) = &config.sandbox {
            report.ok("targets", format!("sandbox {}", sandbox.directory.display()));
            return Ok(());
        }
        let Some(table) = &config.kubernetes else {
            report.warning(
                "clusters",
                "no `[kubernetes]` table".to_owned(),
                "add one, or use `--sandbox DIR`: without either, only `qontract-reconcile` and `run-integration` run `openshift-*` integrations",
            );
            return Ok(());
        };
        let real = secret_store(config, Mode::DryRun).map_err(|error| format!("{error:#}"));
        let real = match real {
            Ok(secrets) => RealClusters::new(table.clone(), secrets),
            Err(why) => {
                report.failed("clusters", why, "correct the keys of `[vault]`");
                return Ok(());
            }
        };
        // Runs read these files only when they use a cluster; the check reads the files of all clusters.
        let errors = real.errors();
        for error in &errors {
            report.failed("clusters", error.to_string(), "correct the file that the key names");
        }
        if !errors.is_empty() {
            return Ok(());
        }
        let Some(data) = data else { return Ok(()) };
        let source = &*data.source;
        let all = match clusters::all(source) {
            Ok(all) => all,
            Err(error) => {
                report.failed("clusters", error.to_string(), "check that the data has `clusters_v1`");
                return Ok(());
            }
        };
        let names: Vec<String> = all.iter().map(|cluster| cluster.name.clone()).collect();
        for warning in clusters::unknown_cluster_warnings(table.clusters.keys(), &names) {
            report.warning("clusters", warning, "correct the name, or remove the table");
        }
        if let Some(name) = options.clusters.iter().find(|name| !names.contains(name)) {
            return Err(UsageError(format!("the data has no cluster `{name}`")).into());
        }
        let namespaces = clusters::namespaces(source).unwrap_or_default();
        let check = ClusterCheck::new(real, &namespaces, needed);
        let is_wanted = |name: &String| options.clusters.is_empty() || options.clusters.contains(name);
        let wanted = all.iter().filter(|cluster| is_wanted(&cluster.name));
        let checks = join_all(wanted.map(|cluster| check.run(cluster)));
        let checks = runtime.block_on(activities.scope(checks));
        for checks in checks {
            report.extend(checks);
        }
        Ok(())
    }
}
