//! The command-line interface. The doc comments of the arguments are the help texts. [`printer`] writes to
//! stdout and stderr, [`progress`] shows the current activity of a slow command, and [`terminal`] reads the
//! size and sets the modes of the terminal.

mod flavor;
mod fleet;
mod global;
mod groups;
mod loops;
mod plan;
pub mod plan_output;
mod pretty;
pub mod printer;
pub mod progress;
mod reconcile_line;
mod records;
pub mod reference;
mod run;
pub mod screen;
mod serve;
pub mod since;
mod state;
pub mod terminal;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use qontract_bundle::Layout;
use qontract_config::environment::{ReadBy, help};

pub use qontract_config::variable;

pub use flavor::CliFlavor;
pub use fleet::{FleetAction, FleetArgs, FleetFormat, FleetStatusArgs};
pub use global::{ColorWhen, GlobalOptions};
pub use groups::{command, ungrouped_command};
pub use loops::{LoopAction, LoopArgs, OrderTarget, PauseArgs};
pub use plan::{AffectedArgs, DiffArgs, DiffFormat, PlanArgs, PlanFormat, ReportFormat};
pub use reconcile_line::ReconcileLine;
pub use records::{ApproveArgs, RecordFormat, RunsAction, RunsArgs, RunsListArgs, RunsReplayArgs};
pub use run::{
    LogLevel, LogOptions, ReconcileArgs, RunFormat, RunOptions, RunPurpose, SelectedIntegration, UpArgs,
};
pub use serve::{PeerServerArgs, ServeArgs};
pub use state::{StateAction, StateArgs, StateChangeOptions, StateFormat, StateKey};

/// Reconcile your infrastructure from one Git repository.
#[derive(Debug, Parser)]
#[command(name = "qontract", version, disable_help_subcommand = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalOptions,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the whole platform in one process: bundle, validate, and continuously reconcile
    ///
    /// Runs, in loops, every integration that the data defines and the binary contains, against a sandbox
    /// directory instead of the target systems. A saved file takes effect within a second. Nothing else has
    /// to be installed.
    #[command(after_long_help = examples(&[
        ("qontract up", "run the data repo of the working directory, with its own sandbox"),
        ("qontract up --sandbox ./sandbox", "use a sandbox that you can inspect"),
        ("qontract up --once --dry-run", "show what would change, then exit"),
    ]))]
    Up(UpArgs),
    /// Show what a change to the data would do: a dry run of every integration that it affects
    ///
    /// Compares BASE with HEAD, plans each affected integration against the configured targets or the
    /// sandbox, and prints one report. Nothing is changed, and addresses and secrets that only HEAD names are
    /// not used.
    ///
    /// Exit code: 0 success, with or without changes; 1 failed, or a removal needs approval; 2 usage error.
    /// With --detailed-exitcode: 0 nothing to report, 1 failed or held, 2 changes or something that was not
    /// planned or is no longer managed, 64 usage error.
    Plan(PlanArgs),
    /// Build a bundle from a data repo; a bundle is identified by the SHA-256 of its bytes
    #[command(after_long_help = examples(&[
        ("qontract bundle -o bundle.json", "bundle and validate the working tree"),
        ("qontract bundle --rev main -o main.json", "bundle a Git revision, without a checkout"),
    ]))]
    Bundle(BundleArgs),
    /// Show the differences between two data repos, revisions or bundles; by default between HEAD and the
    /// working tree
    ///
    /// Exit code: 0 no differences, 1 differences, 2 error.
    Diff(DiffArgs),
    /// Check a data repo, some of its files, a Git revision or a bundle, and report all errors at once
    ///
    /// Exit code: 0 no errors, 1 errors, or warnings with --strict, 2 usage error. If files are given, only
    /// their findings are shown and determine the exit code.
    #[command(after_long_help = examples(&[
        ("qontract validate", "check the data repo that contains the working directory"),
        ("qontract validate data/services/billing/app.yml", "show the findings of one file"),
        ("qontract validate HEAD~1", "check a Git revision"),
        ("qontract explain Q2041", "explain an error code"),
    ]))]
    Validate(ValidateArgs),
    /// Work with the JSON Schemas of a data repo
    Schema(SchemaArgs),
    /// List or show objects in the data: `get namespaces`, `get apps billing`
    #[command(after_long_help = examples(&[
        ("qontract get", "list all kinds"),
        ("qontract get namespaces --filter cluster=cliffs-stage", "list namespaces as a table"),
        ("qontract get apps billing -o yaml", "show one object"),
    ]))]
    Get(GetArgs),
    /// Query the data with GraphQL
    #[command(after_long_help = examples(&[
        ("qontract query '{ apps_v1 { name } }'", "indented on a terminal, otherwise on one line"),
        ("qontract query - < query.graphql | jq .data", "run a query from a file"),
    ]))]
    Query(QueryArgs),
    /// Serve bundles as GraphQL over HTTP, addressed by their SHA-256
    #[command(after_long_help = examples(&[
        ("qontract serve --watch", "watch the data repo and serve it on http://127.0.0.1:4000/graphql"),
        ("qontract serve --bundle bundle.json --listen 8080", "serve a bundle on another port"),
    ]))]
    Serve(Box<ServeArgs>),
    /// Run an integration: make its targets match the data
    ///
    /// Exit code: 0 success, 1 failed or a removal needs approval, 2 usage error, 4 the data does not define
    /// the integration, 5 it reads a schema that it is not allowed to read, 75 only transient failures, or an
    /// operation in the target is still in progress. With --dry-run --detailed-exitcode: 0 nothing to
    /// report, 2 changes or something that was not planned or is no longer managed, 64 usage error.
    #[command(after_long_help = examples(&[
        ("qontract reconcile openshift-namespaces --sandbox ./sandbox --dry-run", "show what would change"),
        ("qontract reconcile openshift-namespaces --config config.toml --cluster-name cliffs-stage", "reconcile one cluster"),
        ("qontract reconcile openshift-namespaces --config config.toml --every 10m --listen 9090", "reconcile in a loop"),
    ]))]
    Reconcile(Box<ReconcileArgs>),
    /// Show which integrations and shards a change can affect, and why
    ///
    /// Exit code: 0 nothing is affected, 1 something is affected, 2 error, 4 the data does not define a named
    /// integration.
    Affected(AffectedArgs),
    /// List the integrations, or the schemas that one of them reads
    Integrations(IntegrationsArgs),
    /// Show the shards of integrations, and the objects that run them
    #[command(after_long_help = examples(&[
        ("qontract fleet plan --config config.toml", "show what the manager would change"),
        ("qontract fleet status --sandbox ./sandbox", "list the shards, and the state of their objects"),
        ("qontract fleet explain openshift-resources-harbor-prod-0", "why this shard exists"),
    ]))]
    Fleet(FleetArgs),
    /// Work with hash slots
    Shards(ShardsArgs),
    /// Work with Kubernetes objects
    Inventory(InventoryArgs),
    /// Explain a diagnostic code such as Q1007, or a run; without an argument, list all codes
    Explain(ExplainArgs),
    /// List runs, or show one
    Runs(RunsArgs),
    /// Write a datafile that approves the removals held by a run
    Approve(ApproveArgs),
    /// Work with the configuration
    Config(ConfigArgs),
    /// Work with the journal: state that all processes share, such as recent removals
    Journal(JournalArgs),
    /// Pause, resume and start loops
    #[command(after_long_help = examples(&[
        ("qontract loop pause openshift-resources --reason INC-1234 --for 2h", "write nothing for two hours"),
        ("qontract loop drain --all --reason 'cluster upgrade'", "pause everything, and wait until no run is in progress"),
        ("qontract loop run openshift-resources", "do not wait for the interval"),
    ]))]
    Loop(LoopArgs),
    /// Read and change the state that integrations keep in the state store
    #[command(after_long_help = examples(&[
        ("qontract state ls openshift-saas-deploy", "list the keys of an integration"),
        ("qontract state get openshift-saas-deploy shop/stage", "print a value"),
        ("qontract state set openshift-saas-deploy shop/stage '{\"sha\": \"4f2a\"}' --dry-run", "show what would change"),
    ]))]
    State(StateArgs),
    /// Drop-in replacements for qontract-server, -bundler, -validator, -reconcile and run-integration
    Peer(PeerArgs),
    /// Generate shell completions: `source <(qontract completions bash)`
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each command
    Man(ManArgs),
    /// Print help for a command
    Help(HelpArgs),
    /// Print the version, the commit and its date
    Version,
}

/// Arguments of `help`.
#[derive(Args, Debug)]
pub struct HelpArgs {
    /// The command, for example `reconcile` or `integrations schemas`; without one, all commands
    pub command: Vec<String>,
    /// Print the reference for all commands in Markdown
    #[arg(long, conflicts_with = "command")]
    pub markdown: bool,
}

/// Help of `--config` for commands that search the default locations.
pub const CONFIG_HELP: &str = "Configuration file; by default `$QONTRACT_CONFIG`, else `./qontract.toml` (not in data repos and Git work trees), else `$XDG_CONFIG_HOME/qontract/config.toml`";

/// Help of `--config` for commands that do not search the default locations.
pub const NAMED_CONFIG_HELP: &str = "Configuration file; by default `$QONTRACT_CONFIG`. The default locations (`./qontract.toml`, `$XDG_CONFIG_HOME/qontract/config.toml`) are not read";

/// The examples below the help of a command: command lines and their effects.
fn examples(rows: &[(&str, &str)]) -> String {
    let rows = rows.iter().map(|(line, what)| format!("  {line}\n      {what}\n"));
    format!("Examples:\n{}", rows.collect::<String>())
}

/// Locations of the parts of a data repo.
#[derive(Args, Debug)]
#[command(next_help_heading = "Layout of the data repo")]
pub struct LayoutOptions {
    /// Directory of datafiles
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data_dir: String,
    /// Directory of resources; optional
    #[arg(long, value_name = "DIR", default_value = "resources")]
    pub resources_dir: String,
    /// Directory of JSON Schemas
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub schemas_dir: String,
    /// File that defines the GraphQL types
    #[arg(long, value_name = "FILE", default_value = "graphql-schemas/schema.yml")]
    pub graphql_file: String,
}

impl From<LayoutOptions> for Layout {
    fn from(options: LayoutOptions) -> Self {
        let LayoutOptions { data_dir, resources_dir, schemas_dir, graphql_file } = options;
        Layout { data: data_dir, resources: resources_dir, schemas: schemas_dir, graphql: graphql_file }
            .normalized()
    }
}

/// Arguments of `bundle`.
#[derive(Args, Debug)]
pub struct BundleArgs {
    /// Directory of the data repo
    #[arg(default_value = ".")]
    pub repo: PathBuf,
    /// File to write; without it, or with `-`, the bundle goes to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Bundle this Git revision instead of the working tree
    #[arg(long, value_name = "REVISION")]
    pub rev: Option<String>,
    /// Commit to write into the bundle; by default the one that Git reports
    #[arg(long, value_name = "COMMIT", requires = "commit_timestamp")]
    pub commit: Option<String>,
    /// Time of that commit, in seconds since 1970-01-01 UTC
    #[arg(long, value_name = "SECONDS", requires = "commit")]
    pub commit_timestamp: Option<String>,
    /// Fail on warnings as well
    #[arg(long)]
    pub strict: bool,
    /// Bundle without validating
    #[arg(long)]
    pub no_validate: bool,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `validate`.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// What to check: a data repo, a Git revision or a bundle file; or files and directories of a data repo,
    /// to show only their findings; by default the data repo that contains the directory of `--repo`
    #[arg(value_name = "WHAT")]
    pub what: Vec<String>,
    /// Directory of the data repo, in which Git revisions are looked up
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Hide warnings
    #[arg(long, conflicts_with = "strict")]
    pub only_errors: bool,
    /// Fail on warnings as well
    #[arg(long)]
    pub strict: bool,
    /// Show at most this many findings
    #[arg(long, value_name = "N")]
    pub max: Option<usize>,
    /// Check strings against the `format` of their schema
    #[arg(long)]
    pub formats: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: FindingsFormat,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Output formats of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// Human-readable, with source lines
    #[default]
    Text,
    /// Machine-readable
    Json,
}

/// Arguments of `schema`.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// The action.
    #[command(subcommand)]
    pub action: SchemaAction,
}

/// Actions of `schema`.
#[derive(Debug, Subcommand)]
pub enum SchemaAction {
    /// Write the schemas as plain JSON Schemas that editors understand
    Export(SchemaExportArgs),
}

/// Arguments of `schema export`.
#[derive(Args, Debug)]
pub struct SchemaExportArgs {
    /// Directory to write to; existing files are overwritten
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The data repo, Git revision or bundle file with the schemas [default: the directory of `--repo`]
    #[arg(long, alias = "data", value_name = "WHAT")]
    pub from: Option<String>,
    /// Directory of the data repo, in which Git revisions are looked up
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Options that select the data to read.
#[derive(Args, Debug)]
pub struct DataOptions {
    /// The data: a directory, a bundle file, or a Git revision [default: the directory of `--repo`]
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Directory of the data repo, in which Git revisions are looked up
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `query`.
#[derive(Args, Debug)]
pub struct QueryArgs {
    /// The GraphQL request, for example `{ apps_v1 { name } }`; `-` reads it from stdin
    #[arg(value_name = "QUERY")]
    pub request: String,
    /// Variables of the request, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub variables: Option<String>,
    /// Operation to execute, if the request has several
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Add the provenance of each object to the response: file, JSON pointer, line
    #[arg(long)]
    pub provenance: bool,
    /// Abort the query after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// The data to query.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Arguments of `get`.
#[derive(Args, Debug)]
pub struct GetArgs {
    /// The kind to list: a field of the type `Query`, with or without its version; by default, list all kinds
    pub kind: Option<String>,
    /// The name or path of one object
    pub name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: GetFormat,
    /// List only objects whose field has this value; can be repeated
    #[arg(long, value_name = "FIELD=VALUE")]
    pub filter: Vec<String>,
    /// Sort by this field instead of by path
    #[arg(long, value_name = "FIELD")]
    pub sort: Option<String>,
    /// The data to query.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Output formats of `get`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GetFormat {
    /// Table of the most important columns
    #[default]
    Table,
    /// Table of all columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Arguments of `integrations`.
#[derive(Args, Debug)]
pub struct IntegrationsArgs {
    /// The action; lists all integrations by default.
    #[command(subcommand)]
    pub action: Option<IntegrationsAction>,
    /// Configuration file.
    #[arg(long, value_name = "FILE", global = true, help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Output format of the list
    #[arg(short, long, value_enum)]
    pub output: Option<IntegrationsFormat>,
}

/// Output formats of the list of integrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum IntegrationsFormat {
    /// Table of names and descriptions
    #[default]
    Text,
    /// A JSON list: name, description, form (built-in or process), flags
    Json,
    /// Names only, one per line
    Name,
}

/// Actions of `integrations`.
#[derive(Debug, Subcommand)]
pub enum IntegrationsAction {
    /// List the integrations; this is the default
    List {
        /// Output format
        #[arg(short, long, value_enum)]
        output: Option<IntegrationsFormat>,
    },
    /// Print the schemas that an integration can read, in the form that its datafile must list them
    Schemas(IntegrationSchemasArgs),
}

/// Arguments of `integrations schemas`.
#[derive(Args, Debug)]
pub struct IntegrationSchemasArgs {
    /// The integration
    pub name: String,
    /// The data whose GraphQL types determine the schemas that a query reads.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Arguments of `shards`.
#[derive(Args, Debug)]
pub struct ShardsArgs {
    /// The action.
    #[command(subcommand)]
    pub action: ShardsAction,
}

/// Actions of `shards`.
#[derive(Debug, Subcommand)]
pub enum ShardsAction {
    /// Print the slot of a value
    Of(ShardsOfArgs),
}

/// Arguments of `shards of`.
#[derive(Args, Debug)]
pub struct ShardsOfArgs {
    /// The value, for example `cluster/namespace`; with `--integration`, the key of a shard, for example
    /// `cluster=c1,namespace=n1`
    pub value: String,
    /// Hash the key of a shard as this integration does
    #[arg(long, value_name = "NAME")]
    pub integration: Option<String>,
    /// Configuration file.
    #[arg(long, value_name = "FILE", requires = "integration", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// Number of slots
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub shards: u32,
}

/// Arguments of `inventory`.
#[derive(Args, Debug)]
pub struct InventoryArgs {
    /// The action.
    #[command(subcommand)]
    pub action: InventoryAction,
}

/// Actions of `inventory`.
#[derive(Debug, Subcommand)]
pub enum InventoryAction {
    /// Print the canonical form of objects and its hash, as stored in `qontract.sha256sum`
    Hash(InventoryHashArgs),
}

/// Arguments of `inventory hash`.
#[derive(Args, Debug)]
pub struct InventoryHashArgs {
    /// YAML or JSON: one object, several documents, or a list; `-` reads from stdin
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A code, for example Q1007; or the word `run`
    #[arg(value_name = "CODE|run")]
    pub code: Option<String>,
    /// A run, after the word `run`: its id, a prefix of its id, `last`, or an integration
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Directory of the run records; by default `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
}

/// Arguments of `config`.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// The action.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// Actions of `config`.
#[derive(Subcommand, Debug)]
pub enum ConfigAction {
    /// Check the configuration, the tools, the data, and access to every target system
    ///
    /// Reads only. Checks that each cluster is reachable, accepts the credentials and grants the permissions
    /// that the integrations in the data need, and that each program of `[integrations.*]` starts and
    /// responds to `describe`. Exit code: 0 nothing failed, 1 something failed, 2 usage error.
    Check(Box<ConfigCheckArgs>),
    /// Write a configuration template in which every line is a comment
    Init {
        /// The file to create; it must not exist
        #[arg(value_name = "FILE", default_value = "qontract.toml")]
        file: PathBuf,
    },
    /// Print every configuration key and environment variable, in Markdown
    Reference,
}

/// Arguments of `config check`.
#[derive(Args, Debug)]
pub struct ConfigCheckArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,
    /// The data: a directory, a bundle file, a Git revision, or the URL of a server; by default the
    /// configured server, else the working directory
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Git repository in which to look up revisions
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Check only this cluster; can be repeated
    #[arg(long, value_name = "NAME")]
    pub cluster: Vec<String>,
    /// Directory of the run records, which holds the removal ledger; by default `$QONTRACT_RUNS`, else below
    /// the user's state directory
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: FindingsFormat,
    /// Layout of the data repo.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// The location of a journal.
#[derive(Args, Debug)]
pub struct JournalOptions {
    /// Directory of the run records, which holds the journal of real targets; by default the bucket of
    /// `[targets.journal]`, else `$QONTRACT_RUNS`, else below the user's state directory
    #[arg(long, value_name = "DIR", global = true)]
    pub runs: Option<PathBuf>,
    /// Directory of a sandbox, which has its own journal
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "runs")]
    pub sandbox: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", global = true, help = records::JOURNAL_CONFIG_HELP)]
    pub config: Option<PathBuf>,
}

/// Arguments of `journal`.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// The journal.
    #[command(flatten)]
    pub journal: JournalOptions,
    /// The action.
    #[command(subcommand)]
    pub action: JournalAction,
}

/// Actions of `journal`.
#[derive(Subcommand, Debug)]
pub enum JournalAction {
    /// Initialise the journal, or the parts of it that are lost or damaged
    ///
    /// Without a journal every removal needs approval, because earlier removals are unknown. Run this once
    /// for a new installation. After a loss, check what was removed in the last 24 hours before you run it
    /// again. An intact journal is not changed.
    Init,
    /// Read the index and all ledgers, and report what is lost or damaged
    Check,
    /// Copy the journal into a new directory, as a backup
    Export {
        /// The directory; it must not exist, or be empty
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Copy an exported journal into a journal that has no content
    ///
    /// The copy does not contain removals that were made after the export. If there may be any, leave the
    /// journal empty, so that every removal needs an approval, and run `journal init` when those removals no
    /// longer count towards the limits.
    Import {
        /// The directory of the export
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Remove old run records
    Prune {
        /// Keep at most N records of each integration
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
        /// Remove records that are older than this number of days
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
        /// Only print what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Arguments of `peer`.
#[derive(Args, Debug)]
pub struct PeerArgs {
    /// The tool.
    #[command(subcommand)]
    pub tool: PeerTool,
}

/// The peer tools that this binary replaces.
#[derive(Debug, Subcommand)]
pub enum PeerTool {
    /// qontract-bundler: write a bundle of the given directories to stdout
    Bundler(PeerBundlerArgs),
    /// qontract-reconcile: run an integration
    #[command(mut_arg("config", |arg| arg.help(NAMED_CONFIG_HELP)))]
    Reconcile(Box<ReconcileArgs>),
    /// run-integration: run an integration in a loop, configured by environment variables
    #[command(after_help = help(ReadBy::RunIntegration))]
    RunIntegration,
    /// qontract-server: serve GraphQL over HTTP, configured by environment variables
    #[command(after_help = help(ReadBy::Server))]
    Server(PeerServerArgs),
    /// qontract-validator: write a record of every check of a bundle to stdout
    Validator(PeerValidatorArgs),
}

/// Arguments of `qontract-validator`.
#[derive(Args, Debug)]
pub struct PeerValidatorArgs {
    /// Write only the records of errors
    #[arg(long)]
    pub only_errors: bool,
    /// The bundle file
    pub bundle: PathBuf,
}

/// Arguments of `qontract-bundler`.
#[derive(Args, Debug)]
pub struct PeerBundlerArgs {
    /// Ignored: all cores are used
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub thread_pool_size: u32,
    /// Directory of JSON Schemas
    pub schema_dir: String,
    /// File that defines the GraphQL types
    pub graphql_schema_file: String,
    /// Directory of datafiles
    pub data_dir: String,
    /// Directory of resources
    pub resource_dir: String,
    /// Commit to write into the bundle
    pub git_commit: String,
    /// Time of that commit, in seconds since 1970-01-01 UTC
    pub git_commit_timestamp: String,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Directory to write to; existing pages are overwritten
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
