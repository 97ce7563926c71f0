//! A sandbox that fails on any write, and records the attempt.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    Address, Cluster, Draft, Kind, KubernetesError, Object, Reader, Rehearsal, Restart, Sandbox, Served,
    Version, Writer,
};

/// A sandbox that fails on any write, and records the attempt.
pub struct Unwritable {
    /// The sandbox that is read.
    pub sandbox: Sandbox,
    /// The attempted writes.
    pub writes: Arc<Mutex<Vec<String>>>,
}

impl Unwritable {
    fn refuse(&self, address: &Address) -> BoxFuture<'_, Result<(), KubernetesError>> {
        let what = address.to_string();
        self.writes.lock().unwrap().push(what.clone());
        async move { Err(KubernetesError::Unsupported { what, by: "a sandbox that fails on any write" }) }
            .boxed()
    }
}

impl Reader for Unwritable {
    fn served<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<Served, KubernetesError>> {
        self.sandbox.served(permit, cluster, kind)
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
        address: &'a Address,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        self.sandbox.get(permit, cluster, address)
    }

    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a Draft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        self.sandbox.rehearse(permit, cluster, manager, draft)
    }
}

impl Writer for Unwritable {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        draft: &'a Draft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&draft.address)
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        address: &'a Address,
        _: &'a Version,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(address)
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        restart: &'a Restart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.refuse(&restart.address)
    }
}
