//! `qontract runs`: what was run, and what came of it.

use qontract_diagnostics::counted;
use std::path::PathBuf;

use crate::cli::{Runs as Arguments, RunsAction, variable};
use crate::commands::reconcile::explain;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::runs::Runs;

pub fn run(arguments: Arguments, printer: &Printer) -> anyhow::Result<Exit> {
    let Arguments { runs, action } = arguments;
    let runs = Runs::new(runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from)))?;
    match action {
        RunsAction::Show { run } => printer.text(&explain(&runs.read(&run)?))?,
        RunsAction::List { integration, last } => {
            let mut text = String::new();
            let (records, older) = runs.list(integration.as_deref(), last)?;
            if older > 0 {
                printer.note(&format!("note: {} before these; `--last` shows more", counted(older, "run")));
            }
            for record in records {
                let changes = record.shards.values().map(|shard| shard.changes.len()).sum();
                text.push_str(&format!(
                    "{}  {}  {} (exit {})  {}  {} ms\n",
                    record.run,
                    record.mode,
                    record.ended,
                    record.exit,
                    counted(changes, "change"),
                    record.milliseconds
                ));
            }
            for idle in runs
                .idle()?
                .into_iter()
                .filter(|idle| integration.as_ref().is_none_or(|name| *name == idle.integration))
            {
                let at = |seconds: i64| {
                    jiff::Timestamp::from_second(seconds).map(|at| at.to_string()).unwrap_or_default()
                };
                text.push_str(&format!(
                    "{}: {} with nothing to do, from {} to {}\n",
                    idle.integration,
                    counted(usize::try_from(idle.count).unwrap_or(usize::MAX), "run"),
                    at(idle.first),
                    at(idle.last)
                ));
            }
            printer.text(&text)?;
        }
    }
    Ok(Exit::Ok)
}
