//! Writes that also remove fields that server-side apply would leave behind, so that the API server would
//! reject the object. These are defaults of removed fields, and fields that exclude declared fields.
//!
//! First, an update writes the final content, so that the API server never validates an intermediate state.
//! Then the fields become ours by server-side apply. Only the last request contains our marks.
//!
//! **Invariant:** if the process ends after the update and before the last request, the object has its final
//! content, but not its new marks. Therefore, the next run writes the object again and takes over its fields
//! (`a_rewrite_that_is_killed_is_completed_on_a_real_cluster`).

use serde_json::{Map, Value, json};

use super::Clusters;
use super::read;
use super::request::PatchKind;
use super::write::{FieldWriter, WriteTarget};
use crate::error::KubernetesError;
use crate::fields::{ManagedFields, Preview, migrate_declared};
use crate::object::{FieldOwnership, ObjectVersion};

/// Maximum number of attempts to take over the fields of an object that controllers also write.
const MAX_ATTEMPTS: u32 = 5;

/// A rewrite of an object.
#[derive(Clone, Copy)]
pub(super) struct Rewrite<'a> {
    pub writer: FieldWriter<'a>,
    pub target: &'a WriteTarget<'a>,
    /// The declared object.
    pub body: &'a Value,
    /// The version for which the write was planned.
    pub version: &'a ObjectVersion,
    /// The ownership of the fields in this version of the object.
    pub fields: FieldOwnership,
}

impl Clusters {
    /// Rewrites an object: writes its content by an update, and its field ownership by server-side apply.
    pub(super) async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), KubernetesError> {
        let written = self.rewrite_content(rewrite).await?;
        let mut live = written.clone();
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.take_fields(rewrite, &live).await {
                Err(KubernetesError::Stale { .. }) if attempts < MAX_ATTEMPTS => {}
                // The rehearsal had no conflict, so another manager has taken a field since then.
                Err(KubernetesError::Conflict { .. }) => return Err(rewrite.target.stale()),
                other => return other,
            }
            // A controller may have written the status or the annotations after the update.
            let again = self.fetch_live(rewrite.target).await?;
            let again = again.filter(|again| has_content_of(again, &written));
            live = again.ok_or_else(|| rewrite.target.stale())?;
        }
    }

    /// Writes the final content by an update; returns the object.
    ///
    /// An update takes fields of other managers without a conflict. Therefore, the apply is rehearsed first:
    /// the server reports conflicts before it validates the object. The server does not treat a field that
    /// excludes a declared field as a conflict, so this function does.
    pub(super) async fn rewrite_content(&self, rewrite: Rewrite<'_>) -> Result<Value, KubernetesError> {
        let Rewrite { writer, target, body, version, fields } = rewrite;
        let (_, revision) = target.parts(version)?;
        let live = self.fetch_version(target, version).await?;
        let managed = ManagedFields::new(&live["metadata"]["managedFields"]);
        let Preview { after, conflicts, .. } = managed.preview(&live, writer.manager, fields, body);
        if !conflicts.excluding.is_empty() {
            return Err(target.conflict(conflicts.excluding));
        }
        let declared = target.versioned_body(body.clone(), version)?;
        match self.patch(writer.rehearsal(), target, PatchKind::Apply, &declared).await {
            Ok(_) | Err(KubernetesError::Invalid { .. }) => {}
            Err(KubernetesError::Conflict { conflicts, .. }) if writer.overrules(&conflicts) => {}
            Err(error) => return Err(error),
        }
        let mut patch = merge_patch(&content(&live), &content(&after)).unwrap_or_else(|| json!({}));
        patch["metadata"] = json!({"resourceVersion": revision});
        let answer = self.patch(writer, target, PatchKind::Merge, &patch).await?;
        serde_json::from_slice(&answer.body).map_err(|error| target.subject.malformed(error.to_string()))
    }

    /// Makes the declared fields of a rewritten object ours, and applies the declaration.
    async fn take_fields(&self, rewrite: Rewrite<'_>, live: &Value) -> Result<(), KubernetesError> {
        let Rewrite { writer, target, body, fields, .. } = rewrite;
        let version = read::version(live).ok_or_else(|| target.subject.malformed("it has no version"))?;
        let version = match migrate_declared(live, writer.manager, body, fields) {
            Some(managed) => self.write_owners(writer, target, &version, &managed).await?,
            None => version,
        };
        self.apply_existing(writer, target, body.clone(), &version).await
    }
}

/// Whether two versions of an object differ only in metadata and status.
fn has_content_of(one: &Value, other: &Value) -> bool {
    one["metadata"]["uid"] == other["metadata"]["uid"] && content(one) == content(other)
}

/// The object without metadata and status.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    for field in ["apiVersion", "kind", "metadata", "status"] {
        content.as_object_mut().map(|map| map.remove(field));
    }
    content
}

/// The JSON merge patch that changes one value to another; `None` if the values are equal. Lists are
/// replaced.
fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let removed = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter_map(|(key, value)| {
        let patch = match before.get(key) {
            Some(before) => merge_patch(before, value)?,
            None => value.clone(),
        };
        Some((key.clone(), patch))
    });
    let patch: Map<String, Value> = removed.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::merge_patch;

    #[track_caller]
    fn check(before: &Value, after: &Value, expect: Option<&Value>) {
        assert_eq!(merge_patch(before, after).as_ref(), expect);
    }

    #[test]
    fn a_merge_patch_has_the_fields_that_differ() {
        let before = json!({"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": 3});
        check(&before, &before, None);
        check(&before, &json!({"a": {"b": 1}, "e": [1], "f": 3}), Some(&json!({"a": {"c": null}, "e": [1]})));
        check(&before, &json!({"a": 4, "e": [1, 2], "f": {"g": 5}}), Some(&json!({"a": 4, "f": {"g": 5}})));
        check(&json!({"a": 1}), &json!({"a": {"b": 2}, "c": {}}), Some(&json!({"a": {"b": 2}, "c": {}})));
        check(&json!({"a": {}}), &json!({}), Some(&json!({"a": null})));
    }
}
