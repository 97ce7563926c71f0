//! What can be said on the command line: clap types and their help texts, no behaviour.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The project's own chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One chore.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Get what the tests need into a cache folder outside the checkout
    ///
    /// The folder is `$QONTRACT_TOOLS`, else `$XDG_CACHE_HOME/qontract`, else `~/.cache/qontract`.
    /// Nothing else on the machine changes; a second run does nothing. The servers of Kubernetes are built from
    /// source, once, unless `$KUBEBUILDER_ASSETS` has them.
    Setup,
    /// Check everything: set up, format, lints, layout, licences, docs and all tests
    Test(TestArgs),
    /// Check the layout and dependency rules of the source tree
    Tidy,
    /// Make the Rust types of every `query.graphql`
    Generate(GenerateArgs),
    /// Make a room that builds and passes its first case
    ///
    /// Writes `integrations/NAME/`, adds it to the lists, and defines it in the example data.
    NewIntegration(NewIntegrationArgs),
    /// Run the benchmarks
    Bench(BenchArgs),
    /// Make what is released, and check it: archive, checksums, the list of what is in the binary
    Dist(DistArgs),
    /// Run the fuzz targets for a while; a crash is a failure
    Fuzz(FuzzArgs),
    /// Run randomised tests with far more cases than the suite
    Chaos(ChaosArgs),
}

/// What `test` takes.
#[derive(Debug, Default, Args)]
pub struct TestArgs {
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    pub only: Vec<Step>,
    /// Leave out the tests that need a real Kubernetes API server, and do not get or start one
    #[arg(long)]
    pub without_kube: bool,
    /// Names of tests to run, as nextest takes them; without `--only`, only the tests are run then
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
}

/// One step of `test`, in the order in which they run.
///
/// The tests come last, so that their own summary closes the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Step {
    /// The sources are formatted
    Fmt,
    /// The layout and dependency rules hold
    Tidy,
    /// No lint fires
    Clippy,
    /// What is generated is up to date
    Generate,
    /// Licences, bans and sources of the dependencies
    Deny,
    /// Known vulnerabilities of the dependencies; reported, never a failure
    Advisories,
    /// The API documentation builds without a warning
    Docs,
    /// The examples in the API documentation run
    Doctests,
    /// All other tests
    Tests,
}

/// What `generate` takes.
#[derive(Debug, Default, Args)]
pub struct GenerateArgs {
    /// Write nothing; fail if something would change
    #[arg(long)]
    pub check: bool,
}

/// What `new-integration` takes.
#[derive(Debug, Args)]
pub struct NewIntegrationArgs {
    /// Its name: on the command line, in the data, of its folder
    pub name: String,
    /// Which form it has
    #[arg(long, value_enum, default_value_t)]
    pub form: Form,
}

/// The form of an integration that is compiled in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// It answers the five questions: declare, resolve, observe, plan, apply
    #[default]
    Staged,
    /// One function, for validators and small jobs
    Function,
}

/// What `bench` takes.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark to run; all of them if not given
    pub name: Option<String>,
}

/// What `dist` takes.
#[derive(Debug, Args)]
pub struct DistArgs {
    /// For what to build, as rustc names it; it has to run here; by default what this machine is
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The profile to build with
    #[arg(long, value_name = "NAME", default_value = "dist")]
    pub profile: String,
    /// Take this binary, made by `cargo auditable build` in this checkout, and build none
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub binary: Option<PathBuf>,
    /// Folder to put it into; by default `dist` in the target folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What `fuzz` takes.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// The fuzz target to run; all of them if not given
    pub target: Option<String>,
    /// How long to run each target
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub seconds: u64,
}

/// What `chaos` takes.
#[derive(Debug, Args)]
pub struct ChaosArgs {
    /// Scenarios to run; all of them by default
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// How many cases each scenario runs, instead of its own default
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// List the scenarios with their default counts
    #[arg(long)]
    pub list: bool,
}
