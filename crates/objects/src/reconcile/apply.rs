//! Applies a step, or rehearses it as a server-side dry run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, KubernetesError, MANAGER, ObjectAddress, ObjectDraft, ObjectVersion,
    Rehearsal, WorkloadRestart, WritePrecondition,
};
use qontract_inventory::{LiveBody, SENSITIVE, UPDATE, marked_body};
use qontract_runtime::{ApplyResult, Fault, ReadContext, RehearsalResult, WriteContext};
use serde_json::Value;

use super::ObjectReconciler;
use super::fault::cluster_fault;
use super::recycle::PENDING;
use crate::scope::{DesiredObject, ManagedScope, WriteVersion};

/// Maximum number of polls until a new kind is served.
const MAX_KIND_CHECKS: u32 = 40;

/// Interval at which a client polls until a new kind is served.
const KIND_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The action of a step. The action is complete: executing it needs no further decisions.
#[derive(Clone, Debug)]
pub enum ObjectAction {
    /// Write an object.
    Put(Box<ObjectPut>),
    /// Remove an object if it still has this version.
    Remove(Arc<ManagedScope>, ObjectAddress, ObjectVersion),
    /// Restart a workload.
    Restart(Arc<ManagedScope>, WorkloadRestart),
}

/// An object to be written.
#[derive(Clone)]
pub struct ObjectPut {
    /// The scope of the object.
    pub managed_scope: Arc<ManagedScope>,
    /// The managed kind.
    pub kind: Kind,
    /// The address.
    pub address: ObjectAddress,
    /// The body with our marks; only the time of writing is added later.
    pub body: Value,
    /// Whether errors must not contain values of the object.
    pub is_sensitive: bool,
    /// The precondition of the write.
    pub precondition: WritePrecondition,
    /// Whether the same plan creates the kind of the object (a CRD). If so, the write waits until the kind is
    /// served.
    pub awaits_kind: bool,
    /// The refusal that is expected because other managers own fields of the object.
    pub conflict: Option<Fault>,
}

/// Prints the address, never the content, which may be secret.
impl fmt::Debug for ObjectPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectPut").field(&self.address).finish()
    }
}

impl ObjectPut {
    /// Writes a desired object. The restarts of `live` are preserved; `pending` is the cause of a pending restart
    /// of the workloads that use the object, if any.
    pub fn new(
        item: &DesiredObject,
        live: Option<&LiveBody>,
        address: ObjectAddress,
        precondition: WritePrecondition,
        pending: Option<&str>,
    ) -> Self {
        let mut body = namespaced_body(item, live, address.namespace.as_deref());
        let annotations = &mut body["metadata"]["annotations"];
        if item.sensitivity.is_sensitive() {
            annotations[SENSITIVE] = "true".into();
        }
        if let Some(cause) = pending {
            annotations[PENDING] = cause.into();
        }
        Self {
            managed_scope: Arc::clone(&item.managed_scope),
            kind: item.kind.clone(),
            address,
            body,
            is_sensitive: item.sensitivity.is_sensitive(),
            precondition,
            awaits_kind: false,
            conflict: None,
        }
    }

    /// The object to write, with the time of writing.
    fn draft(&self, now: jiff::Timestamp) -> ObjectDraft {
        let mut body = self.body.clone();
        body["metadata"]["annotations"][UPDATE] = now.strftime("%Y-%m-%dT%H:%M:%S").to_string().into();
        let mut address = self.address.clone();
        if let (true, Some(kind)) = (self.awaits_kind, Kind::of(&body)) {
            address.kind = kind;
        }
        if let (WriteVersion::Preferred, Some(body)) =
            (self.managed_scope.write_version, body.as_object_mut())
        {
            // The client adds the version that the cluster prefers.
            body.remove("apiVersion");
        }
        ObjectDraft {
            address,
            body,
            precondition: self.precondition.clone(),
            is_sensitive: self.is_sensitive,
        }
    }
}

/// The body of an object with its namespace and with all our marks except the time of writing.
pub fn namespaced_body(item: &DesiredObject, live: Option<&LiveBody>, namespace: Option<&str>) -> Value {
    let mut body = marked_body(&item.desired, live, &item.managed_scope.owner);
    if let Some(namespace) = namespace {
        body["metadata"]["namespace"] = namespace.into();
    }
    body
}

impl ObjectReconciler {
    /// Executes one step.
    pub async fn apply(&self, write: &WriteContext<'_>, action: &ObjectAction) -> Result<ApplyResult, Fault> {
        let done = match action {
            ObjectAction::Put(put) => {
                let (cluster, draft) = (&put.managed_scope.cluster, put.draft(write.now));
                if put.awaits_kind {
                    self.await_kind(write, cluster, &draft.address.kind).await;
                }
                let done = self.kubernetes.put(write.permit, cluster, MANAGER, &draft).await;
                return put_result(&draft.precondition, done);
            }
            ObjectAction::Remove(managed_scope, address, version) => {
                self.kubernetes.remove(write.permit, &managed_scope.cluster, address, version).await
            }
            ObjectAction::Restart(managed_scope, restart) => {
                self.kubernetes.restart(write.permit, &managed_scope.cluster, restart).await
            }
        };
        apply_result(done)
    }

    /// Waits until a kind that was just created is served, up to a limit. If the limit is reached, the
    /// subsequent write fails.
    async fn await_kind(&self, write: &WriteContext<'_>, cluster: &Cluster, kind: &Kind) {
        for _ in 0..MAX_KIND_CHECKS {
            match self.kubernetes.api_resource(write.read, cluster, kind).await {
                Err(KubernetesError::Unserved { .. }) => tokio::time::sleep(KIND_CHECK_INTERVAL).await,
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Rehearses a step: checks whether the cluster would accept the write of the step.
    pub async fn rehearse(
        &self,
        read: &ReadContext,
        action: &ObjectAction,
    ) -> Result<RehearsalResult, Fault> {
        let ObjectAction::Put(put) = action else { return Ok(RehearsalResult::Skipped) };
        let draft = put.draft(read.now);
        let cluster = &put.managed_scope.cluster;
        let rehearsed = self.kubernetes.rehearse(&read.permit, cluster, MANAGER, &draft).await;
        let result = rehearsal_result(rehearsed, put.conflict.as_ref())?;
        if put.awaits_kind || !matches!(result, RehearsalResult::Skipped) {
            return Ok(result);
        }
        // The kinds of a cluster can be determined even if the cluster does not validate writes.
        match self.kubernetes.api_resource(&read.permit, cluster, &put.kind).await {
            Err(error @ KubernetesError::Unserved { .. }) => {
                Ok(RehearsalResult::NotValidated(error.to_string()))
            }
            Ok(_) | Err(_) => Ok(RehearsalResult::Skipped),
        }
    }
}

/// Whether the cluster rejected the whole request.
fn is_refusal(error: &KubernetesError) -> bool {
    matches!(
        error,
        KubernetesError::NamespaceMissing { .. }
            | KubernetesError::Denied { .. }
            | KubernetesError::Invalid { .. }
            | KubernetesError::Conflict { .. }
            | KubernetesError::Unserved { .. }
    )
}

/// Converts the result of writing an object.
///
/// If a write consists of a single request and its last attempt is refused, nothing was written: after an
/// earlier attempt that succeeded, the last attempt would have failed with a conflict. A replacement, a
/// rewrite, and a write that first migrates fields consist of several requests. A rewrite reports conflicts
/// before it writes anything.
fn put_result(
    precondition: &WritePrecondition,
    done: Result<(), KubernetesError>,
) -> Result<ApplyResult, Fault> {
    let is_single_request = match precondition {
        WritePrecondition::Absent | WritePrecondition::Version(_, FieldOwnership::Ours) => true,
        WritePrecondition::Version(_, FieldOwnership::ClientSideApplied | FieldOwnership::Updated)
        | WritePrecondition::Rewrite(..)
        | WritePrecondition::Removing(_)
        | WritePrecondition::Replace(_) => false,
    };
    let is_conflict_of_rewrite = |error: &KubernetesError| {
        matches!((precondition, error), (WritePrecondition::Rewrite(..), KubernetesError::Conflict { .. }))
    };
    match &done {
        Err(error) if is_single_request && is_refusal(error) || is_conflict_of_rewrite(error) => {
            Err(cluster_fault(error).undone())
        }
        // The old object is being removed. The next observation shows whether it is gone; the new object is created
        // then.
        Err(KubernetesError::RemovalPending { .. }) => Ok(ApplyResult::Stale),
        _ => apply_result(done),
    }
}

/// Converts the result of a write.
pub fn apply_result(done: Result<(), KubernetesError>) -> Result<ApplyResult, Fault> {
    match done {
        Ok(()) => Ok(ApplyResult::Done),
        Err(KubernetesError::Stale { .. }) => Ok(ApplyResult::Stale),
        Err(error) => Err(cluster_fault(&error)),
    }
}

/// Converts the result of a rehearsed write. `expected` is the refusal that is expected in a real run; it is
/// reported if the cluster does not validate writes.
pub fn rehearsal_result(
    result: Result<Rehearsal, KubernetesError>,
    expected: Option<&Fault>,
) -> Result<RehearsalResult, Fault> {
    match result {
        Ok(Rehearsal::Accepted) => Ok(RehearsalResult::Accepted),
        Ok(Rehearsal::Rejected(why)) => {
            // The expected refusal is preferred, because it has a hint.
            let expected = expected.filter(|fault| fault.text == why).cloned();
            Ok(RehearsalResult::Refused(expected.unwrap_or_else(|| Fault::author(why))))
        }
        Ok(Rehearsal::Undetermined(why)) => Ok(RehearsalResult::NotValidated(why)),
        Ok(Rehearsal::Disabled) => {
            let refused = |fault: &Fault| RehearsalResult::Refused(fault.clone());
            Ok(expected.map_or(RehearsalResult::Skipped, refused))
        }
        Err(KubernetesError::Stale { object }) => {
            Ok(RehearsalResult::NotValidated(format!("{object} changed meanwhile")))
        }
        Err(error) => Err(cluster_fault(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_of_one_request_has_no_effect() {
        let cluster = || "c1".to_owned();
        let invalid = || KubernetesError::Invalid {
            cluster: cluster(),
            object: "ConfigMap x".to_owned(),
            why: "no".to_owned(),
        };
        let unserved = || KubernetesError::Unserved {
            cluster: cluster(),
            kind: "Route".to_owned(),
            instead: String::new(),
        };
        let version = || ObjectVersion { uid: None, resource_version: "1".to_owned() };
        let failed = || KubernetesError::Failed { cluster: cluster(), status: 500, why: "no".to_owned() };
        let onto = |fields: FieldOwnership| WritePrecondition::Version(version(), fields);
        let check = |precondition: WritePrecondition, error: KubernetesError, expect: bool| {
            let fault = put_result(&precondition, Err(error)).expect_err("a failed write");
            assert_eq!(fault.is_undone, expect, "{precondition:?}: {fault}");
        };
        check(WritePrecondition::Absent, invalid(), true);
        check(WritePrecondition::Absent, unserved(), true);
        check(onto(FieldOwnership::Ours), invalid(), true);
        check(onto(FieldOwnership::Ours), unserved(), true);
        check(onto(FieldOwnership::Ours), failed(), false);
        check(onto(FieldOwnership::Updated), invalid(), false);
        let rewrite = || WritePrecondition::Rewrite(version(), FieldOwnership::Ours);
        let conflict =
            || KubernetesError::Conflict { object: "ConfigMap x".to_owned(), conflicts: Vec::new() };
        check(rewrite(), invalid(), false);
        check(rewrite(), conflict(), true);
        check(onto(FieldOwnership::Updated), conflict(), false);
        check(WritePrecondition::Replace(version()), invalid(), false);
    }
}
