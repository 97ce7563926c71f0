//! Prints the desired objects of a shard as a stream of YAML documents, for tools such as `kubectl diff`.

use qontract_diagnostics::sanitize;
use qontract_runtime::{DesiredItem, DesiredState, ObjectKey, ShardKey};

use crate::reconcile::namespaced_body;
use crate::scope::DesiredObject;

/// The objects of a shard as YAML, in the order of the data, below a comment with the key of the shard;
/// `None` if it has no objects.
///
/// An object has the marks that a write would give it, except for the time of the write, so that the same
/// data produces the same text. Objects that contain secrets and objects that are removed are only named in a
/// comment, because applying a text with a placeholder in place of a secret would overwrite the secret.
pub fn print_objects(key: &ShardKey, wanted: &[DesiredItem<DesiredObject>]) -> Option<String> {
    let mut text = String::new();
    for want in wanted {
        match &want.state {
            DesiredState::Present(item) if item.sensitivity.is_sensitive() => {
                text.push_str(&comment(&want.object, "is not printed: it contains secrets"));
            }
            DesiredState::Present(item) => {
                let body = namespaced_body(item, None, item.managed_scope.namespace.as_deref());
                text.push_str(&qontract_yaml::json::print(&body));
            }
            DesiredState::Delete => text.push_str(&comment(&want.object, "is removed")),
            DesiredState::Unresolved(_) => {}
        }
    }
    (!text.is_empty()).then(|| format!("# {}\n{text}", sanitize(&key.to_string())))
}

/// A comment about an object that is not printed.
fn comment(object: &ObjectKey, what: &str) -> String {
    format!("# {} {what}\n", sanitize(&object.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use qontract_client_kubernetes::{Cluster, Kind};
    use qontract_inventory::{Callers, Owner, Replacement};
    use qontract_runtime::{DesiredItem, DesiredState, ShardKey};
    use serde_json::json;

    use super::print_objects;
    use crate::scope::{DesiredObject, ManagedKind, ManagedScope, Sensitivity, WriteVersion};

    fn item(name: &str, sensitivity: Sensitivity) -> DesiredItem<DesiredObject> {
        let scope = Arc::new(ManagedScope {
            cluster: Cluster { name: "c1".to_owned(), server: String::new(), token: None },
            namespace: Some("shop".to_owned()),
            kinds: vec![ManagedKind::from(Kind::named("ConfigMap"))],
            owner: Arc::new(Owner::new("settings", "0.1.0", None).unwrap()),
            callers: Arc::new(Callers::Unknown),
            adopts_unmarked: false,
            is_shared: false,
            replacement: Replacement::default(),
            write_version: WriteVersion::default(),
        });
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "yes"}});
        scope.desired_item(body, sensitivity, None)
    }

    #[test]
    fn objects_are_printed_with_their_marks_and_secrets_are_only_named() {
        let key = ShardKey::new([("cluster", "c1"), ("namespace", "shop")]);
        let mut removed = item("old", Sensitivity::Public);
        removed.state = DesiredState::Delete;
        let wanted = [item("one", Sensitivity::Public), item("two", Sensitivity::Template), removed];
        let text = print_objects(&key, &wanted).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["# cluster=c1, namespace=shop", "---"], "{text}");
        let scope = "(cluster=c1, namespace=shop, kind=ConfigMap)";
        let comments = [
            format!("# ConfigMap `two` {scope} is not printed: it contains secrets"),
            format!("# ConfigMap `old` {scope} is removed"),
        ];
        assert_eq!(lines[lines.len() - 2..], comments, "{text}");
        let body: serde_json::Value = qontract_yaml::json::read(text.as_bytes()).unwrap();
        let metadata = &body["metadata"];
        assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("one"), &json!("shop")), "{text}");
        let annotations = metadata["annotations"].as_object().unwrap();
        let names: Vec<&String> = annotations.keys().collect();
        assert_eq!(names, ["qontract.integration", "qontract.integration_version", "qontract.sha256sum"]);
        assert_eq!(body["data"]["a"], "yes");
        assert_eq!(print_objects(&key, &[]), None);
    }
}
