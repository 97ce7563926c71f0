//! A sandbox that fails on any write, and records the attempt.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, WorkloadRestart,
};

/// A sandbox that fails on any write, and records the attempt.
pub struct ReadOnlySandbox {
    /// The sandbox that is read.
    pub sandbox: Sandbox,
    /// The attempted writes.
    pub writes: Arc<Mutex<Vec<String>>>,
}

impl ReadOnlySandbox {
    fn refuse(&self, address: &ObjectAddress) -> BoxFuture<'_, Result<(), KubernetesError>> {
        let what = address.to_string();
        self.writes.lock().unwrap().push(what.clone());
        async move { Err(KubernetesError::Unsupported { what, by: "a sandbox that fails on any write" }) }
            .boxed()
    }
}

impl ObjectReader for ReadOnlySandbox {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>> {
        self.sandbox.api_resource(permit, cluster, kind)
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        self.sandbox.list(permit, cluster, kind, namespace)
    }

    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        self.sandbox.get(permit, cluster, address)
    }

    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        self.sandbox.rehearse(permit, cluster, manager, draft)
    }
}

impl ObjectWriter for ReadOnlySandbox {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&draft.address)
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        address: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(address)
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&restart.address)
    }
}
