//! graphql-js from npm, which the GraphQL benchmark measures against. Tests do not need it.

use super::Provision;
use crate::command::CommandLine;
use crate::house::Cache;
use anyhow::{Context as _, Result};
use std::fs;

/// The package, exactly.
const PACKAGE: &str = "graphql@16.15.0";

/// A folder `graphql-js` in the cache with the package in its `node_modules`.
#[derive(Debug)]
pub struct GraphqlJs;

impl Provision for GraphqlJs {
    fn name(&self) -> &'static str {
        "graphql-js"
    }

    fn version(&self) -> String {
        PACKAGE.to_owned()
    }

    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        stamped && cache.path("graphql-js/node_modules/graphql").is_dir()
    }

    fn install(&self, cache: &Cache) -> Result<()> {
        let folder = cache.path("graphql-js");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        CommandLine::new("npm install --silent --no-audit --no-fund --prefix")
            .args([&folder])
            .args([PACKAGE])
            .run()
    }
}
