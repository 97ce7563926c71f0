//! The command line: clap types and their help texts, no behaviour.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Development tasks of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Cli {
    /// The task to run.
    #[command(subcommand)]
    pub command: Command,
}

/// One task.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Install the tools that the tests need into a cache directory outside the checkout
    ///
    /// The directory is `$QONTRACT_TOOLS`, else `$XDG_CACHE_HOME/qontract`, else `~/.cache/qontract`.
    /// Nothing else on the machine changes; a second run has no effect. The Kubernetes servers are built from
    /// source, once, unless `$KUBEBUILDER_ASSETS` contains them.
    Setup,
    /// Check everything: setup, formatting, lints, layout, licences, docs and all tests
    Test(TestArgs),
    /// Check the layout and dependency rules of the source tree
    Tidy,
    /// Generate the Rust types of every `query.graphql`, and the configuration reference
    Generate(GenerateArgs),
    /// Create an integration that builds and passes its first case
    ///
    /// Writes `integrations/NAME/`, registers it, and defines it in the example data.
    NewIntegration(NewIntegrationArgs),
    /// Run the benchmarks
    Bench(BenchArgs),
    /// Build and check a release: archive, checksums and SBOM
    Dist(DistArgs),
    /// Run the fuzz targets for a while; a crash is a failure
    Fuzz(FuzzArgs),
    /// Run randomized tests with many more cases than the suite
    Chaos(ChaosArgs),
}

/// Arguments of `test`.
#[derive(Debug, Default, Args)]
pub struct TestArgs {
    /// Run only this step; can be repeated
    #[arg(long, value_name = "STEP")]
    pub only: Vec<TestStep>,
    /// Skip the tests that need a real Kubernetes API server, and neither build nor start one
    #[arg(long)]
    pub without_kube: bool,
    /// Test name filters, as in nextest; without `--only`, only the step `tests` runs
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
}

/// One step of `test`, in the order in which they run.
///
/// The tests come last, so that their summary is at the end of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum TestStep {
    /// The sources are formatted
    Fmt,
    /// The layout and dependency rules hold
    Tidy,
    /// Clippy reports no lints
    Clippy,
    /// Generated files are up to date
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

/// Arguments of `generate`.
#[derive(Debug, Default, Args)]
pub struct GenerateArgs {
    /// Write nothing; fail if something would change
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `new-integration`.
#[derive(Debug, Args)]
pub struct NewIntegrationArgs {
    /// Name of the integration and of its directory
    pub name: String,
    /// Form of the integration
    #[arg(long, value_enum, default_value_t)]
    pub form: TemplateForm,
}

/// The form of a compiled-in integration.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TemplateForm {
    /// Five stages: declare, resolve, observe, plan, apply
    #[default]
    Staged,
    /// One function, for validators and small jobs
    Function,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Benchmark to run [default: all]
    pub name: Option<String>,
}

/// Arguments of `dist`.
#[derive(Debug, Args)]
pub struct DistArgs {
    /// Target triple to build for; its binary must run on this machine [default: the host]
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Cargo profile to build with
    #[arg(long, value_name = "NAME", default_value = "dist")]
    pub profile: String,
    /// Package this binary, built by `cargo auditable build` in this checkout, instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub binary: Option<PathBuf>,
    /// Output directory [default: `dist` in the target directory]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also assemble and check the root file system of this container image; can be repeated
    #[arg(long, value_name = "NAME")]
    pub image: Vec<ImageName>,
    /// Add this program to the image `tools`, such as a Terraform binary; can be repeated
    #[arg(long, value_name = "FILE", requires = "image")]
    pub tool: Vec<PathBuf>,
}

/// A container image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ImageName {
    /// Only the binary and certificates
    Minimal,
    /// Also Git, a shell and promtool
    Tools,
}

impl ImageName {
    /// The name on the command line, and of the directory.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Tools => "tools",
        }
    }
}

/// Arguments of `fuzz`.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// Fuzz target to run [default: all]
    pub target: Option<String>,
    /// Seconds to run each target
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub seconds: u64,
}

/// Arguments of `chaos`.
#[derive(Debug, Args)]
pub struct ChaosArgs {
    /// Scenarios to run [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Number of cases per scenario, instead of its default
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Revision of the previous version, for the scenario `upgrade`
    #[arg(long, value_name = "REV")]
    pub previous: Option<String>,
    /// List the scenarios with their default counts
    #[arg(long)]
    pub list: bool,
}
