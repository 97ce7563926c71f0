//! A private Git directory that replaces the Git directory of a repository.
//!
//! `git` reads the configuration of the Git directory on which it runs, and many settings name programs to
//! run. The private directory has its own generated configuration and links to the refs of the repository;
//! `GIT_OBJECT_DIRECTORY` names the objects. It has no hooks, attributes, grafts, remotes or partial clones.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::location::{RepositoryLocation, refused};
use crate::settings::{self, Settings};
use crate::{GitError, file};

/// Files besides refs that name a commit; only the first line of each is used.
const PSEUDO_REFS: [&str; 6] =
    ["HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

/// A private Git directory, which is removed from disk when this value is dropped.
#[derive(Debug)]
pub struct PrivateDir {
    folder: TempDir,
    path: PathBuf,
    objects: PathBuf,
}

impl PrivateDir {
    /// Creates a directory for the repository.
    pub fn new(location: &RepositoryLocation) -> Result<Self, GitError> {
        let RepositoryLocation { git_dir, common_dir, .. } = location;
        let settings = read_settings(common_dir)?;
        let is_reftable = settings.ref_storage.as_deref() == Some("reftable");
        if is_reftable && git_dir != common_dir {
            return Err(refused(git_dir.clone(), "linked work trees with `reftable` refs are not supported"));
        }
        let folder = tempfile::Builder::new().prefix("qontract-git-").tempdir();
        let folder = folder.map_err(GitError::PrivateDir)?;
        let path = folder.path().canonicalize().map_err(GitError::PrivateDir)?;
        let private = Self { folder, path, objects: common_dir.join("objects") };
        private.fill(location, &settings, is_reftable)?;
        Ok(private)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The object store of the repository.
    pub fn objects(&self) -> &Path {
        &self.objects
    }

    fn fill(
        &self,
        location: &RepositoryLocation,
        settings: &Settings,
        is_reftable: bool,
    ) -> Result<(), GitError> {
        let RepositoryLocation { git_dir, common_dir, .. } = location;
        let to = |name: &str| self.folder.path().join(name);
        fs::write(to("config"), config(settings)).map_err(GitError::PrivateDir)?;
        for name in PSEUDO_REFS {
            match file::first_line(&git_dir.join(name)) {
                Ok(line) => fs::write(to(name), format!("{line}\n")).map_err(GitError::PrivateDir)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused(git_dir.join(name), &error.to_string())),
            }
        }
        let mut links = vec![(common_dir, "refs"), (common_dir, "packed-refs"), (git_dir, "logs")];
        if is_reftable {
            links.push((common_dir, "reftable"));
        }
        for (from, name) in links {
            let target = from.join(name);
            let Ok(metadata) = target.symlink_metadata() else { continue };
            if metadata.is_dir() != (name != "packed-refs") || metadata.is_file() != (name == "packed-refs") {
                return Err(refused(target, "it is a link or a special file"));
            }
            symlink(target, to(name)).map_err(GitError::PrivateDir)?;
        }
        Ok(())
    }
}

/// The settings of the repository.
fn read_settings(common_dir: &Path) -> Result<Settings, GitError> {
    match file::read(&common_dir.join("config")) {
        Ok(bytes) => Ok(settings::parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(refused(common_dir.join("config"), &error.to_string())),
    }
}

/// The generated configuration that `git` reads.
fn config(settings: &Settings) -> String {
    let Settings { object_format, ref_storage, work_tree: _ } = settings;
    let mut text = "[core]\nrepositoryFormatVersion = 1\nbare = true\n[extensions]\n".to_owned();
    let extensions = [("objectFormat", object_format), ("refStorage", ref_storage)];
    for (name, value) in extensions {
        if let Some(value) = value.as_deref().filter(|value| settings::is_word(value)) {
            text.push_str(&format!("{name} = {value}\n"));
        }
    }
    text
}
