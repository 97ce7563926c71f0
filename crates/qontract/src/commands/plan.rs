//! `qontract plan`: a dry run of every integration that a change affects, in one report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use qontract_access::{Mode, ReadPermit};
use qontract_bundle::Layout;
use qontract_cli::plan_output;
use qontract_cli::printer::Printer;
use qontract_cli::progress::Progress;
use qontract_cli::{LogOptions, PlanArgs, PlanFormat, variable};
use qontract_config::Config;
use qontract_daemon::discovery;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::input::{InputCheck, InputResolver, ValidationFailed};
use qontract_daemon::journal;
use qontract_daemon::pinned_data::{self, PinnedData};
use qontract_daemon::plan_report;
use qontract_daemon::registry::{SandboxUnsupported, describe_missing};
use qontract_daemon::run_setup::RunSetup;
use qontract_daemon::run_store::RunStore;
use qontract_daemon::signals;
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_journal::Journal;
use qontract_report::{DataSide, InvalidData, PlanReport, ReportStatus, RevisionInfo, UncheckedIntegration};
use qontract_runtime::guard::{Ledger, LedgerError, MemoryLedger};
use qontract_runtime::reconcile_loop::ShutdownSignal;
use qontract_runtime::{Bodies, Integration, RunEnd, RunRecord, definition};
use qontract_telemetry::activity::Activities;
use qontract_telemetry::log::Log;

use crate::commands::affected::UNDECLARED_EXIT_CODE;
use crate::commands::reconcile::{WarnOnly, record};
use crate::commands::up::default_sandbox;
use crate::integrations::REGISTRY;

/// Maximum number of integrations that are planned concurrently. Each processes several shards concurrently.
const MAX_CONCURRENT: usize = 4;

/// Plans the affected integrations, and prints the report.
pub fn run(arguments: PlanArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let config_file = arguments.config.clone().or_else(|| variable("QONTRACT_CONFIG").map(PathBuf::from));
    let config = Config::find_and_note(config_file.as_deref(), printer)?;
    let resolver = InputResolver::new(&arguments.repo, Layout::default(), printer);
    let (base_spec, head_spec) = resolver.base_and_head(arguments.base.clone(), arguments.head.clone())?;
    let check = if arguments.no_validate { InputCheck::Complete } else { InputCheck::Valid };
    let head = PinnedData::open(&resolver, &head_spec, check, None);
    let head = opened(head, &head_spec, arguments.output, printer, |failed| {
        invalid_report(DataSide::Head, failed, None)
    })?;
    let base = PinnedData::open(&resolver, &base_spec, InputCheck::Nothing, Some(&head));
    let base = opened(base, &base_spec, arguments.output, printer, |failed| {
        invalid_report(DataSide::Base, failed, Some(&head))
    })?;
    let sandbox = sandbox(&arguments, &config, printer);
    let repo = discovery::repo_of(&head_spec, &arguments.repo);
    let repo = repo.map(|folder| discovery::revision_root(folder, &Layout::default()));
    let at = SandboxLocation { folder: sandbox.as_deref(), repo: repo.as_deref() };
    let log_options = LogOptions::default().with_environment()?;
    let log = Arc::new(
        Log::new(log_options.level().into())
            .with_output(log_options.line_format(&std::io::stderr()), std::io::stderr()),
    );
    let targets = Targets::new(&config, at, Mode::DryRun)?.with_log(&log);
    let names = names(&arguments, &config, &head)?;
    let runs = Arc::new(RunStore::new(
        arguments.runs.clone().or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from)),
    )?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let journal = journal::of(config.sandbox_folder(sandbox.as_deref()), &runs);
    let ledger = runtime.block_on(ledger_of(journal, printer));
    let activities = Activities::default();
    let (stopper, stop) = ShutdownSignal::pair();
    let planner = Planner { head: Arc::new(head), base, runs, ledger, config, arguments, activities, stop };
    let planner = Arc::new(planner);
    let mut report = planner.empty_report();
    planner.note_removed(&mut report)?;
    let (mut integrations, mut unready) = (Vec::new(), BTreeMap::new());
    for name in names {
        match REGISTRY.integration(&name, &planner.config, &targets) {
            Ok(integration) => {
                // An integration that the command line names has to run: if it cannot, that is an
                // error.
                if let Err(fault) = integration.ready()
                    && planner.arguments.integration.is_empty()
                {
                    unready.insert(name, fault);
                }
                integrations.push(integration);
            }
            // Without targets nothing can be planned, which is reported once.
            Err(error) if error.is::<UsageError>() => return Err(error),
            Err(error) if error.is::<SandboxUnsupported>() => {
                let reason = error.to_string();
                report.add_unchecked(UncheckedIntegration { integration: name, reason });
            }
            Err(error) => report.add(plan_report::unstarted(&name, &error)),
        }
    }
    if integrations.is_empty() && report.integrations.is_empty() && report.unchecked.is_empty() {
        printer.note(
            "warning: the data declares no integration of this binary: nothing is planned\nhint: declare integrations with datafiles of schema `/app-sre/integration-1.yml`, or name one with `-i NAME`",
        );
        let format = planner.arguments.output;
        plan_output::print(&report, format, plan_output::detail(false), &str::to_owned, printer)?;
        return Ok(Exit::Run(UNDECLARED_EXIT_CODE));
    }
    let progress = Progress::start("planning", planner.activities.clone());
    let all = runtime.block_on(async {
        signals::listen(stopper.clone(), Vec::new, log)?;
        anyhow::Ok(planner.clone().plan_all(integrations).await)
    })?;
    // The process ends soon: does not wait for blocked threads, and handles signals until then.
    std::mem::forget(runtime);
    for (name, planned) in all {
        match planned {
            // Not stored, because the run had nothing to do and its record would displace others.
            Ok(record) if record.ended == RunEnd::EarlyExit => plan_report::add(&mut report, &record),
            Ok(_) if unready.contains_key(&name) => {
                let reason = unready.get(&name).map(describe_missing).unwrap_or_default();
                report.add_unchecked(UncheckedIntegration { integration: name, reason });
            }
            Ok(record) => {
                if let Err(error) = planner.runs.store(&record) {
                    printer.note(&format!("warning: cannot store the run record: {error:#}"));
                }
                plan_report::add(&mut report, &record);
            }
            Err(error) => report.add(plan_report::unstarted(&name, &error)),
        }
    }
    drop(progress);
    let PlanArgs { output, full, .. } = planner.arguments;
    let file_name = |file: &str| planner.head.display(file);
    plan_output::print(&report, output, plan_output::detail(full), &file_name, printer)?;
    Ok(stopper.interruption().map_or_else(|| exit(&report), |by| Exit::Run(by.exit_code())))
}

/// The ledger that the removal budgets of a plan are checked against. A machine that only plans, such as a CI
/// runner, has no ledger: the plan then assumes that nothing was removed before, and a warning is printed.
async fn ledger_of(journal: Arc<Journal>, printer: &Printer) -> Arc<dyn Ledger> {
    match journal.check(&ReadPermit::for_data()).await {
        Err(LedgerError::NotInitialised { place, .. }) => {
            printer.note(&format!(
                "warning: no removal ledger in `{place}`: the plan assumes that nothing was removed in the last 24 hours\nhint: pass the `--runs` directory of the processes that reconcile, if this machine can read it"
            ));
            Arc::new(MemoryLedger::default())
        }
        _ => journal,
    }
}

/// The exit code of a dry run with this report.
pub fn exit(report: &PlanReport) -> Exit {
    match report.status {
        ReportStatus::Unchanged => Exit::Ok,
        ReportStatus::Changes => Exit::Changes,
        ReportStatus::Held | ReportStatus::Failed | ReportStatus::Invalid => Exit::Failure,
    }
}

/// The data of the base or the head. If it is invalid, JSON and Markdown output contain a report; in text
/// output, the findings are on stderr.
fn opened(
    data: anyhow::Result<PinnedData>,
    word: &str,
    format: PlanFormat,
    printer: &Printer,
    report: impl FnOnce(&ValidationFailed) -> PlanReport,
) -> anyhow::Result<PinnedData> {
    data.or_else(|error| {
        let Some(failed) = error.downcast_ref::<ValidationFailed>() else {
            return Err(error.context(UsageError(format!("cannot open `{word}`"))));
        };
        if format != PlanFormat::Text {
            let detail = plan_output::detail(false);
            plan_output::print(&report(failed), format, detail, &str::to_owned, printer)?;
        }
        Err(error)
    })
}

/// The report about invalid data; `head` is the head if the base is invalid.
fn invalid_report(side: DataSide, failed: &ValidationFailed, head: Option<&PinnedData>) -> PlanReport {
    let ValidationFailed { findings, repo, commit, sha, .. } = failed;
    let revision = RevisionInfo {
        sha256: sha.clone().unwrap_or_default(),
        commit: Some(commit.clone()).filter(|commit| !commit.is_empty()),
        modified: !commit.is_empty() && pinned_data::is_modified(repo),
    };
    let report = match head {
        Some(head) => PlanReport::new(Mode::DryRun.as_str(), Some(revision), self::revision(head)),
        None => PlanReport::new(Mode::DryRun.as_str(), None, revision),
    };
    report.with_invalid(InvalidData::new(side, findings, repo))
}

fn revision(side: &PinnedData) -> RevisionInfo {
    RevisionInfo {
        sha256: side.source.sha().to_owned(),
        commit: side.source.commit().map(str::to_owned),
        modified: side.is_modified(),
    }
}

/// The sandbox directory: the one from the command line, or, if the configuration has no targets, the one
/// that `up` created for the data repo.
fn sandbox(arguments: &PlanArgs, config: &Config, printer: &Printer) -> Option<PathBuf> {
    if arguments.sandbox.is_some() || config.sandbox.is_some() || config.kubernetes.is_some() {
        return arguments.sandbox.clone();
    }
    let repo = discovery::revision_root(&arguments.repo, &Layout::default());
    let folder = default_sandbox(&repo).ok().filter(|folder| folder.is_dir())?;
    printer
        .note(&format!("note: no target is configured; planning against the sandbox {}", folder.display()));
    Some(folder)
}

/// The integrations to plan: those from the command line, or those that the data defines and that are
/// available.
fn names(arguments: &PlanArgs, config: &Config, head: &PinnedData) -> anyhow::Result<Vec<String>> {
    let is_available = |name: &String| REGISTRY.has(name, config);
    if let Some(unknown) = arguments.integration.iter().find(|name| !is_available(name)) {
        return Err(REGISTRY.unknown(unknown, config));
    }
    let mut names: Vec<String> = if arguments.integration.is_empty() {
        definition::all(&*head.source)?.into_iter().map(|(name, _)| name).filter(is_available).collect()
    } else {
        arguments.integration.clone()
    };
    names.sort();
    names.dedup();
    Ok(names)
}

/// Shared context of the runs of a plan.
struct Planner {
    head: Arc<PinnedData>,
    base: PinnedData,
    runs: Arc<RunStore>,
    ledger: Arc<dyn Ledger>,
    config: Config,
    arguments: PlanArgs,
    /// The current activities of the runs.
    activities: Activities,
    /// Ends all runs.
    stop: ShutdownSignal,
}

impl Planner {
    fn empty_report(&self) -> PlanReport {
        PlanReport::new(Mode::DryRun.as_str(), Some(revision(&self.base)), revision(&self.head))
    }

    /// Notes integrations that only the base defines: they no longer run, and their objects stay.
    fn note_removed(&self, report: &mut PlanReport) -> anyhow::Result<()> {
        let head: Vec<String> =
            definition::all(&*self.head.source)?.into_iter().map(|(name, _)| name).collect();
        for (name, _) in definition::all(&*self.base.source)? {
            if !head.contains(&name) {
                let text = format!(
                    "`{name}` is no longer defined: it stops running, and the objects that it manages stay"
                );
                report.notes.push(text);
            }
        }
        Ok(())
    }

    /// Plans all integrations, up to [`MAX_CONCURRENT`] concurrently. A failure does not stop the others.
    async fn plan_all(
        self: Arc<Self>,
        integrations: Vec<Integration>,
    ) -> Vec<(String, anyhow::Result<RunRecord>)> {
        let planned = integrations.into_iter().map(|integration| {
            let (planner, name) = (Arc::clone(&self), integration.meta().name.clone());
            let task = tokio::spawn(async move { planner.plan(&integration).await });
            async move {
                let planned = task.await.unwrap_or_else(|panic| Err(anyhow::anyhow!("it panicked: {panic}")));
                (name, planned)
            }
        });
        futures_util::stream::iter(planned).buffered(MAX_CONCURRENT).collect().await
    }

    async fn plan(&self, integration: &Integration) -> anyhow::Result<RunRecord> {
        let Self { head, base, runs, ledger, config, arguments, activities, stop } = self;
        let mode = Mode::DryRun;
        let mut begun = RunSetup {
            integration: &integration.meta().name,
            mode,
            head,
            runs,
            ledger,
            observer: Arc::new(WarnOnly),
        }
        .start()?;
        let request = &mut begun.request;
        request.base = Some(Arc::clone(&base.source));
        request.only_affected = !arguments.all;
        request.include_unaffected = arguments.all;
        request.trust_head = arguments.trust_head;
        request.bodies = if arguments.full { Bodies::Shown } else { Bodies::Hidden };
        request.budgets = config.guards.budgets();
        request.shutdown = stop.clone();
        let outcome = activities.scope(qontract_runtime::run(integration, &begun.request)).await;
        Ok(record(&outcome, begun.clock(), head, Some(base)))
    }
}
