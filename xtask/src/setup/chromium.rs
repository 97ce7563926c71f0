//! Headless Chromium, which tests the query page. Unless the machine has one, Debian packages are unpacked
//! into the cache; they are not installed.

use super::Provision;
use super::apt::Apt;
use super::install_log::{FetchedTool, InstallLog};
use crate::command::CommandLine;
use crate::workspace::ToolCache;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Increment to force a new download.
const RECIPE: u32 = 1;
/// The package, and the path of its program.
const PACKAGE: &str = "chromium-headless-shell";
const PROGRAM: &str = "usr/lib/chromium/chromium-headless-shell";
/// The hint if Chromium cannot be fetched.
const HINT: &str = "set `QONTRACT_CHROMIUM` to the path of a Chromium on this machine";

/// The program at [`ToolCache::chromium`]. The installation takes 15 seconds, once, fetches 100 MB and needs
/// 300 MB of disk.
#[derive(Debug)]
pub struct Chromium;

impl Provision for Chromium {
    fn name(&self) -> &'static str {
        "chromium"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// A Chromium of the machine, or one named by `QONTRACT_CHROMIUM`, is used as is.
    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        let program = cache.chromium();
        program.is_file() && (stamped || !program.starts_with(cache.path("")))
    }

    fn install(&self, cache: &ToolCache) -> Result<()> {
        FetchedTool { name: "chromium", folder: "unpacked", hint: HINT }.install(cache, fetch)
    }
}

/// Creates `unpacked` in the work directory, with a script `chromium` that starts the browser.
fn fetch(work: &Path, steps: &InstallLog) -> Result<()> {
    if !CommandLine::new("apt-get --version").succeeds() {
        bail!("cannot fetch Chromium: `apt-get` not found");
    }
    let root = work.join("unpacked");
    Apt::isolated(&work.join("apt"), steps)?.unpack_with_dependencies(PACKAGE, &root)?;
    let mut libraries = BTreeSet::new();
    find_libraries(&root, Path::new(""), &mut libraries)?;
    let script = root.join("chromium");
    fs::write(&script, script_text(&libraries))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    steps.run("trying Chromium", &CommandLine::program(&script).args(["--version"]))
}

/// The directories below `root` that contain shared libraries, relative to it.
fn find_libraries(root: &Path, folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in root.join(folder).read_dir()? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            find_libraries(root, &path, found)?;
        } else if entry.file_name().to_string_lossy().contains(".so") {
            found.insert(folder.to_owned());
        }
    }
    Ok(())
}

/// A script next to the unpacked directories that starts the browser with `LD_LIBRARY_PATH` set to their
/// libraries.
fn script_text(libraries: &BTreeSet<PathBuf>) -> String {
    let paths: Vec<String> = libraries.iter().map(|folder| format!("$root/{}", folder.display())).collect();
    format!(
        "#!/bin/sh\nroot=$(dirname \"$0\")\nexport LD_LIBRARY_PATH=\"{}\"\nexec \"$root/{PROGRAM}\" \"$@\"\n",
        paths.join(":")
    )
}

#[cfg(test)]
mod tests {
    use super::{find_libraries, script_text};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_library_path_has_every_directory_with_libraries() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for file in ["usr/lib/a/libx.so.1", "usr/lib/a/b/liby.so", "usr/share/doc/readme"] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, "").expect("a file");
        }
        let mut found = BTreeSet::new();
        find_libraries(root.path(), Path::new(""), &mut found).expect("the directory can be read");
        let text = script_text(&found);
        assert!(text.contains("LD_LIBRARY_PATH=\"$root/usr/lib/a:$root/usr/lib/a/b\"\n"), "{text}");
    }
}
