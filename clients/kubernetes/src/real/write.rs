//! Writes objects of real clusters.

use std::time::Duration;

use qontract_access::{Access, AccessPermit, WritePermit};
use qontract_kinds::group_of;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Clusters;
use super::connection::ApiResponse;
use super::discovery_cache::ServedKind;
use super::read::{self, collection_path};
use super::request::{ApiRequest, PatchKind, Propagation, WriteOptions};
use super::rewrite::Rewrite;
use super::status::RequestSubject;
use crate::draft::{complete_body, namespace};
use crate::error::{ConflictingManager, KubernetesError};
use crate::fields::{is_overruled, migrate};
use crate::object::{Cluster, FieldOwnership, ObjectAddress, ObjectVersion};
use crate::{
    ObjectDraft, RECYCLED_ANNOTATION, RESTART_MANAGER, Rehearsal, WorkloadRestart, WritePrecondition,
};

/// The first polling interval while waiting until an object no longer exists; it doubles up to the maximum.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum polling interval.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The time that the pods of a workload get to end if the workload does not set it, in seconds.
const DEFAULT_GRACE_SECONDS: u64 = 30;
/// The time for removing the objects of a workload, in addition to the time that its pods get to end.
const REMOVAL_MARGIN: Duration = Duration::from_secs(15);
/// Maximum time to wait for the pods of a workload, within the timeout of a step.
const MAX_PODS_TIMEOUT: Duration = Duration::from_mins(5);

/// A revision that no object has: even the first write to a new server gets a later revision.
const NO_REVISION: &str = "1";

/// The object that is being written.
pub(super) struct WriteTarget<'a> {
    pub cluster: &'a Cluster,
    pub address: &'a ObjectAddress,
    pub served: ServedKind,
    pub subject: RequestSubject,
    /// The path of the objects of this kind, in the API version of the draft.
    path: String,
    pub api_version: String,
}

/// The field manager and the permit of a write. With a read permit, the write is only rehearsed.
#[derive(Clone, Copy)]
pub(super) struct FieldWriter<'w> {
    access: AccessPermit<'w>,
    pub manager: &'w str,
    is_rehearsal: bool,
}

impl<'w> FieldWriter<'w> {
    fn new(access: AccessPermit<'w>, manager: &'w str) -> Self {
        Self { access, manager, is_rehearsal: access.access() == Access::Read }
    }

    /// The writer of a rehearsal.
    pub fn rehearsal(self) -> Self {
        Self { is_rehearsal: true, ..self }
    }

    /// Whether the write takes the fields of all of these managers.
    pub fn overrules(&self, conflicts: &[ConflictingManager]) -> bool {
        conflicts.iter().all(|one| is_overruled(&one.manager) || one.manager == self.manager)
    }

    fn options(&self) -> WriteOptions<'_> {
        WriteOptions { manager: self.manager, dry_run: self.is_rehearsal }
    }
}

impl Clusters {
    pub(super) async fn put_draft(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        manager: &str,
        draft: &ObjectDraft,
    ) -> Result<(), KubernetesError> {
        let writer = FieldWriter::new(AccessPermit::Write(permit), manager);
        let (target, body) = self.target(cluster, draft).await?;
        match &draft.precondition {
            WritePrecondition::Absent => self.create(writer, &target, &body).await,
            WritePrecondition::Version(version, FieldOwnership::Ours) => {
                self.apply_existing(writer, &target, body, version).await
            }
            WritePrecondition::Version(
                version,
                fields @ (FieldOwnership::ClientSideApplied | FieldOwnership::Updated),
            ) => {
                let version = self.migrate_fields(writer, &target, version, *fields).await?;
                self.apply_existing(writer, &target, body, &version).await
            }
            WritePrecondition::Rewrite(version, fields) => {
                let (target, body) = (&target, &body);
                self.rewrite(Rewrite { writer, target, body, version, fields: *fields }).await
            }
            WritePrecondition::Replace(version) => {
                match self.delete(permit, &target, version, replacement_propagation(&target)).await? {
                    404 => return Err(target.stale()),
                    _ => self.wait_until_gone(&target, version).await?,
                }
                self.create(writer, &target, &body).await
            }
            WritePrecondition::Removing(version) => {
                self.wait_until_gone(&target, version).await?;
                self.create(writer, &target, &body).await
            }
        }
    }

    pub(super) async fn rehearse_draft(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &ObjectDraft,
    ) -> Result<Rehearsal, KubernetesError> {
        if !self.connection(cluster)?.settings.rehearses {
            return Ok(Rehearsal::Disabled);
        }
        let (target, body) = match self.target(cluster, draft).await {
            Ok(target) => target,
            Err(error) => return Rehearsal::of(Err(error)),
        };
        if !target.served.is_stored {
            return Ok(Rehearsal::Disabled);
        }
        let writer = FieldWriter::new(AccessPermit::Read(&self.permit), manager);
        let attempt = match &draft.precondition {
            WritePrecondition::Absent => self.create(writer, &target, &body).await,
            // Fields are not migrated for a rehearsal. Instead, managers whose fields would be migrated,
            // including our own, are overruled.
            WritePrecondition::Version(version, _) => {
                self.apply_existing(writer, &target, body, version).await
            }
            WritePrecondition::Rewrite(version, fields) => {
                let (target, body) = (&target, &body);
                let rewrite = Rewrite { writer, target, body, version, fields: *fields };
                self.rewrite_content(rewrite).await.map(drop)
            }
            WritePrecondition::Replace(_) | WritePrecondition::Removing(_) => {
                return Ok(Rehearsal::of_replacement());
            }
        };
        Rehearsal::of(attempt)
    }

    pub(super) async fn remove_object(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        address: &ObjectAddress,
        version: &ObjectVersion,
    ) -> Result<(), KubernetesError> {
        let served = self.find_kind(cluster, &address.kind).await?;
        let target = WriteTarget::new(cluster, address, served, None)?;
        self.delete(permit, &target, version, Propagation::Background).await.map(drop)
    }

    pub(super) async fn restart_workload(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        restart: &WorkloadRestart,
    ) -> Result<(), KubernetesError> {
        let WorkloadRestart { address, version, cause } = restart;
        let served = self.find_kind(cluster, &address.kind).await?;
        let target = WriteTarget::new(cluster, address, served, None)?;
        let Some(object) = self.get_object(cluster, address).await? else { return Err(target.stale()) };
        if object.restart_cause() == Some(cause) {
            return Ok(());
        }
        if object.version != *version {
            return Err(target.stale());
        }
        let (_, revision) = target.parts(version)?;
        if !object.body["spec"]["template"].is_object() {
            let (cluster, object) = (cluster.name.clone(), address.to_string());
            let why = "it has no pod template".to_owned();
            return Err(KubernetesError::Invalid { cluster, object, why });
        }
        let patch = json!({
            "metadata": {"resourceVersion": revision},
            "spec": {"template": {"metadata": {"annotations": {RECYCLED_ANNOTATION: cause}}}},
        });
        let writer = FieldWriter::new(AccessPermit::Write(permit), RESTART_MANAGER);
        self.patch(writer, &target, PatchKind::Merge, &patch).await.map(drop)
    }

    async fn target<'a>(
        &self,
        cluster: &'a Cluster,
        draft: &'a ObjectDraft,
    ) -> Result<(WriteTarget<'a>, Value), KubernetesError> {
        let served = self.find_kind(cluster, &draft.address.kind).await?;
        let body = complete_body(cluster, &draft.address, &served.resource, &draft.body)?;
        let version = body["apiVersion"].as_str().map(str::to_owned);
        let mut target = WriteTarget::new(cluster, &draft.address, served, version)?;
        target.subject.is_secret |= draft.is_sensitive;
        Ok((target, body))
    }

    /// Sends a patch of the object.
    pub(super) async fn patch(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        kind: PatchKind,
        patch: &Value,
    ) -> Result<ApiResponse, KubernetesError> {
        let request = ApiRequest::patch(&target.path, &target.address.name, writer.options(), kind, patch)?;
        self.send_checked(writer.access, target, request).await
    }

    /// Sends a request; any response other than a success is an error.
    async fn send_checked(
        &self,
        access: AccessPermit<'_>,
        target: &WriteTarget<'_>,
        request: ApiRequest,
    ) -> Result<ApiResponse, KubernetesError> {
        let answer = self.send(access, target.cluster, &target.subject, request).await?;
        if answer.is_success() {
            Ok(answer)
        } else {
            Err(self.refusal_error(target.cluster, &target.subject, &answer).await)
        }
    }

    /// Creates the object by server-side apply, so that server defaults have no owner. If the server cannot
    /// apply the object, creates it by `POST`.
    async fn create(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        if target.served.is_stored {
            match self.apply_new(writer, target, body).await {
                // A server may accept by `POST` an object that it cannot apply, for example one with unknown
                // fields or duplicate keys, and an account may be allowed to create but not to patch. No
                // second request is sent to an overloaded or unavailable server.
                Err(KubernetesError::Invalid { .. } | KubernetesError::Denied { .. }) => {}
                Err(KubernetesError::Failed { status, .. }) if !matches!(status, 429 | 502..=504) => {}
                other => return other,
            }
        }
        self.post(writer, target, body).await
    }

    /// Applies an object that must not exist. The request has the first revision of a server, which no object
    /// has, so an existing object is a conflict.
    async fn apply_new(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = NO_REVISION.into();
        // With force, fields of other managers are not a conflict, so only the revision decides.
        self.patch(writer, target, PatchKind::ForcedApply, &body).await.map(drop)
    }

    async fn post(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        let request = ApiRequest::create(&target.path, writer.options(), body);
        self.send_checked(writer.access, target, request).await.map(drop)
    }

    /// Applies the object. If all conflicting managers may be overruled, applies it again with force.
    pub(super) async fn apply_existing(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        body: Value,
        version: &ObjectVersion,
    ) -> Result<(), KubernetesError> {
        let body = target.versioned_body(body, version)?;
        match self.patch(writer, target, PatchKind::Apply, &body).await {
            Err(KubernetesError::Conflict { conflicts, .. }) if writer.overrules(&conflicts) => {
                self.patch(writer, target, PatchKind::ForcedApply, &body).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// The object in the version of the draft; `None` if it does not exist.
    pub(super) async fn fetch_live(
        &self,
        target: &WriteTarget<'_>,
    ) -> Result<Option<Value>, KubernetesError> {
        self.fetch(target.cluster, target.address, &target.served, &target.api_version).await
    }

    /// The object, if it still has this version.
    pub(super) async fn fetch_version(
        &self,
        target: &WriteTarget<'_>,
        version: &ObjectVersion,
    ) -> Result<Value, KubernetesError> {
        let live = self.fetch_live(target).await?;
        live.filter(|live| read::version(live).as_ref() == Some(version)).ok_or_else(|| target.stale())
    }

    /// Migrates the fields of previous writers to us; returns the new version.
    async fn migrate_fields(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        version: &ObjectVersion,
        fields: FieldOwnership,
    ) -> Result<ObjectVersion, KubernetesError> {
        let live = self.fetch_version(target, version).await?;
        let (managed, manager) = (&live["metadata"]["managedFields"], writer.manager);
        match migrate(&live, managed, manager, &target.api_version, fields) {
            Some(managed) => self.write_owners(writer, target, version, &managed).await,
            None => Ok(version.clone()),
        }
    }

    /// Writes the managed fields of an object; returns the new version.
    pub(super) async fn write_owners(
        &self,
        writer: FieldWriter<'_>,
        target: &WriteTarget<'_>,
        version: &ObjectVersion,
        managed: &Value,
    ) -> Result<ObjectVersion, KubernetesError> {
        let (_, revision) = target.parts(version)?;
        let patch = json!({"metadata": {"resourceVersion": revision, "managedFields": managed}});
        let answer = self.patch(writer, target, PatchKind::Merge, &patch).await?;
        let moved: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        read::version(&moved).ok_or_else(|| target.subject.malformed("it has no version"))
    }

    /// Removes the object if it has this version. The returned status shows whether the object existed.
    async fn delete(
        &self,
        permit: &WritePermit,
        target: &WriteTarget<'_>,
        version: &ObjectVersion,
        propagation: Propagation,
    ) -> Result<u16, KubernetesError> {
        let (uid, revision) = target.parts(version)?;
        let request = ApiRequest::delete(&target.path, &target.address.name, uid, revision, propagation)?;
        let answer = self.send(AccessPermit::Write(permit), target.cluster, &target.subject, request).await?;
        match answer.status {
            404 => Ok(404),
            status if answer.is_success() => Ok(status),
            _ => Err(self.refusal_error(target.cluster, &target.subject, &answer).await),
        }
    }

    /// Waits until an object that is being removed is gone.
    async fn wait_until_gone(
        &self,
        target: &WriteTarget<'_>,
        version: &ObjectVersion,
    ) -> Result<(), KubernetesError> {
        let (uid, _) = target.parts(version)?;
        let (begun, removal_timeout) =
            (Instant::now(), self.connection(target.cluster)?.settings.removal_timeout);
        let mut pause = FIRST_POLL_INTERVAL;
        loop {
            let live = self.fetch_live(target).await?;
            let Some(live) = live else { return Ok(()) };
            if live["metadata"]["deletionTimestamp"].is_null() || live["metadata"]["uid"] != uid {
                // Another client has created an object of this name.
                return Err(target.stale());
            }
            if begun.elapsed() + pause >= removal_timeout.max(pods_timeout(&live)) {
                let names = live["metadata"]["finalizers"].as_array().into_iter().flatten();
                let names = names.filter_map(Value::as_str).map(|name| format!("`{name}`"));
                let names = names.collect::<Vec<_>>().join(", ");
                let by = if names.is_empty() { names } else { format!(": it has the finalizers {names}") };
                return Err(KubernetesError::RemovalPending { object: target.address.to_string(), by });
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }
}

/// The time in which the pods of a workload end; zero for other objects. A replacement waits for them, because it would
/// otherwise be continued only after the other steps of the run.
fn pods_timeout(live: &Value) -> Duration {
    let pod = &live["spec"]["template"]["spec"];
    if !pod.is_object() {
        return Duration::ZERO;
    }
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or(DEFAULT_GRACE_SECONDS);
    (Duration::from_secs(grace) + REMOVAL_MARGIN).min(MAX_PODS_TIMEOUT)
}

/// The propagation of the deletion in a replacement. A workload exists until its pods have ended, so that the pods of
/// the old object never run beside those of the new one.
fn replacement_propagation(target: &WriteTarget<'_>) -> Propagation {
    match (group_of(&target.api_version), target.address.kind.name.as_str()) {
        ("apps", _) | ("batch", "CronJob") => Propagation::Foreground,
        _ => Propagation::Background,
    }
}

impl<'a> WriteTarget<'a> {
    fn new(
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
        served: ServedKind,
        api_version: Option<String>,
    ) -> Result<Self, KubernetesError> {
        let api_version = api_version.unwrap_or_else(|| served.resource.api_version.clone());
        let path = collection_path(&served, &api_version, namespace(address, &served.resource)?);
        Ok(Self {
            cluster,
            address,
            served,
            subject: RequestSubject::object(cluster, address),
            path,
            api_version,
        })
    }

    /// The uid and the revision of a version. A version without a uid was not read from this cluster and
    /// counts as stale.
    pub fn parts<'v>(&self, version: &'v ObjectVersion) -> Result<(&'v str, &'v str), KubernetesError> {
        let uid = version.uid.as_deref().filter(|uid| !uid.is_empty()).ok_or_else(|| self.stale())?;
        Ok((uid, &version.resource_version))
    }

    /// The body of a write to this version of the object. Without the uid, an object that no longer exists
    /// would be created again.
    pub fn versioned_body(&self, mut body: Value, version: &ObjectVersion) -> Result<Value, KubernetesError> {
        let (uid, revision) = self.parts(version)?;
        body["metadata"]["uid"] = uid.into();
        body["metadata"]["resourceVersion"] = revision.into();
        Ok(body)
    }

    /// A conflict with other managers.
    pub fn conflict(&self, conflicts: Vec<ConflictingManager>) -> KubernetesError {
        let conflicts = if self.subject.is_secret {
            conflicts.into_iter().map(ConflictingManager::without_keys).collect()
        } else {
            conflicts
        };
        KubernetesError::Conflict { object: self.address.to_string(), conflicts }
    }

    pub fn stale(&self) -> KubernetesError {
        KubernetesError::Stale { object: self.address.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::pods_timeout;

    #[track_caller]
    fn check(live: &Value, expect: u64) {
        assert_eq!(pods_timeout(live), Duration::from_secs(expect));
    }

    #[test]
    fn a_replacement_waits_as_long_as_the_pods_may_take_to_end() {
        let workload = |pod: Value| json!({"spec": {"template": {"spec": pod}}});
        check(&workload(json!({"terminationGracePeriodSeconds": 60})), 75);
        check(&workload(json!({})), 45);
        check(&workload(json!({"terminationGracePeriodSeconds": 86_400})), 300);
        check(&json!({"spec": {"ports": []}}), 0);
    }
}
