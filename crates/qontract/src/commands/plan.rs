//! `qontract plan`: a dry run of every integration that a change affects, in one report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::Mode;
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
use qontract_daemon::planner::{self, PlannedShards, Planner};
use qontract_daemon::registry::{SandboxUnsupported, describe_missing};
use qontract_daemon::run_store::RunStore;
use qontract_daemon::sandbox_folder;
use qontract_daemon::signals;
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_report::{
    DataSide, InvalidData, PlanReport, ReportStatus, RevisionInfo, RunMode, UncheckedIntegration,
};
use qontract_runtime::reconcile_loop::ShutdownSignal;
use qontract_runtime::{Bodies, RunEnd, definition};
use qontract_telemetry::activity::Activities;

use crate::integrations::REGISTRY;

/// Plans the affected integrations, and prints the report.
pub fn run(arguments: &PlanArgs, printer: &Printer) -> anyhow::Result<Exit> {
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
    let sandbox = sandbox(arguments, &config, printer);
    let repo = discovery::repo_of(&head_spec, &arguments.repo);
    let repo = repo.map(|folder| discovery::revision_root(folder, &Layout::default()));
    let at = SandboxLocation { folder: sandbox.as_deref(), repo: repo.as_deref() };
    let log_options = LogOptions::default().with_environment()?;
    let log = Arc::new(log_options.stderr_log());
    let targets = Targets::new(&config, at, Mode::DryRun)?.with_log(&log);
    let names = names(arguments, &config, &head)?;
    let runs = Arc::new(RunStore::new(
        arguments.runs.clone().or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from)),
    )?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let journal = journal::of(config.sandbox_folder(sandbox.as_deref()), &runs);
    let ledger = runtime.block_on(planner::ledger_of(journal, printer));
    let activities = Activities::default();
    let (stopper, stop) = ShutdownSignal::pair();
    let planner = Arc::new(Planner {
        head: Arc::new(head),
        base,
        runs,
        ledger,
        budgets: config.guards.budgets(),
        shards: if arguments.all { PlannedShards::All } else { PlannedShards::Affected },
        trust_head: arguments.trust_head,
        bodies: if arguments.full { Bodies::Shown } else { Bodies::Hidden },
        messages: Arc::new(Printer::default()),
        activities: activities.clone(),
        stop,
    });
    let mut report = planner.empty_report()?;
    let (mut integrations, mut unready) = (Vec::new(), BTreeMap::new());
    for name in names {
        match REGISTRY.integration(&name, &config, &targets) {
            Ok(integration) => {
                // An integration that the command line names has to run: if it cannot, that is an
                // error.
                if let Err(fault) = integration.ready()
                    && arguments.integration.is_empty()
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
        let format = arguments.output;
        plan_output::print(&report, format, plan_output::detail(false), &str::to_owned, printer)?;
        return Ok(Exit::Run(RunEnd::NotDefined));
    }
    let progress = Progress::start("planning", activities);
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
    let &PlanArgs { output, full, .. } = arguments;
    let file_name = |file: &str| planner.head.display(file);
    plan_output::print(&report, output, plan_output::detail(full), &file_name, printer)?;
    Ok(stopper.interruption().map_or_else(|| exit(&report), Exit::Signal))
}

/// Whether the changes of an integration are not known.
fn has_unknown(report: &PlanReport) -> bool {
    report.integrations.iter().any(|one| one.status == ReportStatus::NotKnown)
}

/// The exit code of a dry run with this report.
pub fn exit(report: &PlanReport) -> Exit {
    match report.status {
        ReportStatus::Changes | ReportStatus::NotKnown => Exit::Changes,
        // The status of another integration hides that there are changes.
        ReportStatus::Degraded | ReportStatus::Waiting
            if report.totals.changes() > 0 || has_unknown(report) =>
        {
            Exit::Changes
        }
        ReportStatus::Unchanged | ReportStatus::Degraded | ReportStatus::Waiting => Exit::Ok,
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
        Some(head) => PlanReport::new(RunMode::DryRun, Some(revision), planner::revision(head)),
        None => PlanReport::new(RunMode::DryRun, None, revision),
    };
    report.with_invalid(InvalidData::new(side, findings, repo))
}

/// The sandbox directory: the one from the command line, or, if the configuration has no targets, the one
/// that `up` created for the data repo.
fn sandbox(arguments: &PlanArgs, config: &Config, printer: &Printer) -> Option<PathBuf> {
    if arguments.sandbox.is_some() || config.sandbox.is_some() || config.kubernetes.is_some() {
        return arguments.sandbox.clone();
    }
    let repo = discovery::revision_root(&arguments.repo, &Layout::default());
    let folder = sandbox_folder::default_for(&repo).ok().filter(|folder| folder.is_dir())?;
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
