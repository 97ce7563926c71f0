//! The binary: command line in, exit code out. Nothing is decided here.

mod check;
mod cli;
mod commands;
mod config;
mod data;
mod exit;
mod input;
mod integrations;
mod keep;
mod lines;
mod printer;
mod runs;
mod targets;

use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;

use crate::cli::{Cli, Command, PeerTool};
use crate::exit::Exit;
use crate::printer::Printer;

/// Many small values are made by many threads: this allocator takes a third of the CPU time off a bundle. It asks for huge
/// pages, which make large answers a fifth cheaper; who waits most of the time does without (`spare`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let arguments = as_peer(std::env::args_os().collect());
    cli::know(integrations::known(&arguments));
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no error; clap knows which is which.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
        }
    };
    if is_loop(&cli.command) {
        spare();
    }
    let printer = Printer::default();
    let exit = commands::run(cli.command, &printer).unwrap_or_else(|error| {
        if printer::is_broken_pipe(&error) {
            return Exit::Ok;
        }
        printer.error(&error);
        Exit::of(&error)
    });
    exit.into()
}

/// Whether a command waits most of the time and holds little: its memory is what it costs.
fn is_loop(command: &Command) -> bool {
    match command {
        Command::Up(_) => true,
        Command::Reconcile(arguments) => arguments.options.every.is_some(),
        Command::Peer(peer) => matches!(peer.tool, PeerTool::RunIntegration),
        _ => false,
    }
}

/// Does without huge pages, as most of each would be empty. The allocator has to know before the process begins, so the
/// process begins again, as itself: same number, same arguments. What it starts does without them, too.
#[cfg(target_os = "linux")]
fn spare() {
    use std::os::unix::process::CommandExt as _;
    const HUGE_PAGES: &str = "MIMALLOC_ALLOW_THP";
    if std::env::var_os(HUGE_PAGES).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let mut again = std::process::Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // It comes back only if it cannot be done, and then it is none the worse but for some megabytes.
    let _ = again.args(arguments).env(HUGE_PAGES, "0").exec();
}

#[cfg(not(target_os = "linux"))]
fn spare() {}

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
