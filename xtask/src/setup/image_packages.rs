//! The Debian packages from which container images are assembled, each unpacked into its own directory.

use super::Provision;
use super::apt::Apt;
use super::install_log::FetchedTool;
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::{Result, bail};

/// Increment to force a new download.
const RECIPE: u32 = 1;
/// The packages: certificates, the C library, and the tools of the larger image. Libraries on which they depend are
/// added, except those whose package has another name than a library.
const PACKAGES: [&str; 7] = ["ca-certificates", "dash", "git", "libc6", "libgcc-s1", "prometheus", "zlib1g"];
/// The hint if the packages cannot be fetched.
const HINT: &str = "images are assembled on a machine with `apt-get` and `dpkg`";

/// The packages at [`ToolCache::image_packages`]. The installation takes half a minute, fetches 50 MB and needs
/// 250 MB of disk.
#[derive(Debug)]
pub struct ImagePackages;

impl Provision for ImagePackages {
    fn name(&self) -> &'static str {
        "image-packages"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        stamped && cache.image_packages().is_dir()
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        FetchedTool { name: "image-packages", folder: "packages", hint: HINT }.install(
            cache,
            |work, steps| {
                if !CommandLine::new("apt-get --version").succeeds() {
                    bail!("cannot fetch the packages of images: `apt-get` not found");
                }
                Apt::isolated(&work.join("apt"), steps)?.unpack_separately(&PACKAGES, &work.join("packages"))
            },
        )
    }
}
