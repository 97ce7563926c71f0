//! Clusters for commands that only read data: every request is an error.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, WorkloadRestart,
};

/// Fails every request.
pub struct NoClusters;

fn unsupported<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, KubernetesError>> {
    let error =
        KubernetesError::Unsupported { what: "a cluster".to_owned(), by: "a command that only reads data" };
    std::future::ready(Err(error)).boxed()
}

impl ObjectReader for NoClusters {
    fn api_resource<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>> {
        unsupported()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Kind,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        unsupported()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        unsupported()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        unsupported()
    }
}

impl ObjectWriter for NoClusters {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        unsupported()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        unsupported()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        unsupported()
    }
}
