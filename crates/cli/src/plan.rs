//! Arguments of the commands that compare two states of the data: `plan`, `affected`, `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CONFIG_HELP, LayoutOptions};

/// Arguments of `plan`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct PlanArgs {
    /// The data before the change: a Git revision, a directory, a bundle file, or the sha of a bundle on the
    /// configured server [default: origin/HEAD, else HEAD]
    pub base: Option<String>,
    /// The data after the change: a Git revision, a directory, a bundle file, or the sha of a bundle on the
    /// configured server [default: the directory of the data repo]
    pub head: Option<String>,
    /// Plan only this integration; can be repeated
    #[arg(short, long, value_name = "NAME")]
    pub integration: Vec<String>,
    /// Plan every integration and shard, not only those that the change affects
    #[arg(long)]
    pub all: bool,
    /// Show every field, and the content of created objects
    #[arg(long)]
    pub full: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: PlanFormat,
    /// Exit with 2 if there are changes, and with 64 instead of 2 for usage errors
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Plan against a sandbox directory instead of the target systems
    #[arg(long, value_name = "DIR")]
    pub sandbox: Option<PathBuf>,
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
    /// Directory of the data repo
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Contact addresses and read secrets that the change adds or modifies; by default, a plan does neither
    #[arg(long)]
    pub trust_head: bool,
    /// Plan even if the data is invalid
    #[arg(long)]
    pub no_validate: bool,
}

/// Output formats of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Markdown, for a comment on a merge request
    Md,
    /// JSON that conforms to `docs/reference/plan.schema.json`
    Json,
}

/// Arguments of `affected`.
#[derive(Args, Debug)]
pub struct AffectedArgs {
    /// The data before the change: a Git revision, a directory, a bundle file, or the sha of a bundle on the
    /// configured server [default: origin/HEAD, else HEAD]
    pub base: Option<String>,
    /// The data after the change: a Git revision, a directory, a bundle file, or the sha of a bundle on the
    /// configured server [default: the directory of the data repo]
    pub head: Option<String>,
    /// Check only this integration; can be repeated
    #[arg(short, long, value_name = "NAME")]
    pub integration: Vec<String>,
    /// Also list the integrations that are not affected
    #[arg(short, long)]
    pub verbose: bool,
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Git repository in which to look up revisions
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ReportFormat,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Output formats of a report about a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// Markdown, for a comment on a merge request
    Md,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The data before: a Git revision, a directory or a bundle file
    #[arg(default_value = "HEAD")]
    pub base: String,
    /// The data after: a Git revision, a directory or a bundle file [default: the directory of the data repo]
    pub head: Option<String>,
    /// Git repository in which to look up revisions
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Show all fields and lines of every file
    #[arg(long)]
    pub full: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DiffFormat,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Output formats of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON in the format of the server's `/diff` endpoint
    Json,
    /// Markdown, for a comment on a merge request
    Md,
}
