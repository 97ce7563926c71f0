//! `qontract journal`: the state that all processes share.

use std::path::PathBuf;

use anyhow::Context as _;
use jiff::SignedDuration;
use qontract_access::Mode;
use qontract_cli::printer::Printer;
use qontract_cli::{JournalAction, JournalArgs as Arguments, JournalOptions, variable};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::journal::{self, OpenJournal};
use qontract_diagnostics::pluralize;
use qontract_journal::{InitResult, JournalStatus, Retention};

pub fn run(arguments: Arguments, printer: &Printer) -> anyhow::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")?;
    let note = runtime.block_on(run_action(arguments, printer))?;
    printer.note(&note);
    Ok(Exit::Ok)
}

/// Runs the action and returns the message about its result.
async fn run_action(arguments: Arguments, printer: &Printer) -> anyhow::Result<String> {
    let Arguments { journal: options, action } = arguments;
    if options.sandbox.is_some() && matches!(action, JournalAction::Prune { .. }) {
        let text = "a sandbox has no run records of its own: use `--runs`, or leave out `--sandbox`";
        return Err(UsageError(text.to_owned()).into());
    }
    let OpenJournal { journal, runs, .. } = open(options)?;
    let permits = journal::permits();
    let write = permits.write.as_ref().context("a real run may write")?;
    let place = &journal.location().place;
    Ok(match action {
        JournalAction::Init => match journal.init(&permits.read, write).await? {
            InitResult::Created => "initialised: removals count from now on".to_owned(),
            InitResult::Unchanged => "already initialised: nothing changed".to_owned(),
            InitResult::Repaired(parts) => format!("repaired: {}", parts.join(", ")),
        },
        JournalAction::Check => match journal.check(&permits.read).await? {
            JournalStatus::New => format!("`{place}` is created with the first write"),
            JournalStatus::Whole { ledgers } => {
                format!("`{place}` is intact: removal ledgers of {}", pluralize(ledgers, "integration"))
            }
        },
        JournalAction::Export { directory } => {
            let copied = journal::export(&journal, &directory).await?;
            format!("copied {} to `{}`", pluralize(copied, "file"), directory.display())
        }
        JournalAction::Import { directory } => {
            let copied = journal::import(&journal, &directory).await?;
            format!("copied {} to `{place}`", pluralize(copied, "file"))
        }
        JournalAction::Prune { keep, days, dry_run } => {
            let max_age = days.map(|days| SignedDuration::from_hours(i64::from(days) * 24));
            let default = runs.retention();
            let retention = Retention {
                max_records: keep.unwrap_or(default.max_records),
                max_age: max_age.unwrap_or(default.max_age),
            };
            let mode = if dry_run { Mode::DryRun } else { Mode::Real };
            let removed = runs.prune(retention, mode).await?;
            let lines: Vec<String> = removed.iter().map(|run| format!("{run}\n")).collect();
            printer.text(&lines.concat())?;
            let count = pluralize(removed.len(), "run record");
            if dry_run { format!("{count} would be removed") } else { format!("removed {count}") }
        }
    })
}

/// Opens the journal that the command line names.
pub fn open(options: JournalOptions) -> anyhow::Result<OpenJournal> {
    let JournalOptions { runs, sandbox, config } = options;
    // If the command line names a directory, that directory is used in place of the bucket.
    let config = if runs.is_some() { Config::default() } else { Config::find(config.as_deref())? };
    let runs = runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from));
    OpenJournal::new(&config, sandbox.as_deref(), runs, Mode::Real)
}
