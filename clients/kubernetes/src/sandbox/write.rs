//! Writes objects of the sandbox.
//!
//! **Invariant:** the cluster lock is held from the check of the precondition until the write.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::discovery::{custom_kind_dir, find_kind};
use super::folder::ClusterDir;
use super::read::read_object;
use super::record::ObjectFile;
use super::{Sandbox, immutable};
use crate::draft::{complete_body, namespace};
use crate::error::{ConflictingManager, KubernetesError};
use crate::fields::{FieldSet, ManagedFieldsEntry, apply, apply_without_residue};
use crate::object::{Cluster, Kind, Object, ObjectAddress, ObjectVersion};
use crate::{
    ObjectDraft, RECYCLED_ANNOTATION, RESTART_MANAGER, Rehearsal, WorkloadRestart, WritePrecondition,
};

impl Sandbox {
    pub(super) fn put_now(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &ObjectDraft,
    ) -> Result<(), KubernetesError> {
        let folder = self.folder(cluster)?;
        // The write is checked before the cluster is locked, so that no directory is created for an object
        // without a namespace.
        prepare(&folder, cluster, manager, draft)?;
        let _locked = folder.lock()?;
        let (file, record) = prepare(&folder, cluster, manager, draft)?;
        folder.write(&file, &record.print())
    }

    pub(super) fn rehearse_now(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &ObjectDraft,
    ) -> Result<Rehearsal, KubernetesError> {
        if matches!(draft.precondition, WritePrecondition::Replace(_) | WritePrecondition::Removing(_)) {
            return Ok(Rehearsal::of_replacement());
        }
        Rehearsal::of(prepare(&self.folder(cluster)?, cluster, manager, draft).map(drop))
    }

    pub(super) fn remove_now(
        &self,
        cluster: &Cluster,
        address: &ObjectAddress,
        version: &ObjectVersion,
    ) -> Result<(), KubernetesError> {
        let folder = self.folder(cluster)?;
        let served = find_kind(&folder, cluster, &address.kind)?;
        if read_object(&folder, &served, address)?.is_none() {
            return Ok(());
        }
        let _locked = folder.lock()?;
        let Some((object, record)) = read_object(&folder, &served, address)? else { return Ok(()) };
        check_version(&object, version)?;
        match served.kind.name.as_str() {
            "Namespace" if served.kind == Kind::namespace() => folder.remove_namespace(&address.name)?,
            "CustomResourceDefinition" => remove_custom_objects(&folder, &record.body)?,
            _ => {}
        }
        folder.remove(&folder.file(namespace(address, &served.resource)?, &served.folder, &address.name)?)
    }

    pub(super) fn restart_now(
        &self,
        cluster: &Cluster,
        restart: &WorkloadRestart,
    ) -> Result<(), KubernetesError> {
        let WorkloadRestart { address, version, cause } = restart;
        let folder = self.folder(cluster)?;
        let served = find_kind(&folder, cluster, &address.kind)?;
        let _locked = folder.lock()?;
        let Some((object, mut record)) = read_object(&folder, &served, address)? else {
            return Err(stale(address));
        };
        if object.restart_cause() == Some(cause) {
            return Ok(());
        }
        check_version(&object, version)?;
        if !record.body["spec"]["template"].is_object() {
            let why = "it has no pod template".to_owned();
            return Err(invalid(cluster, address, why));
        }
        let mut level = &mut record.body["spec"]["template"];
        for part in ["metadata", "annotations"] {
            if !level[part].is_object() {
                level[part] = Value::Object(Map::new());
            }
            level = &mut level[part];
        }
        level[RECYCLED_ANNOTATION] = cause.clone().into();
        let path =
            ["f:spec", "f:template", "f:metadata", "f:annotations", &format!("f:{RECYCLED_ANNOTATION}")];
        let path = path.map(str::to_owned).to_vec();
        record.entries.retain(|entry| entry.manager != RESTART_MANAGER);
        record.entries.iter_mut().for_each(|entry| {
            entry.fields.0.remove(&path);
        });
        let fields = FieldSet([path].into());
        record.entries.push(ManagedFieldsEntry {
            manager: RESTART_MANAGER.to_owned(),
            is_applied: false,
            fields,
        });
        record.entries.sort();
        let file = folder.file(namespace(address, &served.resource)?, &served.folder, &address.name)?;
        folder.write(&file, &record.print())
    }
}

/// The file to write and its content. Nothing is written yet.
fn prepare(
    folder: &ClusterDir,
    cluster: &Cluster,
    manager: &str,
    draft: &ObjectDraft,
) -> Result<(PathBuf, ObjectFile), KubernetesError> {
    let address = &draft.address;
    let served = find_kind(folder, cluster, &address.kind)?;
    let declared = complete_body(cluster, address, &served.resource, &draft.body)?;
    let place = namespace(address, &served.resource)?;
    let file = folder.file(place, &served.folder, &address.name)?;
    if let Some(place) = place
        && folder.read(&folder.file(None, "Namespace", place)?)?.is_none()
    {
        let what = format!("the namespace `{place}`");
        return Err(KubernetesError::NamespaceMissing { object: address.to_string(), what });
    }
    let record = match (&draft.precondition, read_object(folder, &served, address)?) {
        (WritePrecondition::Absent | WritePrecondition::Removing(_), None) => {
            new_object_file(manager, declared)
        }
        (WritePrecondition::Replace(version), Some((object, _))) => {
            check_version(&object, version)?;
            new_object_file(manager, declared)
        }
        (
            precondition @ (WritePrecondition::Version(version, fields)
            | WritePrecondition::Rewrite(version, fields)),
            Some((object, mut record)),
        ) => {
            check_version(&object, version)?;
            record.migrate(manager, *fields);
            let apply = match precondition {
                WritePrecondition::Rewrite(..) => apply_without_residue,
                _ => apply,
            };
            let (body, entries) =
                apply(&record.body, &record.entries, manager, &declared).map_err(|mut conflicts| {
                    if draft.is_sensitive || address.kind.name == "Secret" {
                        conflicts = conflicts.into_iter().map(ConflictingManager::without_keys).collect();
                    }
                    KubernetesError::Conflict { object: address.to_string(), conflicts }
                })?;
            if let Some(field) = immutable::immutable_change(&served.kind.name, &record.body, &body) {
                return Err(invalid(cluster, address, format!("`{field}` is immutable")));
            }
            ObjectFile { body, entries }
        }
        (WritePrecondition::Absent | WritePrecondition::Removing(_), Some(_))
        | (
            WritePrecondition::Version(..) | WritePrecondition::Rewrite(..) | WritePrecondition::Replace(_),
            None,
        ) => {
            return Err(stale(address));
        }
    };
    Ok((file, record))
}

fn new_object_file(manager: &str, declared: Value) -> ObjectFile {
    let fields = FieldSet::of(&declared);
    // A manager without declared fields has no entry.
    let entry = ManagedFieldsEntry { manager: manager.to_owned(), is_applied: true, fields };
    let entries = if entry.fields.0.is_empty() { Vec::new() } else { vec![entry] };
    ObjectFile { body: declared, entries }
}

/// Removes the objects of a kind whose definition is removed.
fn remove_custom_objects(folder: &ClusterDir, definition: &Value) -> Result<(), KubernetesError> {
    let Some(kind) = custom_kind_dir(definition) else { return Ok(()) };
    let namespaces = folder.namespaces()?;
    for place in namespaces.iter().map(|name| Some(name.as_str())).chain([None]) {
        folder.remove_dir(&folder.kind_dir(place, &kind)?)?;
    }
    Ok(())
}

fn check_version(object: &Object, version: &ObjectVersion) -> Result<(), KubernetesError> {
    if object.version == *version { Ok(()) } else { Err(stale(&object.address)) }
}

fn stale(address: &ObjectAddress) -> KubernetesError {
    KubernetesError::Stale { object: address.to_string() }
}

fn invalid(cluster: &Cluster, address: &ObjectAddress, why: String) -> KubernetesError {
    KubernetesError::Invalid { cluster: cluster.name.clone(), object: address.to_string(), why }
}
