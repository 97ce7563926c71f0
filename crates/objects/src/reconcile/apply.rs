//! Applies a step, or rehearses it as a server-side dry run.

use std::sync::Arc;
use std::time::Duration;

use qontract_client_kubernetes::{
    Address, Cluster, Draft, Kind, KubernetesError, MANAGER, Onto, Rehearsal, Restart, Version,
};
use qontract_inventory::{Live, SENSITIVE, to_write};
use qontract_runtime::{Applied, Fault, Read, Rehearsed, Write};

use super::ObjectReconciler;
use super::fault::fault;
use super::recycle::PENDING;
use crate::scope::{DesiredObject, ManagedScope};

/// Maximum number of checks whether a new kind is served.
const PATIENCE: u32 = 40;

/// Time between two of these checks.
const MOMENT: Duration = Duration::from_millis(250);

/// The action of a step. It is complete: execution makes no decisions.
#[derive(Clone, Debug)]
pub enum Action {
    /// Write an object.
    Put(Box<Put>),
    /// Remove the object of this version.
    Remove(Arc<ManagedScope>, Address, Version),
    /// Restart a workload.
    Restart(Arc<ManagedScope>, Restart),
}

/// An object to be written.
#[derive(Clone, Debug)]
pub struct Put {
    /// The desired object.
    pub item: DesiredObject,
    /// Its address.
    pub address: Address,
    /// The live object, whose restart annotations are preserved.
    pub live: Option<Live>,
    /// The precondition of the write.
    pub onto: Onto,
    /// The cause for which its users still have to be restarted, if any.
    pub pending: Option<String>,
    /// Whether the same plan creates its kind (a CRD), which takes a moment to be served.
    pub awaits_kind: bool,
}

impl Put {
    /// The object with our ownership annotations, which include the time of writing.
    fn draft(&self, now: jiff::Timestamp) -> Draft {
        let now = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let mut body = to_write(&self.item.desired, self.live.as_ref(), &self.item.managed_scope.owner, &now);
        let metadata = &mut body["metadata"];
        if let Some(namespace) = &self.address.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        if self.item.sensitivity.is_sensitive() {
            metadata["annotations"][SENSITIVE] = "true".into();
        }
        if let Some(cause) = &self.pending {
            metadata["annotations"][PENDING] = cause.as_str().into();
        }
        let mut address = self.address.clone();
        if let (true, Some(kind)) = (self.awaits_kind, Kind::of(&body)) {
            address.kind = kind;
        }
        Draft { address, body, onto: self.onto.clone(), is_sensitive: self.item.sensitivity.is_sensitive() }
    }
}

impl ObjectReconciler {
    /// Executes one step.
    pub async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        let done = match action {
            Action::Put(put) => {
                let (cluster, draft) = (&put.item.managed_scope.cluster, put.draft(jiff::Timestamp::now()));
                if put.awaits_kind {
                    self.await_kind(write, cluster, &draft.address.kind).await;
                }
                let done = self.kubernetes.put(write.permit, cluster, MANAGER, &draft).await;
                // If the last attempt to create an object is refused, nothing was written: an earlier attempt
                // that succeeded would have turned this one into a conflict.
                if let (Onto::Nothing, Err(error)) = (&draft.onto, &done)
                    && is_refusal(error)
                {
                    return Err(fault(error).undone());
                }
                done
            }
            Action::Remove(managed_scope, address, version) => {
                self.kubernetes.remove(write.permit, &managed_scope.cluster, address, version).await
            }
            Action::Restart(managed_scope, restart) => {
                self.kubernetes.restart(write.permit, &managed_scope.cluster, restart).await
            }
        };
        applied(done)
    }

    /// Waits until a kind that was just created is served, up to a limit. If it is still not served then, the
    /// write that follows fails.
    async fn await_kind(&self, write: &Write<'_>, cluster: &Cluster, kind: &Kind) {
        for _ in 0..PATIENCE {
            match self.kubernetes.served(write.read, cluster, kind).await {
                Err(KubernetesError::Unserved { .. }) => tokio::time::sleep(MOMENT).await,
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Rehearses a step: checks whether the cluster would accept its write.
    pub async fn rehearse(&self, read: &Read, action: &Action) -> Result<Rehearsed, Fault> {
        let Action::Put(put) = action else { return Ok(Rehearsed::NotAsked) };
        let draft = put.draft(jiff::Timestamp::now());
        rehearsed(
            self.kubernetes.rehearse(&read.permit, &put.item.managed_scope.cluster, MANAGER, &draft).await,
        )
    }
}

/// Whether the cluster rejected the whole request.
fn is_refusal(error: &KubernetesError) -> bool {
    matches!(
        error,
        KubernetesError::Homeless { .. } | KubernetesError::Denied { .. } | KubernetesError::Invalid { .. }
    )
}

/// Converts the result of a write.
pub fn applied(done: Result<(), KubernetesError>) -> Result<Applied, Fault> {
    match done {
        Ok(()) => Ok(Applied::Done),
        Err(KubernetesError::Stale { .. }) => Ok(Applied::Stale),
        Err(error) => Err(fault(&error)),
    }
}

/// Converts the result of a rehearsed write.
pub fn rehearsed(result: Result<Rehearsal, KubernetesError>) -> Result<Rehearsed, Fault> {
    match result {
        Ok(Rehearsal::Taken) => Ok(Rehearsed::Taken),
        Ok(Rehearsal::Refused(why)) => Ok(Rehearsed::Refused(Fault::author(why))),
        Ok(Rehearsal::NotYet(why)) => Ok(Rehearsed::NotValidated(why)),
        Ok(Rehearsal::NotAsked) => Ok(Rehearsed::NotAsked),
        Err(KubernetesError::Stale { object }) => {
            Ok(Rehearsed::NotValidated(format!("{object} changed meanwhile")))
        }
        Err(error) => Err(fault(&error)),
    }
}
