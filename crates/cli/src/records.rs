//! Arguments of the commands about past runs: `runs` and `approve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Help of `--config` for commands that read only the journal.
pub(crate) const JOURNAL_CONFIG_HELP: &str = "Configuration file, which may name the bucket of the journal; not used with `--runs`. By default `$QONTRACT_CONFIG`, else `./qontract.toml` (not in data repos and Git work trees), else `$XDG_CONFIG_HOME/qontract/config.toml`";

/// Arguments of `runs`.
#[derive(Args, Debug)]
pub struct RunsArgs {
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long = "runs", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", global = true, help = JOURNAL_CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: RecordFormat,
    /// The action; lists runs by default.
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

/// Number of runs that are listed by default.
const DEFAULT_LAST: usize = 20;

/// Actions of `runs`.
#[derive(Subcommand, Debug)]
pub enum RunsAction {
    /// List runs, newest last
    List(RunsListArgs),
    /// Show the decisions and changes of a run
    Show {
        /// A run: its id, a prefix of its id, `last`, or an integration, which selects its last run
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Plan again from the recorded inputs of a run, and print the plan digest or the first input that differs
    Replay(RunsReplayArgs),
}

/// Arguments of `runs replay`.
#[derive(Args, Debug)]
pub struct RunsReplayArgs {
    /// A run: its id, a prefix of its id, `last`, or an integration, which selects its last run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Data to use if a bundle of the run is not stored: it must have the same sha
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Also compare the secrets of this sandbox with the recorded fingerprints
    #[arg(long, value_name = "DIR")]
    pub sandbox: Option<PathBuf>,
    /// Also compare the secrets of the configured secret store with the recorded fingerprints
    #[arg(long)]
    pub secrets: bool,
}

/// Arguments of `runs list`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct RunsListArgs {
    /// List only runs of this integration
    #[arg(long, value_name = "NAME")]
    pub integration: Option<String>,
    /// List only the newest N runs
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LAST)]
    pub last: usize,
    /// List only runs that failed or were interrupted
    #[arg(long)]
    pub failed: bool,
    /// List only runs that held changes, regardless of their state; with `--failed`, list runs that match either
    #[arg(long)]
    pub held: bool,
    /// List only runs that started since this time: `30m`, `2h`, `7d`, `2026-11-17` or `2026-11-17T13:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Also list dry runs that had nothing to do because the change did not affect them
    #[arg(long)]
    pub all: bool,
    /// Keep listing new runs until interrupted
    #[arg(long)]
    pub follow: bool,
}

impl Default for RunsListArgs {
    fn default() -> Self {
        let (integration, since) = (None, None);
        let (failed, held, all, follow) = (false, false, false, false);
        Self { integration, last: DEFAULT_LAST, failed, held, since, all, follow }
    }
}

/// Formats of run records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// A table, or text
    #[default]
    Text,
    /// JSON; with `--follow`, one object per line
    Json,
}

/// Arguments of `approve`.
#[derive(Args, Debug)]
pub struct ApproveArgs {
    /// The run that held the removals: its id, a prefix of its id, `last`, or an integration, which selects
    /// its last run that held changes
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Write the datafile to this file or directory instead of stdout; in a directory, the file is named
    /// after the run. An existing file is not replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The last day on which the removals are allowed: a date such as `2026-12-01`, or days from today such
    /// as `14d`
    #[arg(long, value_name = "DAY", default_value = "7d")]
    pub expires: String,
    /// Why these objects may be removed; this becomes the description of the datafile
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Allow each removal only as part of the plan in which the run held it: with a different plan, it is held again
    #[arg(long)]
    pub bound: bool,
    /// Allow each removal only once: an object that is created again needs another approval
    #[arg(long)]
    pub once: bool,
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", help = JOURNAL_CONFIG_HELP)]
    pub config: Option<PathBuf>,
}
