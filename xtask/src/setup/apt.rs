//! Fetches Debian packages with the apt of this machine, but with separate lists, caches and sources. Those
//! of the system stay unchanged, and no root permissions are needed.

mod sources;

use super::install_log::InstallLog;
use crate::command::CommandLine;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// An apt with its own state directory.
#[derive(Debug)]
pub struct Apt<'a> {
    folder: PathBuf,
    steps: &'a InstallLog,
}

impl<'a> Apt<'a> {
    /// Creates the state and updates the binary and source package lists from the sources of this machine.
    pub fn isolated(folder: &Path, steps: &'a InstallLog) -> Result<Self> {
        for name in ["lists/partial", "cache/archives/partial", "sources.list.d", "packages"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let (lists, stanzas) = sources::read_machine_sources()?;
        fs::write(folder.join("sources.list"), lists)?;
        fs::write(folder.join("sources.list.d/machine.sources"), stanzas)?;
        fs::write(folder.join("apt.conf"), configuration(folder))?;
        let apt = Self { folder: folder.to_owned(), steps };
        // A failure is ignored, because it may concern an unrelated source. If the source is needed, the next
        // step fails, and the log shows why.
        let update = apt.get("update", folder);
        if let Err(error) = steps.run("updating the package lists", &update) {
            steps.report(&format!("continuing: {error}"));
        }
        Ok(apt)
    }

    /// Fetches packages and unpacks them below a directory as if the directory were the root.
    pub fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        let folder = self.folder.join("packages");
        let what = format!("fetching {}", packages.join(", "));
        self.steps.run(&what, &self.get("download", &folder).args(packages.iter().copied()))?;
        self.unpack_files(&folder, root)
    }

    /// Fetches a package with its missing dependencies, and unpacks them like [`Self::unpack`].
    pub fn unpack_with_dependencies(&self, package: &str, root: &Path) -> Result<()> {
        let line = self.get("install --yes --download-only --no-install-recommends", &self.folder);
        // The system does not change, so its lock, which would require root, is not needed.
        let line = line.args(["-o", "Debug::NoLocking=1", package]);
        self.steps.run(&format!("fetching {package} and its dependencies"), &line)?;
        self.unpack_files(&self.folder.join("cache/archives"), root)
    }

    fn unpack_files(&self, folder: &Path, root: &Path) -> Result<()> {
        fs::create_dir_all(root)?;
        for file in files(folder, "deb")? {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let line = CommandLine::new("dpkg -x").args([&file, root]);
            self.steps.run(&format!("unpacking {name}"), &line)?;
        }
        Ok(())
    }

    /// Fetches a source package into a directory; returns its `.dsc` file.
    pub fn fetch_source(&self, package: &str, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let line = self.get("source --download-only", folder).args([package]);
        self.steps.run(&format!("fetching the source of {package}"), &line)?;
        let description = files(folder, "dsc")?.pop();
        description.with_context(|| format!("apt fetched no `.dsc` file for the source of {package}"))
    }

    fn get(&self, words: &str, folder: &Path) -> CommandLine {
        CommandLine::new("apt-get --quiet -c")
            .args([self.folder.join("apt.conf")])
            .args(words.split(' '))
            .folder(folder)
    }
}

/// The configuration file. apt reads it after the configuration of the system, so it takes precedence.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"// update hooks of the system are for its own lists
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "{folder}/sources.list.d";
Dir::State::lists "{folder}/lists";
"#
    )
}

/// The files of a directory with this extension, sorted.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("apt fetched no `.{extension}` into {}", folder.display());
    }
    files.sort();
    Ok(files)
}
