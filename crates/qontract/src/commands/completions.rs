//! `qontract completions`: completion scripts for shells.

use clap::CommandFactory as _;
use qontract_cli::printer::Printer;
use qontract_cli::{Cli, CompletionsArgs};
use qontract_daemon::exit::Exit;

pub fn run(arguments: &CompletionsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    // Generated into memory first: the generator panics if the reader closes the pipe.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command().long_version(crate::VERSION),
        "qontract",
        &mut script,
    );
    printer.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
