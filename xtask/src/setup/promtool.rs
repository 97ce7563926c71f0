//! `promtool`, which checks rules of Prometheus: from Debian's package, unpacked in the cache and not installed.

use super::Provision;
use super::apt::Apt;
use super::steps::{FetchedTool, Steps};
use crate::command::CommandLine;
use crate::house::Cache;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;

/// Counted up when it is to be fetched anew, or in another way.
const RECIPE: u32 = 1;
/// What to do where it cannot be fetched.
const HINT: &str = "`QONTRACT_PROMTOOL` may name a promtool that is on this machine";

/// The program at [`Cache::promtool`]: half a minute, once.
#[derive(Debug)]
pub struct Promtool;

impl Provision for Promtool {
    fn name(&self) -> &'static str {
        "promtool"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// One that somebody named is taken as it is.
    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        let program = cache.promtool();
        program.is_file() && (stamped || !program.starts_with(cache.path("")))
    }

    fn install(&self, cache: &Cache) -> Result<()> {
        FetchedTool { name: "promtool", folder: "bin", hint: HINT }.install(cache, fetch)
    }
}

/// Makes `bin/promtool` in the folder of work.
fn fetch(work: &Path, steps: &Steps) -> Result<()> {
    if !CommandLine::new("apt-get --version").answers() {
        bail!("there is no `apt-get` on this machine to get promtool with");
    }
    let (root, program) = (work.join("root"), work.join("bin/promtool"));
    Apt::isolated(&work.join("apt"), steps)?.unpack(&["prometheus"], &root)?;
    fs::copy(root.join("usr/bin/promtool"), &program).context("the package has no promtool")?;
    steps.run("trying promtool", &CommandLine::program(&program).args(["--version"]))
}
