//! Arguments of `fleet`, which shows the shards of integrations and the pods that run them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{CONFIG_HELP, DataOptions};

/// Arguments of `fleet`.
#[derive(Args, Debug)]
pub struct FleetArgs {
    /// The action.
    #[command(subcommand)]
    pub action: FleetAction,
}

/// Actions of `fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetAction {
    /// Show what the manager would change: a dry run of `integrations-manager`
    Plan {
        /// Options of `reconcile integrations-manager`, such as `--sandbox DIR` or `--upstream URL`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        arguments: Vec<OsString>,
    },
    /// List the shards, and the state of the objects that run them
    Status(FleetStatusArgs),
    /// Explain why a shard exists: its strategy, its line in the data, and what it runs
    Explain {
        /// The shard, as in `fleet status`: the name of its object, with or without `qontract-reconcile-`
        shard: String,
        /// The fleet.
        #[command(flatten)]
        fleet: FleetStatusArgs,
    },
}

/// Arguments of the actions that show shards.
#[derive(Args, Debug)]
pub struct FleetStatusArgs {
    /// The data.
    #[command(flatten)]
    pub data: DataOptions,
    /// Show the objects in this sandbox; by default those of the configured clusters, if there are any
    #[arg(long, value_name = "DIR")]
    pub sandbox: Option<PathBuf>,
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Only integrations of this repository
    #[arg(long, short, value_name = "URL", env = "INTEGRATIONS_MANAGER_UPSTREAM")]
    pub upstream: Option<String>,
    /// Only namespaces of this environment
    #[arg(long, value_name = "NAME", env = "ENVIRONMENT_NAME")]
    pub environment_name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: FleetFormat,
}

/// Output formats of `fleet status` and `fleet explain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FleetFormat {
    /// Text
    #[default]
    Text,
    /// JSON
    Json,
}
