//! `qontract state`: reads and changes the state that integrations keep in the state store.

use std::path::PathBuf;

use qontract_access::Mode;
use qontract_cli::printer::Printer;
use qontract_cli::{StateAction, StateArgs, StateChangeOptions, StateFormat, variable};
use qontract_config::Config;
use qontract_daemon::exit::Exit;
use qontract_daemon::run_store::RunStore;
use qontract_daemon::state_access::{StateAccess, StateChange, display_key, parse_value};
use qontract_daemon::targets::SandboxLocation;
use serde_json::json;

pub fn run(arguments: StateArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let StateArgs { config, sandbox, output, action } = arguments;
    let config = Config::find_and_note(config.as_deref(), printer)?;
    let open = |integration: &str, mode: Mode| {
        let sandbox = SandboxLocation { folder: sandbox.as_deref(), repo: None };
        StateAccess::open(&config, sandbox, integration, mode)
    };
    let store = |change: StateChangeOptions| {
        RunStore::new(change.runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from)))
    };
    let report = |key: &str, change: StateChange, mode: Mode| match output {
        StateFormat::Json => {
            let outcome =
                json!({"key": display_key(key), "change": change.as_str(), "dry_run": mode == Mode::DryRun});
            printer.json(format!("{outcome}\n").as_bytes())
        }
        StateFormat::Text => {
            let end = if mode == Mode::DryRun { " (dry run)" } else { "" };
            printer.note(&format!("{change}: `{}`{end}", display_key(key)));
            Ok(())
        }
    };
    match action {
        StateAction::Ls { integration } => {
            let keys = open(&integration, Mode::DryRun)?.keys()?;
            match output {
                StateFormat::Json => printer.json(format!("{}\n", json!(keys)).as_bytes())?,
                StateFormat::Text => keys.iter().try_for_each(|key| printer.text(&format!("{key}\n")))?,
            }
        }
        StateAction::Get { key } => {
            let value = open(&key.integration, Mode::DryRun)?.get(&key.key)?;
            printer.json(format!("{value}\n").as_bytes())?;
        }
        StateAction::Set { key, value, change } => {
            let (mode, value) = (mode_of(&change), parse_value(&value, std::io::stdin())?);
            let outcome = open(&key.integration, mode)?.set(&key.key, value, &store(change)?)?;
            report(&key.key, outcome, mode)?;
        }
        StateAction::Rm { key, change } => {
            let mode = mode_of(&change);
            let outcome = open(&key.integration, mode)?.remove(&key.key, &store(change)?)?;
            report(&key.key, outcome, mode)?;
        }
    }
    Ok(Exit::Ok)
}

fn mode_of(change: &StateChangeOptions) -> Mode {
    if change.dry_run { Mode::DryRun } else { Mode::Real }
}
