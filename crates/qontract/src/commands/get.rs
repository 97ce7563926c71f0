//! stub
use crate::cli::Get;
use crate::exit::Exit;
use crate::printer::Printer;
pub fn run(_arguments: Get, _printer: &Printer) -> anyhow::Result<Exit> {
    Ok(Exit::Ok)
}
