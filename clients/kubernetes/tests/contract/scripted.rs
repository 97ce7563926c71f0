//! Tests with a scripted API server, which always does what a real one does sometimes: expired lists, partial
//! outages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, Uri};
use qontract_access::Mode;
use qontract_client_http::{Secret, Settings};
use qontract_client_kubernetes::{
    Cluster, ClusterToken, Clusters, Kind, KubernetesError, MANAGER, ObjectAddress, ObjectDraft,
    ObjectReader as _, ObjectWriter as _, WritePrecondition,
};
use qontract_testkit::permits;
use serde_json::{Value, json};

use crate::fixture::{FixedToken, http};

/// A server that records its requests.
struct ScriptedServer {
    cluster: Cluster,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    /// Responds as `script` returns for the path with its query and the number of earlier requests for it;
    /// besides, it serves two kinds of the core group, and two groups with one kind each.
    async fn start(script: impl Fn(&str, usize) -> Option<(u16, Value)> + Send + Sync + 'static) -> Self {
        let (seen, script) = (Arc::new(Mutex::new(Vec::<String>::new())), Arc::new(script));
        let remembered = Arc::clone(&seen);
        let answer = move |uri: Uri| {
            let path = uri.to_string();
            let mut seen = remembered.lock().unwrap();
            let before = seen.iter().filter(|one| **one == path).count();
            seen.push(path.clone());
            let (status, body) =
                script(&path, before).or_else(|| discovery(&path)).unwrap_or((404, json!({})));
            std::future::ready((StatusCode::from_u16(status).unwrap(), body.to_string()))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { cluster: Cluster { name: "scripted".to_owned(), server, token: None }, requests: seen }
    }

    fn count(&self, path: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|one| one.starts_with(path)).count()
    }

    async fn names(&self, clusters: &Clusters, kind: &str) -> Result<Vec<String>, KubernetesError> {
        let read = permits(Mode::DryRun).read;
        let listed = clusters.list(&read, &self.cluster, &kind.parse().unwrap(), Some("ns")).await?;
        Ok(listed.into_iter().map(|object| object.address.name).collect())
    }
}

fn discovery(path: &str) -> Option<(u16, Value)> {
    let resource =
        |kind: &str, name: &str| json!({"kind": kind, "name": name, "namespaced": true, "verbs": ["get"]});
    let group = |name: &str| json!({"name": name, "versions": [{"groupVersion": format!("{name}/v1")}]});
    let body = match path {
        "/apis" => json!({"groups": [group("a.example.com"), group("b.example.com")]}),
        "/apis/a.example.com" => group("a.example.com"),
        "/apis/b.example.com" => group("b.example.com"),
        "/api/v1" => {
            json!({"resources": [resource("ConfigMap", "configmaps"), resource("Secret", "secrets")]})
        }
        "/apis/a.example.com/v1" => json!({"resources": [resource("Widget", "widgets")]}),
        "/apis/b.example.com/v1" => json!({"resources": [resource("Gadget", "gadgets")]}),
        _ => return None,
    };
    Some((200, body))
}

fn clusters(settings: Settings) -> Clusters {
    let token = ClusterToken { secret: Secret::new("t0ken"), server: None };
    Clusters::new(&permits(Mode::Real).read, settings, Arc::new(FixedToken(token)), BTreeMap::new())
}

fn page(names: &[&str], next: &str) -> (u16, Value) {
    let item = |name: &&str| json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1", "namespace": "ns"}});
    (200, json!({"metadata": {"continue": next}, "items": names.iter().map(item).collect::<Vec<_>>()}))
}

const LIST: &str = "/api/v1/namespaces/ns/configmaps?limit=";

#[tokio::test]
async fn an_expired_list_is_restarted() {
    let server = ScriptedServer::start(|path, before| match (path.contains("continue="), before) {
        _ if !path.starts_with(LIST) => None,
        (false, _) => Some(page(&["b"], "next")),
        (true, 0) => Some((410, json!({"reason": "Expired"}))),
        (true, _) => Some(page(&["a"], "")),
    });
    let server = server.await;
    let kind = Kind { name: "ConfigMap".to_owned(), group: Some(String::new()) };
    let read = permits(Mode::DryRun).read;
    let listed = clusters(http()).list(&read, &server.cluster, &kind, Some("ns")).await.unwrap();
    let names: Vec<_> = listed.iter().map(|object| object.address.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(listed[0].body["kind"], "ConfigMap", "items get their kind");
    assert_eq!(server.count("/apis"), 0, "only the needed group is requested");
}

#[tokio::test]
async fn a_list_that_always_expires_is_an_error() {
    let server = ScriptedServer::start(|path, _| match path.contains("continue=") {
        _ if !path.starts_with(LIST) => None,
        false => Some(page(&["b"], "next")),
        true => Some((410, json!({"reason": "Expired"}))),
    });
    let server = server.await;
    let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
    assert!(matches!(error, KubernetesError::Failed { status: 410, .. }), "{error}");
}

#[tokio::test]
async fn pages_that_are_too_large_become_smaller() {
    let server = ScriptedServer::start(|path, _| {
        let limit: usize = path.strip_prefix(LIST)?.split('&').next()?.parse().ok()?;
        Some(page(&vec!["a"; limit], ""))
    });
    let settings = Settings { max_body_bytes: 8 << 10, ..http() };
    let names = server.await.names(&clusters(settings), "ConfigMap").await.unwrap();
    assert_eq!(names.len(), 50);
}

#[tokio::test]
async fn concurrent_callers_share_one_discovery() {
    let server =
        ScriptedServer::start(|path, _| if path.starts_with(LIST) { Some(page(&[], "")) } else { None })
            .await;
    let clusters = clusters(http());
    let many = (0..20).map(|_| server.names(&clusters, "ConfigMap"));
    assert!(futures_util::future::join_all(many).await.iter().all(Result::is_ok));
    assert_eq!(server.count("/api/v1"), 20 + 1);
    assert_eq!(server.count("/apis/a.example.com/v1"), 1);
}

#[tokio::test]
async fn a_group_that_is_down_makes_only_its_kinds_unknown() {
    let server = ScriptedServer::start(|path, _| match path {
        "/apis/b.example.com/v1" => Some((503, json!({"message": "down"}))),
        _ if path.contains("/namespaces/ns/") => Some(page(&[], "")),
        _ => None,
    });
    let (server, clusters) = (server.await, clusters(http()));
    for kind in ["ConfigMap", "Widget", "Widget.a.example.com"] {
        server.names(&clusters, kind).await.unwrap();
    }
    for kind in ["Gadget", "Gadget.b.example.com", "Nonsense"] {
        let error = server.names(&clusters, kind).await.unwrap_err();
        assert!(matches!(error, KubernetesError::Failed { .. }) && error.is_transient(), "{kind}: {error}");
    }
    let error = server.names(&clusters, "Nonsense.a.example.com").await.unwrap_err();
    assert!(matches!(error, KubernetesError::Unserved { .. }), "{error}");
}

#[tokio::test]
async fn a_transient_write_error_is_retried_and_has_no_secret() {
    let server = ScriptedServer::start(|path, before| {
        match (path.starts_with("/api/v1/namespaces/ns/secrets?"), before) {
            (false, _) => None,
            (true, 1) => Some((409, json!({"reason": "AlreadyExists"}))),
            (true, _) => Some((503, json!({"message": "hunter2"}))),
        }
    });
    let (server, clusters) = (server.await, clusters(http()));
    let address = ObjectAddress::in_namespace(Kind::named("Secret"), "ns", "a");
    let draft = ObjectDraft {
        address,
        body: json!({}),
        precondition: WritePrecondition::Absent,
        is_sensitive: false,
    };
    let write = permits(Mode::Real).write.unwrap();
    let first = clusters.put(&write, &server.cluster, MANAGER, &draft).await.unwrap_err();
    assert!(matches!(first, KubernetesError::Stale { .. }), "{first}");
    let second = clusters.put(&write, &server.cluster, MANAGER, &draft).await.unwrap_err();
    assert!(
        matches!(second, KubernetesError::Failed { status: 503, .. })
            && !second.full_message().contains("hunter2")
    );
}

#[tokio::test]
async fn a_kind_that_is_no_longer_served_is_discovered_again() {
    let server = ScriptedServer::start(|path, before| match path {
        "/apis/a.example.com" => Some((
            200,
            json!({"name": "a.example.com", "versions": [
            {"groupVersion": if before == 0 { "a.example.com/v1" } else { "a.example.com/v2" }}]}),
        )),
        "/apis/a.example.com/v2" => discovery("/apis/a.example.com/v1"),
        _ => path.starts_with("/apis/a.example.com/v2/namespaces/ns/widgets?").then(|| page(&["a"], "")),
    });
    let (server, clusters) = (server.await, clusters(http()));
    let error = server.names(&clusters, "Widget.a.example.com").await.unwrap_err();
    assert!(matches!(error, KubernetesError::Unserved { .. }), "{error}");
    assert_eq!(server.names(&clusters, "Widget.a.example.com").await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_list_whose_next_page_is_the_same_one_is_an_error() {
    let server = ScriptedServer::start(|path, _| path.starts_with(LIST).then(|| page(&["a"], "again"))).await;
    let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
    assert!(error.to_string().contains("the server returned the same continue token twice"), "{error}");
    assert_eq!(server.count(LIST), 2);
}

#[tokio::test]
async fn an_invalid_name_in_a_list_is_an_error() {
    for name in ["a\u{1b}[2J", "a\nb", "../secrets", ""] {
        let server =
            ScriptedServer::start(move |path, _| path.starts_with(LIST).then(|| page(&[name], ""))).await;
        let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
        assert!(matches!(error, KubernetesError::Malformed { .. }), "{name:?}: {error}");
        assert!(!error.to_string().contains(|one: char| one.is_control()), "{error}");
    }
}

#[tokio::test]
async fn too_many_groups_are_an_error_and_not_requested() {
    let group = |number: usize| {
        let name = format!("g{number}.example.com");
        json!({"name": name, "versions": [{"groupVersion": format!("{name}/v1")}]})
    };
    let many: Vec<Value> = (0..1000).map(group).collect();
    let server =
        ScriptedServer::start(move |path, _| (path == "/apis").then(|| (200, json!({"groups": many})))).await;
    let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
    assert!(matches!(error, KubernetesError::Malformed { .. }), "{error}");
    assert_eq!(server.count("/apis/"), 0);
    let versions: Vec<Value> =
        (0..21).map(|number| json!({"groupVersion": format!("g/v{number}")})).collect();
    let group = json!({"name": "g", "versions": versions});
    let server =
        ScriptedServer::start(move |path, _| (path == "/apis").then(|| (200, json!({"groups": [group]}))))
            .await;
    let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
    assert!(matches!(error, KubernetesError::Malformed { .. }), "{error}");
    assert_eq!(server.count("/apis/"), 0);
}

#[tokio::test]
async fn an_object_of_another_namespace_in_a_list_is_an_error() {
    for namespace in [json!("other"), json!(null)] {
        let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "1", "namespace": namespace});
        let body = json!({"items": [{"metadata": metadata}]});
        let server =
            ScriptedServer::start(move |path, _| path.starts_with(LIST).then(|| (200, body.clone()))).await;
        let error = server.names(&clusters(http()), "ConfigMap").await.unwrap_err();
        assert!(error.to_string().contains("an object from another namespace"), "{error}");
    }
}
