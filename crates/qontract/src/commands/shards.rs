//! `qontract shards`: hash slots.

use qontract_daemon::exit::Exit;
use qontract_runtime::slot;

use crate::cli::{Shards, ShardsAction};
use crate::printer::Printer;

pub fn run(arguments: Shards, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        ShardsAction::Of(of) => printer.text(&format!("{}\n", slot::of(&of.value, of.shards)))?,
    }
    Ok(Exit::Ok)
}
