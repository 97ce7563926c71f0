//! `qontract plan`: a dry run of every integration that a change affects, in one report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_bundle::Layout;
use qontract_cli::plan_output;
use qontract_cli::printer::Printer;
use qontract_cli::progress::Progress;
use qontract_cli::{LogOptions, PlanArgs, PlanFormat, variable};
use qontract_config::Config;
use qontract_daemon::clusters;
use qontract_daemon::discovery;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::input::{InputCheck, InputResolver, ValidationFailed};
use qontract_daemon::journal::OpenJournal;
use qontract_daemon::pinned_data::{self, PinnedData};
use qontract_daemon::plan_report;
use qontract_daemon::planner::{self, PlannedIntegrations, Planner};
use qontract_daemon::run_settings::{RunSettings, ShardScope, TargetLocation};
use qontract_daemon::sandbox_folder;
use qontract_daemon::signals;
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_report::{DataSide, PlanReport};
use qontract_runtime::reconcile_loop::ShutdownSignal;
use qontract_runtime::{Bodies, RunEnd};
use qontract_telemetry::activity::Activities;

use crate::integrations::REGISTRY;

/// Plans the affected integrations and prints the report.
pub fn run(arguments: &PlanArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let config_file = arguments.config.clone().or_else(|| variable("QONTRACT_CONFIG").map(PathBuf::from));
    let config = Config::find_and_note(config_file.as_deref(), printer)?;
    let resolver = InputResolver::new(&arguments.repo, Layout::default(), printer);
    let (base_spec, head_spec) = resolver.base_and_head(arguments.base.clone(), arguments.head.clone())?;
    let check = if arguments.no_validate { InputCheck::Complete } else { InputCheck::Valid };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let threads = || Ok(runtime.handle().clone());
    let server = pinned_data::server_of_specs(&config, &[&base_spec, &head_spec], threads)?;
    let server = server.as_ref();
    let head = PinnedData::open_or_connect(&resolver, server, &head_spec, check, None);
    let head = opened(head, &head_spec, arguments.output, printer, |failed| {
        planner::invalid_report(DataSide::Head, failed, None)
    })?;
    let base = PinnedData::open_or_connect(&resolver, server, &base_spec, InputCheck::Nothing, Some(&head));
    let base = opened(base, &base_spec, arguments.output, printer, |failed| {
        planner::invalid_report(DataSide::Base, failed, Some(&head))
    })?;
    let sandbox = sandbox_folder::of_plan(arguments.sandbox.as_deref(), &config, &arguments.repo, printer);
    let repo = discovery::repo_of(&head_spec, &arguments.repo).filter(|_| !head.is_remote());
    let repo = repo.map(|folder| discovery::revision_root(folder, &Layout::default()));
    let at = SandboxLocation { folder: sandbox.as_deref(), repo: repo.as_deref() };
    let log_options = LogOptions::default().with_environment()?;
    let log = Arc::new(log_options.stderr_log());
    let targets = Targets::new(&config, at, Mode::DryRun)?.with_log(&log);
    let names = planner::integrations_to_plan(&arguments.integration, REGISTRY, &config, &head)?;
    let runs = arguments.runs.clone().or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from));
    let folder = config.sandbox_folder(sandbox.as_deref());
    let OpenJournal { journal, runs, .. } = OpenJournal::new(&config, folder, runs, Mode::DryRun)?;
    let location = TargetLocation::of(folder);
    let ledger = runtime.block_on(planner::ledger_of(journal, printer));
    let activities = Activities::default();
    let (stopper, stop) = ShutdownSignal::pair();
    let planner = Arc::new(Planner {
        head: Arc::new(head),
        base,
        runs,
        settings: RunSettings {
            shards: if arguments.all { ShardScope::All } else { ShardScope::Affected },
            trust_head: arguments.trust_head,
            bodies: if arguments.full { Bodies::Shown } else { Bodies::Hidden },
            ..RunSettings::configured(Mode::DryRun, &config, location, ledger)?
        },
        messages: Arc::new(Printer::default()),
        activities: activities.clone(),
        stop,
    });
    let mut report = planner.empty_report(&arguments.repo);
    report.targets = Some(announce_targets(folder, &planner.head, arguments, printer));
    let create = |name: &str| REGISTRY.integration(name, &config, &targets);
    if sandbox_folder::is_missing(sandbox.as_deref(), &config) {
        report.notes.push(sandbox_folder::MISSING.to_owned());
    }
    planner.add_undefined(create, &mut report)?;
    let planned = PlannedIntegrations::create(names, create, &arguments.integration, &mut report)?;
    let unready = planned.unready();
    let integrations = planned.integrations;
    if integrations.is_empty() && report.integrations.is_empty() && report.unchecked.is_empty() {
        printer.note(
            "warning: the data declares no integration of this binary: nothing is planned\nhint: declare integrations with datafiles of schema `/app-sre/integration-1.yml`, or name one with `-i NAME`",
        );
        let format = arguments.output;
        plan_output::print(&report, format, plan_output::detail(false), &str::to_owned, printer)?;
        return Ok(Exit::Run(RunEnd::NotDefined));
    }
    let progress = Progress::start("planning", activities);
    runtime.block_on(async {
        signals::listen(stopper.clone(), Vec::new, log)?;
        let all = planner.clone().plan_all(integrations).await;
        planner.add_results(all, &unready, &mut report).await;
        anyhow::Ok(())
    })?;
    // The process ends soon, so it does not wait for blocked threads; until then, it handles signals.
    std::mem::forget(runtime);
    drop(progress);
    let &PlanArgs { output, full, .. } = arguments;
    let file_name = |file: &str| planner.head.display(file);
    plan_output::print(&report, output, plan_output::detail(full), &file_name, printer)?;
    Ok(stopper.interruption().map_or_else(|| plan_report::exit(&report), Exit::Signal))
}

/// Logs the targets of the plan (the sandbox, or the clusters of the data), and returns their description.
fn announce_targets(
    sandbox: Option<&Path>,
    head: &PinnedData,
    arguments: &PlanArgs,
    printer: &Printer,
) -> String {
    let words = match sandbox {
        Some(folder) => format!("sandbox `{}`", folder.display()),
        None => Some(clusters::names(&*head.source))
            .filter(|names| !names.is_empty())
            .map_or_else(|| "no cluster".to_owned(), |names| clusters::format_list(&names)),
    };
    if arguments.output == PlanFormat::Text {
        printer.note(&format!("planning against {words}"));
    }
    words
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
