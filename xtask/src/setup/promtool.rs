//! `promtool`, which checks Prometheus rules. Debian's package is unpacked into the cache and not installed.

use super::Provision;
use super::apt::Apt;
use super::install_log::{FetchedTool, InstallLog};
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;

/// Increment to force a new download.
const RECIPE: u32 = 1;
/// The hint if promtool cannot be fetched.
const HINT: &str = "set `QONTRACT_PROMTOOL` to the path of a promtool on this machine";

/// The program at [`ToolCache::promtool`]. The installation takes 30 seconds, once.
#[derive(Debug)]
pub struct Promtool;

impl Provision for Promtool {
    fn name(&self) -> &'static str {
        "promtool"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// A promtool named by `QONTRACT_PROMTOOL` is used as is.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        let program = cache.promtool();
        program.is_file() && (stamped || !program.starts_with(cache.path("")))
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        FetchedTool { name: "promtool", folder: "bin", hint: HINT }.install(cache, fetch)
    }
}

/// Creates `bin/promtool` in the work directory.
fn fetch(work: &Path, steps: &InstallLog) -> Result<()> {
    if !CommandLine::new("apt-get --version").succeeds() {
        bail!("cannot fetch promtool: `apt-get` not found");
    }
    let (root, program) = (work.join("root"), work.join("bin/promtool"));
    Apt::isolated(&work.join("apt"), steps)?.unpack(&["prometheus"], &root)?;
    fs::copy(root.join("usr/bin/promtool"), &program).context("the package has no promtool")?;
    steps.run("trying promtool", &CommandLine::program(&program).args(["--version"]))
}
