//! A Python environment with the packages that serve as oracles: what they say about YAML, JSON Schema and templates is the
//! truth that our own answers are compared with; with real clients of Vault and of a GraphQL server, and with a server of S3.

use super::Provision;
use crate::command::CommandLine;
use crate::house::Cache;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// The oracles, and `setuptools` because jsonschema 3.2 still imports `pkg_resources`. moto's own extra `server` wants a newer
/// jsonschema for what we do not start; Flask is what its S3 is served by.
const REQUIREMENTS: [&str; 11] = [
    "PyYAML==6.0.3",
    "jsonschema==3.2.0",
    "setuptools<81",
    "Jinja2==3.1.6",
    "jsonpath-ng==1.7.0",
    "hvac==2.4.0",
    "gql[requests]==4.4.0",
    "moto[s3]==5.2.5",
    "flask==3.1.3",
    "flask-cors==6.0.5",
    "boto3==1.44.0",
];

/// The Python environment at [`Cache::python`].
#[derive(Debug)]
pub struct Python;

impl Provision for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn version(&self) -> String {
        REQUIREMENTS.join(" ")
    }

    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        // the interpreter is a link to the machine's: it dangles when that one is gone
        stamped && cache.python().exists()
    }

    /// Made in a folder that only this process knows, then renamed: what a killed run's children still write harms
    /// nothing. The interpreter finds its packages from where it lies, so it may be moved.
    fn install(&self, cache: &Cache) -> Result<()> {
        let folder = cache.path("python");
        let fresh = cache.path(&format!("python-{}.new", std::process::id()));
        remove(&fresh)?;
        CommandLine::new("python3 -m venv").args([&fresh]).run()?;
        CommandLine::program(&fresh.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
            .args(REQUIREMENTS)
            .run()?;
        remove(&folder)?;
        fs::rename(&fresh, &folder).with_context(|| format!("cannot make {}", folder.display()))
    }
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}
