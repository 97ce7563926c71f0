//! `qontract completions`: completion scripts for shells.

use qontract_cli::printer::Printer;
use qontract_cli::{CompletionsArgs, ungrouped_command};
use qontract_daemon::exit::Exit;

use crate::VERSION;
use crate::integrations::KnownIntegrations;

pub fn run(arguments: &CompletionsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    // The script is generated in memory first, because the generator panics if the reader closes the pipe.
    let mut script = Vec::new();
    let mut command = ungrouped_command(VERSION, &KnownIntegrations::listed().metas);
    clap_complete::generate(arguments.shell, &mut command, "qontract", &mut script);
    printer.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
