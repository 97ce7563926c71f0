//! A sandbox that lists objects, refuses some requests, and does not support anything else.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, WorkloadRestart,
};

type KubernetesFuture<'a, T> = BoxFuture<'a, Result<T, KubernetesError>>;

/// A sandbox that refuses some requests. It does not validate writes.
pub struct RefusingSandbox {
    pub sandbox: Sandbox,
    /// The error of a request for this kind, if it is refused.
    pub refusal: fn(&Cluster, &Kind) -> Option<KubernetesError>,
}

impl RefusingSandbox {
    fn answer<'a, T: Send + 'a>(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        answer: KubernetesFuture<'a, T>,
    ) -> KubernetesFuture<'a, T> {
        match (self.refusal)(cluster, kind) {
            None => answer,
            Some(error) => std::future::ready(Err(error)).boxed(),
        }
    }
}

fn unsupported<'a, T: Send + 'a>() -> KubernetesFuture<'a, T> {
    let error = KubernetesError::Unsupported { what: "anything else".to_owned(), by: "this test" };
    std::future::ready(Err(error)).boxed()
}

impl ObjectReader for RefusingSandbox {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> KubernetesFuture<'a, ApiResource> {
        self.answer(cluster, kind, self.sandbox.api_resource(permit, cluster, kind))
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> KubernetesFuture<'a, Vec<Object>> {
        self.answer(cluster, kind, self.sandbox.list(permit, cluster, kind, namespace))
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
    ) -> KubernetesFuture<'a, Option<Object>> {
        unsupported()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, Rehearsal> {
        std::future::ready(Ok(Rehearsal::Disabled)).boxed()
    }
}

impl ObjectWriter for RefusingSandbox {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a WorkloadRestart,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }
}
