//! The binary: parses the command line, runs the command, and returns its exit code.

mod commands;
mod integrations;

use std::ffi::OsString;
use std::path::Path;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use qontract_cli::printer::Printer;
use qontract_cli::{Cli, ColorWhen};
use qontract_daemon::exit::{Exit, ExitConvention};
use qontract_daemon::run_loop::BuildInfo;
use qontract_diagnostics::sanitize_lines;
use qontract_runtime::IntegrationMeta;

use integrations::KnownIntegrations;

/// The output of `--version`: the version, the commit and its date.
const VERSION: &str = env!("QONTRACT_VERSION");

/// The build of this binary.
const BUILD: BuildInfo =
    BuildInfo { version: env!("CARGO_PKG_VERSION"), commit: env!("QONTRACT_BUILD_COMMIT") };

/// This allocator saves a third of the CPU time of building a bundle, because many threads allocate many
/// small values.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    if qontract_daemon::watchdog::is_requested() {
        return qontract_daemon::watchdog::run();
    }
    qontract_child::enable_watchdog();
    qontract_child::adopt_orphans();
    let (arguments, peer) = as_peer(std::env::args_os().collect());
    let convention = ExitConvention::of(&arguments);
    let exit = run_command(&arguments, peer);
    // Ends all remaining child processes.
    qontract_child::shut_down();
    exit.code(convention).into()
}

/// Runs the command of a command line.
fn run_command(arguments: &[OsString], peer: Option<PeerName>) -> Exit {
    let color = ColorWhen::of(arguments);
    color.set();
    let known = KnownIntegrations::of(arguments);
    let cli = match parse(color, arguments, &known) {
        Ok(cli) => cli,
        Err(error) => {
            let error = explain_flag(error, &known);
            if let Some(error) = unknown_integration(&error, known) {
                Printer::default().error(&error);
                return Exit::of(&error);
            }
            return print_usage(&error, peer);
        }
    };
    qontract_cli::printer::set_verbosity(cli.global.verbosity());
    let printer = Printer::default();
    commands::run(cli, known.config, &printer).unwrap_or_else(|error| {
        printer.error(&error);
        Exit::of(&error)
    })
}

/// Parses a command line that can name these integrations.
fn parse(color: ColorWhen, arguments: &[OsString], known: &KnownIntegrations) -> Result<Cli, clap::Error> {
    let mut command = qontract_cli::command(color, VERSION, &known.metas);
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints help, the version, or a usage error, and returns the exit code. Clap repeats arguments and
/// descriptions of programs; if they contain unsafe characters, the text is printed without styles. Usage
/// lines contain the peer's name if the binary was started under it.
fn print_usage(error: &clap::Error, peer: Option<PeerName>) -> Exit {
    let named = |text: String| match peer {
        Some(PeerName { name, command }) => text.replace(&format!("qontract peer {command}"), name),
        None => text,
    };
    let text = named(error.render().to_string());
    let printer = Printer::default();
    if sanitize_lines(&text) == text {
        printer.usage(&named(error.render().ansi().to_string()), error.use_stderr());
    } else if error.use_stderr() {
        printer.note(text.trim_end());
    } else {
        let _ = printer.text(&text);
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Ok }
}

/// A peer's name under which the binary can be started, and the command that replaces the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PeerName {
    name: &'static str,
    command: &'static str,
}

/// The names of peers.
const PEER_NAMES: [PeerName; 5] = [
    PeerName { name: "qontract-bundler", command: "bundler" },
    PeerName { name: "qontract-reconcile", command: "reconcile" },
    PeerName { name: "qontract-server", command: "server" },
    PeerName { name: "qontract-validator", command: "validator" },
    PeerName { name: "run-integration", command: "run-integration" },
];

/// The error for a command line that runs an unknown integration.
fn unknown_integration(error: &clap::Error, known: KnownIntegrations) -> Option<anyhow::Error> {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) => known.unknown(name),
        _ => None,
    }
}

/// Replaces the tip of a usage error about a flag that belongs to an integration and does not follow the name
/// of one.
fn explain_flag(mut error: clap::Error, known: &KnownIntegrations) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    let Some(flag) = unknown.strip_prefix("--") else { return error };
    let has_flag = |meta: &IntegrationMeta| meta.flags.iter().any(|one| one.name == flag);
    if error.kind() != ErrorKind::UnknownArgument || !known.metas.iter().any(has_flag) {
        return error;
    }
    let tip = match known.config {
        // Only the commands that run an integration read the configuration.
        Some(_) => {
            format!("'--{flag}' is a flag of integrations: write it after the name of one that has it")
        }
        None => format!("'--{flag}' is a flag of integrations, which 'qontract reconcile INTEGRATION' takes"),
    };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::TrailingArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Replaces the name of a peer at the beginning of a command line by its command: `qontract-bundler …`
/// becomes `qontract peer bundler …`.
fn as_peer(mut arguments: Vec<OsString>) -> (Vec<OsString>, Option<PeerName>) {
    let name = arguments.first().and_then(|path| Path::new(path).file_name()?.to_str().map(str::to_owned));
    let peer = PEER_NAMES.into_iter().find(|peer| Some(peer.name) == name.as_deref());
    if let Some(PeerName { command, .. }) = peer {
        arguments.splice(..1, ["qontract", "peer", command].map(OsString::from));
    }
    (arguments, peer)
}
