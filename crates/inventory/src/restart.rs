//! Preserves restarts that were requested on the cluster, because without them a write would undo or repeat
//! the restart.

use std::borrow::Cow;

use qontract_bundle::Sha256;
use serde_json::Value;

use crate::canonical::canonical;
use crate::mark::{Owner, add_marks, set_update_time};
use crate::object::{DesiredBody, LiveBody};

/// Kinds whose pods are restarted by an annotation in the pod template.
pub(crate) const RESTARTABLE_KINDS: [&str; 4] =
    ["DaemonSet", "Deployment", "DeploymentConfig", "StatefulSet"];

/// The annotations that request a restart.
const RESTART_ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/restartedAt", "openshift.openshift.io/restartedAt"];

/// The desired body with the restart annotations of the live object, unless the desired body has its own.
pub fn preserve_restarts<'a>(desired: &'a DesiredBody, live: &LiveBody) -> Cow<'a, Value> {
    let mut body = Cow::Borrowed(desired.body());
    let template = &live.body()["spec"]["template"]["metadata"]["annotations"];
    let has_template = desired.body()["spec"]["template"].is_object();
    if !RESTARTABLE_KINDS.contains(&desired.kind()) || !has_template {
        return body;
    }
    for note in RESTART_ANNOTATIONS {
        let ours = &desired.body()["spec"]["template"]["metadata"]["annotations"];
        let fits = |value: &Value| value.is_null() || value.is_object();
        let is_writable = fits(&desired.body()["spec"]["template"]["metadata"]) && fits(ours);
        if let (Some(text), true, None) = (template[note].as_str(), is_writable, ours.get(note)) {
            body.to_mut()["spec"]["template"]["metadata"]["annotations"][note] = text.into();
        }
    }
    body
}

/// The hash of a declared body to which the restarts of the live object were added.
pub(crate) fn hash(body: &Value) -> Sha256 {
    canonical(body).expect("a desired body is validated when it is created").sha256
}

/// The body to write over `live`, or to create if there is no live object: with preserved restarts, hash and
/// marks.
///
/// `now` is UTC in seconds, as in `2024-05-01T12:00:00`.
pub fn to_write(desired: &DesiredBody, live: Option<&LiveBody>, owner: &Owner, now: &str) -> Value {
    let mut body = marked_body(desired, live, owner);
    set_update_time(&mut body, now);
    body
}

/// The body of [`to_write`], without the time of writing.
pub fn marked_body(desired: &DesiredBody, live: Option<&LiveBody>, owner: &Owner) -> Value {
    let body = live.map_or(Cow::Borrowed(desired.body()), |live| preserve_restarts(desired, live));
    add_marks(&body, owner, &hash(&body))
}

#[cfg(test)]
mod tests {
    use super::{preserve_restarts, to_write};
    use crate::mark::{Owner, OwnerMark};
    use crate::object::{DesiredBody, LiveBody};
    use serde_json::{Value, json};

    fn object(kind: &str, template: Value) -> Value {
        let mut object =
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {}});
        object["spec"]["template"] = template;
        object
    }

    /// Checks the annotations of the pod template, if `live` has a restart annotation.
    fn check(kind: &str, template: Value, expect: &Value) {
        let live =
            json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "noon", "x": "y"}}});
        let live = LiveBody::new(object(kind, live));
        let desired = DesiredBody::new(object(kind, template)).unwrap();
        assert_eq!(
            preserve_restarts(&desired, &live)["spec"]["template"]["metadata"]["annotations"],
            *expect
        );
    }

    #[test]
    fn a_restart_is_preserved() {
        let note = json!({"kubectl.kubernetes.io/restartedAt": "noon"});
        for kind in ["DaemonSet", "Deployment", "DeploymentConfig", "StatefulSet"] {
            check(kind, json!({}), &note);
            check(kind, json!({"metadata": null}), &note);
            check(kind, json!({"metadata": {"annotations": null}}), &note);
        }
    }

    #[test]
    fn a_declared_restart_wins() {
        let note = json!({"kubectl.kubernetes.io/restartedAt": "one"});
        check("Deployment", json!({"metadata": {"annotations": note}}), &note);
    }

    #[test]
    fn other_kinds_and_odd_bodies_are_left_alone() {
        check("Job", json!({}), &Value::Null);
        check("Deployment", Value::Null, &Value::Null);
        check("Deployment", json!({"metadata": 1}), &Value::Null);
        check("Deployment", json!({"metadata": {"annotations": []}}), &json!([]));
    }

    #[test]
    fn the_hash_includes_restarts() {
        let owner = Owner::of("openshift-resources", None).unwrap();
        let desired = DesiredBody::new(object("Deployment", json!({}))).unwrap();
        let note = json!({"metadata": {"annotations": {"openshift.openshift.io/restartedAt": "noon"}}});
        let live = LiveBody::new(object("Deployment", note.clone()));
        let written = to_write(&desired, Some(&live), &owner, "2024-05-01T12:00:00");
        assert_eq!(written["spec"]["template"], note);
        let hash = OwnerMark::of(&written).unwrap().sha256sum;
        assert_ne!(hash, Some(desired.canonical().sha256.to_string()));
        assert_eq!(hash, Some(DesiredBody::new(written).unwrap().canonical().sha256.to_string()));
    }
}
