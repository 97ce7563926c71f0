//! The part of the command line that runs integrations.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use qontract_runtime::{About, FlagKind, Options};

/// Arguments of `reconcile`.
#[derive(Args, Debug)]
pub struct Reconcile {
    /// How it is run.
    #[command(flatten)]
    pub options: RunOptions,
    /// Which integration, with its own flags.
    #[command(subcommand)]
    pub integration: Chosen,
}

/// How an integration is run.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RunOptions {
    /// The configuration
    #[arg(long, value_name = "FILE", global = true, env = "QONTRACT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long, global = true, overrides_with = "no_dry_run")]
    pub dry_run: bool,
    /// Change what is to change; this is the default
    #[arg(long, global = true)]
    pub no_dry_run: bool,
    /// The data: a folder, a bundle file, or a Git revision; by default the server of the configuration
    #[arg(long, value_name = "DATA", global = true)]
    pub data: Option<String>,
    /// The data before a proposed change, to run only what the change affects
    #[arg(long, value_name = "DATA", global = true)]
    pub base: Option<String>,
    /// Folder of the data repo that Git revisions are of
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub repo: PathBuf,
    /// The bundle on the server to compare with, by its SHA-256
    #[arg(long, value_name = "SHA", global = true, env = "EARLY_EXIT_COMPARE_SHA", conflicts_with = "base")]
    pub early_exit_compare_sha: Option<String>,
    /// Run only the shards that the change affects
    #[arg(long, global = true, env = "CHECK_ONLY_AFFECTED_SHARDS")]
    pub check_only_affected_shards: bool,
    /// Run all shards, even those that the change does not affect
    #[arg(long, global = true, conflicts_with = "check_only_affected_shards")]
    pub all_shards: bool,
    /// Use addresses that the change brings or changes, which is otherwise not done in a dry run
    #[arg(long, global = true)]
    pub trust_head: bool,
    /// Enforce the list of schemas that the integration may read; this is the default
    #[arg(long, global = true, overrides_with = "no_validate_schemas")]
    pub validate_schemas: bool,
    /// Let the integration read everything
    #[arg(long, global = true)]
    pub no_validate_schemas: bool,
    /// Write the schemas that were read into a file, as a JSON list
    #[arg(long, value_name = "FILE", global = true)]
    pub dump_schemas: Option<PathBuf>,
    /// Ask the server for one bundle from beginning to end; this is the default
    #[arg(long, global = true, overrides_with = "no_gql_sha_url")]
    pub gql_sha_url: bool,
    /// Ask the server for whatever bundle is the latest at each query
    #[arg(long, global = true)]
    pub no_gql_sha_url: bool,
    /// Say which address is asked; this is the default in a real run
    #[arg(long, global = true, overrides_with = "no_gql_url_print")]
    pub gql_url_print: bool,
    /// Do not say which address is asked
    #[arg(long, global = true)]
    pub no_gql_url_print: bool,
    /// How much is said
    #[arg(long, global = true, value_enum, ignore_case = true, default_value_t, env = "QONTRACT_LOG_LEVEL")]
    pub log_level: LogLevel,
    /// A folder in place of every target system
    #[arg(long, value_name = "DIR", global = true)]
    pub sandbox: Option<PathBuf>,
    /// Folder of the records of runs
    #[arg(long, value_name = "DIR", global = true, env = "QONTRACT_RUNS")]
    pub runs: Option<PathBuf>,
    /// How many processes share the work
    #[arg(long, value_name = "N", global = true, default_value_t = 1, env = "SHARDS")]
    pub shards: u32,
    /// Which of them this one is, counted from 0
    #[arg(long, value_name = "I", global = true, default_value_t = 0, env = "SHARD_ID")]
    pub shard_id: u32,
    /// Form of the result
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: RunFormat,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum LogLevel {
    /// Everything
    Debug,
    /// What was decided
    #[default]
    Info,
    /// What may be wrong
    Warning,
    /// What is wrong
    Error,
    /// What ends the run
    Critical,
}

/// Forms of the result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// The plan, for people
    #[default]
    Text,
    /// The record of the run
    Json,
}

/// The integrations that the command line knows; set before it is read.
static KNOWN: OnceLock<Vec<About>> = OnceLock::new();

/// Tells the command line which integrations there are.
pub fn know(abouts: Vec<About>) {
    // Set once: the command line is read once.
    let _ = KNOWN.set(abouts);
}

/// An integration with its own flags.
#[derive(Debug)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Its flags.
    pub options: Options,
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, given) = matches.subcommand().ok_or_else(|| {
            clap::Error::raw(clap::error::ErrorKind::MissingSubcommand, "which integration?\n")
        })?;
        let mut options = Options::default();
        let about = KNOWN.get().into_iter().flatten().find(|about| about.name == name);
        for flag in about.into_iter().flat_map(|about| &about.flags) {
            for value in given.get_many::<String>(flag.name).into_iter().flatten() {
                options.add(flag.name, value.clone());
            }
        }
        Ok(Self { name: name.to_owned(), options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Chosen {
    fn augment_subcommands(command: Command) -> Command {
        let known = KNOWN.get().into_iter().flatten().map(subcommand);
        command
            .subcommands(known)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("INTEGRATION")
            .subcommand_help_heading("Integrations")
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        KNOWN.get().into_iter().flatten().any(|about| about.name == name)
    }
}

fn subcommand(about: &About) -> Command {
    let flags = about.flags.iter().map(|flag| {
        let name = match flag.kind {
            FlagKind::Selects(dimension) | FlagKind::Excludes(dimension) => dimension,
            FlagKind::Value => "VALUE",
        };
        Arg::new(flag.name)
            .long(flag.name)
            .help(flag.help)
            .value_name(name.to_uppercase())
            .action(ArgAction::Append)
            .help_heading("Flags of the integration")
    });
    Command::new(about.name.clone()).about(about.description.clone()).args(flags)
}
