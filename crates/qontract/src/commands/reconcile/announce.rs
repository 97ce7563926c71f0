//! What is said before a run: which data goes to which targets.

use qontract_access::Mode;
use qontract_cli::printer::Printer;
use qontract_cli::{LogLevel, RunOptions};
use qontract_config::Config;
use qontract_daemon::clusters;
use qontract_daemon::pinned::Side;
use qontract_diagnostics::shown;

/// Names the data and the targets of a real run, and reports clusters of the configuration that the data does not have.
pub fn announce(
    options: &RunOptions,
    config: &Config,
    (integration, mode): (&str, Mode),
    head: &Side,
    printer: &Printer,
) {
    let sandbox = config.sandbox_folder(options.sandbox.as_deref());
    let is_real = sandbox.is_none() && clusters::need(integration).is_some();
    let table = config.kubernetes.as_ref().filter(|_| is_real);
    let names = if table.is_some() { clusters::names(&*head.source) } else { Vec::new() };
    let level = options.talk.level();
    if let Some(table) = table.filter(|_| !names.is_empty() && level <= LogLevel::Warning) {
        for warning in clusters::unknown(table.clusters.keys(), &names) {
            printer.note(&format!("warning: {}", shown(&warning)));
        }
    }
    if mode == Mode::DryRun || level > LogLevel::Info {
        return;
    }
    let configured = config.graphql.as_ref().map(|graphql| graphql.server.as_str());
    let data = options.data.as_deref().or(configured).unwrap_or(".");
    let commit = head.commit().map(|commit| format!(" @ {commit}")).unwrap_or_default();
    let targets = match sandbox {
        Some(folder) => format!("sandbox {}", folder.display()),
        None => clusters::listed(&names),
    };
    let targets = if targets.is_empty() { targets } else { format!(" · {targets}") };
    printer.note(&shown(&format!("real run · data {data}{commit}{targets}")));
}
