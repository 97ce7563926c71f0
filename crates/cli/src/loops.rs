//! Arguments of `loop`, which gives orders to loops.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::JournalOptions;
use super::run::duration;

/// Arguments of `loop`.
#[derive(Args, Debug)]
pub struct LoopArgs {
    /// The journal with the orders.
    #[command(flatten)]
    pub journal: JournalOptions,
    /// The action.
    #[command(subcommand)]
    pub action: LoopAction,
}

/// Actions of `loop`.
#[derive(Debug, Subcommand)]
pub enum LoopAction {
    /// Start no new run, and no further step of a run in progress
    ///
    /// Steps in progress are finished. Single runs (`qontract reconcile NAME`) refuse to run as well; dry runs are
    /// not affected.
    Pause(PauseArgs),
    /// Pause, and wait until no run is in progress
    Drain {
        /// The pause.
        #[command(flatten)]
        pause: PauseArgs,
        /// Give up after this time; the loops stay paused
        #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
        timeout: Duration,
    },
    /// End a pause; the loops run immediately
    Resume {
        /// The loops.
        #[command(flatten)]
        target: OrderTarget,
    },
    /// Run now, without waiting for the interval
    Run {
        /// The loops.
        #[command(flatten)]
        target: OrderTarget,
    },
    /// List the pauses, and the orders that were given in the last days
    List {
        /// Number of days
        #[arg(long, value_name = "DAYS", default_value_t = 7)]
        days: u16,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A pause.
#[derive(Args, Debug)]
pub struct PauseArgs {
    /// The loops.
    #[command(flatten)]
    pub target: OrderTarget,
    /// The reason, for those who find the loop paused
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// End the pause after this time (`30m`, `2h`); by default it lasts until it is resumed
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
}

/// The loops that get an order.
#[derive(Args, Debug)]
pub struct OrderTarget {
    /// The integration
    #[arg(value_name = "INTEGRATION", required_unless_present = "all", conflicts_with = "all")]
    pub integration: Option<String>,
    /// All integrations
    #[arg(long)]
    pub all: bool,
    /// Who gives the order; by default the user and the host
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}
