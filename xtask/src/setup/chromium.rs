//! A Chromium without a window, which opens the query page: from Debian's packages, unpacked in the cache and not
//! installed, where the machine has none.

use super::Provision;
use super::apt::Apt;
use super::steps::{FetchedTool, Steps};
use crate::command::CommandLine;
use crate::house::Cache;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Counted up when it is to be fetched anew, or in another way.
const RECIPE: u32 = 1;
/// The package, and where its program is.
const PACKAGE: &str = "chromium-headless-shell";
const PROGRAM: &str = "usr/lib/chromium/chromium-headless-shell";
/// What to do where it cannot be fetched.
const HINT: &str = "`QONTRACT_CHROMIUM` may name a Chromium that is on this machine";

/// The program at [`Cache::chromium`]: a quarter of a minute, once; 100 MB to fetch and 300 MB of disk.
#[derive(Debug)]
pub struct Chromium;

impl Provision for Chromium {
    fn name(&self) -> &'static str {
        "chromium"
    }

    fn version(&self) -> String {
        format!("Debian's, recipe {RECIPE}")
    }

    /// The machine's own is taken as it is, and one that somebody named.
    fn is_present(&self, cache: &Cache, stamped: bool) -> bool {
        let program = cache.chromium();
        program.is_file() && (stamped || !program.starts_with(cache.path("")))
    }

    fn install(&self, cache: &Cache) -> Result<()> {
        FetchedTool { name: "chromium", folder: "unpacked", hint: HINT }.install(cache, fetch)
    }
}

/// Makes `unpacked` in the folder of work, with a script `chromium` that starts it.
fn fetch(work: &Path, steps: &Steps) -> Result<()> {
    if !CommandLine::new("apt-get --version").answers() {
        bail!("there is no `apt-get` on this machine to get Chromium with");
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

/// The folders below `root` that have shared libraries, as seen from it.
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

/// A script that lies beside the unpacked folders, wherever that is: the loader is told of the libraries among them.
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
    fn the_loader_is_told_of_every_folder_with_libraries() {
        let root = tempfile::tempdir().expect("a temporary folder");
        for file in ["usr/lib/a/libx.so.1", "usr/lib/a/b/liby.so", "usr/share/doc/readme"] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, "").expect("a file");
        }
        let mut found = BTreeSet::new();
        find_libraries(root.path(), Path::new(""), &mut found).expect("the folder can be read");
        let text = script_text(&found);
        assert!(text.contains("LD_LIBRARY_PATH=\"$root/usr/lib/a:$root/usr/lib/a/b\"\n"), "{text}");
    }
}
