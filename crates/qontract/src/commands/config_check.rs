//! `qontract config check`: checks the configuration, the tools, the data, and access to every target system.
//! It only reads.

use std::path::PathBuf;

use qontract_cli::printer::Printer;
use qontract_cli::progress::Progress;
use qontract_cli::{ConfigCheckArgs, FindingsFormat, variable};
use qontract_daemon::config_check::{self, CheckOptions};
use qontract_daemon::exit::Exit;
use qontract_telemetry::activity::Activities;

use crate::integrations::REGISTRY;

/// Checks everything that the configuration refers to.
pub fn run(arguments: ConfigCheckArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let ConfigCheckArgs { config, data, repo, cluster, runs, output, layout } = arguments;
    let runs = runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from));
    let (integrations, layout) = (REGISTRY, layout.into());
    let options = CheckOptions { integrations, config, data, repo, layout, clusters: cluster, runs };
    let activities = Activities::default();
    let progress = Progress::start("checking", activities.clone());
    let report = config_check::check(&options, printer, &activities);
    drop(progress);
    let report = report?;
    match output {
        FindingsFormat::Text => printer.text(&report.text())?,
        FindingsFormat::Json => printer.json(&report.json()?)?,
    }
    Ok(if report.has_failed() { Exit::Failure } else { Exit::Ok })
}
