//! The contract of a thing that setup can provide.

use crate::house::Cache;
use anyhow::Result;

/// A tool that tests need, and how to get it into the cache folder.
pub trait Provision {
    /// Its name, also that of its stamp.
    fn name(&self) -> &'static str;

    /// What is wanted, exactly; another text in the stamp means to install anew.
    fn version(&self) -> String;

    /// Whether nothing is to be done. `stamped` tells that this very version was once installed into the cache.
    fn is_present(&self, cache: &Cache, stamped: bool) -> bool;

    /// Installs it into the cache; whatever an interrupted install left there is no obstacle.
    fn install(&self, cache: &Cache) -> Result<()>;
}
