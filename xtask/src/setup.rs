//! Installs the tools that the tests need into the cache directory. Each missing tool is installed once, and
//! never partially.
//!
//! A tool is one [`Provision`] in its own file, listed in [`FOR_TESTS`]. A tool is present if the machine
//! already has it, or if its stamp file in the cache contains the required version. The stamp is written
//! last, so an interrupted install is repeated; a file lock serializes concurrent runs.

mod apt;
mod cargo_tool;
mod chromium;
mod faketime;
mod folder;
mod image_packages;
mod install_log;
mod kubernetes;
mod npm;
mod prometheus;
mod promtool;
mod provision;
mod python;
mod rusty_vault;

pub use cargo_tool::{DENY, FUZZ, NEXTEST};
pub use chromium::Chromium;
pub use faketime::Faketime;
pub use image_packages::ImagePackages;
pub use kubernetes::{Kubernetes, binaries as kubernetes_binaries};
pub use npm::{APOLLO, GRAPHQL_JS};
pub use prometheus::Prometheus;
pub use promtool::Promtool;
pub use provision::Provision;
pub use python::{PEER, PYTHON};
pub use rusty_vault::RustyVault;

use crate::console;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result};
use qontract_files::atomic;
use std::fs::{self, File, TryLockError};

/// The tools that `cargo xtask test` needs.
pub const FOR_TESTS: [&dyn Provision; 12] = [
    &PYTHON,
    &NEXTEST,
    &Promtool,
    &Prometheus,
    &Faketime,
    &Chromium,
    &ImagePackages,
    &RustyVault,
    &GRAPHQL_JS,
    &PEER,
    &Kubernetes,
    &DENY,
];

/// The tools that `cargo xtask dist` needs.
pub const FOR_RELEASES: [&dyn Provision; 2] = [&cargo_tool::AUDITABLE, &cargo_tool::AUDITABLE2CDX];

/// Installs the missing tools of `wanted`.
pub fn run(cache: &ToolCache, wanted: &[&dyn Provision]) -> Result<()> {
    let _lock = lock(cache)?;
    wanted.iter().try_for_each(|provision| provide(cache, *provision))
}

/// Installs a tool again, even if it is present.
pub fn renew(cache: &ToolCache, provision: &dyn Provision) -> Result<()> {
    let _lock = lock(cache)?;
    let stamp = cache.path("stamps").join(provision.name());
    if stamp.exists() {
        fs::remove_file(&stamp)?;
    }
    provide(cache, provision)
}

fn provide(cache: &ToolCache, provision: &dyn Provision) -> Result<()> {
    let (name, version) = (provision.name(), provision.version());
    let stamp = cache.path("stamps").join(name);
    let stamped = fs::read_to_string(&stamp).is_ok_and(|text| text == version);
    if provision.is_present(cache, stamped) {
        return Ok(());
    }
    console::print(format_args!("setup: installing {name} ({version}) into {}", cache.path("").display()));
    let install = || -> Result<()> {
        if stamp.exists() {
            fs::remove_file(&stamp)?;
        }
        provision.install(cache)?;
        fs::create_dir_all(cache.path("stamps"))?;
        Ok(atomic::write_output(&stamp, version.as_bytes())?)
    };
    install().with_context(|| format!("cannot install {name}"))
}

fn lock(cache: &ToolCache) -> Result<File> {
    fs::create_dir_all(cache.path(""))?;
    let path = cache.path("lock");
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            console::print("setup: waiting for another setup to finish");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the cache directory"),
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{Provision, run};
    use crate::workspace::ToolCache;
    use anyhow::{Result, bail};
    use std::cell::Cell;

    /// A tool that counts its installs, the first `failures` of which fail.
    struct Fake {
        version: &'static str,
        failures: usize,
        installs: Cell<usize>,
    }

    impl Fake {
        fn new(version: &'static str, failures: usize) -> Self {
            Self { version, failures, installs: Cell::new(0) }
        }
    }

    impl Provision for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn version(&self) -> String {
            self.version.to_owned()
        }

        fn is_present(&self, _: &ToolCache, stamped: bool) -> bool {
            stamped
        }

        fn install(&self, _: &ToolCache) -> Result<()> {
            self.installs.set(self.installs.get() + 1);
            if self.installs.get() <= self.failures {
                bail!("the network is down");
            }
            Ok(())
        }
    }

    fn check(provisions: &[&Fake], expect_installs: &[usize]) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let cache = ToolCache::at(folder.path());
        for provision in provisions {
            // The result is ignored, because some tests expect a failed install.
            let _ = run(&cache, &[*provision]);
        }
        let installs: Vec<usize> = provisions.iter().map(|provision| provision.installs.get()).collect();
        assert_eq!(installs, expect_installs);
    }

    #[test]
    fn the_second_run_installs_nothing() {
        let fake = Fake::new("1", 0);
        check(&[&fake, &fake], &[1, 1]);
    }

    #[test]
    fn another_version_is_installed_again() {
        check(&[&Fake::new("1", 0), &Fake::new("2", 0)], &[1, 1]);
    }

    #[test]
    fn a_failed_install_leaves_no_stamp_and_is_repeated() {
        let fake = Fake::new("1", 1);
        check(&[&fake, &fake, &fake], &[2, 2, 2]);
    }

    #[test]
    fn a_failed_update_does_not_leave_the_old_stamp() {
        let old = Fake::new("1", 0);
        check(&[&old, &Fake::new("2", 1), &old], &[2, 1, 2]);
    }
}
