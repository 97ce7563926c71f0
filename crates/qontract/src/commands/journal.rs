//! `qontract journal`: initialises the state that all processes share.

use std::path::PathBuf;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_cli::printer::Printer;
use qontract_cli::{JournalAction, JournalArgs as Arguments, variable};
use qontract_daemon::exit::Exit;
use qontract_daemon::journal;
use qontract_daemon::run_store::RunStore;
use qontract_journal::InitResult;

pub fn run(arguments: Arguments, printer: &Printer) -> anyhow::Result<Exit> {
    let JournalAction::Init { runs, sandbox } = arguments.action;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")?;
    let journal = match sandbox {
        Some(sandbox) => journal::of_sandbox(&sandbox),
        None => {
            journal::of_runs(&RunStore::new(runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from)))?)
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator initialises the journal; nothing else is written"
    )]
    let permits = qontract_access::mint(Mode::Real);
    let write = permits.write.as_ref().context("a real run may write")?;
    let text = match runtime.block_on(journal.init(&permits.read, write))? {
        InitResult::Created => "initialised: removals count from now on".to_owned(),
        InitResult::Unchanged => "already initialised: nothing changed".to_owned(),
        InitResult::Repaired(parts) => format!("repaired: {}", parts.join(", ")),
    };
    printer.note(&text);
    Ok(Exit::Ok)
}
