//! `[foreign.NAME]`: existing commands that are run as integrations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qontract_runtime::foreign::ForeignCommand;
use qontract_runtime::process::StderrLog;
use serde::Deserialize;

/// An existing command, such as a command of qontract-reconcile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignTable {
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// The configuration file of the command, which gets a copy with the address of the data.
    pub config: Option<PathBuf>,
    /// Arguments that `run-integration` passes on to the integration.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Environment variables that are passed to the command.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Environment variables that are passed to the command. Their values are secret.
    #[serde(default)]
    pub secret_environment: Vec<String>,
    /// Whether real runs are allowed.
    #[serde(default)]
    pub real_runs: bool,
    /// Time limit of a run.
    #[serde(default = "default_deadline_seconds")]
    pub deadline_seconds: u64,
    /// Time that the command needs to exit after `SIGINT`.
    #[serde(default = "default_shutdown_seconds")]
    pub shutdown_seconds: u64,
}

fn default_deadline_seconds() -> u64 {
    1800
}

fn default_shutdown_seconds() -> u64 {
    60
}

impl ForeignTable {
    /// The command that is run as the integration `name`, with the current values of the environment
    /// variables that are passed to it.
    pub fn command(&self, name: &str, log: Option<Arc<dyn StderrLog>>) -> ForeignCommand {
        let values = |names: &[String]| {
            names.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect()
        };
        ForeignCommand {
            integration: name.to_owned(),
            command: self.command.clone(),
            arguments: self.arguments.clone(),
            environment: values(&self.environment),
            secret_environment: values(&self.secret_environment),
            deadline: Duration::from_secs(self.deadline_seconds),
            shutdown: Duration::from_secs(self.shutdown_seconds),
            log,
        }
    }

    /// Resolves relative paths of the command and of its configuration relative to the directory of the file
    /// that contains this table.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        super::resolve_command(&mut self.command, folder);
        if let Some(config) = &mut self.config {
            *config = folder.join(&*config);
        }
    }
}
