//! `qontract shards`: prints hash slots.

use qontract_cli::printer::Printer;
use qontract_cli::{ShardsAction, ShardsArgs};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::targets::Targets;
use qontract_runtime::{ShardKey, slot};

use crate::integrations::REGISTRY;

pub fn run(arguments: ShardsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        ShardsAction::Of(of) => {
            let value = match &of.integration {
                Some(name) => {
                    let config = Config::find_and_note(of.config.as_deref(), printer)?;
                    slot_value(name, &of.value, &config)?
                }
                None => of.value,
            };
            printer.text(&format!("{}\n", slot::slot_of(&value, of.shards)))?;
        }
    }
    Ok(Exit::Ok)
}

/// The string that an integration hashes for a shard. If the integration is a process integration, its
/// program is started only to describe itself.
fn slot_value(name: &str, key: &str, config: &Config) -> anyhow::Result<String> {
    let key: ShardKey =
        key.parse().map_err(|error: qontract_runtime::InvalidShardKey| UsageError(error.to_string()))?;
    let integration = REGISTRY.integration(name, config, &Targets::none())?;
    Ok(integration.meta().slot_value(&key))
}
