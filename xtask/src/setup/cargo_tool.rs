//! Cargo subcommands and the like, built from their published sources into the cache folder where the machine has none.

use super::Provision;
use crate::house::Cache;
use anyhow::Result;

/// The test runner.
pub const NEXTEST: CargoTool =
    CargoTool { name: "cargo-nextest", subcommand: Some("nextest"), version: "0.9.143" };
/// Checks licences, bans and sources of the dependencies.
pub const DENY: CargoTool = CargoTool { name: "cargo-deny", subcommand: Some("deny"), version: "0.20.2" };
/// Drives libFuzzer.
pub const FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", subcommand: Some("fuzz"), version: "0.13.2" };
/// Builds binaries that tell what they are made of.
pub const AUDITABLE: CargoTool =
    CargoTool { name: "cargo-auditable", subcommand: Some("auditable"), version: "0.7.7" };
/// Reads what such a binary tells.
pub const AUDITABLE2CDX: CargoTool = CargoTool { name: "auditable2cdx", subcommand: None, version: "0.1.0" };

/// One program that is published as a package: a cargo subcommand, or one that only the cache has.
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

    /// The machine's own tool will do, whatever its version; the one in the cache must be the wanted one.
    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        let cached = cache.path("tools/bin").join(self.name).exists();
        let Some(subcommand) = self.subcommand else { return cached && stamped };
        let answers = cache.cargo(subcommand).args(["--version"]).answers();
        answers && (stamped || !cached)
    }

    fn install(&self, cache: &Cache) -> Result<()> {
        // away from the checkout, so that its cargo configuration has no say in it
        cache
            .cargo("install --locked --force --root")
            .args([cache.path("tools")])
            .args([self.name, "--version", self.version])
            .folder(&cache.path(""))
            .run()
    }
}
