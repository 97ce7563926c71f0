//! Cargo subcommands and other programs, installed by `cargo install` into the cache directory unless the machine
//! has them.

use super::Provision;
use crate::workspace::ToolCache;
use anyhow::Result;

/// The test runner.
pub const NEXTEST: CargoTool =
    CargoTool { name: "cargo-nextest", subcommand: Some("nextest"), version: "0.9.143" };
/// Checks licences, bans and sources of the dependencies.
pub const DENY: CargoTool = CargoTool { name: "cargo-deny", subcommand: Some("deny"), version: "0.20.2" };
/// Drives libFuzzer.
pub const FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", subcommand: Some("fuzz"), version: "0.13.2" };
/// Builds binaries with an embedded dependency list.
pub const AUDITABLE: CargoTool =
    CargoTool { name: "cargo-auditable", subcommand: Some("auditable"), version: "0.7.7" };
/// Converts the embedded dependency list to `CycloneDX`.
pub const AUDITABLE2CDX: CargoTool = CargoTool { name: "auditable2cdx", subcommand: None, version: "0.1.0" };

/// A program that is published as a package: a cargo subcommand, or a program that is used only from the
/// cache.
#[derive(Debug)]
pub struct CargoTool {
    name: &'static str,
    subcommand: Option<&'static str>,
    version: &'static str,
}

impl Provision for CargoTool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.version.to_owned()
    }

    /// Any version of an installed tool is used; a cached tool must have the required version.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        let cached = cache.path("tools/bin").join(self.name).exists();
        let Some(subcommand) = self.subcommand else { return cached && stamped };
        let answers = cache.cargo(subcommand).args(["--version"]).succeeds();
        answers && (stamped || !cached)
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        // The command runs outside of the checkout, so that the cargo configuration of the checkout does not
        // apply.
        cache
            .cargo("install --locked --force --root")
            .args([cache.path("tools")])
            .args([self.name, "--version", self.version])
            .folder(&cache.path(""))
            .run()
    }
}
