//! Two Python environments. One has the reference implementations with which tests compare results (YAML,
//! JSON Schema, templates), real Vault and GraphQL clients, Helm's library, and an AWS server. The other has
//! qontract-reconcile.

use super::{Provision, folder};
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::Result;

/// The packages. `setuptools` is needed because jsonschema 3.2 imports `pkg_resources`. moto's extra `server`
/// requires a newer jsonschema for services that we do not use, so Flask, which its server needs, is listed
/// separately. S3, SQS, EC2, STS and IAM need no other extra than `s3`.
const REQUIREMENTS: [&str; 12] = [
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
    "helm-python-sdk==0.2.2",
];

/// qontract-reconcile, which requires other versions of the same packages. It needs Python 3.11.
const PEER_REQUIREMENTS: [&str; 1] = ["qontract-reconcile==0.10.1"];

/// A Python environment in the cache directory.
#[derive(Debug)]
pub struct Python {
    /// The name, and the directory.
    name: &'static str,
    requirements: &'static [&'static str],
}

/// The Python environment at [`ToolCache::python`].
pub const PYTHON: Python = Python { name: "python", requirements: &REQUIREMENTS };

/// The Python environment at [`ToolCache::peer_python`].
pub const PEER: Python = Python { name: "peer", requirements: &PEER_REQUIREMENTS };

impl Provision for Python {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.requirements.join(" ")
    }

    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        // The interpreter is a link to the system interpreter, which may have been removed.
        stamped && cache.path(self.name).join("bin/python").exists()
    }

    /// Installs into a directory that is unique to this process, and then renames the directory, because
    /// children of a killed run may still write to their own directory. The interpreter finds its packages
    /// relative to itself, so it can be moved.
    fn install(&self, cache: &ToolCache) -> Result<()> {
        let place = cache.path(self.name);
        let fresh = cache.path(&format!("{}-{}.new", self.name, std::process::id()));
        folder::remove(&fresh)?;
        CommandLine::new("python3 -m venv").args([&fresh]).run()?;
        CommandLine::program(&fresh.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
            .args(self.requirements.iter().copied())
            .run()?;
        folder::replace(&fresh, &place)
    }
}
