//! The target systems: real ones, or the sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    Address, Cluster, Kind, Kubernetes, KubernetesError, Object, Reader, Sandbox, Writer,
};

use crate::exit::UsageError;

/// The target systems of this process.
#[derive(Default)]
pub struct Targets {
    kubernetes: Option<Arc<dyn Kubernetes>>,
}

impl Targets {
    /// A folder in place of every target system.
    pub fn sandbox(folder: &Path) -> Self {
        Self { kubernetes: Some(Arc::new(Sandbox::new(PathBuf::from(folder)))) }
    }

    /// These clusters.
    #[cfg(test)]
    pub fn of(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { kubernetes: Some(kubernetes) }
    }

    /// Targets of commands that only look at data: whoever asks them gets an error.
    pub fn none() -> Self {
        Self { kubernetes: Some(Arc::new(Nowhere)) }
    }

    /// Clusters.
    pub fn kubernetes(&self) -> Result<&Arc<dyn Kubernetes>, UsageError> {
        self.kubernetes.as_ref().ok_or_else(|| {
            UsageError(
                "no target is configured: pass `--sandbox DIR`, or set `sandbox.directory` in the configuration"
                    .to_owned(),
            )
        })
    }
}

/// No cluster at all.
struct Nowhere;

impl Nowhere {
    fn answer<T>() -> Result<T, KubernetesError> {
        Err(KubernetesError::Unsupported {
            what: "a cluster".to_owned(),
            by: "a command that only looks at data",
        })
    }
}

impl Reader for Nowhere {
    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: Kind,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        std::future::ready(Self::answer()).boxed()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        std::future::ready(Self::answer()).boxed()
    }
}

impl Writer for Nowhere {
    fn create<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a Object,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        std::future::ready(Self::answer()).boxed()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a Address,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        std::future::ready(Self::answer()).boxed()
    }
}
