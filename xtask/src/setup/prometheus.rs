//! `prometheus`, the server that the Prometheus client is tested with. Debian's package is unpacked into the cache and
//! not installed.

use super::Provision;
use super::install_log::FetchedTool;
use super::promtool::fetch_program;
use crate::workspace::ToolCache;
use anyhow::Result;

/// Increment to force a new download.
const RECIPE: u32 = 1;
/// The hint if Prometheus cannot be fetched.
const HINT: &str = "set `QONTRACT_PROMETHEUS` to the path of a prometheus on this machine";

/// The program at [`ToolCache::prometheus`]. The installation takes 30 seconds, once.
#[derive(Debug)]
pub struct Prometheus;

impl Provision for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// A program named by `QONTRACT_PROMETHEUS` is used as is.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        let program = cache.prometheus();
        program.is_file() && (stamped || !program.starts_with(cache.path("")))
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        let tool = FetchedTool { name: "prometheus", folder: "bin", hint: HINT };
        tool.install(cache, |work, steps| fetch_program("prometheus", work, steps))
    }
}
