//! A root file system in a directory, filled from unpacked packages.
//!
//! **Invariant:** the same packages and the same programs give the same files.

use super::elf;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Directories of shared libraries, relative to the root of a package.
const LIBRARY_FOLDERS: [&str; 6] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib",
    "usr/lib",
];

/// A root file system that is being assembled.
#[derive(Debug)]
pub struct RootFs<'a> {
    root: PathBuf,
    /// The unpacked packages, each in a directory with its name.
    packages: &'a Path,
    /// The names of the packages of which files were copied.
    used: BTreeSet<String>,
}

impl<'a> RootFs<'a> {
    /// Starts with an empty directory.
    pub fn create(root: PathBuf, packages: &'a Path) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root)?;
        Ok(Self { root, packages, used: BTreeSet::new() })
    }

    /// The path of a file of the image on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Creates an empty directory with this mode.
    pub fn folder(&self, path: &str, mode: u32) -> Result<()> {
        fs::create_dir_all(self.path(path))?;
        Ok(fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode))?)
    }

    /// Writes a file that everybody may read.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<()> {
        self.put(path, content, 0o644)
    }

    /// Creates a symbolic link.
    pub fn link(&self, path: &str, target: &str) -> Result<()> {
        let place = self.path(path);
        fs::create_dir_all(place.parent().context("a link is in a directory")?)?;
        symlink(target, &place).with_context(|| format!("cannot link {path}"))
    }

    /// Copies a program of this machine, and the libraries that it needs.
    pub fn program(&mut self, source: &Path, path: &str) -> Result<()> {
        let bytes = fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
        self.put(path, &bytes, 0o755)?;
        self.dependencies(&bytes).with_context(|| format!("cannot copy {}", source.display()))
    }

    /// Copies a program of a package to the same path, and the libraries that it needs.
    pub fn packaged_program(&mut self, package: &str, path: &str) -> Result<()> {
        self.used.insert(package.to_owned());
        self.program(&self.packages.join(package).join(path.trim_start_matches('/')), path)
    }

    /// The files of a directory of a package, sorted by name.
    pub fn packaged_files(&mut self, package: &str, folder: &str) -> Result<Vec<PathBuf>> {
        self.used.insert(package.to_owned());
        let folder = self.packages.join(package).join(folder);
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.sort();
        Ok(files)
    }

    /// Adds the licences and the descriptions of the packages. Scanners find the descriptions in `status.d`.
    pub fn describe_packages(&self) -> Result<()> {
        for name in &self.used {
            let control = fs::read(self.packages.join(format!("{name}.control")))?;
            self.write(&format!("var/lib/dpkg/status.d/{name}"), &control)?;
            // Several packages of one source may share a directory, which is in one of them.
            let link = fs::read_link(self.packages.join(name).join("usr/share/doc").join(name));
            let owner = link.map_or_else(|_| name.clone(), |target| target.to_string_lossy().into_owned());
            let copyright = self.packages.join(&owner).join("usr/share/doc").join(&owner).join("copyright");
            let text =
                fs::read(&copyright).with_context(|| format!("cannot read {}", copyright.display()))?;
            self.write(&format!("usr/share/doc/{name}/copyright"), &text)?;
        }
        Ok(())
    }

    /// The names of the packages of which files were copied.
    pub fn used_packages(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(String::as_str)
    }

    fn put(&self, path: &str, content: &[u8], mode: u32) -> Result<()> {
        let place = self.path(path);
        fs::create_dir_all(place.parent().context("a file is in a directory")?)?;
        fs::write(&place, content).with_context(|| format!("cannot write {}", place.display()))?;
        Ok(fs::set_permissions(&place, fs::Permissions::from_mode(mode))?)
    }

    /// Copies the loader and the libraries that a file needs, and those that the libraries need.
    fn dependencies(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(needs) = elf::needs(bytes)? else { return Ok(()) };
        if let Some(loader) = needs.loader {
            let (package, source) = self.find(loader.trim_start_matches('/'))?;
            self.copy_library(package, &source, &loader)?;
        }
        for name in needs.libraries {
            let mut found = LIBRARY_FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
            let path = found.find(|path| self.find(path).is_ok());
            let path = path.with_context(|| format!("no package has the library `{name}`"))?;
            let (package, source) = self.find(&path)?;
            self.copy_library(package, &source, &path)?;
        }
        Ok(())
    }

    fn copy_library(&mut self, package: String, source: &Path, path: &str) -> Result<()> {
        if self.path(path).exists() {
            return Ok(());
        }
        self.used.insert(package);
        let bytes = fs::read(source)?;
        self.put(path, &bytes, 0o755)?;
        self.dependencies(&bytes)
    }

    /// The package that has this file, and the path of the file on this machine. Links are followed.
    fn find(&self, path: &str) -> Result<(String, PathBuf)> {
        let mut packages = fs::read_dir(self.packages)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<PathBuf>>>()
            .context("cannot list the packages")?;
        packages.sort();
        for package in packages {
            let file = package.join(path);
            // The target of an absolute link is in the package, not on this machine.
            let file = match fs::read_link(&file) {
                Ok(target) if target.is_absolute() => package.join(target.strip_prefix("/")?),
                _ => file,
            };
            let Ok(found) = file.canonicalize() else { continue };
            if !found.starts_with(package.canonicalize()?) {
                bail!("{} is a link to another package", file.display());
            }
            let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok((name, found));
        }
        bail!("no package has the file `{path}`")
    }
}
