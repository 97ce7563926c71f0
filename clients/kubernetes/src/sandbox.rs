//! A folder in place of all clusters.
//!
//! **Invariant:** a file is there as a whole or not at all, and is never written through a name that leads elsewhere.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use sha2::{Digest as _, Sha256};

use crate::error::KubernetesError;
use crate::object::{Address, Cluster, Kind, Object, checked};
use crate::{Reader, Writer};

/// The folder of objects that are in no namespace.
const OF_CLUSTER: &str = "_cluster";

/// A folder in place of all clusters.
#[derive(Clone, Debug)]
pub struct Sandbox {
    root: PathBuf,
}

impl Sandbox {
    /// The sandbox in `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn cluster(&self, cluster: &Cluster) -> Result<PathBuf, KubernetesError> {
        let folder = self.root.join("clusters").join(checked(&cluster.name)?);
        self.own(&folder)?;
        Ok(folder)
    }

    fn folder(
        &self,
        cluster: &Cluster,
        kind: Kind,
        namespace: Option<&str>,
    ) -> Result<PathBuf, KubernetesError> {
        let part = match (kind.is_namespaced(), namespace) {
            (true, Some(namespace)) => checked(namespace)?,
            (true, None) => return Err(KubernetesError::Name { name: String::new() }),
            (false, _) => OF_CLUSTER,
        };
        let folder = self.cluster(cluster)?.join(part).join(kind.as_str());
        self.own(&folder)?;
        Ok(folder)
    }

    /// Refuses a folder that is reached through a link: it is not of the sandbox.
    fn own(&self, folder: &Path) -> Result<(), KubernetesError> {
        let below = folder.ancestors().take_while(|part| *part != self.root);
        for part in below {
            if part.is_symlink() {
                let why = io::Error::other("it is a link");
                return Err(failed("use", part, why));
            }
        }
        Ok(())
    }

    fn file(&self, cluster: &Cluster, address: &Address) -> Result<PathBuf, KubernetesError> {
        let folder = self.folder(cluster, address.kind, address.namespace.as_deref())?;
        Ok(folder.join(format!("{}.yaml", checked(&address.name)?)))
    }

    fn list_now(
        &self,
        cluster: &Cluster,
        kind: Kind,
        namespace: Option<&str>,
    ) -> Result<Vec<Object>, KubernetesError> {
        let folder = self.folder(cluster, kind, namespace)?;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &folder, error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed("list", &folder, error))?;
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".yaml"));
            names.extend(name.filter(|name| !name.starts_with('.')).map(str::to_owned));
        }
        names.sort();
        let addresses =
            names.into_iter().map(|name| Address { kind, namespace: namespace.map(str::to_owned), name });
        addresses.filter_map(|address| self.get_now(cluster, &address).transpose()).collect()
    }

    fn get_now(&self, cluster: &Cluster, address: &Address) -> Result<Option<Object>, KubernetesError> {
        let file = self.file(cluster, address)?;
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &file, error)),
        };
        let body = qontract_yaml::json::read(&bytes)
            .map_err(|why| KubernetesError::Malformed { object: address.to_string(), why })?;
        Ok(Some(Object { address: address.clone(), version: version(&bytes), body }))
    }

    fn create_now(&self, cluster: &Cluster, object: &Object) -> Result<(), KubernetesError> {
        let file = self.file(cluster, &object.address)?;
        let folder = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|error| failed("make", folder, error))?;
        let text = qontract_yaml::json::print(&object.body);
        // Written beside and linked: the link fails if something is there.
        let draft = folder.join(format!(".{}.{}", object.address.name, std::process::id()));
        fs::write(&draft, text).map_err(|error| failed("write", &draft, error))?;
        let linked = fs::hard_link(&draft, &file);
        // A draft that stays behind does no harm: its name begins with a dot.
        let _ = fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(KubernetesError::Stale { object: object.address.to_string() })
            }
            other => other.map_err(|error| failed("write", &file, error)),
        }
    }

    fn remove_now(&self, cluster: &Cluster, address: &Address, version: &str) -> Result<(), KubernetesError> {
        let Some(object) = self.get_now(cluster, address)? else { return Ok(()) };
        if object.version != version {
            return Err(KubernetesError::Stale { object: address.to_string() });
        }
        let content = match address.kind {
            Kind::Namespace => self.cluster(cluster)?.join(checked(&address.name)?),
        };
        self.own(&content)?;
        gone(fs::remove_dir_all(&content)).map_err(|error| failed("remove", &content, error))?;
        let file = self.file(cluster, address)?;
        gone(fs::remove_file(&file)).map_err(|error| failed("remove", &file, error))
    }
}

impl Reader for Sandbox {
    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        async move { self.list_now(cluster, kind, namespace) }.boxed()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        async move { self.get_now(cluster, address) }.boxed()
    }
}

impl Writer for Sandbox {
    fn create<'a>(
        &'a self,
        _: &'a WritePermit,
        cluster: &'a Cluster,
        object: &'a Object,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        async move { self.create_now(cluster, object) }.boxed()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a Address,
        version: &'a str,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        async move { self.remove_now(cluster, address, version) }.boxed()
    }
}

/// The version of a file: the beginning of its digest.
fn version(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:016x}")
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
