//! Reads objects of the sandbox.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::discovery::SandboxKind;
use super::folder::{ClusterDir, FileContent};
use super::record::ObjectFile;
use super::rollout;
use crate::draft::namespace;
use crate::error::KubernetesError;
use crate::object::{Object, ObjectAddress, ObjectVersion};

/// Reads an object and its record.
pub fn read_object(
    folder: &ClusterDir,
    known: &SandboxKind,
    address: &ObjectAddress,
) -> Result<Option<(Object, ObjectFile)>, KubernetesError> {
    let file = folder.file(namespace(address, &known.resource)?, &known.folder, &address.name)?;
    let Some(FileContent { bytes, age, identity }) = folder.read(&file)? else { return Ok(None) };
    let record = ObjectFile::read(&bytes)
        .map_err(|why| KubernetesError::Malformed { object: address.to_string(), why })?;
    let object = Object {
        address: address.clone(),
        version: version(&bytes, identity),
        field_ownership: record.field_ownership(),
        managed_fields: record.managed_fields(),
        body: served_body(known, address, &record.body, age),
    };
    Ok(Some((object, record)))
}

/// A body as a server would return it, with kind, name and rollout status.
fn served_body(known: &SandboxKind, address: &ObjectAddress, body: &Value, age: Duration) -> Value {
    let mut body = body.clone();
    let has_version = body["apiVersion"].is_string();
    if !has_version {
        body["apiVersion"] = known.resource.api_version.clone().into();
    }
    body["kind"] = known.kind.name.clone().into();
    if !body["metadata"].is_object() {
        body["metadata"] = Value::Object(serde_json::Map::new());
    }
    body["metadata"]["name"] = address.name.clone().into();
    if let Some(namespace) = address.namespace.as_ref().filter(|_| known.resource.is_namespaced) {
        body["metadata"]["namespace"] = namespace.clone().into();
    }
    if body.get("status").is_none()
        && let Some(status) = rollout::status(&known.kind.name, &body, age)
    {
        body["status"] = status;
    }
    body
}

/// The version of a file: its identity, and the beginning of its digest.
fn version(bytes: &[u8], identity: String) -> ObjectVersion {
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    ObjectVersion { uid: Some(identity), resource_version: format!("{first:016x}") }
}
