//! `qontract reconcile`: runs one integration, once or in a loop.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_bundle::Layout;
use qontract_cli::plan_output;
use qontract_cli::printer::Printer;
use qontract_cli::progress::Progress;
use qontract_cli::{
    CliFlavor, LogLevel, PlanFormat, ReconcileArgs, RunFormat, RunOptions, RunPurpose, SelectedIntegration,
};
use qontract_config::{Config, LocatedConfig};
use qontract_daemon::allocator::{self, PurgeDelay};
use qontract_daemon::announcement::Announcement;
use qontract_daemon::audit::WarningObserver;
use qontract_daemon::discovery;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::failed_shards::failed_shards;
use qontract_daemon::input::{InputCheck, InputResolver};
use qontract_daemon::journal::OpenJournal;
use qontract_daemon::loop_orders;
use qontract_daemon::pinned_data::{PinnedData, ServerConnection};
use qontract_daemon::plan_report;
use qontract_daemon::process_slot::ProcessSlot;
use qontract_daemon::run_entry::RecordOutput;
use qontract_daemon::run_loop::{DataSpec, LoopInput, LoopOptions, run_loop};
use qontract_daemon::run_settings::{RunSettings, ShardScope, TargetLocation};
use qontract_daemon::run_setup::RunSetup;
use qontract_daemon::run_store::RunStore;
use qontract_daemon::run_text;
use qontract_daemon::sandbox_folder;
use qontract_daemon::signals;
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_daemon::watcher;
use qontract_diagnostics::pluralize;
use qontract_journal::Journal;
use qontract_report::FileName;
use qontract_runtime::lease::Leases;
use qontract_runtime::reconcile_loop::{Schedule, ShutdownSignal};
use qontract_runtime::{Bodies, Options, RunEnd, RunOutcome, RunRecord, ShardKey};
use qontract_telemetry::activity::Activities;

use crate::BUILD;
use crate::integrations::REGISTRY;

pub fn run(
    arguments: ReconcileArgs,
    flavor: CliFlavor,
    located: LocatedConfig,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let ReconcileArgs { options, integration: selected } = arguments;
    let options = RunOptions { flavor, ..options.with_environment()? };
    located.location.note().iter().for_each(|note| printer.note(note));
    if let Some(every) = options.every {
        return start_loop(&options, &selected, located, every);
    }
    let config = options.configuration(located).map_err(|error| match flavor {
        CliFlavor::Qontract => error,
        // The peer has one exit code for all errors.
        CliFlavor::QontractReconcile => anyhow::anyhow!("{error:#}"),
    })?;
    let prints = selected.purpose == RunPurpose::Print;
    if prints && (options.wait.is_some() || options.output != RunFormat::Text) {
        let text = "a run that prints the desired state cannot be combined with `--wait` or `--output`";
        return Err(UsageError(text.to_owned()).into());
    }
    let mode = if options.dry_run || prints { Mode::DryRun } else { Mode::Real };
    let log = Arc::new(options.log.stderr_log());
    let repo = data_repo(&options, &config);
    let sandbox = SandboxLocation { folder: options.sandbox.as_deref(), repo: repo.as_deref() };
    let targets = Targets::new(&config, sandbox, mode)?.with_log(&log);
    let is_sandbox_missing =
        mode == Mode::DryRun && sandbox_folder::is_missing(options.sandbox.as_deref(), &config);
    let integration = REGISTRY.integration(&selected.name, &config, &targets)?;
    let flags = RunSettings::with_variables(selected.options, &integration)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let sandbox = config.sandbox_folder(options.sandbox.as_deref());
    let opened = OpenJournal::new(&config, sandbox, options.runs.clone(), mode)?;
    let leases = &opened.leases()?;
    let OpenJournal { journal, runs, .. } = opened;
    if mode == Mode::Real {
        runs.check_writable()?;
    }
    if let Some(pause) = runtime.block_on(loop_orders::pause_of(&journal, &selected.name, mode)) {
        printer.note(&format!("`{}` was not run, because it is {pause}", selected.name));
        return Ok(Exit::Run(RunEnd::Transient));
    }
    let (runs, journal, threads) = (&runs, &journal, &runtime.handle().clone());
    let context = RunContext { options: &options, config: &config, runs, journal, leases, threads, printer };
    let progress = Progress::start("reading the data", Activities::default());
    let opened = context.open_data();
    drop(progress);
    let (head, base) = opened?;
    let announcement = Announcement {
        data: options.data.as_deref(),
        sandbox: options.sandbox.as_deref(),
        config: &config,
        integration: &integration,
        mode,
    };
    let line = announcement.prepare(&head, options.log.level().into(), printer);
    let selection = line.and_then(|line| line.print(|line| Printer::default().note(line)));
    let observer = Arc::new(WarningObserver::new(Arc::new(Printer::default())));
    let settings = RunSettings {
        only_shards: context.only_shards(&selected.name)?,
        selection,
        ..context.settings(flags, mode)?
    };
    let (integration, settings) = (&integration, &settings);
    let setup = RunSetup { integration, settings, head: &head, runs, observer };
    let mut started = runtime.block_on(setup.start())?;
    started.request.base = base.as_ref().map(|base| Arc::clone(&base.source));
    let (stopper, stop) = ShutdownSignal::pair();
    started.request.shutdown = stop;
    let activities = Activities::default();
    let progress = Progress::start(format!("running {}", selected.name), activities.clone());
    let outcome = runtime.block_on(async {
        signals::listen(stopper.clone(), Vec::new, log)?;
        anyhow::Ok(activities.scope(qontract_runtime::run(integration, &started.request)).await)
    })?;
    drop(progress);
    if options.log.level() <= LogLevel::Debug {
        printer.note(run_text::activities(&activities.finished()).trim_end());
    }
    let mut record = started.record(&outcome, &head, base.as_ref());
    if prints {
        std::mem::forget(runtime);
        context.print(&outcome, &record, &|file| head.display(file))?;
        return Ok(match outcome.ended {
            RunEnd::Usage => Exit::Usage,
            ended => Exit::of_run(ended, outcome.interruption),
        });
    }
    record.warnings.extend(started.store_inputs());
    if is_sandbox_missing {
        record.warnings.push(sandbox_folder::MISSING.to_owned());
    }
    let storage = context.report(&outcome, &record, &|file| head.display(file))?;
    // The process ends now. It does not wait for blocked threads, but it still handles signals and waits
    // until a lease is released.
    std::mem::forget(runtime);
    Ok(match outcome.ended {
        // The command fails, because the changes of the run cannot be looked up afterwards.
        ended if ended.is_success() && mode == Mode::Real && storage == RecordStorage::Failed => {
            Exit::Failure
        }
        RunEnd::Usage => Exit::Usage,
        ended if ended.is_success() && record.has_news() && mode == Mode::DryRun => Exit::Changes,
        ended => Exit::of_run(ended, outcome.interruption),
    })
}

/// Runs an integration in a loop.
fn start_loop(
    options: &RunOptions,
    integration: &SelectedIntegration,
    located: LocatedConfig,
    every: Duration,
) -> anyhow::Result<Exit> {
    if options.base.is_some() || options.early_exit_compare_sha.is_some() {
        let text = "`--every` cannot be combined with `--base` or `--early-exit-compare-sha`: a loop always runs all shards";
        return Err(UsageError(text.to_owned()).into());
    }
    allocator::reexec_with_purge_delay(PurgeDelay::Zero);
    let loop_options = LoopOptions {
        pace: Schedule {
            interval: every,
            initial_backoff: Duration::from_secs(10).min(every),
            ..Schedule::default()
        },
        once: false,
        log: Arc::new(options.log.stderr_log()),
        listen: options.listen,
        shard_label: None,
        balanced_by: None,
        pushgateway: None,
    };
    run_in_loop(options, integration, located, &loop_options)
}

/// The shard slot of this process.
fn slot(options: &RunOptions) -> ProcessSlot {
    ProcessSlot { id: options.shard_id.unwrap_or(0), count: options.shards.unwrap_or(1) }
}

/// The directory of the data repo, which may contain made-up secrets for sandboxes; `None` if the data comes
/// from a server or a bundle file.
fn data_repo(options: &RunOptions, config: &Config) -> Option<PathBuf> {
    if config.server(options.data.as_deref()).is_some() {
        return None;
    }
    let repo = discovery::repo_of(options.data.as_deref().unwrap_or("."), &options.repo)?;
    Some(discovery::revision_root(repo, &Layout::default()))
}

/// Runs an integration in a loop with these options.
pub fn run_in_loop(
    options: &RunOptions,
    integration: &SelectedIntegration,
    located: LocatedConfig,
    loop_options: &LoopOptions,
) -> anyhow::Result<Exit> {
    if integration.purpose == RunPurpose::Print {
        return Err(UsageError("a loop cannot print the desired state".to_owned()).into());
    }
    if !options.shard.is_empty() || options.failed_of.is_some() {
        let text = "`--shard` and `--failed-of` cannot be combined with a loop, which always runs all shards";
        return Err(UsageError(text.to_owned()).into());
    }
    let config = options.configuration(located)?;
    let repo = data_repo(options, &config);
    let input = LoopInput {
        integrations: REGISTRY,
        integration: &integration.name,
        options: &integration.options,
        config: &config,
        data: DataSpec {
            spec: options.data.clone(),
            repo: options.repo.clone(),
            is_pinned: options.pins_bundle(),
        },
        sandbox: SandboxLocation { folder: options.sandbox.as_deref(), repo: repo.as_deref() },
        runs: options.runs.clone(),
        mode: if options.dry_run { Mode::DryRun } else { Mode::Real },
        slot: slot(options),
        validate_schemas: options.validates_schemas(),
        bodies: if options.full { Bodies::Shown } else { Bodies::Hidden },
        messages: Arc::new(Printer::default()),
        build: BUILD,
    };
    run_loop(&input, loop_options)
}

/// Context of a single run.
struct RunContext<'a> {
    options: &'a RunOptions,
    config: &'a Config,
    runs: &'a Arc<RunStore>,
    journal: &'a Arc<Journal>,
    leases: &'a Arc<dyn Leases>,
    threads: &'a tokio::runtime::Handle,
    printer: &'a Printer,
}

impl RunContext<'_> {
    /// Opens and pins the head and the base. The run compares the two for early exit.
    fn open_data(&self) -> anyhow::Result<(Arc<PinnedData>, Option<PinnedData>)> {
        let Self { options, config, threads, printer, .. } = *self;
        let compare = options.early_exit_compare_sha.as_deref();
        if let Some(graphql) = config.server(options.data.as_deref()) {
            if options.base.is_some() {
                let text = "`--base` requires `--data`; for a server, use `--early-exit-compare-sha`";
                return Err(UsageError(text.to_owned()).into());
            }
            let connection = ServerConnection::new(&graphql, threads.clone())?;
            let head = connection.head(options.pins_bundle())?;
            if options.gql_url_print || (!options.dry_run && !options.no_gql_url_print) {
                printer.note(&format!("using gql endpoint {}", head.endpoint()));
            }
            let base = compare.map(|sha| connection.base(sha)).transpose()?;
            return Ok((Arc::new(PinnedData::remote(head)), base.map(PinnedData::remote)));
        }
        if compare.is_some() {
            let text = "`--early-exit-compare-sha` names a bundle on a server; with `--data`, use `--base`";
            return Err(UsageError(text.to_owned()).into());
        }
        let resolver = InputResolver::new(&options.repo, Layout::default(), printer);
        let spec = options.data.as_deref().unwrap_or(".");
        // Git updates a work tree file by file, so a bundle that is built during the update would lack files.
        watcher::await_git(Path::new(spec));
        let check = if options.no_validate { InputCheck::Complete } else { InputCheck::Valid };
        let head = PinnedData::open(&resolver, spec, check, None)?;
        let base = match options.base.as_deref() {
            Some(base) => Some(PinnedData::open(&resolver, base, InputCheck::Nothing, Some(&head))?),
            None => None,
        };
        Ok((Arc::new(head), base))
    }

    /// The settings of the run; `flags` are those of the integration.
    fn settings(&self, flags: Options, mode: Mode) -> anyhow::Result<RunSettings> {
        let Self { options, config, journal, leases, .. } = self;
        let only_affected = match options.flavor {
            CliFlavor::Qontract => !options.all_shards,
            CliFlavor::QontractReconcile => options.check_only_affected_shards,
        };
        let location = TargetLocation::of(config.sandbox_folder(options.sandbox.as_deref()));
        Ok(RunSettings {
            options: flags,
            slot: slot(options).validate().map_err(|error| UsageError(error.to_string()))?,
            shards: if only_affected { ShardScope::Affected } else { ShardScope::AllIfAffected },
            // On a command line, a flag that selects nothing is probably a typo; in a peer's job, the
            // selected object may have been removed.
            strict_selectors: options.flavor == CliFlavor::Qontract,
            validate_schemas: options.validates_schemas(),
            trust_head: options.trust_head,
            bodies: if options.full { Bodies::Shown } else { Bodies::Hidden },
            await_rollouts: options.wait,
            leases: Arc::clone(leases),
            ..RunSettings::configured(mode, config, location, Arc::clone(journal) as _)?
        })
    }

    /// If only some shards are to run: the shards that the command line names, or those that failed in an
    /// earlier run.
    fn only_shards(&self, integration: &str) -> anyhow::Result<Option<BTreeSet<ShardKey>>> {
        let Self { options, runs, printer, .. } = self;
        let Some(word) = &options.failed_of else {
            let named: BTreeSet<ShardKey> = options.shard.iter().cloned().collect();
            return Ok((!named.is_empty()).then_some(named));
        };
        // `last` means the last run of this integration.
        let word = if word == "last" { integration } else { word };
        let record = self.threads.block_on(runs.resolve(word))?;
        if record.integration != integration {
            let text =
                format!("`{}` is a run of `{}`, not of `{integration}`", record.run, record.integration);
            return Err(UsageError(text).into());
        }
        let failed = failed_shards(&record)?;
        let (count, run) = (pluralize(failed.len(), "shard"), &record.run);
        printer.note(&format!("note: running {count} that failed in {run}"));
        Ok(Some(failed))
    }

    /// Prints the desired states. The run has no record, because it has neither a plan nor an effect.
    fn print(&self, outcome: &RunOutcome, record: &RunRecord, file_name: FileName<'_>) -> anyhow::Result<()> {
        let Self { options, printer, .. } = self;
        if let Some(file) = &options.dump_schemas {
            write_schemas(outcome, file)?;
        }
        let messages = run_text::printing_messages(record, options.log.level().into(), file_name);
        if !messages.is_empty() {
            printer.note(messages.trim_end());
        }
        let printed: String = outcome.shards.values().filter_map(|shard| shard.printed.as_deref()).collect();
        printer.text(&printed)
    }

    /// Stores the record of the run and prints the result.
    fn report(
        &self,
        outcome: &RunOutcome,
        record: &RunRecord,
        file_name: FileName<'_>,
    ) -> anyhow::Result<RecordStorage> {
        let Self { options, runs, printer, .. } = self;
        // The record is stored first, even if printing fails.
        let stored = self.threads.block_on(runs.store(record));
        if let Some(file) = &options.dump_schemas {
            write_schemas(outcome, file)?;
        }
        let messages = run_text::messages(record, options.log.level().into(), file_name);
        if !messages.is_empty() {
            printer.note(messages.trim_end());
        }
        match options.output {
            RunFormat::Text => {
                printer.styled(&plan_report::text_of(
                    record,
                    plan_output::detail(options.full),
                    file_name,
                ))?;
            }
            RunFormat::Md => {
                let report = plan_report::from_records(std::slice::from_ref(record));
                let detail = plan_output::detail(options.full);
                plan_output::print(&report, PlanFormat::Md, detail, file_name, printer)?;
            }
            RunFormat::Json => {
                let output = RecordOutput::from(record);
                printer.json(&[&serde_json::to_vec_pretty(&output)?[..], b"\n"].concat())?;
            }
        }
        if options.log.level() <= LogLevel::Warning {
            let warnings = run_text::held_warnings(record, options.output != RunFormat::Json);
            warnings.lines().for_each(|line| printer.note(line));
        }
        if let Err(error) = stored {
            printer.note(&format!("warning: cannot store the run record: {error:#}"));
            return Ok(RecordStorage::Failed);
        }
        if options.log.level() <= LogLevel::Info {
            printer.note(&format!("`qontract explain run {}` shows more", record.run));
        }
        Ok(RecordStorage::Stored)
    }
}

/// Whether the record of a run was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordStorage {
    Stored,
    Failed,
}

/// Writes the schemas that were read as a JSON list.
fn write_schemas(outcome: &RunOutcome, file: &Path) -> anyhow::Result<()> {
    let schemas: BTreeSet<&String> = outcome.query_log.schemas.values().flatten().collect();
    let text = serde_json::to_vec(&schemas)?;
    std::fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
}
