//! The sandbox: a directory that replaces all clusters. The README lists its features.

mod discovery;
mod folder;
mod immutable;
mod kinds;
mod read;
mod record;
mod rollout;
mod write;

pub use kinds::is_well_known;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};

use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, Kind, Object, ObjectAddress, ObjectVersion};
use crate::{ObjectDraft, ObjectReader, ObjectWriter, Rehearsal, WorkloadRestart};
use discovery::find_kind;
use folder::{ClusterDir, object_names};
use read::read_object;

/// A directory that replaces all clusters.
///
/// ```
/// use qontract_client_kubernetes::{Cluster, Kind, KubernetesError, MANAGER, ObjectAddress, ObjectDraft};
/// use qontract_client_kubernetes::{ObjectReader as _, ObjectWriter as _, Sandbox, WritePrecondition};
/// # use serde_json::json;
/// # let scratch = qontract_testkit::Scratch::new();
/// # let permits = qontract_testkit::permits(qontract_access::Mode::Real);
/// # let (read, write) = (&permits.read, permits.write.as_ref().expect("a real run"));
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sandbox = Sandbox::new(scratch.path());
/// let server = "https://c1.example.com".to_owned();
/// let cluster = Cluster { name: "c1".to_owned(), server, token: None };
/// let draft = |address, body| ObjectDraft {
///     address, body, precondition: WritePrecondition::Absent, is_sensitive: false,
/// };
/// let namespace = ObjectAddress::cluster_scoped(Kind::namespace(), "shop");
/// sandbox.put(write, &cluster, MANAGER, &draft(namespace, json!({}))).await?;
/// let address = ObjectAddress::in_namespace(Kind::named("ConfigMap"), "shop", "settings");
/// let settings = draft(address.clone(), json!({"data": {"tier": "gold"}}));
/// sandbox.put(write, &cluster, MANAGER, &settings).await?;
///
/// let live = sandbox.get(read, &cluster, &address).await?.expect("it was written");
/// assert_eq!(live.body["data"]["tier"], "gold");
/// let again = sandbox.put(write, &cluster, MANAGER, &settings).await;
/// assert!(matches!(again, Err(KubernetesError::Stale { .. })), "it exists already");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox {
    root: PathBuf,
    mode: Mode,
    /// The number of writes after which the process aborts.
    remaining_writes: Option<Arc<AtomicU32>>,
}

impl Sandbox {
    /// The sandbox in `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), mode: Mode::Real, remaining_writes: None }
    }

    /// Returns this sandbox with the mode of the run that `permit` belongs to: in a dry run, it refuses every
    /// write, even one with a write permit.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { mode: permit.mode(), ..self.clone() }
    }

    /// Aborts the process after this number of writes, as a crash would. For tests.
    #[must_use]
    pub fn aborting_after(self, writes: NonZeroU32) -> Self {
        Self { remaining_writes: Some(Arc::new(AtomicU32::new(writes.get()))), ..self }
    }

    /// Counts a write.
    fn count_write(&self) {
        let remaining = self.remaining_writes.as_ref().map(|writes| writes.fetch_sub(1, Ordering::SeqCst));
        if remaining == Some(1) {
            std::process::abort();
        }
    }

    /// Refuses a write in a dry run.
    fn refuse_dry_run(&self) -> Result<(), KubernetesError> {
        match self.mode {
            Mode::Real => Ok(()),
            Mode::DryRun => {
                Err(KubernetesError::Unsupported { what: "a write".to_owned(), by: "a sandbox in a dry run" })
            }
        }
    }

    fn folder(&self, cluster: &Cluster) -> Result<ClusterDir, KubernetesError> {
        ClusterDir::new(&self.root, cluster)
    }

    fn list_now(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Result<Vec<Object>, KubernetesError> {
        let folder = self.folder(cluster)?;
        let served = find_kind(&folder, cluster, kind)?;
        let namespaces = match (served.resource.is_namespaced, namespace) {
            (false, _) => vec![None],
            (true, Some(namespace)) => vec![Some(namespace.to_owned())],
            (true, None) => folder.namespaces()?.into_iter().map(Some).collect(),
        };
        let mut objects = Vec::new();
        for namespace in namespaces {
            for name in object_names(&folder.kind_dir(namespace.as_deref(), &served.folder)?)? {
                let address = ObjectAddress { kind: kind.clone(), namespace: namespace.clone(), name };
                objects.extend(read_object(&folder, &served, &address)?.map(|(object, _)| object));
            }
        }
        Ok(objects)
    }

    fn get_now(&self, cluster: &Cluster, address: &ObjectAddress) -> Result<Option<Object>, KubernetesError> {
        let folder = self.folder(cluster)?;
        let served = find_kind(&folder, cluster, &address.kind)?;
        Ok(read_object(&folder, &served, address)?.map(|(object, _)| object))
    }
}

impl ObjectReader for Sandbox {
    fn api_resource<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>> {
        async move { Ok(find_kind(&self.folder(cluster)?, cluster, kind)?.resource) }.boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        async move { self.list_now(cluster, kind, namespace) }.boxed()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        async move { self.get_now(cluster, address) }.boxed()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        async move { self.rehearse_now(cluster, manager, draft) }.boxed()
    }
}

impl ObjectWriter for Sandbox {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        async move {
            self.refuse_dry_run()?;
            self.put_now(cluster, manager, draft)?;
            self.count_write();
            Ok(())
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
        version: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        async move {
            self.refuse_dry_run()?;
            self.remove_now(cluster, address, version)?;
            self.count_write();
            Ok(())
        }
        .boxed()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        cluster: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        async move {
            self.refuse_dry_run()?;
            self.restart_now(cluster, restart)?;
            self.count_write();
            Ok(())
        }
        .boxed()
    }
}
