//! `qontract help` and `qontract version`: the same as `--help` and `--version`, as commands.

use std::ffi::OsString;

use qontract_daemon::exit::Exit;

use qontract_cli::printer::Printer;
use qontract_cli::{ColorWhen, Help};

use crate::VERSION;

/// Prints the help of a command, or of all.
pub fn run(arguments: Help, color: ColorWhen) -> Exit {
    let words = ["qontract".to_owned()].into_iter().chain(arguments.command).chain(["--help".to_owned()]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match qontract_cli::command(color, VERSION).try_get_matches_from(words) {
        // `--help` always comes back as an error that is none.
        Ok(_) => Exit::Ok,
        Err(error) => crate::print_usage(&error, None),
    }
}

/// Prints the version.
pub fn version(printer: &Printer) -> anyhow::Result<Exit> {
    printer.text(&qontract_cli::command(ColorWhen::Auto, VERSION).render_long_version())?;
    Ok(Exit::Ok)
}
