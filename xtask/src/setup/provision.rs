//! The interface of a tool that setup can install.

use crate::workspace::ToolCache;
use anyhow::Result;

/// A tool that tests need, with its installation into the cache directory.
pub trait Provision {
    /// Name of the tool and of its stamp file.
    fn name(&self) -> &'static str;

    /// The exact required version. If the stamp contains a different version, the tool is installed again.
    fn version(&self) -> String;

    /// Whether the tool is already present. `stamped` is true if this exact version was installed into the
    /// cache.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool;

    /// Installs the tool into the cache. Must cope with the remains of an interrupted install.
    fn install(&self, cache: &ToolCache) -> Result<()>;
}
