//! What is written to real clusters.

use std::time::Duration;

use kube::core::Request;
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use qontract_access::WritePermit;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Clusters;
use super::catalogue::Known;
use super::connection::{Answer, Built, Half};
use super::read::{self, path};
use super::status::Subject;
use crate::draft::{complete, namespace};
use crate::error::KubernetesError;
use crate::fields::{hand_over, is_overruled};
use crate::object::{Address, Cluster, Fields, Version};
use crate::{Draft, Onto, RECYCLED, RESTARTER, Rehearsal, Restart};

/// The first pause between looks at whether an object is gone; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A revision that no object has: the first write to a new server has a later one.
const NO_REVISION: &str = "1";

/// One object that is being written.
struct Target<'a> {
    cluster: &'a Cluster,
    address: &'a Address,
    known: Known,
    subject: Subject,
    /// Where its kind is, in the version of the draft.
    path: String,
    api_version: String,
}

impl Clusters {
    pub(super) async fn put_draft(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        manager: &str,
        draft: &Draft,
    ) -> Result<(), KubernetesError> {
        let half = Half::Write(permit);
        let (target, body) = self.target(cluster, draft).await?;
        match &draft.onto {
            Onto::Nothing => self.create(half, &target, manager, &body).await,
            Onto::Version(version, Fields::Settled) => {
                self.apply(half, &target, manager, (body, version)).await
            }
            Onto::Version(version, fields @ (Fields::ToBeMoved | Fields::Written)) => {
                let version = self.take_over(permit, &target, manager, (version, *fields)).await?;
                self.apply(half, &target, manager, (body, &version)).await
            }
            Onto::Replaced(version) => {
                match self.delete(permit, &target, version).await? {
                    404 => return Err(target.stale()),
                    _ => self.wait_until_gone(&target).await?,
                }
                self.create(half, &target, manager, &body).await
            }
        }
    }

    pub(super) async fn rehearse_draft(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &Draft,
    ) -> Result<Rehearsal, KubernetesError> {
        if !self.connection(cluster)?.settings.rehearses {
            return Ok(Rehearsal::NotAsked);
        }
        let (target, body) = match self.target(cluster, draft).await {
            Ok(target) => target,
            Err(error) => return Rehearsal::of(Err(error)),
        };
        if !target.known.is_kept {
            return Ok(Rehearsal::NotAsked);
        }
        let attempt = match &draft.onto {
            Onto::Nothing => self.create(Half::Read, &target, manager, &body).await,
            // Fields are not moved for it: whoever would hand them over, we ourselves among them, is overruled.
            Onto::Version(version, _) => self.apply(Half::Read, &target, manager, (body, version)).await,
            Onto::Replaced(_) => return Ok(Rehearsal::replaced()),
        };
        Rehearsal::of(attempt)
    }

    pub(super) async fn remove_object(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        address: &Address,
        version: &Version,
    ) -> Result<(), KubernetesError> {
        let known = self.find(cluster, &address.kind).await?;
        let target = Target::new(cluster, address, known, None)?;
        self.delete(permit, &target, version).await.map(drop)
    }

    pub(super) async fn restart_workload(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        restart: &Restart,
    ) -> Result<(), KubernetesError> {
        let Restart { address, version, cause } = restart;
        let known = self.find(cluster, &address.kind).await?;
        let target = Target::new(cluster, address, known, None)?;
        let Some(object) = self.get_one(cluster, address).await? else { return Err(target.stale()) };
        if object.cause() == Some(cause) {
            return Ok(());
        }
        if object.version != *version {
            return Err(target.stale());
        }
        let (_, revision) = target.parts(version)?;
        if !object.body["spec"]["template"].is_object() {
            let (cluster, object) = (cluster.name.clone(), address.to_string());
            let why = "it has no template of pods".to_owned();
            return Err(KubernetesError::Invalid { cluster, object, why });
        }
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": revision},
            "spec": {"template": {"metadata": {"annotations": {RECYCLED: cause}}}},
        }));
        let params = PatchParams { field_manager: Some(RESTARTER.to_owned()), ..PatchParams::default() };
        self.write(Half::Write(permit), &target, target.patch(&params, &patch)).await
    }

    async fn target<'a>(
        &self,
        cluster: &'a Cluster,
        draft: &'a Draft,
    ) -> Result<(Target<'a>, Value), KubernetesError> {
        let known = self.find(cluster, &draft.address.kind).await?;
        let body = complete(cluster, &draft.address, &known.served, &draft.body)?;
        let version = body["apiVersion"].as_str().map(str::to_owned);
        let mut target = Target::new(cluster, &draft.address, known, version)?;
        target.subject.is_secret |= draft.is_sensitive;
        Ok((target, body))
    }

    /// Sends it, and takes everything but a success for an error.
    async fn sent(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        request: Built,
    ) -> Result<Answer, KubernetesError> {
        let answer = self.send(half, target.cluster, &target.subject, request).await?;
        if answer.is_fine() {
            Ok(answer)
        } else {
            Err(self.refused(target.cluster, &target.subject, &answer).await)
        }
    }

    /// Sends a write whose answer is not needed.
    async fn write(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        request: Built,
    ) -> Result<(), KubernetesError> {
        self.sent(half, target, request).await.map(drop)
    }

    /// Creates the object by server-side apply, so that what the server fills in by default has no owner; by `POST` where the server
    /// cannot apply it.
    async fn create(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        manager: &str,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        if target.known.is_kept {
            match self.apply_new(half, target, manager, body).await {
                // A server may take by `POST` what it cannot apply: fields that its schema does not have, keys that are there twice. And an account
                // may be allowed to create and not to patch. A server that is overloaded or away is not asked again.
                Err(KubernetesError::Invalid { .. } | KubernetesError::Denied { .. }) => {}
                Err(KubernetesError::Failed { status, .. }) if !matches!(status, 429 | 502..=504) => {}
                other => return other,
            }
        }
        self.post(half, target, manager, body).await
    }

    /// Applies an object that must not be there: no object has the first revision of a server, so that one that is there is a conflict.
    async fn apply_new(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        manager: &str,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = NO_REVISION.into();
        // With force, what others own is no conflict, and the revision decides.
        let params = PatchParams { dry_run: half.is_dry_run(), force: true, ..PatchParams::apply(manager) };
        self.write(half, target, target.patch(&params, &Patch::Apply(&body))).await
    }

    async fn post(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        manager: &str,
        body: &Value,
    ) -> Result<(), KubernetesError> {
        let params = PostParams { dry_run: half.is_dry_run(), field_manager: Some(manager.to_owned()) };
        let body = serde_json::to_vec(body).map_err(|error| target.subject.malformed(error.to_string()))?;
        self.write(half, target, Request::new(&target.path).create(&params, body)).await
    }

    /// Applies, and once more with force if only those stand against it who are overruled.
    async fn apply(
        &self,
        half: Half<'_>,
        target: &Target<'_>,
        manager: &str,
        (mut body, version): (Value, &Version),
    ) -> Result<(), KubernetesError> {
        // Without the uid an object that is gone would be made anew.
        let (uid, revision) = target.parts(version)?;
        body["metadata"]["uid"] = uid.into();
        body["metadata"]["resourceVersion"] = revision.into();
        let mut params = PatchParams { dry_run: half.is_dry_run(), ..PatchParams::apply(manager) };
        let patch = Patch::Apply(&body);
        match self.write(half, target, target.patch(&params, &patch)).await {
            Err(KubernetesError::Conflict { contenders, .. })
                if contenders.iter().all(|one| is_overruled(&one.manager) || one.manager == manager) =>
            {
                params.force = true;
                self.write(half, target, target.patch(&params, &patch)).await
            }
            other => other,
        }
    }

    /// Moves the fields of those who wrote the object before to us; the version after it.
    async fn take_over(
        &self,
        permit: &WritePermit,
        target: &Target<'_>,
        manager: &str,
        (version, fields): (&Version, Fields),
    ) -> Result<Version, KubernetesError> {
        let live = self.fetch(target.cluster, target.address, &target.known, &target.api_version).await?;
        let Some(live) = live.filter(|live| read::version(live).as_ref() == Some(version)) else {
            return Err(target.stale());
        };
        let (_, revision) = target.parts(version)?;
        let managed = &live["metadata"]["managedFields"];
        let managed = hand_over((&live, managed), manager, &target.api_version, fields);
        let Some(managed) = managed else { return Ok(version.clone()) };
        let patch =
            Patch::Merge(json!({"metadata": {"resourceVersion": revision, "managedFields": managed}}));
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let answer = self.sent(Half::Write(permit), target, target.patch(&params, &patch)).await?;
        let moved: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        read::version(&moved).ok_or_else(|| target.subject.malformed("it has no version"))
    }

    /// Removes the object of this version; the status tells whether it was there.
    async fn delete(
        &self,
        permit: &WritePermit,
        target: &Target<'_>,
        version: &Version,
    ) -> Result<u16, KubernetesError> {
        let (uid, revision) = target.parts(version)?;
        let preconditions =
            Preconditions { resource_version: Some(revision.to_owned()), uid: Some(uid.to_owned()) };
        let params = DeleteParams::background().preconditions(preconditions);
        let request = Request::new(&target.path).delete(&target.address.name, &params);
        let answer = self.send(Half::Write(permit), target.cluster, &target.subject, request).await?;
        match answer.status {
            404 => Ok(404),
            status if answer.is_fine() => Ok(status),
            _ => Err(self.refused(target.cluster, &target.subject, &answer).await),
        }
    }

    async fn wait_until_gone(&self, target: &Target<'_>) -> Result<(), KubernetesError> {
        let end = Instant::now() + self.connection(target.cluster)?.settings.gone_within;
        let mut pause = FIRST_PAUSE;
        loop {
            let live = self.fetch(target.cluster, target.address, &target.known, &target.api_version).await?;
            let Some(live) = live else { return Ok(()) };
            if live["metadata"]["deletionTimestamp"].is_null() {
                // Somebody made another one.
                return Err(target.stale());
            }
            if Instant::now() + pause >= end {
                let names = live["metadata"]["finalizers"].as_array().into_iter().flatten();
                let names = names.filter_map(Value::as_str).map(|name| format!("`{name}`"));
                let names = names.collect::<Vec<_>>().join(", ");
                let by = if names.is_empty() { names } else { format!(": its finalizers {names} hold it") };
                return Err(KubernetesError::Held { object: target.address.to_string(), by });
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl<'a> Target<'a> {
    fn new(
        cluster: &'a Cluster,
        address: &'a Address,
        known: Known,
        api_version: Option<String>,
    ) -> Result<Self, KubernetesError> {
        let api_version = api_version.unwrap_or_else(|| known.served.api_version.clone());
        let path = path(&known, &api_version, namespace(address, &known.served)?);
        Ok(Self { cluster, address, known, subject: Subject::object(cluster, address), path, api_version })
    }

    /// The request that patches the object.
    fn patch<P: Serialize>(&self, params: &PatchParams, patch: &Patch<P>) -> Built {
        Request::new(&self.path).patch(&self.address.name, params, patch)
    }

    /// Uid and revision of a version. One that is none was not read here.
    fn parts<'v>(&self, version: &'v Version) -> Result<(&'v str, &'v str), KubernetesError> {
        version.0.split_once('/').filter(|(uid, _)| !uid.is_empty()).ok_or_else(|| self.stale())
    }

    fn stale(&self) -> KubernetesError {
        KubernetesError::Stale { object: self.address.to_string() }
    }
}
