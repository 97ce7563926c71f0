//! The targets of tests: the sandbox, or a real cluster. Objects are created and read without our own client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit};
use qontract_client_http::{Proxies, Secret, Settings};
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, ClusterToken, Clusters, Kubernetes, Sandbox, TokenError, TokenSource,
};
use qontract_inventory::{Owner, OwnerMark, canonical, stamp};
use qontract_testkit::Scratch;
use qontract_testkit::cluster::{Api, shared, unique_name};
use serde_json::{Value, json};

/// The target of a test.
pub trait TestTarget {
    /// The client for a run of this mode.
    fn kubernetes(&self, mode: Mode) -> Arc<dyn Kubernetes>;
    /// The cluster.
    fn cluster(&self) -> Cluster;
    /// A namespace that no other test uses.
    fn namespace(&self) -> String;
    /// Creates objects in a namespace.
    fn create(&self, namespace: &str, objects: &[Value]);
    /// Changes an object by hand; `null` removes a field.
    fn edit(&self, namespace: &str, kind: &str, name: &str, edit: &Value);
    /// All objects of these kinds in a namespace.
    fn list(&self, namespace: &str, kinds: &[&str]) -> Vec<Value>;
}

/// The fields that a manager owns after applying this object.
fn applied(object: &Value) -> Value {
    let mut fields = json!({});
    for (key, value) in object.as_object().into_iter().flatten() {
        let is_identity = ["apiVersion", "kind", "name", "namespace", "status"].contains(&key.as_str());
        if !is_identity {
            fields[format!("f:{key}")] = if value.is_object() { applied(value) } else { json!({}) };
        }
    }
    fields
}

/// Removes the fields of an edit from their owner.
fn disown(fields: &mut Value, edit: &Value) {
    for (key, value) in edit.as_object().into_iter().flatten() {
        let key = format!("f:{key}");
        match fields.get_mut(&key) {
            Some(below) if value.is_object() => disown(below, value),
            Some(_) => drop(fields.as_object_mut().unwrap().remove(&key)),
            None => {}
        }
    }
}

/// A sandbox.
pub struct SandboxTarget {
    scratch: Scratch,
}

impl SandboxTarget {
    /// An empty sandbox.
    pub fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    fn of(&self, namespace: &str, kind: &str) -> PathBuf {
        let kind = kind.split('.').next().unwrap();
        self.scratch.path().join("clusters/c1").join(namespace).join(kind)
    }
}

impl TestTarget for SandboxTarget {
    fn kubernetes(&self, _: Mode) -> Arc<dyn Kubernetes> {
        Arc::new(Sandbox::new(self.scratch.path()))
    }

    fn cluster(&self) -> Cluster {
        Cluster { name: "c1".to_owned(), server: "https://c1.example.com".to_owned(), token: None }
    }

    fn namespace(&self) -> String {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}});
        self.scratch.write("clusters/c1/_cluster/Namespace/ns.yaml", qontract_yaml::json::print(&object));
        "ns".to_owned()
    }

    fn create(&self, namespace: &str, objects: &[Value]) {
        for object in objects {
            let (kind, name) =
                (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
            let path = format!("clusters/c1/{namespace}/{kind}/{name}.yaml");
            let mut object = object.clone();
            // A marked object is created with our field manager.
            if OwnerMark::of(&object).is_some() {
                let fields = applied(&object);
                object["metadata"]["managedFields"] =
                    json!([{"manager": "qontract", "operation": "Apply", "fieldsV1": fields}]);
            }
            self.scratch.write(&path, qontract_yaml::json::print(&object));
        }
    }

    fn edit(&self, namespace: &str, kind: &str, name: &str, edit: &Value) {
        let path = self.of(namespace, kind).join(format!("{name}.yaml"));
        let mut object = qontract_yaml::json::read(&std::fs::read(&path).unwrap()).unwrap();
        merge(&mut object, edit);
        // An edited field belongs to its editor.
        if object["metadata"]["managedFields"].is_array() {
            let managed = &mut object["metadata"]["managedFields"];
            disown(&mut managed[0]["fieldsV1"], edit);
            let mut editor = managed[0].clone();
            (editor["manager"], editor["operation"]) = (json!("kubectl-patch"), json!("Update"));
            let mut added = json!({});
            merge(&mut added, edit);
            editor["fieldsV1"] = applied(&added);
            managed.as_array_mut().unwrap().push(editor);
        }
        std::fs::write(path, qontract_yaml::json::print(&object)).unwrap();
    }

    fn list(&self, namespace: &str, kinds: &[&str]) -> Vec<Value> {
        let mut all = Vec::new();
        for kind in kinds {
            for entry in std::fs::read_dir(self.of(namespace, kind)).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "yaml") {
                    let mut object = qontract_yaml::json::read(&std::fs::read(path).unwrap()).unwrap();
                    object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
                    all.push(object);
                }
            }
        }
        all
    }
}

/// The API server of this test run.
pub struct RealCluster {
    api: Api,
    server: String,
}

impl RealCluster {
    /// The API server of this test run.
    pub fn new() -> Self {
        Self::of(shared())
    }

    /// A certain API server.
    pub fn of(api: &Api) -> Self {
        Self { api: api.clone(), server: api.url.clone() }
    }

    /// The API server of this test run, reached through a proxy.
    pub fn through(address: std::net::SocketAddr) -> Self {
        Self { api: shared().clone(), server: format!("http://{address}") }
    }

    /// The CA certificate.
    pub fn ca(&self) -> Vec<u8> {
        std::fs::read(&self.api.ca).unwrap()
    }

    /// A client for a run of this mode, with this rate limit.
    pub fn clusters(&self, mode: Mode, per_second: u32) -> Clusters {
        let settings = ClusterSettings {
            ca: Some(self.ca()),
            per_second: per_second.try_into().unwrap(),
            rehearses: true,
            ..ClusterSettings::default()
        };
        let settings = BTreeMap::from([("c1".to_owned(), settings)]);
        let http = Settings {
            proxies: Proxies::Never,
            initial_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_millis(200),
            ..Settings::default()
        };
        Clusters::new(
            &ReadPermit::for_targets(mode),
            http,
            Arc::new(AdminToken(self.api.token.clone())),
            settings,
        )
    }
}

/// The administrator token, for every cluster.
struct AdminToken(String);

impl TokenSource for AdminToken {
    fn token<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>> {
        let secret = Secret::new(self.0.clone());
        std::future::ready(Ok(ClusterToken { secret, server: None })).boxed()
    }
}

impl TestTarget for RealCluster {
    fn kubernetes(&self, mode: Mode) -> Arc<dyn Kubernetes> {
        Arc::new(self.clusters(mode, 1000))
    }

    fn cluster(&self) -> Cluster {
        Cluster { name: "c1".to_owned(), server: self.server.clone(), token: None }
    }

    fn namespace(&self) -> String {
        let name = unique_name("objects");
        self.api.kubectl(&["create", "namespace", &name], "").text();
        name
    }

    fn create(&self, namespace: &str, objects: &[Value]) {
        let (marked, others): (Vec<_>, Vec<_>) =
            objects.iter().partition(|object| OwnerMark::of(object).is_some());
        let put = |how: &[&str], objects: Vec<&Value>| {
            if !objects.is_empty() {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
                let words = [how, &["--namespace", namespace, "--filename", "-"]].concat();
                self.api.kubectl(&words, &list.to_string()).text();
            }
        };
        // Marked objects are created with our field manager; others by hand.
        put(&["apply", "--server-side", "--field-manager", "qontract"], marked);
        put(&["create"], others);
    }

    fn edit(&self, namespace: &str, kind: &str, name: &str, edit: &Value) {
        let edit = edit.to_string();
        self.api
            .kubectl(
                &["patch", kind, name, "--namespace", namespace, "--type", "merge", "--patch", &edit],
                "",
            )
            .text();
    }

    fn list(&self, namespace: &str, kinds: &[&str]) -> Vec<Value> {
        let words = ["get", "--namespace", namespace, "--output", "json", &kinds.join(",")];
        let list: Value = serde_json::from_str(&self.api.kubectl(&words, "").text()).unwrap();
        list["items"].as_array().unwrap().clone()
    }
}

fn merge(object: &mut Value, edit: &Value) {
    let Value::Object(edit) = edit else {
        *object = edit.clone();
        return;
    };
    for (field, value) in edit {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut object[field], value);
        }
    }
}

/// Converts an object of a case: `owner: INTEGRATION VERSION [by CALLER]` becomes marks.
pub fn with_marks(mut object: Value) -> Value {
    let owner = object.as_object_mut().unwrap().remove("owner");
    let Some(owner) = owner else { return object };
    let words: Vec<&str> = owner.as_str().unwrap().split(' ').collect();
    let owner = Owner::new(words[0], words[1], words.get(3).map(|caller| (*caller).to_owned())).unwrap();
    stamp(&object, &owner, &canonical(&object).unwrap().sha256, "2026-01-01T00:00:00")
}

/// Converts a live object to the format of cases; `None` for objects that clusters create automatically.
pub fn case_object(mut object: Value) -> Option<Value> {
    let name = object["metadata"]["name"].as_str()?.to_owned();
    if name == "kube-root-ca.crt" || object["type"] == "kubernetes.io/service-account-token" {
        return None;
    }
    let mark = OwnerMark::of(&object);
    let form = canonical(&object).ok()?;
    object = form.object;
    if let Some(mark) = mark {
        let caller = mark.caller.map(|caller| format!(" by {caller}")).unwrap_or_default();
        object["owner"] = format!("{} {}{caller}", mark.integration, mark.version.unwrap_or_default()).into();
    }
    let metadata = object["metadata"].as_object_mut()?;
    metadata.remove("finalizers");
    if metadata["annotations"].as_object().is_some_and(serde_json::Map::is_empty) {
        metadata.remove("annotations");
    }
    Some(object)
}
