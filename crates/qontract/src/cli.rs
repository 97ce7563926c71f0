//! The shape of the command line. Its doc comments are the reference.

mod line;
mod run;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use line::CommandLine;
pub use run::{Chosen, LogLevel, Reconcile, RunFormat, RunOptions, Up, know, variable};
pub use serve::{PeerServer, Serve};

/// Makes the world match one Git repository.
#[derive(Debug, Parser)]
#[command(name = "qontract", version, long_version = env!("QONTRACT_VERSION"), disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the whole platform in one process: bundle, validate, and keep the world as the data says
    ///
    /// Everything that the data defines and the binary has runs in loops, on a folder in place of every target system. A
    /// file that is saved takes effect within a second. Nothing else has to be installed.
    Up(Up),
    /// Turn a data repo into a bundle, named by the SHA-256 of its bytes
    Bundle(Bundle),
    /// Show what differs between two data repos, revisions or bundles
    ///
    /// Exit code: 0 nothing differs, 1 something differs, 2 it could not be done.
    Diff(Diff),
    /// Check a data repo, a Git revision or a bundle, and show every mistake at once
    ///
    /// Exit code: 0 no errors, 1 errors (with --strict: or warnings), 2 it could not be done.
    Validate(Validate),
    /// Work with the JSON schemas of a data repo
    Schema(Schema),
    /// List or show what the data describes: `get namespaces`, `get apps billing`
    Get(Get),
    /// Ask the data in GraphQL
    Query(Query),
    /// Answer GraphQL over HTTP, for many bundles, each by its sha
    Serve(Box<Serve>),
    /// Run an integration: make its part of the world what the data says
    ///
    /// Exit code: 0 all is well or would be, 1 something failed or is held, 2 asked wrongly, 4 the data does not define the integration, 5 it reads what
    /// it may not, 75 all that failed may work the next time.
    Reconcile(Box<Reconcile>),
    /// Show which integrations and shards a change can affect, and why
    ///
    /// Exit code: 0 none, 1 some, 2 it could not be done.
    Affected(Affected),
    /// List the integrations, or show what one of them reads
    Integrations(Integrations),
    /// Work with hash slots
    Shards(Shards),
    /// Work with Kubernetes objects
    Inventory(Inventory),
    /// Explain a code such as Q1007 at length, or a run; without either, list all codes
    Explain(Explain),
    /// List the records of runs, or show one
    Runs(Runs),
    /// Work with the journal: what all processes remember together, such as recent removals
    Journal(Journal),
    /// Be one of the established tools, with its arguments
    Peer(Peer),
    /// Print what a shell needs to complete commands: `source <(qontract completions bash)`
    Completions(Completions),
    /// Write the manual pages, one for each command
    Man(Man),
}

/// Where the parts of a data repo are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Layout of the data repo")]
pub struct LayoutOptions {
    /// Folder of datafiles
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data_dir: String,
    /// Folder of resources; may be absent
    #[arg(long, value_name = "DIR", default_value = "resources")]
    pub resources_dir: String,
    /// Folder of JSON Schemas
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub schemas_dir: String,
    /// File that describes the GraphQL types
    #[arg(long, value_name = "FILE", default_value = "graphql-schemas/schema.yml")]
    pub graphql_file: String,
}

/// Arguments of `bundle`.
#[derive(Args, Debug)]
pub struct Bundle {
    /// Folder of the data repo
    #[arg(default_value = ".")]
    pub repo: PathBuf,
    /// File to write; without it, or with `-`, the bundle goes to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Bundle this Git revision instead of the files in the folder
    #[arg(long, value_name = "REVISION")]
    pub rev: Option<String>,
    /// Commit to write into the bundle; the default is the one Git knows
    #[arg(long, value_name = "COMMIT", requires = "commit_timestamp")]
    pub commit: Option<String>,
    /// Time of that commit, in seconds since 1970
    #[arg(long, value_name = "SECONDS", requires = "commit")]
    pub commit_timestamp: Option<String>,
    /// Let warnings fail too
    #[arg(long)]
    pub strict: bool,
    /// Only bundle, and do not check what the files say
    #[arg(long)]
    pub no_validate: bool,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `validate`.
#[derive(Args, Debug)]
pub struct Validate {
    /// What to check: a folder, a Git revision, or a bundle file, which has no lines to show
    #[arg(default_value = ".")]
    pub what: String,
    /// Folder of the data repo that a Git revision is of
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Show no warnings
    #[arg(long, conflicts_with = "strict")]
    pub only_errors: bool,
    /// Let warnings fail too
    #[arg(long)]
    pub strict: bool,
    /// Show at most this many findings
    #[arg(long, value_name = "N")]
    pub max: Option<usize>,
    /// Enforce `format`, which says what a text is
    #[arg(long)]
    pub formats: bool,
    /// Form of the findings
    #[arg(short, long, value_enum, default_value_t)]
    pub output: FindingsFormat,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Forms of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// For people, with the lines they are about
    #[default]
    Text,
    /// For machines
    Json,
}

/// Arguments of `schema`.
#[derive(Args, Debug)]
pub struct Schema {
    /// What to do with them.
    #[command(subcommand)]
    pub action: SchemaAction,
}

/// What can be done with schemas.
#[derive(Debug, Subcommand)]
pub enum SchemaAction {
    /// Write the schemas as plain JSON Schemas that editors understand
    Export(SchemaExport),
}

/// Arguments of `schema export`.
#[derive(Args, Debug)]
pub struct SchemaExport {
    /// Folder to write into; files in it that are in the way are replaced
    pub folder: PathBuf,
    /// The data repo, a Git revision or a bundle file to take them from
    #[arg(long, alias = "data", value_name = "WHAT", default_value = ".")]
    pub from: String,
    /// Folder of the data repo that a Git revision is of
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// Before: a bundle file, a folder, or a Git revision
    pub base: String,
    /// After: a bundle file, a folder, or a Git revision
    pub head: String,
    /// Folder of the data repo that Git revisions are of
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DiffFormat,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Forms of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// For people
    #[default]
    Text,
    /// As the server's `/diff` answers
    Json,
    /// Markdown, for a merge request
    Md,
}

/// The data that is asked.
#[derive(Args, Debug)]
pub struct DataOptions {
    /// A folder, a bundle file, or a Git revision
    #[arg(long, value_name = "DATA", default_value = ".")]
    pub data: String,
    /// Folder of the data repo that a Git revision is of
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `query`.
#[derive(Args, Debug)]
pub struct Query {
    /// The request, for example `{ apps_v1 { name } }`; `-` reads it from stdin
    #[arg(value_name = "QUERY")]
    pub request: String,
    /// Values of its variables, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub variables: Option<String>,
    /// Which operation of the request is meant
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Add to the answer where each object comes from: file, JSON pointer, line
    #[arg(long)]
    pub provenance: bool,
    /// Give up an answer that takes longer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// What is asked.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Arguments of `get`.
#[derive(Args, Debug)]
pub struct Get {
    /// What to list: a field of the type `Query`, with or without its version; without one, list them all
    pub kind: Option<String>,
    /// The name of one of them, or its path
    pub name: Option<String>,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: GetFormat,
    /// Only those whose field has this value; may be given several times
    #[arg(long, value_name = "FIELD=VALUE")]
    pub filter: Vec<String>,
    /// Order by this field instead of by path
    #[arg(long, value_name = "FIELD")]
    pub sort: Option<String>,
    /// What is asked.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Forms of what `get` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GetFormat {
    /// The columns that tell most, for people
    #[default]
    Table,
    /// All columns, for people
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Arguments of `affected`.
#[derive(Args, Debug)]
pub struct Affected {
    /// Before: a bundle file, a folder, or a Git revision
    pub base: String,
    /// After: a bundle file, a folder, or a Git revision
    pub head: String,
    /// Only this integration; may be given several times
    #[arg(long, value_name = "NAME")]
    pub integration: Vec<String>,
    /// The configuration, for integrations of the process form; by default `$QONTRACT_CONFIG`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the data repo that Git revisions are of
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: FindingsFormat,
    /// Where the parts are.
    #[command(flatten)]
    pub layout: LayoutOptions,
}

/// Arguments of `integrations`.
#[derive(Args, Debug)]
pub struct Integrations {
    /// What to show; all of them by default.
    #[command(subcommand)]
    pub action: Option<IntegrationsAction>,
    /// The configuration, for integrations of the process form; by default `$QONTRACT_CONFIG`
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// What can be shown of integrations.
#[derive(Debug, Subcommand)]
pub enum IntegrationsAction {
    /// Print the schemas that an integration can read, as its file in the data has to list them
    Schemas(IntegrationSchemas),
}

/// Arguments of `integrations schemas`.
#[derive(Args, Debug)]
pub struct IntegrationSchemas {
    /// The integration
    pub name: String,
    /// The data whose types it is judged by.
    #[command(flatten)]
    pub data: DataOptions,
}

/// Arguments of `shards`.
#[derive(Args, Debug)]
pub struct Shards {
    /// What to show.
    #[command(subcommand)]
    pub action: ShardsAction,
}

/// What can be shown of hash slots.
#[derive(Debug, Subcommand)]
pub enum ShardsAction {
    /// Print the slot of a value
    Of(ShardsOf),
}

/// Arguments of `shards of`.
#[derive(Args, Debug)]
pub struct ShardsOf {
    /// The value, for example `cluster/namespace`
    pub value: String,
    /// How many slots there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub shards: u32,
}

/// Arguments of `inventory`.
#[derive(Args, Debug)]
pub struct Inventory {
    /// What to do.
    #[command(subcommand)]
    pub action: InventoryAction,
}

/// What can be done with Kubernetes objects.
#[derive(Debug, Subcommand)]
pub enum InventoryAction {
    /// Print the canonical form and the hash of objects, as they are kept in `qontract.sha256sum`
    Hash(InventoryHash),
}

/// Arguments of `inventory hash`.
#[derive(Args, Debug)]
pub struct InventoryHash {
    /// YAML or JSON: one object, several documents, or a list; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// A code, for example Q1007; or the word `run`
    #[arg(value_name = "CODE|run")]
    pub code: Option<String>,
    /// The name of a run, behind the word `run`
    #[arg(value_name = "ID")]
    pub run: Option<String>,
    /// Folder of the records of runs; by default `$QONTRACT_RUNS`, else below the user's state folder
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
}

/// Arguments of `runs`.
#[derive(Args, Debug)]
pub struct Runs {
    /// Folder of the records of runs; by default `$QONTRACT_RUNS`, else below the user's state folder
    #[arg(long, value_name = "DIR", global = true)]
    pub runs: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: RunsAction,
}

/// What to do with records of runs.
#[derive(Subcommand, Debug)]
pub enum RunsAction {
    /// List them, the newest last
    List {
        /// Only those of this integration
        #[arg(long, value_name = "NAME")]
        integration: Option<String>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
    },
    /// Tell what one decided and did
    Show {
        /// Its name
        run: String,
    },
}

/// Arguments of `journal`.
#[derive(Args, Debug)]
pub struct Journal {
    /// What to do.
    #[command(subcommand)]
    pub action: JournalAction,
}

/// What to do with the journal.
#[derive(Subcommand, Debug)]
pub enum JournalAction {
    /// Declare that the journal, or what of it is lost or damaged, is new
    ///
    /// Without a journal nothing is removed without approval, because earlier removals are not known. Run this once for a new installation, and after
    /// a loss, when it is clear what was removed in the last 24 hours. A journal that is whole is left as it is.
    Init {
        /// Folder of the records of runs, which holds the journal for real targets; by default `$QONTRACT_RUNS`, else below the user's state folder
        #[arg(long, value_name = "DIR")]
        runs: Option<PathBuf>,
        /// Folder of a sandbox, which holds a journal of its own
        #[arg(long, value_name = "DIR", conflicts_with = "runs")]
        sandbox: Option<PathBuf>,
    },
}

/// Arguments of `peer`.
#[derive(Args, Debug)]
pub struct Peer {
    /// Which tool.
    #[command(subcommand)]
    pub tool: PeerTool,
}

/// The established tools.
#[derive(Debug, Subcommand)]
pub enum PeerTool {
    /// qontract-bundler: write the bundle of four places to stdout
    Bundler(PeerBundler),
    /// qontract-reconcile: run an integration
    Reconcile(Box<Reconcile>),
    /// run-integration: run an integration again and again, as the environment says
    RunIntegration,
    /// qontract-server: answer GraphQL over HTTP, as the environment says
    Server(PeerServer),
    /// qontract-validator: write a record of every check of a bundle to stdout
    Validator(PeerValidator),
}

/// Arguments of `qontract-validator`.
#[derive(Args, Debug)]
pub struct PeerValidator {
    /// Only the records of errors
    #[arg(long)]
    pub only_errors: bool,
    /// The bundle
    pub bundle: PathBuf,
}

/// Arguments of `qontract-bundler`.
#[derive(Args, Debug)]
pub struct PeerBundler {
    /// Accepted and not needed: all cores are used
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub thread_pool_size: u32,
    /// Folder of JSON Schemas
    pub schema_dir: String,
    /// File that describes the GraphQL types
    pub graphql_schema_file: String,
    /// Folder of datafiles
    pub data_dir: String,
    /// Folder of resources
    pub resource_dir: String,
    /// Commit to write into the bundle
    pub git_commit: String,
    /// Time of that commit
    pub git_commit_timestamp: String,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Folder to write into; pages in it that are in the way are replaced
    pub folder: PathBuf,
}
