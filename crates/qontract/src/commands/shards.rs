//! `qontract shards`: hash slots.

use qontract_cli::printer::Printer;
use qontract_cli::{Shards, ShardsAction};
use qontract_daemon::exit::Exit;
use qontract_runtime::slot;

pub fn run(arguments: Shards, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        ShardsAction::Of(of) => printer.text(&format!("{}\n", slot::of(&of.value, of.shards)))?,
    }
    Ok(Exit::Ok)
}
