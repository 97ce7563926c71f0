//! `qontract help` and `qontract version`: `--help` and `--version` as commands.

use std::ffi::OsString;

use qontract_daemon::exit::Exit;

use qontract_cli::printer::Printer;
use qontract_cli::{ColorWhen, HelpArgs, reference};

use crate::VERSION;
use crate::integrations::KnownIntegrations;

/// Prints the help of one command, or of all commands.
pub fn run(arguments: HelpArgs, color: ColorWhen, printer: &Printer) -> anyhow::Result<Exit> {
    let HelpArgs { command, markdown } = arguments;
    if markdown {
        let command = qontract_cli::command(ColorWhen::Never, VERSION, &KnownIntegrations::listed().metas);
        printer.text(&reference::markdown(command))?;
        return Ok(Exit::Ok);
    }
    let words = ["qontract".to_owned()].into_iter().chain(command).chain(["--help".to_owned()]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    Ok(match crate::parse(color, &words, &KnownIntegrations::of(&words)) {
        // Clap always returns `--help` as an error.
        Ok(_) => Exit::Ok,
        Err(error) => crate::print_usage(&error, None),
    })
}

/// Prints the version.
pub fn version(printer: &Printer) -> anyhow::Result<Exit> {
    printer.text(&qontract_cli::command(ColorWhen::Auto, VERSION, &[]).render_long_version())?;
    Ok(Exit::Ok)
}
