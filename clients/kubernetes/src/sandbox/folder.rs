//! The folder of one cluster: where objects are in it, and how its files are read and written.
//!
//! **Invariant:** a file is there as a whole or not at all, and is never written through a name that leads elsewhere.
//!
//! **Invariant:** what is written may be read by its owner only, as there are Secrets among it: files are 0600, and folders below the root 0700, also those that were
//! more open before.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::KubernetesError;
use crate::object::{Cluster, checked};

/// The folder of objects that are in no namespace.
const OF_CLUSTER: &str = "_cluster";

/// Folders are their owner's alone.
const FOLDER_MODE: u32 = 0o700;
/// Files are their owner's alone.
const FILE_MODE: u32 = 0o600;

/// The folder of a cluster.
#[derive(Debug)]
pub(super) struct Folder {
    /// The folder of all clusters: above it, links are fine.
    root: PathBuf,
    path: PathBuf,
}

/// A file that was read.
pub(super) struct Found {
    pub bytes: Vec<u8>,
    pub age: Duration,
}

impl Folder {
    /// The folder of this cluster.
    pub fn new(root: &Path, cluster: &Cluster) -> Result<Self, KubernetesError> {
        let folder =
            Self { root: root.to_owned(), path: root.join("clusters").join(checked(&cluster.name)?) };
        folder.own(&folder.path)?;
        Ok(folder)
    }

    /// Where the objects of a kind are.
    pub fn of_kind(&self, namespace: Option<&str>, kind: &str) -> Result<PathBuf, KubernetesError> {
        let part = namespace.map_or(Ok(OF_CLUSTER), checked)?;
        let folder = self.path.join(part).join(checked(kind)?);
        self.own(&folder)?;
        Ok(folder)
    }

    /// The namespaces that have a folder.
    pub fn namespaces(&self) -> Result<Vec<String>, KubernetesError> {
        let mut names = entries(&self.path)?;
        names.retain(|name| checked(name).is_ok());
        Ok(names)
    }

    /// The file of an object.
    pub fn file(&self, namespace: Option<&str>, kind: &str, name: &str) -> Result<PathBuf, KubernetesError> {
        Ok(self.of_kind(namespace, kind)?.join(format!("{}.yaml", checked(name)?)))
    }

    /// Removes all that is in a namespace.
    pub fn empty(&self, namespace: &str) -> Result<(), KubernetesError> {
        self.drop(&self.path.join(checked(namespace)?))
    }

    /// Removes a folder with all that is in it.
    pub fn drop(&self, folder: &Path) -> Result<(), KubernetesError> {
        self.own(folder)?;
        gone(fs::remove_dir_all(folder)).map_err(|error| failed("remove", folder, error))
    }

    /// Nobody else writes to the cluster while the file is held, in this process or another. The folder itself is locked, so
    /// that nothing lies around.
    pub fn lock(&self) -> Result<File, KubernetesError> {
        self.make(&self.path)?;
        let locked = File::open(&self.path).and_then(|opened| opened.lock().map(|()| opened));
        locked.map_err(|error| failed("lock", &self.path, error))
    }

    /// What a file has, if it is there.
    pub fn read(&self, file: &Path) -> Result<Option<Found>, KubernetesError> {
        self.own(file)?;
        let read = || {
            let modified = fs::metadata(file)?.modified()?;
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            io::Result::Ok(Found { bytes: fs::read(file)?, age })
        };
        match read() {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", file, error)),
        }
    }

    /// Writes a file in place of what is there.
    pub fn write(&self, file: &Path, text: &str) -> Result<(), KubernetesError> {
        self.own(file)?;
        let folder = file.parent().unwrap_or(&self.path);
        self.make(folder)?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A draft that stays behind does no harm: its name begins with a dot.
        let draft = folder.join(format!(".{name}.{}", std::process::id()));
        write_private(&draft, text).map_err(|error| failed("write", &draft, error))?;
        fs::rename(&draft, file).map_err(|error| failed("write", file, error))
    }

    /// Makes a folder of the sandbox, and closes it and those above it to others; the root, if it was there, is left as it is.
    fn make(&self, folder: &Path) -> Result<(), KubernetesError> {
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder);
        made.map_err(|error| failed("make", folder, error))?;
        for part in folder.ancestors().take_while(|part| *part != self.root) {
            close(part).map_err(|error| failed("make", part, error))?;
        }
        Ok(())
    }

    /// Removes a file; one that is gone already is fine.
    pub fn remove(&self, file: &Path) -> Result<(), KubernetesError> {
        self.own(file)?;
        gone(fs::remove_file(file)).map_err(|error| failed("remove", file, error))
    }

    /// Refuses what is reached through a link: it is not of the sandbox.
    fn own(&self, path: &Path) -> Result<(), KubernetesError> {
        let below = path.ancestors().take_while(|part| *part != self.root);
        for part in below {
            if part.is_symlink() {
                return Err(failed("use", part, io::Error::other("it is a link")));
            }
        }
        Ok(())
    }
}

/// Takes a folder from others, if they may use it; what its owner may do stays.
fn close(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(mode & FOLDER_MODE))?;
    }
    Ok(())
}

/// Writes a new file. One of that name, which a process left behind that had the same id, is not gone on with: it may be open to others.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    gone(fs::remove_file(file))?;
    let mut written = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(file)?;
    written.write_all(text.as_bytes())
}

/// The names of the objects in a folder, sorted.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, KubernetesError> {
    let names = entries(folder)?.into_iter();
    Ok(names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect())
}

/// The names in a folder, sorted, without those that begin with a dot.
fn entries(folder: &Path) -> Result<Vec<String>, KubernetesError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let entries = match read() {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed("list", folder, error)),
    };
    let names = entries.into_iter().filter_map(|name| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    Ok(names)
}

/// What is gone already is fine.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn failed(what: &str, path: &Path, source: io::Error) -> KubernetesError {
    KubernetesError::File { what: format!("{what} `{}`", path.display()), source }
}
