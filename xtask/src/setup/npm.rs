//! npm packages whose behaviour tests and benchmarks compare with ours.

use super::Provision;
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result};
use std::fs;

/// graphql-js: the reference for validation errors in tests, and the peer of the `graphql` benchmark.
pub const GRAPHQL_JS: NpmPackages = NpmPackages { name: "graphql-js", packages: &["graphql@16.15.0"] };
/// Apollo Server: the peer of the `server` benchmark.
pub const APOLLO: NpmPackages = NpmPackages {
    name: "apollo",
    packages: &[
        "express@5.3.0",
        "@apollo/server@5.5.1",
        "@as-integrations/express5@1.1.2",
        "graphql@16.15.0",
    ],
};

/// A directory in the cache with exactly these packages in its `node_modules`.
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

    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        stamped && cache.path(self.name).join("node_modules").is_dir()
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        let folder = cache.path(self.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        CommandLine::new("npm install --silent --no-audit --no-fund --prefix")
            .args([&folder])
            .args(self.packages.iter().copied())
            .run()
    }
}
