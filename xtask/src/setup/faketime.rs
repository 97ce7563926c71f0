//! `libfaketime`, a library that changes the clock of one process. Debian's package is unpacked into the
//! cache.

use super::Provision;
use super::apt::Apt;
use super::install_log::{FetchedTool, InstallLog};
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result, bail};
use std::env::consts::ARCH;
use std::fs;
use std::path::Path;

/// Increment to force a new download.
const RECIPE: u32 = 1;
/// The hint if the library cannot be fetched.
const HINT: &str = "set `QONTRACT_FAKETIME` to the path of `libfaketimeMT.so.1` on this machine";

/// The library at [`ToolCache::faketime`]. The installation takes 20 seconds, once.
#[derive(Debug)]
pub struct Faketime;

impl Provision for Faketime {
    fn name(&self) -> &'static str {
        "faketime"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// A library named by `QONTRACT_FAKETIME` is used as is.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        let library = cache.faketime();
        library.is_file() && (stamped || !library.starts_with(cache.path("")))
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        FetchedTool { name: "faketime", folder: "lib", hint: HINT }.install(cache, fetch)
    }
}

/// Creates `lib/libfaketimeMT.so.1` in the work directory.
fn fetch(work: &Path, steps: &InstallLog) -> Result<()> {
    if !CommandLine::new("apt-get --version").succeeds() {
        bail!("cannot fetch libfaketime: `apt-get` not found");
    }
    let (root, library) = (work.join("root"), work.join("lib/libfaketimeMT.so.1"));
    Apt::isolated(&work.join("apt"), steps)?.unpack(&["libfaketime"], &root)?;
    let packaged = root.join(format!("usr/lib/{ARCH}-linux-gnu/faketime/libfaketimeMT.so.1"));
    fs::copy(packaged, &library).context("the package has no library")?;
    let date =
        CommandLine::new("date --utc +%Y").env("LD_PRELOAD", &library).env("FAKETIME", "2001-02-03 04:05:06");
    steps.run("trying libfaketime", &date)
}
