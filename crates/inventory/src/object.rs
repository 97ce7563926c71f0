//! Objects as they are wanted, checked once, and objects as they are found.

use std::fmt;

use serde_json::Value;

use crate::canonical::{Canonical, canonical};
use crate::mark::Mark;

/// Kinds whose names may hold more than letters of host names.
const FREE_NAMES: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// Why something cannot be wanted as an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidObject {
    /// A field that every object has is missing, or holds something else.
    #[error("`{0}` is missing or of the wrong type")]
    Field(&'static str),
    /// Its name could not be part of a host name.
    #[error(
        "the name `{name}` of a {kind} must consist of lower-case letters, digits, `-` and `.`, and of at most 253 of them"
    )]
    Name {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A list of containers is something else, or one of them is no map or has no name.
    #[error("{kind} `{name}`: every item of `{list}` needs a `name`")]
    Containers {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Where the containers are.
        list: String,
    },
    /// The name of a container could not be a part of a host name.
    #[error(
        "{kind} `{name}`: the name `{container}` of a container must consist of lower-case letters, digits and `-`, and of at most 63 of them"
    )]
    Container {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The container's name.
        container: String,
    },
}

/// An object that is wanted.
///
/// **Invariant:** it has a kind, an `apiVersion`, a name and `metadata` that can be marked.
#[derive(Clone, PartialEq)]
pub struct Desired {
    body: Value,
    kind: String,
    name: String,
    api_version: String,
}

impl Desired {
    /// A body, if it can be an object.
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
        if !FREE_NAMES.contains(&kind.as_str()) && !is_subdomain(&name) {
            return Err(InvalidObject::Name { kind, name });
        }
        check_containers(&body, &kind, &name)?;
        Ok(Self { body, kind, name, api_version })
    }

    /// The whole object.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name; for a `PipelineRun` that has none, what its name will begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its group and version.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Its group; that of the core is empty.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Its canonical form and hash.
    pub fn canonical(&self) -> Canonical {
        canonical(&self.body).expect("it was checked when it was made")
    }
}

/// An object that was found, with its mark.
#[derive(Clone, PartialEq)]
pub struct Live {
    body: Value,
    mark: Option<Mark>,
}

/// Tells what it is, never what it holds: it may be a secret.
impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desired({} `{}`)", self.kind, self.name)
    }
}

/// Tells what it is, never what it holds: it may be a secret.
impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (&self.body["kind"], &self.body["metadata"]["name"]);
        write!(f, "Live({} `{}`)", kind.as_str().unwrap_or("?"), name.as_str().unwrap_or("?"))
    }
}

impl Live {
    /// A body as the cluster has it.
    pub fn new(body: Value) -> Self {
        let mark = Mark::of(&body);
        Self { body, mark }
    }

    /// The whole object.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The mark of the integration that wrote it, if it has one.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// Whether it is being removed.
    pub fn is_going(&self) -> bool {
        !self.body["metadata"]["deletionTimestamp"].is_null()
    }

    /// The object that made it and keeps it, as kind and name.
    pub fn controller(&self) -> Option<(&str, &str)> {
        let owners = self.body["metadata"]["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        Some((owner["kind"].as_str().unwrap_or("object"), owner["name"].as_str().unwrap_or_default()))
    }

    /// Kind and name, for texts.
    pub fn title(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        format!("{} `{}`", text(&self.body["kind"]), text(&self.body["metadata"]["name"]))
    }
}

/// Every container that runs in pods of this object has a name of its own.
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

/// A DNS-1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_word)
}

/// A DNS-1123 label.
fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_word(name)
}

fn is_word(word: &str) -> bool {
    let letters = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    !word.is_empty() && word.bytes().all(letters) && !word.starts_with('-') && !word.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::{Desired, Live};
    use serde_json::{Value, json};

    /// The name of an object, or why it is none.
    fn check(body: Value, expect: &str) {
        let text = match Desired::new(body) {
            Ok(desired) => desired.name().to_owned(),
            Err(why) => why.to_string(),
        };
        assert!(text.contains(expect), "`{text}` does not say `{expect}`");
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
    fn a_name_could_be_a_host_name() {
        for name in ["A", "a_b", "-a", "a-", "a..b", ".a", "a.", "ä", "a\n", &"a".repeat(254)] {
            check(named("ConfigMap", name), "of a ConfigMap must consist");
        }
        check(named("ConfigMap", &"a".repeat(253)), "aaa");
        check(named("ClusterRole", "system:a/B"), "system:a/B");
    }

    #[test]
    fn only_a_pipeline_run_may_have_a_name_made_for_it() {
        let made = |kind: &str| json!({"apiVersion": "tekton.dev/v1", "kind": kind, "metadata": {"generateName": "run-"}});
        check(made("PipelineRun"), "run");
        check(made("TaskRun"), "`metadata.name` is missing");
        check(
            json!({"apiVersion": "v1", "kind": "PipelineRun", "metadata": {"generateName": ""}}),
            "must consist",
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
        check(with("initContainers", json!([{"name": "a".repeat(64)}])), "of a container must consist");
    }

    #[test]
    fn a_live_object_tells_its_controller() {
        let live = |owners: Value| {
            Live::new(json!({"kind": "Pod", "metadata": {"name": "a", "ownerReferences": owners}}))
        };
        let owners =
            json!([{"kind": "A", "name": "a"}, {"kind": "ReplicaSet", "name": "b", "controller": true}]);
        assert_eq!(live(owners).controller(), Some(("ReplicaSet", "b")));
        assert_eq!(live(json!([{"kind": "A", "name": "a", "controller": false}])).controller(), None);
        assert_eq!(live(Value::Null).controller(), None);
    }
}
