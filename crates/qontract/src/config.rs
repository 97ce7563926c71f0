//! The operator's configuration: `config.toml`, with the names that the established runtime reads, and our own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use qontract_runtime::guard::{Budget, Budgets};
use qontract_runtime::process::Program;
use serde::Deserialize;

use crate::cli::variable;

/// The configuration. Tables that are not named here belong to others.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Config {
    /// The server that has the data.
    #[serde(default)]
    pub graphql: Option<Graphql>,
    /// A folder in place of every target system.
    #[serde(default)]
    pub sandbox: Option<SandboxFolder>,
    /// Integrations of the process form, by name.
    #[serde(default)]
    pub integrations: BTreeMap<String, Registered>,
    /// How much may be removed without approval.
    #[serde(default)]
    pub guards: Guards,
}

/// The server that has the data.
#[derive(Clone, Deserialize)]
pub struct Graphql {
    /// Its address: `http://host:port/graphql`.
    pub server: String,
    /// What is sent as `Authorization`.
    pub token: Option<String>,
}

impl std::fmt::Debug for Graphql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graphql").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A folder in place of every target system.
#[derive(Clone, Debug, Deserialize)]
pub struct SandboxFolder {
    /// The folder.
    pub directory: PathBuf,
}

/// An integration of the process form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registered {
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// Variables of our environment that it gets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables that it gets only to apply a step.
    #[serde(default)]
    pub write_environment: Vec<String>,
    /// How long one answer may take.
    #[serde(default = "usual_deadline")]
    pub deadline_seconds: u64,
}

fn usual_deadline() -> u64 {
    60
}

impl Registered {
    /// How it is started.
    pub fn program(&self) -> Program {
        let values = |names: &[String]| {
            names.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect()
        };
        Program {
            command: self.command.clone(),
            environment: values(&self.environment),
            write_environment: values(&self.write_environment),
            deadline: Duration::from_secs(self.deadline_seconds),
        }
    }
}

/// How much may be removed without approval.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guards {
    shard_removals: Option<usize>,
    shard_percent: Option<usize>,
    run_removals: Option<usize>,
    run_percent: Option<usize>,
}

impl Guards {
    /// The budgets.
    pub fn budgets(self) -> Budgets {
        let usual = Budgets::default();
        let budget = |count: Option<usize>, percent: Option<usize>, usual: Budget| Budget {
            count: count.unwrap_or(usual.count),
            percent: percent.unwrap_or(usual.percent),
        };
        Budgets {
            shard: budget(self.shard_removals, self.shard_percent, usual.shard),
            run: budget(self.run_removals, self.run_percent, usual.run),
        }
    }
}

impl Config {
    /// Reads the file that is named, here or by `QONTRACT_CONFIG`.
    pub fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let named = variable("QONTRACT_CONFIG").map(PathBuf::from);
        let Some(file) = file.or(named.as_deref()) else { return Ok(Self::default()) };
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
        toml::from_str(&text).with_context(|| format!("`{}` is not a configuration", file.display()))
    }
}
