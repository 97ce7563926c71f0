//! Cargo subcommands, built from their published sources into the cache folder where the machine has none.

use super::Provision;
use crate::house::Cache;
use anyhow::Result;

/// The test runner.
pub const NEXTEST: CargoTool = CargoTool { name: "cargo-nextest", subcommand: "nextest", version: "0.9.143" };
/// Checks licences, bans and sources of the dependencies.
pub const DENY: CargoTool = CargoTool { name: "cargo-deny", subcommand: "deny", version: "0.20.2" };
/// Drives libFuzzer.
pub const FUZZ: CargoTool = CargoTool { name: "cargo-fuzz", subcommand: "fuzz", version: "0.13.2" };

/// One cargo subcommand.
#[derive(Debug)]
pub struct CargoTool {
    name: &'static str,
    subcommand: &'static str,
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
        let answers = cache.cargo(self.subcommand).args(["--version"]).answers();
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
