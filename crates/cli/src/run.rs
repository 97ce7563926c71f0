//! Arguments of the commands that run integrations: `reconcile` and `up`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anstream::stream::RawStream;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use qontract_config::{UsageError, variable};
use qontract_runtime::{ArgumentKind, Flag, FlagKind, IntegrationMeta, Options, ShardKey};
use qontract_telemetry::log::{Level, LineFormat, Log};

use super::plan::PlanFormat;
use super::{CONFIG_HELP, CliFlavor, NAMED_CONFIG_HELP};
use crate::printer::{self, Verbosity};

/// Arguments of `reconcile`.
#[derive(Args, Debug)]
pub struct ReconcileArgs {
    /// Options of the run.
    #[command(flatten)]
    pub options: RunOptions,
    /// The integration and its own flags.
    #[command(subcommand)]
    pub integration: SelectedIntegration,
}

/// Options of a run.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RunOptions {
    /// Configuration file.
    #[arg(long, value_name = "FILE", global = true, help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long, global = true, overrides_with = "no_dry_run")]
    pub dry_run: bool,
    /// Apply the changes; this is the default
    #[arg(long, global = true)]
    pub no_dry_run: bool,
    /// The data: a directory, a bundle file, a Git revision, or the URL of a server; by default the
    /// configured server, else the working directory
    #[arg(long, value_name = "DATA", global = true)]
    pub data: Option<String>,
    /// Run even if the data is invalid
    #[arg(long, global = true, conflicts_with = "every")]
    pub no_validate: bool,
    /// The data before a proposed change: a dry run processes only affected shards; a real run also
    /// reconciles shards that exist only in the base
    #[arg(long, value_name = "DATA", global = true)]
    pub base: Option<String>,
    /// Git repository in which to look up revisions
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub repo: PathBuf,
    /// The bundle on the server to compare with, by its SHA-256; by default `$EARLY_EXIT_COMPARE_SHA`
    #[arg(long, value_name = "SHA", global = true, conflicts_with = "base")]
    pub early_exit_compare_sha: Option<String>,
    /// Run only the shards that the change affects; the default for `reconcile`, and for `peer reconcile` if
    /// `$CHECK_ONLY_AFFECTED_SHARDS` is `true`
    #[arg(long, global = true)]
    pub check_only_affected_shards: bool,
    /// Run all shards, even those that the change does not affect; the default for `peer reconcile`
    #[arg(long, global = true, conflicts_with = "check_only_affected_shards")]
    pub all_shards: bool,
    /// Contact addresses and read secrets that the change adds or modifies; by default, a dry run does neither
    #[arg(long, global = true)]
    pub trust_head: bool,
    /// Enforce the list of schemas that the integration may read; this is the default
    #[arg(long, global = true, overrides_with = "no_validate_schemas")]
    pub validate_schemas: bool,
    /// Let the integration read all schemas
    #[arg(long, global = true)]
    pub no_validate_schemas: bool,
    /// Write the schemas that the run read to a file, as a JSON list
    #[arg(long, value_name = "FILE", global = true)]
    pub dump_schemas: Option<PathBuf>,
    /// Query the same bundle of the server throughout the run; this is the default
    #[arg(long, global = true, overrides_with = "no_gql_sha_url")]
    pub gql_sha_url: bool,
    /// Send each query to the latest bundle of the server
    #[arg(long, global = true)]
    pub no_gql_sha_url: bool,
    /// Print the URL of the server; this is the default in a real run
    #[arg(long, global = true, overrides_with = "no_gql_url_print")]
    pub gql_url_print: bool,
    /// Do not print the URL of the server
    #[arg(long, global = true)]
    pub no_gql_url_print: bool,
    /// Log options.
    #[command(flatten)]
    pub log: LogOptions,
    /// Use a sandbox directory instead of the target systems
    #[arg(long, value_name = "DIR", global = true)]
    pub sandbox: Option<PathBuf>,
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR", global = true)]
    pub runs: Option<PathBuf>,
    /// Number of processes that share the work; by default `$SHARDS`, else 1
    #[arg(long, value_name = "N", global = true)]
    pub shards: Option<u32>,
    /// Index of this process, counted from 0; by default `$SHARD_ID`, else 0
    #[arg(long, value_name = "I", global = true)]
    pub shard_id: Option<u32>,
    /// Run only the shard with this key, such as `cluster=c1,namespace=n1`; can be repeated
    #[arg(long, value_name = "KEY", global = true, conflicts_with = "every")]
    pub shard: Vec<ShardKey>,
    /// Run only the shards that failed in an earlier run: its id, or `last`
    #[arg(long, value_name = "RUN", global = true, conflicts_with_all = ["every", "shard"])]
    pub failed_of: Option<String>,
    /// Wait for rollouts to complete, for at most this time (default 10m); exit with 1 if a rollout fails, with
    /// 75 if one is still in progress
    #[arg(
        long,
        value_name = "TIME",
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10m",
        value_parser = duration,
        conflicts_with_all = ["dry_run", "every"],
    )]
    pub wait: Option<Duration>,
    /// Run in a loop: immediately, then at this interval (`30s`, `10m`, `1h`) and whenever the data changes
    #[arg(long, value_name = "TIME", global = true, value_parser = duration)]
    pub every: Option<Duration>,
    /// With `--every`: serve `/status`, `/healthz`, `/readyz` and `/metrics` on this address: `HOST:PORT`, or
    /// a port on the loopback interface
    #[arg(long, value_name = "ADDRESS", global = true, requires = "every", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: RunFormat,
    /// Show every field, and the content of created objects
    #[arg(long, global = true)]
    pub full: bool,
    /// With `--dry-run`: exit with 2 if there are changes, and with 64 instead of 2 for usage errors
    #[arg(long, global = true, requires = "dry_run")]
    pub detailed_exitcode: bool,
    /// The command line that the process was started with.
    #[arg(skip)]
    pub flavor: CliFlavor,
}

/// Log options.
#[derive(Args, Debug, Default)]
pub struct LogOptions {
    /// Log level; by default `$QONTRACT_LOG_LEVEL`, else INFO
    #[arg(long, value_name = "LEVEL", global = true, value_enum, ignore_case = true, help_heading = "Log")]
    pub log_level: Option<LogLevel>,
    /// Log format; by default `$QONTRACT_LOG_FORMAT`, else text
    #[arg(long, value_name = "FORMAT", global = true, value_enum, help_heading = "Log")]
    pub log_format: Option<LogFormat>,
}

impl LogOptions {
    /// Fills options that the command line does not set from environment variables.
    pub fn with_environment(mut self) -> Result<Self, UsageError> {
        self.log_level =
            self.log_level.map_or_else(|| parse_variable("QONTRACT_LOG_LEVEL"), |level| Ok(Some(level)))?;
        self.log_format =
            self.log_format.map_or_else(|| parse_variable("QONTRACT_LOG_FORMAT"), |form| Ok(Some(form)))?;
        Ok(self)
    }

    /// The log level; `--quiet` and `--verbose` apply if no level is set.
    pub fn level(&self) -> LogLevel {
        self.log_level.unwrap_or_else(|| match printer::verbosity() {
            Verbosity::Quiet => LogLevel::Warning,
            Verbosity::Normal => LogLevel::Info,
            Verbosity::Verbose => LogLevel::Debug,
        })
    }

    /// A log to stderr with these options.
    pub fn stderr_log(&self) -> Log {
        let stderr = std::io::stderr();
        Log::new(self.level().into()).with_output(self.line_format(&stderr), stderr)
    }

    /// The format of lines that go to this stream.
    pub fn line_format(&self, stream: &impl RawStream) -> LineFormat {
        match self.log_format.unwrap_or_default() {
            LogFormat::Text if printer::has_colours(stream) => LineFormat::Coloured,
            LogFormat::Text => LineFormat::Text,
            LogFormat::Json => LineFormat::Json,
        }
    }
}

/// Parses an environment variable whose value is one of the variants of `T`.
fn parse_variable<T: ValueEnum>(name: &str) -> Result<Option<T>, UsageError> {
    let Some(value) = variable(name) else { return Ok(None) };
    T::from_str(&value, true).map(Some).map_err(|_| {
        let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = words.map(|word| format!("`{}`", word.get_name())).collect();
        UsageError(format!("`{name}` is `{value}`; expected one of {}", words.join(", ")))
    })
}

/// Log formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Arguments of `up`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct UpArgs {
    /// Directory of the data repo; by default the data repo that contains the working directory
    pub repo: Option<PathBuf>,
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = NAMED_CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Sandbox directory to use instead of the target systems; by default one below the user's state
    /// directory, unless `--config` names real targets
    #[arg(long, value_name = "DIR")]
    pub sandbox: Option<PathBuf>,
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run each integration once, then exit; with `--dry-run`, print one plan for all integrations
    #[arg(long)]
    pub once: bool,
    /// With `--once --dry-run`: output format of the plan
    #[arg(short, long, value_enum, default_value_t, requires_all = ["once", "dry_run"])]
    pub output: PlanFormat,
    /// With `--once --dry-run`: show every field, and the content of created objects
    #[arg(long, requires_all = ["once", "dry_run"])]
    pub full: bool,
    /// With `--once --dry-run`: exit with 2 if there are changes, and with 64 instead of 2 for usage errors
    #[arg(long, requires_all = ["once", "dry_run"])]
    pub detailed_exitcode: bool,
    /// Time between two runs of an integration: `30s`, `10m`, `1h`
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub every: Duration,
    /// Serve `/status`, `/healthz`, `/readyz` and `/metrics` on this address: `HOST:PORT`, or a port on the
    /// loopback interface
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Log options.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Parses a listen address: an IP address and a port, or a port alone (`4000`, `:4000`) on the loopback
/// interface.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let address = match host {
        "" | "localhost" => port.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        _ => text.parse().ok(),
    };
    address.ok_or_else(|| "expected `HOST:PORT` with an IP address as host, or a port".to_owned())
}

/// Parses a duration: a number and `s`, `m` or `h`; the default unit is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => (&text[..at], letter),
        _ => (text, 's'),
    };
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err("expected a number and `s`, `m` or `h`".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number and `s`, `m` or `h`".to_owned())?;
    match number.saturating_mul(seconds) {
        0 => Err("must be at least one second".to_owned()),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

impl RunOptions {
    /// Fills options that the command line does not set from environment variables, which have the same
    /// meaning as in qontract-reconcile. With `--data`, ignores variables that select a bundle on a server.
    pub fn with_environment(mut self) -> Result<Self, UsageError> {
        self.runs = self.runs.or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from));
        let number = |name: &str| match variable(name).map(|value| value.parse::<u32>()) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(UsageError(format!("`{name}` is not a number"))),
        };
        self.shards = if self.shards.is_some() { self.shards } else { number("SHARDS")? };
        self.shard_id = if self.shard_id.is_some() { self.shard_id } else { number("SHARD_ID")? };
        if self.data.is_none() && self.base.is_none() {
            self.early_exit_compare_sha =
                self.early_exit_compare_sha.or_else(|| variable("EARLY_EXIT_COMPARE_SHA"));
        }
        self.check_only_affected_shards |=
            !self.all_shards && variable("CHECK_ONLY_AFFECTED_SHARDS").as_deref() == Some("true");
        self.log = self.log.with_environment()?;
        Ok(self)
    }

    /// Whether all queries of a run use the same bundle of a server.
    pub fn pins_bundle(&self) -> bool {
        self.gql_sha_url || !self.no_gql_sha_url
    }

    /// Whether reads of schemas that are not on the integration's allow-list are errors. If both flags are
    /// given, the safe one applies.
    pub fn validates_schemas(&self) -> bool {
        self.validate_schemas || !self.no_validate_schemas
    }
}

/// Log levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum LogLevel {
    /// Everything
    Debug,
    /// Decisions and results
    #[default]
    Info,
    /// Possible problems
    Warning,
    /// Errors
    Error,
    /// Same as ERROR
    Critical,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warning => Self::Warning,
            LogLevel::Error | LogLevel::Critical => Self::Error,
        }
    }
}

/// Output formats of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// The plan as text
    #[default]
    Text,
    /// The record of the run as JSON
    Json,
    /// The plan as Markdown, for a comment on a merge request
    Md,
}

/// An integration with its own flags.
#[derive(Debug)]
pub struct SelectedIntegration {
    /// The name.
    pub name: String,
    /// The flags.
    pub options: Options,
    /// The purpose of the run.
    pub purpose: RunPurpose,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunPurpose {
    /// Makes the targets match the data, or shows the changes that this requires.
    #[default]
    Reconcile,
    /// Prints the desired state.
    Print,
}

impl FromArgMatches for SelectedIntegration {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, given) = matches.subcommand().ok_or_else(|| {
            clap::Error::raw(clap::error::ErrorKind::MissingSubcommand, "an integration is required\n")
        })?;
        let (mut options, mut purpose) = (Options::default(), RunPurpose::Reconcile);
        for id in given.ids() {
            if let Some(flag) = id.as_str().strip_prefix(PRINT_PREFIX) {
                if given.get_flag(id.as_str()) {
                    options.add(flag, "true");
                    purpose = RunPurpose::Print;
                }
                continue;
            }
            let Some(flag) = id.as_str().strip_prefix(FLAG_PREFIX) else { continue };
            // The value of a switch is a Boolean, not a string.
            let Ok(values) = given.try_get_many::<String>(id.as_str()) else {
                if given.get_flag(id.as_str()) {
                    options.add(flag, "true");
                }
                continue;
            };
            for value in values.into_iter().flatten() {
                options.add(flag, value.as_str());
            }
        }
        Ok(Self { name: name.to_owned(), options, purpose })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// [`crate::command`] adds the integrations.
impl Subcommand for SelectedIntegration {
    fn augment_subcommands(command: Command) -> Command {
        command
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("INTEGRATION")
            .subcommand_help_heading("Integrations")
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(_: &str) -> bool {
        true
    }
}

/// Prefix of the ids of integrations' flags, whose names may equal those of the runner's arguments.
const FLAG_PREFIX: &str = "flag ";

/// Prefix of the ids of print switches.
const PRINT_PREFIX: &str = "print ";

/// Checks that a string is a number from 1 to 65535, and returns it unchanged.
fn positive_number(text: &str) -> Result<String, String> {
    match text.parse::<u16>() {
        Ok(1..) => Ok(text.to_owned()),
        Ok(0) | Err(_) => Err("expected a number from 1 to 65535".to_owned()),
    }
}

/// The subcommand that runs an integration, with its flags.
pub fn subcommand(meta: &IntegrationMeta) -> Command {
    Command::new(meta.name.clone()).about(meta.description.clone()).args(meta.flags.iter().map(argument))
}

/// A flag or an argument of an integration. A required argument with a variable is not required here: whether
/// it is missing depends on the environment, and help texts must not depend on the environment.
fn argument(flag: &Flag) -> Arg {
    let id = |flag: &str| format!("{FLAG_PREFIX}{flag}");
    let help = match flag.variable {
        Some(variable) => format!("{} [env: {variable}]", flag.help),
        None => flag.help.to_owned(),
    };
    let named = || {
        let arg = Arg::new(id(flag.name)).long(flag.name).short(flag.short).help(help.clone());
        let arg = arg.help_heading("Flags of the integration");
        match flag.opposite {
            Some(opposite) => arg.overrides_with(id(opposite)),
            None => arg,
        }
    };
    match flag.kind {
        FlagKind::Switch | FlagKind::Label { .. } | FlagKind::Ignored(_) => {
            named().action(ArgAction::SetTrue)
        }
        FlagKind::Print => named().id(format!("{PRINT_PREFIX}{}", flag.name)).action(ArgAction::SetTrue),
        FlagKind::Selects(_) | FlagKind::Excludes(_) | FlagKind::Value => {
            named().value_name(flag.placeholder()).action(ArgAction::Append)
        }
        FlagKind::Concurrency => {
            named().value_name("N").action(ArgAction::Append).value_parser(positive_number)
        }
        FlagKind::Argument(kind) => {
            let arg = Arg::new(id(flag.name)).value_name(flag.placeholder()).help(help);
            match kind {
                ArgumentKind::Required => arg.required(flag.variable.is_none()),
                ArgumentKind::Optional => arg,
                ArgumentKind::Repeated => arg.num_args(1..).action(ArgAction::Append),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use qontract_runtime::{ArgumentKind, FlagKind, IntegrationMeta};

    use super::{RunPurpose, SelectedIntegration, listen_address, subcommand};

    fn compliance() -> IntegrationMeta {
        IntegrationMeta::new("compliance", "Checks forks")
            .flag("ref", "A ref of an environment", FlagKind::Value)
            .short('r')
            .selects("env-name", "env")
            .variable("ENV_NAME")
            .prints("print-only", "Print")
            .argument("project", "The project", ArgumentKind::Required)
            .argument("merge-request", "The merge request", ArgumentKind::Optional)
            .argument("groups", "Groups", ArgumentKind::Repeated)
    }

    fn parse(line: &str) -> Result<SelectedIntegration, String> {
        let command = clap::Command::new("q").subcommand(subcommand(&compliance()));
        let words = std::iter::once("q").chain(line.split_whitespace());
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        SelectedIntegration::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_and_short_options_are_parsed() {
        let check = |line: &str, flag: &str, expect: &[&str]| {
            assert_eq!(parse(line).unwrap().options.values(flag), expect, "{line}");
        };
        let line = "compliance -r stage=abc -rprod=def shop 17 a b";
        check(line, "ref", &["stage=abc", "prod=def"]);
        check(line, "project", &["shop"]);
        check(line, "merge-request", &["17"]);
        check(line, "groups", &["a", "b"]);
        check("compliance shop", "groups", &[]);
        assert_eq!(parse("compliance shop").unwrap().purpose, RunPurpose::Reconcile);
        assert_eq!(parse("compliance shop --print-only").unwrap().purpose, RunPurpose::Print);
    }

    #[test]
    fn a_missing_argument_and_a_misspelt_flag_are_named() {
        let error = parse("compliance").unwrap_err();
        assert!(error.contains("<PROJECT>"), "{error}");
        let error = parse("compliance shop --env-nam x").unwrap_err();
        assert!(error.contains("similar argument exists: '--env-name'"), "{error}");
    }

    #[test]
    fn help_names_variables_but_not_their_values() {
        let help = subcommand(&compliance()).render_help().to_string();
        assert!(help.contains("<PROJECT> [MERGE_REQUEST] [GROUPS]..."), "{help}");
        assert!(help.contains("[env: ENV_NAME]"), "{help}");
        assert!(help.contains("-r, --ref <VALUE>"), "{help}");
    }

    #[test]
    fn a_port_alone_is_on_the_loopback_interface() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(
                listen_address(text).ok().map(|address| address.to_string()).as_deref(),
                expect,
                "{text}"
            );
        };
        check("4000", Some("127.0.0.1:4000"));
        check(":4000", Some("127.0.0.1:4000"));
        check("localhost:4000", Some("127.0.0.1:4000"));
        check("0.0.0.0:4000", Some("0.0.0.0:4000"));
        check("[::1]:0", Some("[::1]:0"));
        for wrong in ["", ":", "65536", "example.com:80", "127.0.0.1", "::1"] {
            check(wrong, None);
        }
    }
}
