//! The binary: command line in, exit code out. Nothing is decided here.

mod allocator;
mod check;
mod cli;
mod clusters;
mod commands;
mod config;
mod data;
mod environment;
mod exit;
mod human;
mod input;
mod integrations;
mod journal;
mod keep;
mod lines;
mod plan_report;
mod printer;
mod private;
mod program_log;
mod progress;
mod remembered;
mod runs;
mod start;
mod table;
mod targets;
mod watchdog;

use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use qontract_diagnostics::shown_lines;

use crate::cli::Cli;
use crate::exit::{Exit, ExitConvention};
use crate::printer::Printer;

/// Many small values are made by many threads: this allocator takes a third of the CPU time off a bundle.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    if watchdog::is_asked_for() {
        return watchdog::run();
    }
    qontract_child::enable_watchdog();
    let arguments = as_peer(std::env::args_os().collect());
    let convention = ExitConvention::of(&arguments);
    let exit = command(&arguments);
    // Whatever a command leaves behind ends before the process does.
    qontract_child::stop(qontract_child::Purpose::Write);
    exit.code(convention).into()
}

/// Runs the command that the command line asks for.
fn command(arguments: &[OsString]) -> Exit {
    cli::know(integrations::known(arguments));
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(error) = unknown_integration(&error, arguments) {
                Printer::default().error(&error);
                return Exit::of(&error);
            }
            print_usage(&error);
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
        }
    };
    let printer = Printer::default();
    commands::run(cli.command, &printer).unwrap_or_else(|error| {
        printer.error(&error);
        Exit::of(&error)
    })
}

/// Prints help, the version, or what is wrong with a command line. Clap repeats what was typed and what programs say of themselves; if that has unsafe characters, it is printed without
/// styles.
fn print_usage(error: &clap::Error) {
    let text = error.render().to_string();
    let printer = Printer::default();
    if shown_lines(&text) == text {
        let _ = error.print();
    } else if error.use_stderr() {
        printer.note(text.trim_end());
    } else {
        let _ = printer.text(&text);
    }
}

/// What is wrong with a command line that runs an integration which is not known: perhaps the configuration that would name it.
fn unknown_integration(error: &clap::Error, arguments: &[OsString]) -> Option<anyhow::Error> {
    let runs = |words: &[&str]| words.iter().zip(arguments.iter().skip(1)).all(|(word, given)| given == word);
    if error.kind() != ErrorKind::InvalidSubcommand || !(runs(&["reconcile"]) || runs(&["peer", "reconcile"]))
    {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    Some(integrations::unknown(name, arguments))
}

/// The command line with a peer's name in front (`qontract-bundler …`) turned into `qontract peer bundler …`.
fn as_peer(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
    let peer = match name.as_deref() {
        Some("qontract-bundler") => "bundler",
        Some("qontract-reconcile") => "reconcile",
        Some("qontract-server") => "server",
        Some("qontract-validator") => "validator",
        Some("run-integration") => "run-integration",
        _ => return arguments,
    };
    arguments.splice(..1, ["qontract", "peer", peer].map(OsString::from));
    arguments
}
