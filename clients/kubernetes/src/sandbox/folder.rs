//! The directory of one cluster: paths of objects, and file access.
//!
//! **Invariant:** files are replaced atomically, and never written through a symbolic link.
//!
//! **Invariant:** files are readable only by their owner, because objects include Secrets: files have mode
//! 0600, and directories below the root 0700, even if they were more permissive before.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_files::atomic::{self, Durability};
use qontract_files::{lock, private_files};

use crate::error::KubernetesError;
use crate::object::{Cluster, check_name};

/// The directory of cluster-scoped objects.
const CLUSTER_DIR: &str = "_cluster";

/// The directory of a cluster.
#[derive(Debug)]
pub(super) struct ClusterDir {
    /// The root of all clusters: symbolic links above it are allowed.
    root: PathBuf,
    path: PathBuf,
}

/// A file that was read.
pub(super) struct FileContent {
    pub bytes: Vec<u8>,
    pub age: Duration,
    /// Distinguishes the file from earlier files at the same path.
    pub identity: String,
}

impl ClusterDir {
    /// The directory of this cluster.
    pub fn new(root: &Path, cluster: &Cluster) -> Result<Self, KubernetesError> {
        let folder =
            Self { root: root.to_owned(), path: root.join("clusters").join(check_name(&cluster.name)?) };
        folder.refuse_links(&folder.path)?;
        Ok(folder)
    }

    /// The directory of the objects of a kind.
    pub fn kind_dir(&self, namespace: Option<&str>, kind: &str) -> Result<PathBuf, KubernetesError> {
        let part = namespace.map_or(Ok(CLUSTER_DIR), check_name)?;
        let folder = self.path.join(part).join(check_name(kind)?);
        self.refuse_links(&folder)?;
        Ok(folder)
    }

    /// The namespaces that have a directory.
    pub fn namespaces(&self) -> Result<Vec<String>, KubernetesError> {
        let mut names = entries(&self.path)?;
        names.retain(|name| check_name(name).is_ok());
        Ok(names)
    }

    /// The file of an object.
    pub fn file(&self, namespace: Option<&str>, kind: &str, name: &str) -> Result<PathBuf, KubernetesError> {
        Ok(self.kind_dir(namespace, kind)?.join(format!("{}.yaml", check_name(name)?)))
    }

    /// Removes the content of a namespace.
    pub fn remove_namespace(&self, namespace: &str) -> Result<(), KubernetesError> {
        self.remove_dir(&self.path.join(check_name(namespace)?))
    }

    /// Removes a directory with its content.
    pub fn remove_dir(&self, folder: &Path) -> Result<(), KubernetesError> {
        self.refuse_links(folder)?;
        ignore_missing(fs::remove_dir_all(folder)).map_err(|error| file_error("remove", folder, error))
    }

    /// Locks the cluster against other writers, in this process or another, while the file is open. The
    /// directory itself is locked, so that no lock file is left.
    pub fn lock(&self) -> Result<File, KubernetesError> {
        self.create_dir(&self.path)?;
        let locked = lock::acquire_folder(&self.path, lock::DEFAULT_TIMEOUT);
        locked.map_err(|error| file_error("lock", &self.path, error))
    }

    /// Reads a file, if it exists.
    pub fn read(&self, file: &Path) -> Result<Option<FileContent>, KubernetesError> {
        self.refuse_links(file)?;
        let read = || {
            let metadata = fs::metadata(file)?;
            let age = SystemTime::now().duration_since(metadata.modified()?).unwrap_or_default();
            let identity = format!("{:x}-{:x}-{:x}", metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
            io::Result::Ok(FileContent { bytes: fs::read(file)?, age, identity })
        };
        match read() {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("read", file, error)),
        }
    }

    /// Replaces a file atomically.
    pub fn write(&self, file: &Path, text: &str) -> Result<(), KubernetesError> {
        self.refuse_links(file)?;
        let folder = file.parent().unwrap_or(&self.path);
        self.create_dir(folder)?;
        // A leftover temporary file is harmless, because its name begins with a dot.
        let written = atomic::write_private(file, text.as_bytes(), Durability::None);
        written.map_err(|error| file_error("write", file, error))
    }

    /// Creates a directory, and restricts it and its parents to the owner; an existing root keeps its mode.
    fn create_dir(&self, folder: &Path) -> Result<(), KubernetesError> {
        private_files::create_folder(&self.root, folder).map_err(|error| file_error("make", folder, error))
    }

    /// Removes a file; a missing file is not an error.
    pub fn remove(&self, file: &Path) -> Result<(), KubernetesError> {
        self.refuse_links(file)?;
        ignore_missing(fs::remove_file(file)).map_err(|error| file_error("remove", file, error))
    }

    /// Refuses a path that contains a symbolic link, which may point outside of the sandbox.
    fn refuse_links(&self, path: &Path) -> Result<(), KubernetesError> {
        let below = path.ancestors().take_while(|part| *part != self.root);
        for part in below {
            if part.is_symlink() {
                return Err(file_error("use", part, io::Error::other("it is a symbolic link")));
            }
        }
        Ok(())
    }
}

/// The names of the objects in a directory, sorted.
pub(super) fn object_names(folder: &Path) -> Result<Vec<String>, KubernetesError> {
    let names = entries(folder)?.into_iter();
    Ok(names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect())
}

/// The names in a directory, sorted, without those that begin with a dot.
fn entries(folder: &Path) -> Result<Vec<String>, KubernetesError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let entries = match read() {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(file_error("list", folder, error)),
    };
    let names = entries.into_iter().filter_map(|name| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    Ok(names)
}

/// Treats a missing file as removed.
fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn file_error(what: &str, path: &Path, source: io::Error) -> KubernetesError {
    KubernetesError::File { what: format!("{what} `{}`", path.display()), source }
}
