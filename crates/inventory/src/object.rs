//! Desired objects, validated once, and live objects.

use std::fmt;

use qontract_kinds::group_of;
use serde_json::Value;

use crate::canonical::{CanonicalForm, canonical};
use crate::mark::OwnerMark;

/// Kinds whose names are not restricted to DNS characters.
const UNRESTRICTED_NAME_KINDS: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// The reason why a value is not a valid object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidObject {
    /// A required field is missing or of the wrong type.
    #[error("`{0}` is missing or of the wrong type")]
    Field(&'static str),
    /// The object name is not a DNS-1123 subdomain.
    #[error(
        "the name `{name}` of a {kind} must have at most 253 characters, all of them lower-case letters, digits, `-` or `.`"
    )]
    Name {
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
    },
    /// The containers are not a list, or one of them is not a map or has no name.
    #[error("{kind} `{name}`: every item of `{list}` needs a `name`")]
    Containers {
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The path of the containers.
        list: String,
    },
    /// The name of a container is not a DNS-1123 label.
    #[error(
        "{kind} `{name}`: the name `{container}` of a container must have at most 63 characters, all of them lower-case letters, digits or `-`"
    )]
    Container {
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The container's name.
        container: String,
    },
}

/// A desired object.
///
/// **Invariant:** it has a kind, an `apiVersion`, a name and `metadata` that can be annotated.
#[derive(Clone, PartialEq)]
pub struct DesiredBody {
    body: Value,
    kind: String,
    name: String,
    api_version: String,
}

impl DesiredBody {
    /// Validates a body.
    pub fn new(body: Value) -> Result<Self, InvalidObject> {
        let text = |value: Option<&Value>, field| {
            value
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .ok_or(InvalidObject::Field(field))
        };
        let kind = text(body.get("kind"), "kind")?;
        let api_version = text(body.get("apiVersion"), "apiVersion")?;
        let metadata =
            body.get("metadata").filter(|it| it.is_object()).ok_or(InvalidObject::Field("metadata"))?;
        for (field, path) in [("annotations", "metadata.annotations"), ("labels", "metadata.labels")] {
            if metadata.get(field).is_some_and(|it| !it.is_object() && !it.is_null()) {
                return Err(InvalidObject::Field(path));
            }
        }
        let name = match metadata.get("generateName").and_then(Value::as_str) {
            Some(prefix) if kind == "PipelineRun" && metadata.get("name").is_none() => {
                let mut letters = prefix.chars();
                letters.next_back();
                letters.as_str().to_owned()
            }
            _ => text(metadata.get("name"), "metadata.name")?,
        };
        if !UNRESTRICTED_NAME_KINDS.contains(&kind.as_str()) && !is_subdomain(&name) {
            return Err(InvalidObject::Name { kind, name });
        }
        check_containers(&body, &kind, &name)?;
        Ok(Self { body, kind, name, api_version })
    }

    /// The whole object.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The name; for a `PipelineRun` without one, the prefix of its generated name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API group and version.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// The canonical form and hash.
    pub fn canonical(&self) -> CanonicalForm {
        canonical(&self.body).expect("the body was validated by `new`")
    }
}

/// The controller of an object, from its owner references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller<'a> {
    /// The kind.
    pub kind: &'a str,
    /// The name.
    pub name: &'a str,
}

/// A live object, with its mark.
#[derive(Clone, PartialEq)]
pub struct LiveBody {
    body: Value,
    mark: Option<OwnerMark>,
}

/// Prints the kind and the name, never the content, which may be secret.
impl fmt::Debug for DesiredBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desired({} `{}`)", self.kind, self.name)
    }
}

/// Prints the kind and the name, never the content, which may be secret.
impl fmt::Debug for LiveBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (&self.body["kind"], &self.body["metadata"]["name"]);
        write!(f, "Live({} `{}`)", kind.as_str().unwrap_or("?"), name.as_str().unwrap_or("?"))
    }
}

impl LiveBody {
    /// A live body, as read from the cluster.
    pub fn new(body: Value) -> Self {
        let mark = OwnerMark::of(&body);
        Self { body, mark }
    }

    /// The whole object.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The mark of the integration that wrote the object, if any.
    pub fn mark(&self) -> Option<&OwnerMark> {
        self.mark.as_ref()
    }

    /// Whether the object is being removed.
    pub fn is_terminating(&self) -> bool {
        !self.body["metadata"]["deletionTimestamp"].is_null()
    }

    /// The controller, if any.
    pub fn controller(&self) -> Option<Controller<'_>> {
        let owners = self.body["metadata"]["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        let kind = owner["kind"].as_str().unwrap_or("object");
        Some(Controller { kind, name: owner["name"].as_str().unwrap_or_default() })
    }

    /// Kind and name of the object, for messages.
    pub fn title(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        format!("{} `{}`", text(&self.body["kind"]), text(&self.body["metadata"]["name"]))
    }
}

/// Checks that every container in the pod template has a valid name.
fn check_containers(body: &Value, kind: &str, name: &str) -> Result<(), InvalidObject> {
    for field in ["initContainers", "containers"] {
        let Some(list) = body.pointer(&format!("/spec/template/spec/{field}")).filter(|it| !it.is_null())
        else {
            continue;
        };
        let unnamed = || InvalidObject::Containers {
            kind: kind.to_owned(),
            name: name.to_owned(),
            list: format!("spec.template.spec.{field}"),
        };
        for one in list.as_array().ok_or_else(unnamed)? {
            let container = one.get("name").and_then(Value::as_str).ok_or_else(unnamed)?;
            if !is_label(container) {
                let (kind, name) = (kind.to_owned(), name.to_owned());
                return Err(InvalidObject::Container { kind, name, container: container.to_owned() });
            }
        }
    }
    Ok(())
}

/// Whether the name is a DNS-1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_word)
}

/// Whether the name is a DNS-1123 label.
fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_word(name)
}

fn is_word(word: &str) -> bool {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    !word.is_empty() && word.bytes().all(letters) && !word.starts_with('-') && !word.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::{DesiredBody, LiveBody};
    use serde_json::{Value, json};

    /// Checks the result of validating the name of an object.
    fn check(body: Value, expect: &str) {
        let text = match DesiredBody::new(body) {
            Ok(desired) => desired.name().to_owned(),
            Err(why) => why.to_string(),
        };
        assert!(text.contains(expect), "`{text}` does not contain `{expect}`");
    }

    fn named(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn kind_version_and_name_are_needed() {
        check(named("ConfigMap", "a.b-c.9"), "a.b-c.9");
        check(json!({"apiVersion": "v1", "metadata": {"name": "a"}}), "`kind` is missing");
        check(json!({"kind": "A", "metadata": {"name": "a"}}), "`apiVersion` is missing");
        check(json!({"apiVersion": "v1", "kind": "A"}), "`metadata` is missing");
        check(json!({"apiVersion": "v1", "kind": "A", "metadata": {}}), "`metadata.name` is missing");
        check(
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": 1}}),
            "`metadata.name` is missing",
        );
        check(json!("text"), "`kind` is missing");
        check(
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": []}}),
            "`metadata.annotations`",
        );
        check(json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": null}}), "a");
    }

    #[test]
    fn a_name_is_a_dns_subdomain() {
        for name in ["A", "a_b", "-a", "a-", "a..b", ".a", "a.", "ä", "a\n", &"a".repeat(254)] {
            check(named("ConfigMap", name), "of a ConfigMap must have at most 253");
        }
        check(named("ConfigMap", &"a".repeat(253)), "aaa");
        check(named("ClusterRole", "system:a/B"), "system:a/B");
    }

    #[test]
    fn only_a_pipeline_run_may_have_a_generated_name() {
        let made = |kind: &str| json!({"apiVersion": "tekton.dev/v1", "kind": kind, "metadata": {"generateName": "run-"}});
        check(made("PipelineRun"), "run");
        check(made("TaskRun"), "`metadata.name` is missing");
        check(
            json!({"apiVersion": "v1", "kind": "PipelineRun", "metadata": {"generateName": ""}}),
            "must have at most",
        );
    }

    #[test]
    fn every_container_has_a_name() {
        let with = |list: &str, containers: Value| {
            let mut body = named("Deployment", "web");
            body["spec"] = json!({"template": {"spec": {list: containers}}});
            body
        };
        check(with("containers", json!([{"name": "a"}, {"name": "b"}])), "web");
        check(with("containers", json!(null)), "web");
        check(with("containers", json!({"name": "a"})), "every item of `spec.template.spec.containers`");
        check(with("containers", json!([{"image": "a"}])), "every item of `spec.template.spec.containers`");
        check(with("containers", json!(["a"])), "every item of `spec.template.spec.containers`");
        check(with("containers", json!([{"name": "a.b"}])), "the name `a.b` of a container");
        check(
            with("initContainers", json!([{"name": "a".repeat(64)}])),
            "of a container must have at most 63",
        );
    }

    #[test]
    fn a_live_object_has_the_controller_of_its_owner_references() {
        let live = |owners: Value| {
            LiveBody::new(json!({"kind": "Pod", "metadata": {"name": "a", "ownerReferences": owners}}))
        };
        let owners =
            json!([{"kind": "A", "name": "a"}, {"kind": "ReplicaSet", "name": "b", "controller": true}]);
        assert_eq!(live(owners).controller(), Some(super::Controller { kind: "ReplicaSet", name: "b" }));
        assert_eq!(live(json!([{"kind": "A", "name": "a", "controller": false}])).controller(), None);
        assert_eq!(live(Value::Null).controller(), None);
    }
}
