//! Arguments of `state`, which reads and changes the state store of integrations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CONFIG_HELP;

/// Arguments of `state`.
#[derive(Args, Debug)]
pub struct StateArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE", global = true, help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Use the state store of this sandbox
    #[arg(long, value_name = "DIR", global = true)]
    pub sandbox: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: StateFormat,
    /// The action.
    #[command(subcommand)]
    pub action: StateAction,
}

/// Formats of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StateFormat {
    /// Keys as lines, a value as JSON; changes are reported on stderr
    #[default]
    Text,
    /// JSON
    Json,
}

/// Actions of `state`.
#[derive(Debug, Subcommand)]
pub enum StateAction {
    /// List the keys of an integration
    Ls {
        /// The integration
        integration: String,
    },
    /// Print a value, exactly as qontract-reconcile writes it
    Get {
        /// The key.
        #[command(flatten)]
        key: StateKey,
    },
    /// Write a value, unless the key has it already
    ///
    /// The value is not written if it was changed in the meantime. The change is added to the audit log.
    Set {
        /// The key.
        #[command(flatten)]
        key: StateKey,
        /// The value, as JSON; `-` reads it from stdin
        value: String,
        /// The options of a change.
        #[command(flatten)]
        change: StateChangeOptions,
    },
    /// Remove a key, which must exist
    ///
    /// The change is added to the audit log.
    Rm {
        /// The key.
        #[command(flatten)]
        key: StateKey,
        /// The options of a change.
        #[command(flatten)]
        change: StateChangeOptions,
    },
}

/// A key of the state of an integration.
#[derive(Args, Debug)]
pub struct StateKey {
    /// The integration
    pub integration: String,
    /// The key, with or without a leading slash
    pub key: String,
}

/// Options of the commands that change the state.
#[derive(Args, Debug)]
pub struct StateChangeOptions {
    /// Report the change, but do not make it
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the run records, which holds the audit log; by default `$QONTRACT_RUNS`, else below the
    /// user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
}
