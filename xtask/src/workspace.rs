//! Paths of the workspace and of the tool cache, and the variables that pass them to the tests.

use anyhow::{Context as _, Result, bail};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::command::CommandLine;

/// This checkout and its tool cache.
#[derive(Debug)]
pub struct Workspace {
    /// The root directory of the checkout.
    pub root: PathBuf,
    /// The tool cache, outside of the checkout.
    pub cache: ToolCache,
    on_ci: bool,
}

/// The directory outside of the checkout that holds every tool that the tests need.
#[derive(Debug)]
pub struct ToolCache {
    folder: PathBuf,
}

impl Workspace {
    /// The checkout that this program was built from, with the cache directory from the environment.
    pub fn of_this_checkout() -> Result<Self> {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = xtask.parent().context("the xtask directory has no parent")?.to_owned();
        let folder = std::path::absolute(cache_folder(|name| env::var_os(name))?)?;
        if folder.starts_with(&root) {
            bail!("the cache directory `{}` is inside the checkout: set `QONTRACT_TOOLS`", folder.display());
        }
        let on_ci = env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        Ok(Self { root, cache: ToolCache { folder }, on_ci })
    }

    /// A cargo command in this checkout that finds the cached tools.
    ///
    /// On CI every clone shares one target directory, so that a fresh clone does not rebuild the
    /// dependencies.
    pub fn cargo(&self, words: &str) -> CommandLine {
        let line = self.cache.cargo(words).folder(&self.root);
        let line = line
            .env("QONTRACT_PYTHON", self.cache.python())
            .env("QONTRACT_PEER_PYTHON", self.cache.peer_python())
            .env("QONTRACT_RVAULT", self.cache.rusty_vault())
            .env("QONTRACT_PROMTOOL", self.cache.promtool())
            .env("QONTRACT_PROMETHEUS", self.cache.prometheus())
            .env("QONTRACT_FAKETIME", self.cache.faketime())
            .env("QONTRACT_CHROMIUM", self.cache.chromium())
            .env("QONTRACT_GRAPHQL_JS", self.cache.path("graphql-js"));
        if self.on_ci && env::var_os("CARGO_TARGET_DIR").is_none() {
            line.env("CARGO_TARGET_DIR", self.cache.path("target"))
        } else {
            line
        }
    }
}

impl ToolCache {
    /// A cache in the given directory.
    #[cfg(test)]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// A path inside the cache.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }

    /// The Python interpreter with the packages of the reference implementations.
    pub fn python(&self) -> PathBuf {
        self.path("python/bin/python")
    }

    /// The Python interpreter with qontract-reconcile.
    pub fn peer_python(&self) -> PathBuf {
        self.path("peer/bin/python")
    }

    /// The `RustyVault` server, which stands in for Vault.
    pub fn rusty_vault(&self) -> PathBuf {
        self.path("tools/bin/rvault")
    }

    /// Path of promtool: `QONTRACT_PROMTOOL` if it is set, otherwise the cached program.
    pub fn promtool(&self) -> PathBuf {
        let named = env::var_os("QONTRACT_PROMTOOL").filter(|path| !path.is_empty());
        named.map_or_else(|| self.path("promtool/bin/promtool"), PathBuf::from)
    }

    /// Path of prometheus: `QONTRACT_PROMETHEUS` if it is set, otherwise the cached program.
    pub fn prometheus(&self) -> PathBuf {
        let named = env::var_os("QONTRACT_PROMETHEUS").filter(|path| !path.is_empty());
        named.map_or_else(|| self.path("prometheus/bin/prometheus"), PathBuf::from)
    }

    /// Path of libfaketime: `QONTRACT_FAKETIME` if it is set, otherwise the cached library.
    pub fn faketime(&self) -> PathBuf {
        let named = env::var_os("QONTRACT_FAKETIME").filter(|path| !path.is_empty());
        named.map_or_else(|| self.path("faketime/lib/libfaketimeMT.so.1"), PathBuf::from)
    }

    /// Path of the browser: `QONTRACT_CHROMIUM` if it is set, otherwise the first browser on `PATH`,
    /// otherwise the cached browser.
    pub fn chromium(&self) -> PathBuf {
        let named = env::var_os("QONTRACT_CHROMIUM").filter(|path| !path.is_empty()).map(PathBuf::from);
        let found = || find_on_path(&["chromium-headless-shell", "chromium"]);
        named.or_else(found).unwrap_or_else(|| self.path("chromium/unpacked/chromium"))
    }

    /// The unpacked Debian packages of container images.
    pub fn image_packages(&self) -> PathBuf {
        self.path("image-packages/packages")
    }

    /// A cargo command with the cached tools at the end of its `PATH`.
    pub fn cargo(&self, words: &str) -> CommandLine {
        let mut path = env::var_os("PATH").unwrap_or_default();
        path.push(":");
        path.push(self.path("tools/bin"));
        CommandLine::new(&format!("cargo {words}")).env("PATH", path)
    }
}

/// The first of these programs that is found on `PATH`.
fn find_on_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("QONTRACT_TOOLS") {
        return Ok(folder);
    }
    // The XDG Base Directory specification requires that relative paths are ignored.
    if let Some(folder) = set("XDG_CACHE_HOME").filter(|folder| folder.is_absolute()) {
        return Ok(folder.join("qontract"));
    }
    let home = set("HOME").context("no cache directory: set `QONTRACT_TOOLS` or `HOME`")?;
    Ok(home.join(".cache/qontract"))
}

#[cfg(test)]
mod tests {
    use super::cache_folder;
    use std::ffi::OsString;
    use std::path::Path;

    fn check(variables: &[(&str, &str)], expect: Option<&str>) {
        let lookup = |name: &str| {
            variables.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| OsString::from(value))
        };
        assert_eq!(cache_folder(lookup).ok().as_deref(), expect.map(Path::new));
    }

    #[test]
    fn the_projects_own_variable_wins() {
        check(&[("QONTRACT_TOOLS", "/q"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/q"));
    }

    #[test]
    fn the_cache_of_the_binary_is_a_separate_setting() {
        check(&[("QONTRACT_CACHE", "off"), ("HOME", "/h")], Some("/h/.cache/qontract"));
    }

    #[test]
    fn then_the_cache_home_if_it_is_absolute() {
        check(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/x/qontract"));
        check(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")], Some("/h/.cache/qontract"));
    }

    #[test]
    fn then_the_home_folder() {
        check(&[("QONTRACT_TOOLS", ""), ("HOME", "/h")], Some("/h/.cache/qontract"));
        check(&[], None);
    }
}
