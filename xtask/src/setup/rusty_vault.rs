//! `RustyVault`, a server with the API of Vault, against which KV 1 and logins are tested.

use super::Provision;
use crate::workspace::ToolCache;
use anyhow::Result;

/// The supported version.
const VERSION: &str = "0.2.1";

/// The program at [`ToolCache::rusty_vault`], which `cargo install` builds. The build takes about ten
/// minutes, once.
#[derive(Debug)]
pub struct RustyVault;

impl Provision for RustyVault {
    fn name(&self) -> &'static str {
        "rusty-vault"
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        stamped && cache.rusty_vault().is_file()
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        // The command runs outside of the checkout, so that the cargo configuration of the checkout does not
        // apply.
        cache
            .cargo("install --locked --force --root")
            .args([cache.path("tools")])
            .args(["rusty_vault", "--version", VERSION])
            .folder(&cache.path(""))
            .run()
    }
}
