//! `qontract shards`: prints hash slots.

use qontract_cli::printer::Printer;
use qontract_cli::{ShardsAction, ShardsArgs};
use qontract_daemon::exit::Exit;
use qontract_runtime::slot;

pub fn run(arguments: ShardsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        ShardsAction::Of(of) => printer.text(&format!("{}\n", slot::slot_of(&of.value, of.shards)))?,
    }
    Ok(Exit::Ok)
}
