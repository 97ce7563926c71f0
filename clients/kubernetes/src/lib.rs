//! Kubernetes clusters: a Read half and a Write half, no policy. The sandbox stands in for real ones.

mod error;
mod object;
mod sandbox;

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use error::KubernetesError;
pub use object::{Address, Cluster, Kind, Object};
pub use sandbox::Sandbox;

/// What is read.
pub trait Reader: Send + Sync {
    /// All objects of a kind in a cluster, and in a namespace for kinds that are in one, by name.
    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>>;

    /// One object, if it is there.
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>>;
}

/// What is written. Both may run twice.
pub trait Writer: Send + Sync {
    /// Creates an object, which must not be there.
    fn create<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        object: &'a Object,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;

    /// Removes an object, which must still have the version that was read. One that is gone already is fine.
    fn remove<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a Address,
        version: &'a str,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;
}

/// Both halves.
pub trait Kubernetes: Reader + Writer {}

impl<T: Reader + Writer> Kubernetes for T {}
