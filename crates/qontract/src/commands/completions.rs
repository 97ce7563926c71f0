//! `qontract completions`: what a shell needs to complete commands.

use clap::CommandFactory as _;
use qontract_cli::printer::Printer;
use qontract_cli::{Cli, Completions};
use qontract_daemon::exit::Exit;

pub fn run(arguments: &Completions, printer: &Printer) -> anyhow::Result<Exit> {
    // written at once: the generator does not expect a reader that goes away
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
