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
        let tool = FetchedTool { name: "promtool", folder: "bin", hint: HINT };
        tool.install(cache, |work, steps| fetch_program("promtool", work, steps))
    }
}

/// Creates `bin/NAME` in the work directory, from the package that has `promtool` and `prometheus`.
pub(super) fn fetch_program(name: &str, work: &Path, steps: &InstallLog) -> Result<()> {
    if !CommandLine::new("apt-get --version").succeeds() {
        bail!("cannot fetch {name}: `apt-get` not found");
    }
    let (root, program) = (work.join("root"), work.join("bin").join(name));
    Apt::isolated(&work.join("apt"), steps)?.unpack(&["prometheus"], &root)?;
    let packaged = root.join("usr/bin").join(name);
    fs::copy(packaged, &program).with_context(|| format!("the package has no {name}"))?;
    steps.run(&format!("trying {name}"), &CommandLine::program(&program).args(["--version"]))
}
