//! Debian's packages, fetched by the machine's own apt as it is set up, but with lists, caches and sources of its own:
//! the system's stay untouched, and nobody has to be root.

mod sources;

use super::steps::Steps;
use crate::command::CommandLine;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// An apt with a state of its own.
#[derive(Debug)]
pub struct Apt<'a> {
    folder: PathBuf,
    steps: &'a Steps,
}

impl<'a> Apt<'a> {
    /// Makes the state and reads the lists of packages, binary and source, from where the machine gets its packages.
    pub fn isolated(folder: &Path, steps: &'a Steps) -> Result<Self> {
        for name in ["lists/partial", "cache/archives/partial", "sources.list.d", "packages"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let (lists, stanzas) = sources::of_this_machine()?;
        fs::write(folder.join("sources.list"), lists)?;
        fs::write(folder.join("sources.list.d/machine.sources"), stanzas)?;
        fs::write(folder.join("apt.conf"), configuration(folder))?;
        let apt = Self { folder: folder.to_owned(), steps };
        // a list of somebody else's packages that cannot be read is no obstacle; if it is one of ours, the next step
        // fails and the log tells
        let update = apt.get("update", folder);
        if let Err(error) = steps.run("reading the lists of packages", &update) {
            steps.say(&format!("going on: {error}"));
        }
        Ok(apt)
    }

    /// Fetches packages and unpacks them below a folder, as if that were the root.
    pub fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        let folder = self.folder.join("packages");
        let what = format!("fetching {}", packages.join(", "));
        self.steps.run(&what, &self.get("download", &folder).args(packages.iter().copied()))?;
        self.unpack_files(&folder, root)
    }

    /// Fetches a package with all that it needs and this machine does not have, and unpacks them as [`Self::unpack`].
    pub fn unpack_with_dependencies(&self, package: &str, root: &Path) -> Result<()> {
        let line = self.get("install --yes --download-only --no-install-recommends", &self.folder);
        // nothing of the system is changed, so that nothing of it has to be locked, which takes root
        let line = line.args(["-o", "Debug::NoLocking=1", package]);
        self.steps.run(&format!("fetching {package} and what it needs"), &line)?;
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

    /// Fetches a source package into a folder; the file that describes it.
    pub fn fetch_source(&self, package: &str, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let line = self.get("source --download-only", folder).args([package]);
        self.steps.run(&format!("fetching the source of {package}"), &line)?;
        let description = files(folder, "dsc")?.pop();
        description.with_context(|| format!("apt fetched no description of the source of {package}"))
    }

    fn get(&self, words: &str, folder: &Path) -> CommandLine {
        CommandLine::new("apt-get --quiet -c")
            .args([self.folder.join("apt.conf")])
            .args(words.split(' '))
            .folder(folder)
    }
}

/// Read by apt after the system's configuration, so that it has the last word.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"// what a system does after an update is about its own lists
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

/// The files of a folder that end so, in order.
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
