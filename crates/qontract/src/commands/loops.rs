//! `qontract loop`: orders to loops.

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_cli::{LoopAction, LoopArgs, OrderTarget, PauseArgs};
use qontract_config::Config;
use qontract_daemon::exit::Exit;
use qontract_daemon::journal::OpenJournal;
use qontract_daemon::loop_orders::{JournalKind, OrderDesk};
use qontract_journal::OrderAction;

use crate::integrations::REGISTRY;

pub fn run(arguments: LoopArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let LoopArgs { journal: options, action } = arguments;
    let config = Config::find(options.config.as_deref())?;
    let OpenJournal { journal, folder, .. } = super::journal::open(options)?;
    let kind = JournalKind::of(folder.as_deref());
    let (target, order, timeout) = match action {
        LoopAction::List { days, json } => {
            let desk = OrderDesk::new(&journal, kind, None)?;
            printer.text(&threads()?.block_on(desk.list(days, json))?)?;
            return Ok(Exit::Ok);
        }
        LoopAction::Pause(PauseArgs { target, reason, duration }) => {
            (target, OrderDesk::pause(reason, duration)?, None)
        }
        LoopAction::Drain { pause: PauseArgs { target, reason, duration }, timeout } => {
            (target, OrderDesk::pause(reason, duration)?, Some(timeout))
        }
        LoopAction::Resume { target } => (target, OrderAction::Resume, None),
        LoopAction::Run { target } => (target, OrderAction::Run, None),
    };
    let OrderTarget { integration, by, .. } = target;
    if let Some(name) = integration.as_deref().filter(|name| !REGISTRY.has(name, &config)) {
        return Err(REGISTRY.unknown(name, &config));
    }
    let desk = OrderDesk::new(&journal, kind, by)?;
    let threads = threads()?;
    printer.note(&threads.block_on(desk.give(integration.clone(), order))?);
    if let Some(timeout) = timeout {
        printer.note(&threads.block_on(desk.drained(integration.as_deref(), timeout))?);
    }
    Ok(Exit::Ok)
}

fn threads() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")
}
