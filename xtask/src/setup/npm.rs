//! Packages from npm, which tests compare with and benchmarks measure against.

use super::Provision;
use crate::command::CommandLine;
use crate::house::Cache;
use anyhow::{Context as _, Result};
use std::fs;

/// Checks and executes queries: says what is wrong with those of the tests, and is measured beside our engine.
pub const GRAPHQL_JS: NpmPackages = NpmPackages { name: "graphql-js", packages: &["graphql@16.15.0"] };
/// Serves queries over HTTP: measured beside our server.
pub const APOLLO: NpmPackages = NpmPackages {
    name: "apollo",
    packages: &[
        "express@5.3.0",
        "@apollo/server@5.5.1",
        "@as-integrations/express5@1.1.2",
        "graphql@16.15.0",
    ],
};

/// A folder of that name in the cache, with these packages, exactly, in its `node_modules`.
#[derive(Debug)]
pub struct NpmPackages {
    name: &'static str,
    packages: &'static [&'static str],
}

impl Provision for NpmPackages {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.packages.join(" ")
    }

    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        stamped && cache.path(self.name).join("node_modules").is_dir()
    }

    fn install(&self, cache: &Cache) -> Result<()> {
        let folder = cache.path(self.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        CommandLine::new("npm install --silent --no-audit --no-fund --prefix")
            .args([&folder])
            .args(self.packages.iter().copied())
            .run()
    }
}
