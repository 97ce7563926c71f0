//! Writes objects of the sandbox.
//!
//! **Invariant:** the lock of the cluster is held between the check of the precondition and the write.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::catalogue::{find, folder_of_custom};
use super::folder::Folder;
use super::record::Record;
use super::{Sandbox, immutable, look};
use crate::draft::{complete, namespace};
use crate::error::KubernetesError;
use crate::fields::{Entry, FieldSet, apply};
use crate::object::{Address, Cluster, Kind, Object, Version};
use crate::{Draft, Onto, RECYCLED, RESTARTER, Rehearsal, Restart};

impl Sandbox {
    pub(super) fn put_now(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &Draft,
    ) -> Result<(), KubernetesError> {
        let folder = self.folder(cluster)?;
        // Checked before locking, so that an object without a namespace creates no directory.
        prepare(&folder, cluster, manager, draft)?;
        let _locked = folder.lock()?;
        let (file, record) = prepare(&folder, cluster, manager, draft)?;
        folder.write(&file, &record.print())
    }

    pub(super) fn rehearse_now(
        &self,
        cluster: &Cluster,
        manager: &str,
        draft: &Draft,
    ) -> Result<Rehearsal, KubernetesError> {
        if matches!(draft.onto, Onto::Replaced(_)) {
            return Ok(Rehearsal::replaced());
        }
        Rehearsal::of(prepare(&self.folder(cluster)?, cluster, manager, draft).map(drop))
    }

    pub(super) fn remove_now(
        &self,
        cluster: &Cluster,
        address: &Address,
        version: &Version,
    ) -> Result<(), KubernetesError> {
        let folder = self.folder(cluster)?;
        let known = find(&folder, cluster, &address.kind)?;
        if look(&folder, &known, address)?.is_none() {
            return Ok(());
        }
        let _locked = folder.lock()?;
        let Some((object, record)) = look(&folder, &known, address)? else { return Ok(()) };
        fresh(&object, version)?;
        match known.kind.name.as_str() {
            "Namespace" if known.kind == Kind::namespace() => folder.empty(&address.name)?,
            "CustomResourceDefinition" => drop_custom(&folder, &record.body)?,
            _ => {}
        }
        folder.remove(&folder.file(namespace(address, &known.served)?, &known.folder, &address.name)?)
    }

    pub(super) fn restart_now(&self, cluster: &Cluster, restart: &Restart) -> Result<(), KubernetesError> {
        let Restart { address, version, cause } = restart;
        let folder = self.folder(cluster)?;
        let known = find(&folder, cluster, &address.kind)?;
        let _locked = folder.lock()?;
        let Some((object, mut record)) = look(&folder, &known, address)? else { return Err(stale(address)) };
        if object.cause() == Some(cause) {
            return Ok(());
        }
        fresh(&object, version)?;
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
        level[RECYCLED] = cause.clone().into();
        let path = ["f:spec", "f:template", "f:metadata", "f:annotations", &format!("f:{RECYCLED}")];
        let path = path.map(str::to_owned).to_vec();
        record.entries.retain(|entry| entry.manager != RESTARTER);
        record.entries.iter_mut().for_each(|entry| {
            entry.fields.0.remove(&path);
        });
        let fields = FieldSet([path].into());
        record.entries.push(Entry { manager: RESTARTER.to_owned(), is_applied: false, fields });
        record.entries.sort();
        let file = folder.file(namespace(address, &known.served)?, &known.folder, &address.name)?;
        folder.write(&file, &record.print())
    }
}

/// The file to write and its content; nothing is written yet.
fn prepare(
    folder: &Folder,
    cluster: &Cluster,
    manager: &str,
    draft: &Draft,
) -> Result<(PathBuf, Record), KubernetesError> {
    let address = &draft.address;
    let known = find(folder, cluster, &address.kind)?;
    let declared = complete(cluster, address, &known.served, &draft.body)?;
    let place = namespace(address, &known.served)?;
    let file = folder.file(place, &known.folder, &address.name)?;
    if let Some(place) = place
        && folder.read(&folder.file(None, "Namespace", place)?)?.is_none()
    {
        let what = format!("the namespace `{place}`");
        return Err(KubernetesError::Homeless { object: address.to_string(), what });
    }
    let record = match (&draft.onto, look(folder, &known, address)?) {
        (Onto::Nothing, None) => created(manager, declared),
        (Onto::Replaced(version), Some((object, _))) => {
            fresh(&object, version)?;
            created(manager, declared)
        }
        (Onto::Version(version, fields), Some((object, mut record))) => {
            fresh(&object, version)?;
            record.hand_over(manager, *fields);
            let (body, entries) =
                apply(&record.body, &record.entries, manager, &declared).map_err(|contenders| {
                    KubernetesError::Conflict { object: address.to_string(), contenders }
                })?;
            if let Some(field) = immutable::changed(&known.kind.name, &record.body, &body) {
                return Err(invalid(cluster, address, format!("`{field}` is immutable")));
            }
            Record { body, entries }
        }
        (Onto::Nothing, Some(_)) | (Onto::Version(..) | Onto::Replaced(_), None) => {
            return Err(stale(address));
        }
    };
    Ok((file, record))
}

fn created(manager: &str, declared: Value) -> Record {
    let fields = FieldSet::of(&declared);
    // A manager without declared fields has no entry.
    let entry = Entry { manager: manager.to_owned(), is_applied: true, fields };
    let entries = if entry.fields.0.is_empty() { Vec::new() } else { vec![entry] };
    Record { body: declared, entries }
}

/// Removes the objects of a kind whose definition is removed.
fn drop_custom(folder: &Folder, definition: &Value) -> Result<(), KubernetesError> {
    let Some(kind) = folder_of_custom(definition) else { return Ok(()) };
    let namespaces = folder.namespaces()?;
    for place in namespaces.iter().map(|name| Some(name.as_str())).chain([None]) {
        folder.drop(&folder.of_kind(place, &kind)?)?;
    }
    Ok(())
}

fn fresh(object: &Object, version: &Version) -> Result<(), KubernetesError> {
    if object.version == *version { Ok(()) } else { Err(stale(&object.address)) }
}

fn stale(address: &Address) -> KubernetesError {
    KubernetesError::Stale { object: address.to_string() }
}

fn invalid(cluster: &Cluster, address: &Address, why: String) -> KubernetesError {
    KubernetesError::Invalid { cluster: cluster.name.clone(), object: address.to_string(), why }
}
