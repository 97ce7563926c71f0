//! Kubernetes client with a Read half and a Write half, without policy. Works with real API servers and with
//! the sandbox.

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

pub use error::{ConflictingManager, ExcludedFields, KubernetesError};
pub use fields::{DeclarationState, ExcludingField, FieldConflicts, ManagedFields, Preview, ZeroValues};
pub use object::{
    ApiResource, Cluster, FieldOwnership, Kind, KindVersion, Object, ObjectAddress, ObjectVersion, TokenRef,
};
pub use real::{
    AccessDecision, AccessRequest, ClientCertificate, ClusterSettings, ClusterToken, Clusters,
    SettingsSource, TokenError, TokenSource,
};
pub use sandbox::{Sandbox, is_well_known};

/// Our field manager.
pub const MANAGER: &str = "qontract";

/// Our field manager for restarts of workloads, which do not change applied fields.
pub const RESTART_MANAGER: &str = "qontract-restart";

/// The pod annotation with the cause of the last restart.
pub const RECYCLED_ANNOTATION: &str = "qontract.recycled";

/// The Read half.
pub trait ObjectReader: Send + Sync {
    /// Resolves a kind by discovery. Results are cached per cluster and process.
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>>;

    /// Lists all objects of a kind in a cluster, sorted by name; for a namespaced kind, only those in
    /// `namespace`. A namespace that does not exist has no objects.
    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>>;

    /// Lists all objects of a kind in a specific API version, if the cluster serves it: another version may
    /// lack fields.
    fn list_version<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: KindVersion<'a>,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        // An implementation that stores objects as they were written has no other versions of the objects.
        self.list(permit, cluster, kind.kind, namespace)
    }

    /// Reads one object, if it exists.
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>>;

    /// Rehearses a write: checks whether the cluster would accept this object. Nothing is written.
    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>>;
}

/// The Write half. Every write may be repeated and has a precondition. The error `Stale` means that the
/// precondition is not met.
pub trait ObjectWriter: Send + Sync {
    /// Writes an object.
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;

    /// Removes an object, which must still have the version that was read. An object that no longer exists is
    /// not an error.
    fn remove<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
        version: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;

    /// Restarts the pods of a workload, once per cause.
    fn restart<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>>;
}

/// A client with both halves.
pub trait Kubernetes: ObjectReader + ObjectWriter {}

impl<T: ObjectReader + ObjectWriter> Kubernetes for T {}

/// An object to write.
#[derive(Clone, PartialEq)]
pub struct ObjectDraft {
    /// The address.
    pub address: ObjectAddress,
    /// The declared object.
    pub body: serde_json::Value,
    /// The precondition of the write.
    pub precondition: WritePrecondition,
    /// Whether errors must not contain values of the object.
    pub is_sensitive: bool,
}

/// Prints the kind and the name, never the content, which may be secret.
impl std::fmt::Debug for ObjectDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ObjectAddress { kind, name, .. } = &self.address;
        write!(f, "Draft({kind} `{name}`)")
    }
}

/// The precondition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WritePrecondition {
    /// The object must not exist.
    Absent,
    /// The object has this version. The write removes fields that we declared before and no longer declare,
    /// and keeps fields of other managers.
    Version(ObjectVersion, FieldOwnership),
    /// The object has this version, and the write also removes fields that server-side apply alone would leave
    /// behind ([`Preview::needs_rewrite`]), which takes several requests.
    Rewrite(ObjectVersion, FieldOwnership),
    /// The object has this version, and is removed first, because immutable fields change.
    Replace(ObjectVersion),
    /// The object is being removed since this version, and is created again when it is gone.
    Removing(ObjectVersion),
}

/// A restart of a workload's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRestart {
    /// The address of the workload.
    pub address: ObjectAddress,
    /// The version that was read.
    pub version: ObjectVersion,
    /// The cause.
    pub cause: String,
}

/// The result of a rehearsed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// The cluster would accept the write.
    Accepted,
    /// The cluster would reject the write, with the reason.
    Rejected(String),
    /// The result cannot be determined yet, because a prerequisite does not exist.
    Undetermined(String),
    /// Rehearsals are disabled.
    Disabled,
}

impl Rehearsal {
    /// Converts the result of an attempt that wrote nothing. A conflict with other field managers remains an
    /// error, which is the same as the error of the write.
    pub(crate) fn of(attempt: Result<(), KubernetesError>) -> Result<Self, KubernetesError> {
        match attempt {
            Ok(()) => Ok(Self::Accepted),
            Err(KubernetesError::NamespaceMissing { what, .. }) => {
                Ok(Self::Undetermined(format!("{what} does not exist yet")))
            }
            // A missing kind may be created later; a missing version of an existing kind will not.
            Err(KubernetesError::Unserved { kind, instead, .. }) if instead.is_empty() => {
                Ok(Self::Undetermined(format!("{kind} does not exist yet")))
            }
            Err(error @ (KubernetesError::Invalid { .. } | KubernetesError::Unserved { .. })) => {
                Ok(Self::Rejected(error.full_message()))
            }
            Err(error) => Err(error),
        }
    }

    /// The result for a replacement, which cannot be rehearsed while the old object exists.
    pub(crate) fn of_replacement() -> Self {
        Self::Undetermined("it would be replaced, and the old object still exists".to_owned())
    }
}
