//! Fetches Debian packages with the apt of this machine, but with separate lists, caches and sources. Those
//! of the system stay unchanged, and no root permissions are needed.

mod sources;

use super::install_log::InstallLog;
use crate::command::CommandLine;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
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

    /// Fetches packages and the libraries that they depend on, and unpacks each one below a directory with its
    /// name, next to a file `NAME.control` that describes it. Dependencies that are not libraries are omitted.
    pub fn unpack_separately(&self, packages: &[&str], root: &Path) -> Result<()> {
        let mut known: BTreeSet<String> = packages.iter().map(ToString::to_string).collect();
        let mut pending: Vec<String> = known.iter().cloned().collect();
        while !pending.is_empty() {
            let line = CommandLine::new("apt-cache -c").args([self.folder.join("apt.conf")]);
            let line = line.args(["depends", "--important"]).args(std::mem::take(&mut pending));
            let listed = line.output()?;
            for name in library_names(&String::from_utf8_lossy(&listed)) {
                if known.insert(name.to_owned()) {
                    pending.push(name.to_owned());
                }
            }
        }
        let folder = self.folder.join("packages");
        let what = format!("fetching {} and {} libraries", packages.join(", "), known.len() - packages.len());
        self.steps.run(&what, &self.get("download", &folder).args(known))?;
        fs::create_dir_all(root)?;
        for file in files(&folder, "deb")? {
            let field =
                |field: &str| CommandLine::new("dpkg-deb --field").args([&file]).args([field]).output();
            let name = String::from_utf8_lossy(&field("Package")?).trim().to_owned();
            let control = CommandLine::new("dpkg-deb --field").args([&file]).output()?;
            fs::write(root.join(format!("{name}.control")), control)?;
            let place = root.join(&name);
            let line = CommandLine::new("dpkg -x").args([file.as_path(), &place]);
            self.steps.run(&format!("unpacking {name}"), &line)?;
        }
        Ok(())
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

/// The names of shared libraries in the output of `apt-cache depends`, without libraries for Perl and JavaScript. The
/// licence of the libraries of GCC is in a package `gcc-VERSION-base`.
fn library_names(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| line.split_once("Depends: ").map(|(_, name)| name.trim()));
    let is_shared =
        |name: &&str| name.starts_with("lib") && !name.starts_with("libjs-") && !name.ends_with("-perl");
    names.filter(move |name| is_shared(name) || name.starts_with("gcc-"))
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

#[cfg(test)]
mod tests {
    use super::library_names;

    #[test]
    fn only_shared_libraries_are_followed() {
        let text = "git\n  Depends: libc6\n |Depends: libcurl3-gnutls\n  PreDepends: libpcre2-8-0\n  Depends: gcc-12-base\n  Depends: perl\n  \
                    Depends: liberror-perl\n  Depends: libjs-jquery\n  Depends: <debconf-2.0>\n    cdebconf\n";
        let names: Vec<&str> = library_names(text).collect();
        assert_eq!(names, ["libc6", "libcurl3-gnutls", "libpcre2-8-0", "gcc-12-base"]);
    }
}
