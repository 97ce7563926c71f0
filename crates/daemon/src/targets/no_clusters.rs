//! Clusters for commands that only read data: every request is an error.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    Address, Cluster, Draft, Kind, KubernetesError, Object, Reader, Rehearsal, Restart, Served, Version,
    Writer,
};

/// Answers every request with an error.
pub struct NoClusters;

fn answer<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, KubernetesError>> {
    let error =
        KubernetesError::Unsupported { what: "a cluster".to_owned(), by: "a command that only reads data" };
    std::future::ready(Err(error)).boxed()
}

impl Reader for NoClusters {
    fn served<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Kind,
    ) -> BoxFuture<'a, Result<Served, KubernetesError>> {
        answer()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Kind,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        answer()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        answer()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a Draft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        answer()
    }
}

impl Writer for NoClusters {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a Draft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        answer()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a Address,
        _: &'a Version,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        answer()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a Restart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        answer()
    }
}
