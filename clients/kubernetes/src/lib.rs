//! Kubernetes clusters: a Read half and a Write half, no policy. Real API servers, and the sandbox in place of them.

mod discovery;
mod draft;
mod error;
mod fields;
pub mod kubeconfig;
mod object;
mod real;
mod sandbox;

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use error::{Contender, KubernetesError};
pub use fields::{Ownership, Preview};
pub use object::{Address, Cluster, Fields, Kind, KindVersion, Object, Served, TokenRef, Version};
pub use real::{
    AccessAnswer, AccessRequest, ClientCertificate, ClusterSettings, Clusters, KnownClusters, Token,
    TokenError, Tokens,
};
pub use sandbox::Sandbox;

/// Who we are among those who own fields of objects.
pub const MANAGER: &str = "qontract";

/// Who we are when we let workloads start anew: what we applied is not touched by it.
pub const RESTARTER: &str = "qontract-restart";

/// The annotation of pods that says why they were started anew.
pub const RECYCLED: &str = "qontract.recycled";

/// What is read.
pub trait Reader: Send + Sync {
    /// How the cluster serves a kind: by discovery, which is asked once per cluster and process.
    fn served<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<Served, KubernetesError>>;

    /// All objects of a kind in a cluster, and in a namespace for kinds that are in one, by name. A namespace that is
    /// not there has none.
    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>>;

    /// All objects of a kind, as a version of the kind has them, if the cluster serves it: fields that another version has not would be missing.
    fn list_as<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: KindVersion<'a>,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        // What keeps objects as they were written has no other version of them.
        self.list(permit, cluster, kind.kind, namespace)
    }

    /// One object, if it is there.
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>>;

    /// Whether the cluster would take this object: nothing is written.
    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a Draft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>>;
}

/// What is written. Everything may run twice, and has a precondition: `Stale` tells that it does not hold.
pub trait Writer: Send + Sync {
    /// Writes an object as its draft says.
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a Draft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;

    /// Removes an object, which must still have the version that was read. One that is gone already is fine.
    fn remove<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a Address,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;

    /// Lets a workload start its pods anew. Once for the same cause.
    fn restart<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        restart: &'a Restart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;
}

/// Both halves.
pub trait Kubernetes: Reader + Writer {}

impl<T: Reader + Writer> Kubernetes for T {}

/// An object as it is to be written.
#[derive(Clone, PartialEq)]
pub struct Draft {
    /// Where it is.
    pub address: Address,
    /// All that is declared of it.
    pub body: serde_json::Value,
    /// On what it is written.
    pub onto: Onto,
    /// Whether nothing that the cluster says about its values may be told.
    pub is_sensitive: bool,
}

/// Tells what it is, never what it holds: it may be a secret.
impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Address { kind, name, .. } = &self.address;
        write!(f, "Draft({kind} `{name}`)")
    }
}

/// On what an object is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onto {
    /// Nothing: it must not be there.
    Nothing,
    /// The object of this version: what we declared before and do not declare now goes, what others own stays.
    Version(Version, Fields),
    /// The object of this version, which goes first: its immutable fields change.
    Replaced(Version),
}

/// A workload whose pods are to start anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Where it is.
    pub address: Address,
    /// The version that was read.
    pub version: Version,
    /// Why.
    pub cause: String,
}

/// What a cluster says to a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// It would take it.
    Taken,
    /// It would not, and why.
    Refused(String),
    /// It cannot tell yet: what the object needs is not there.
    NotYet(String),
    /// Nobody wants it to be asked.
    NotAsked,
}

impl Rehearsal {
    /// What an attempt that wrote nothing says.
    pub(crate) fn of(attempt: Result<(), KubernetesError>) -> Result<Self, KubernetesError> {
        match attempt {
            Ok(()) => Ok(Self::Taken),
            Err(error @ (KubernetesError::Conflict { .. } | KubernetesError::Invalid { .. })) => {
                Ok(Self::Refused(error.told()))
            }
            Err(KubernetesError::Homeless { what, .. }) => {
                Ok(Self::NotYet(format!("{what} is not there yet")))
            }
            // A kind may come; another version of one that is there will not.
            Err(KubernetesError::Unserved { kind, instead, .. }) if instead.is_empty() => {
                Ok(Self::NotYet(format!("{kind} is not there yet")))
            }
            Err(error @ KubernetesError::Unserved { .. }) => Ok(Self::Refused(error.told())),
            Err(error) => Err(error),
        }
    }

    /// What is to be replaced is in the way of its successor.
    pub(crate) fn replaced() -> Self {
        Self::NotYet("it would be replaced, and the old one is still there".to_owned())
    }
}
