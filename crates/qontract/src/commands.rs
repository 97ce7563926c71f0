//! The commands, one file each.

mod affected;
mod approve;
mod bundle;
mod completions;
mod config_check;
mod config_init;
mod data_server;
mod diff;
mod explain;
mod fleet;
mod get;
mod help;
mod integrations;
mod inventory;
mod journal;
mod loops;
mod man;
mod peer_bundler;
mod peer_run_integration;
mod peer_server;
mod peer_validator;
mod plan;
mod query;
mod reconcile;
mod runs;
mod schema;
mod shards;
mod state;
mod up;
mod validate;

use qontract_cli::printer::Printer;
use qontract_cli::{Cli, CliFlavor, Command, ConfigAction, PeerTool, ReconcileArgs, SchemaAction};
use qontract_config::LocatedConfig;
use qontract_daemon::exit::Exit;

/// Runs the command; `config` is the configuration, if it was read to parse the command line.
pub fn run(cli: Cli, config: Option<LocatedConfig>, printer: &Printer) -> anyhow::Result<Exit> {
    let reconcile = |arguments: ReconcileArgs, flavor: CliFlavor| {
        let file = arguments.options.config.as_deref();
        let config = config.unwrap_or_else(|| flavor.read_config(file));
        reconcile::run(arguments, flavor, config, printer)
    };
    match cli.command {
        Command::Up(arguments) => up::run(arguments),
        Command::Plan(arguments) => plan::run(&arguments, printer),
        Command::Bundle(arguments) => bundle::run(arguments, printer),
        Command::Diff(arguments) => Ok(diff::run(arguments, printer)),
        Command::Get(arguments) => get::run(arguments, printer),
        Command::Query(arguments) => query::run(arguments, printer),
        Command::Serve(arguments) => data_server::run(*arguments),
        Command::Reconcile(arguments) => reconcile(*arguments, CliFlavor::Qontract),
        Command::Affected(arguments) => affected::run(arguments, printer),
        Command::Integrations(arguments) => integrations::run(arguments, printer),
        Command::Fleet(arguments) => fleet::run(arguments, printer),
        Command::Shards(arguments) => shards::run(arguments, printer),
        Command::Inventory(arguments) => inventory::run(arguments, printer),
        Command::Explain(arguments) => explain::run(arguments, printer),
        Command::Runs(arguments) => runs::run(arguments, printer),
        Command::Approve(arguments) => approve::run(arguments, printer),
        Command::Config(config) => match config.action {
            ConfigAction::Check(arguments) => config_check::run(*arguments, printer),
            ConfigAction::Init { file } => config_init::init(&file, printer),
            ConfigAction::Reference => printer.text(&qontract_config::environment::page()).map(|()| Exit::Ok),
        },
        Command::Journal(arguments) => journal::run(arguments, printer),
        Command::Loop(arguments) => loops::run(arguments, printer),
        Command::Peer(peer) => match peer.tool {
            PeerTool::Bundler(arguments) => peer_bundler::run(arguments, printer),
            PeerTool::Reconcile(arguments) => reconcile(*arguments, CliFlavor::QontractReconcile),
            PeerTool::RunIntegration => peer_run_integration::run(),
            PeerTool::Server(arguments) => peer_server::run(&arguments),
            PeerTool::Validator(arguments) => peer_validator::run(&arguments, printer),
        },
        Command::Completions(arguments) => completions::run(&arguments, printer),
        Command::Man(arguments) => man::run(&arguments, printer),
        Command::Help(arguments) => help::run(arguments, cli.global.color, printer),
        Command::Version => help::version(printer),
        Command::Schema(schema) => match schema.action {
            SchemaAction::Export(arguments) => schema::export(arguments, printer),
        },
        Command::State(arguments) => state::run(arguments, printer),
        Command::Validate(arguments) => validate::run(arguments, printer),
    }
}
