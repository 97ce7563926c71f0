//! Loading, rolling back, dropping, leasing and fetching several bundles.

use std::sync::atomic::Ordering;
use std::time::Duration;

use qontract_bundle::Sha256;
use qontract_server::{BundleEvent, BundleStore, Settings, Token};
use qontract_testkit::Scratch;
use serde_json::{Value, json};

use crate::support::running::{HttpAnswer, RunningServer, Setup, request};

/// A bundle with this commit, and one app for each name.
fn bundle(commit: &str, names: &[&str]) -> Vec<u8> {
    let data: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (format!("/{name}.yml"), json!({ "$schema": "/app.yml", "name": name })))
        .collect();
    json!({
        "git_commit": commit, "git_commit_timestamp": "1", "schemas": {}, "resources": {}, "data": data,
        "graphql": [
            { "name": "Query", "fields": [{ "name": "apps", "type": "App", "isList": true, "datafileSchema": "/app.yml" }] },
            { "name": "App", "fields": [{ "name": "name", "type": "string" }] },
        ],
    })
    .to_string()
    .into_bytes()
}

fn sha(bytes: &[u8]) -> String {
    Sha256::of(bytes).to_string()
}

fn commit(server: &RunningServer) -> String {
    server.get("/git-commit").text()
}

const NAMES: &str = "{ apps { name } }";

fn names(answer: &HttpAnswer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let apps = body["data"]["apps"].as_array().unwrap_or_else(|| panic!("{body}"));
    apps.iter().map(|app| app["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_bundle_answers_under_its_sha() {
    let [old, new] = [bundle("old", &["a"]), bundle("new", &["a", "b"])];
    let server = RunningServer::start(Setup::default(), &[&old, &new]);
    assert_eq!(names(&server.query("/graphql", NAMES)), "a b");
    assert_eq!(names(&server.query(&format!("/graphqlsha/{}", sha(&old)), NAMES)), "a");
    assert_eq!(names(&server.query(&format!("/graphqlsha/{}", sha(&new)), NAMES)), "a b");
    assert_eq!(server.get("/sha256").text(), sha(&new));
    let upper = sha(&old).to_ascii_uppercase();
    assert_eq!(server.query(&format!("/graphqlsha/{upper}"), NAMES).status, 404);
}

#[test]
fn a_failed_reload_changes_nothing_and_reports_the_reason() {
    let good = bundle("good", &["a"]);
    let server = RunningServer::start(Setup::default(), &[&good]);
    let wrong_types = String::from_utf8(bundle("bad", &["a"])).unwrap().replace("\"string\"", "\"Nowhere\"");
    for (bad, why) in [("{", "not a valid bundle"), ("", "not a valid bundle"), (&wrong_types, "types")] {
        server.source.set(bad.as_bytes());
        // Twice: the failure is not cached.
        for _ in 0..2 {
            let answer = server.post("/reload", "");
            assert_eq!(answer.status, 503, "{bad}");
            let text = answer.text();
            assert!(
                text.starts_with("error parsing bundle, not replacing: ") && text.contains(why),
                "{text}"
            );
        }
        assert_eq!(commit(&server), "good");
        assert_eq!(server.get(&format!("/git-commit/{}", sha(bad.as_bytes()))).status, 404);
    }
    assert!(matches!(server.events.lock().unwrap().last(), Some(BundleEvent::Failed(_))));
    let better = bundle("better", &["b"]);
    server.source.set(&better);
    assert_eq!(server.post("/reload", "").status, 200);
    assert_eq!((commit(&server).as_str(), names(&server.query("/graphql", NAMES)).as_str()), ("better", "b"));
}

#[test]
fn a_roll_back_is_followed() {
    let [old, new] = [bundle("old", &["a"]), bundle("new", &["b"])];
    let server = RunningServer::start(Setup::default(), &[&old, &new]);
    server.source.set(&old);
    assert_eq!(server.post("/reload", "").status, 200);
    assert_eq!((commit(&server).as_str(), server.get("/sha256").text()), ("old", sha(&old)));
    assert_eq!(names(&server.query("/graphql", NAMES)), "a");
    let events = server.events.lock().unwrap().clone();
    assert_eq!(events.last(), Some(&BundleEvent::RolledBack(Sha256::of(&old))));
    assert_eq!(server.post("/reload", "").status, 200);
    assert_eq!(server.events.lock().unwrap().last(), Some(&BundleEvent::Same(Sha256::of(&old))));
}

#[test]
fn expired_bundles_are_dropped_with_the_next_one_and_get_restarts_the_ttl() {
    // Always expired, and never expired.
    for (ttl, stays) in [(0, false), (3_600_000, true)] {
        let [one, two, three] = ["one", "two", "three"].map(|commit| bundle(commit, &["a"]));
        let server = RunningServer::start(Setup { ttl, ..Setup::default() }, &[&one, &two]);
        let target = format!("/graphqlsha/{}?query=%7Bapps%7Bname%7D%7D", sha(&one));
        assert_eq!(server.get(&target).status, 200);
        server.source.set(&three);
        server.post("/reload", "");
        assert_eq!(server.get(&target).status == 200, stays);
        // The previous latest bundle is always held.
        assert_eq!(server.query(&format!("/graphqlsha/{}", sha(&two)), NAMES).status, 200);
        let held: Value = serde_json::from_str(&server.get("/cache").text()).unwrap();
        assert_eq!(held["bundles"].as_array().unwrap().len(), if stays { 3 } else { 2 });
    }
}

#[test]
fn a_query_by_get_restarts_the_ttl_of_a_bundle() {
    let one = bundle("one", &["a"]);
    let server = RunningServer::start(Setup::default(), &[&one]);
    let expires = || -> u64 {
        let held: Value = serde_json::from_str(&server.get("/cache").text()).unwrap();
        held["bundleCache"][0]["expiration"].as_u64().unwrap()
    };
    let before = expires();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(expires(), before, "listing the cache does not restart the TTL");
    server.get(&format!("/graphqlsha/{}/?query=%7Bapps%7Bname%7D%7D", sha(&one)));
    assert!(expires() > before);
}

fn store(folder: &Scratch) -> BundleStore {
    BundleStore::Folder(folder.path().to_owned())
}

#[test]
fn a_bundle_that_is_not_held_is_read_from_the_store() {
    let (folder, [held, stored]) = (Scratch::new(), [bundle("held", &["a"]), bundle("stored", &["b", "c"])]);
    folder.write(&format!("{}.json", sha(&stored)), &stored);
    let setup = Setup { store: Some(store(&folder)), ..Setup::default() };
    let server = RunningServer::start(setup, &[&held]);
    let target = format!("/graphqlsha/{}", sha(&stored));
    // Concurrent requests share one read.
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..16).map(|_| scope.spawn(|| names(&server.query(&target, NAMES)))).collect();
        assert!(asking.into_iter().all(|one| one.join().unwrap() == "b c"));
    });
    let events = server.events.lock().unwrap().clone();
    assert_eq!(events.iter().filter(|event| matches!(event, BundleEvent::Fetched(_))).count(), 1);
    assert_eq!(commit(&server), "held", "it is not the latest");
    let diff = server.get(&format!("/diff/{}/{}", sha(&held), sha(&stored)));
    assert_eq!(diff.status, 200);
    assert_eq!(server.query(&format!("/graphqlsha/{}", sha(b"nowhere")), NAMES).status, 404);
}

#[test]
fn a_bundle_under_a_wrong_name_in_the_store_is_not_served() {
    let (folder, [held, other]) = (Scratch::new(), [bundle("held", &["a"]), bundle("other", &["b"])]);
    let name = sha(b"something else");
    folder.write(&format!("{name}.json"), &other);
    let server = RunningServer::start(Setup { store: Some(store(&folder)), ..Setup::default() }, &[&held]);
    let answer = server.query(&format!("/graphqlsha/{name}"), NAMES);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(server.query(&format!("/graphqlsha/{}", sha(&other)), NAMES).status, 404);
}

#[test]
fn bundles_from_the_store_are_bounded() {
    let (folder, held) = (Scratch::new(), bundle("held", &["a"]));
    let stored = ["one", "two"].map(|commit| bundle(commit, &["b"]));
    for bytes in &stored {
        folder.write(&format!("{}.json", sha(bytes)), bytes);
    }
    let server = RunningServer::start(
        Setup { store: Some(store(&folder)), max_fetched: 1, ..Setup::default() },
        &[&held],
    );
    let status = |bytes: &[u8]| server.query(&format!("/graphqlsha/{}", sha(bytes)), NAMES).status;
    assert_eq!((status(&stored[0]), status(&stored[1]), status(&stored[0])), (200, 503, 200));
}

fn leased(server: &RunningServer, method: &str, target: &str, token: &str, body: &str) -> HttpAnswer {
    server.send(method, &request(method, target, &[("authorization", token)], body.as_bytes()))
}

#[test]
fn a_leased_bundle_stays_loaded_until_the_lease_ends() {
    let bundles = ["one", "two", "three", "four"].map(|commit| bundle(commit, &["a"]));
    let settings = Settings { token: Some(Token::new("secret")), ..Settings::default() };
    let server = RunningServer::start(Setup { settings, ttl: 0, ..Setup::default() }, &[&bundles[0]]);
    let one = format!("/git-commit/{}", sha(&bundles[0]));
    let has_one = || leased(&server, "GET", &one, "secret", "").status == 200;
    let take = |sha: &str, body: &str| leased(&server, "POST", &format!("/leases/{sha}"), "secret", body);
    assert_eq!(take("nope", "").status, 404);
    assert_eq!(take(&sha(&bundles[0]), r#"{"seconds": 0}"#).status, 400);
    let lease = take(&sha(&bundles[0]), r#"{"seconds": 60}"#);
    assert_eq!(lease.status, 201);
    let lease: Value = serde_json::from_slice(&lease.body).unwrap();
    assert_eq!(lease["sha"], json!(sha(&bundles[0])));
    let lease = format!("/leases/{}", lease["lease"].as_str().unwrap());
    for bytes in &bundles[1..3] {
        server.source.set(bytes);
        assert_eq!(leased(&server, "POST", "/reload", "secret", "").status, 200);
        assert!(has_one());
    }
    let end = r#"{"seconds": 0}"#;
    assert_eq!(leased(&server, "POST", &lease, "secret", "").status, 200);
    assert_eq!(leased(&server, "POST", &lease, "secret", end).status, 204);
    assert_eq!(leased(&server, "POST", &lease, "secret", end).status, 404);
    assert_eq!(leased(&server, "POST", &lease, "secret", "").status, 404);
    assert_eq!(leased(&server, "DELETE", &lease, "secret", "").status, 405);
    server.source.set(&bundles[3]);
    leased(&server, "POST", "/reload", "secret", "");
    assert!(!has_one());
}

#[test]
fn leases_require_a_token() {
    let one = bundle("one", &["a"]);
    let open = RunningServer::start(Setup::default(), &[&one]);
    assert_eq!(leased(&open, "POST", &format!("/leases/{}", sha(&one)), "any", "").status, 403);
    let settings = Settings { token: Some(Token::new("secret")), ..Settings::default() };
    let closed = RunningServer::start(Setup { settings, ..Setup::default() }, &[&one]);
    assert_eq!(leased(&closed, "POST", &format!("/leases/{}", sha(&one)), "other", "").status, 401);
}

#[test]
fn a_reload_completes_even_if_its_client_is_gone() {
    use std::io::Write as _;
    let [old, new] = [bundle("old", &["a"]), bundle("new", &["b"])];
    let server = RunningServer::start(Setup::default(), &[&old]);
    server.source.set(&new);
    let (begun, closed) = (server.source.begun.load(Ordering::Relaxed), server.source.gate.blocking_write());
    let mut stream = server.connect();
    stream.write_all(&request("POST", "/reload", &[], b"")).unwrap();
    let start = std::time::Instant::now();
    let wait = |what: &str, is_over: &dyn Fn() -> bool| {
        while !is_over() {
            assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        }
    };
    wait("the reload did not begin", &|| server.source.begun.load(Ordering::Relaxed) > begun);
    crate::support::running::leave(&stream);
    // The client is gone once its connection is closed.
    wait("the client is still connected", &|| {
        server.get("/metrics").text().contains("qontract_server_connections 1")
    });
    drop(closed);
    wait("the reload did not complete", &|| commit(&server) == "new");
}

#[test]
fn a_query_that_was_sent_before_can_be_requested_by_its_digest() {
    let server = RunningServer::start(Setup::default(), &[&bundle("one", &["a"])]);
    assert_eq!(names(&server.query("/graphql", NAMES)), "a");
    let named = |query: Value| {
        let persisted = json!({ "version": 1, "sha256Hash": sha(NAMES.as_bytes()) });
        let mut body = json!({ "extensions": { "persistedQuery": persisted } });
        if !query.is_null() {
            body["query"] = query;
        }
        server.post("/graphql", &body.to_string())
    };
    assert!(named(Value::Null).text().contains("PersistedQueryNotFound"));
    assert_eq!(names(&named(json!(NAMES))), "a");
    assert_eq!(names(&named(Value::Null)), "a");
}

/// A bundle with the given resources, and one app that refers to a resource.
fn bundle_of_resources(commit: &str, names: &[&str]) -> Vec<u8> {
    let resources: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| {
            let content = format!("this is {name}");
            (format!("/{name}"), json!({ "path": format!("/{name}"), "content": content, "sha256sum": "" }))
        })
        .collect();
    json!({
        "git_commit": commit, "git_commit_timestamp": "1", "schemas": {}, "resources": resources,
        "data": { "/a.yml": { "$schema": "/app.yml", "file": "/m" } },
        "graphql": [
            { "name": "Query", "fields": [
                { "name": "apps", "type": "App", "isList": true, "datafileSchema": "/app.yml" },
                { "name": "resources", "type": "Resource_v1", "isList": true, "isResource": true },
            ] },
            { "name": "App", "fields": [{ "name": "file", "type": "string", "isResource": true, "resolveResource": true }] },
            { "name": "Resource_v1", "fields": [{ "name": "path", "type": "string" }, { "name": "content", "type": "string" }] },
        ],
    })
    .to_string()
    .into_bytes()
}

#[test]
fn added_and_removed_resources_do_not_shift_others() {
    let first = bundle_of_resources("first", &["m", "z"]);
    let server = RunningServer::start(Setup::default(), &[&first]);
    for (number, names) in [&["a", "m", "z"][..], &["m"], &["b", "m"], &["m", "z"]].iter().enumerate() {
        server.source.set(&bundle_of_resources(&number.to_string(), names));
        assert_eq!(server.post("/reload", "").status, 200);
        let ask = |query: &str| -> Value {
            let answer: Value = serde_json::from_slice(&server.query("/graphql", query).body).unwrap();
            answer["data"].clone()
        };
        let named = ask("{ apps { file { content } } }");
        assert_eq!(named, json!({ "apps": [{ "file": { "content": "this is m" } }] }), "{names:?}");
        for name in *names {
            let found = ask(&format!("{{ resources(path: \"/{name}\") {{ path content }} }}"));
            let expected = json!([{ "path": format!("/{name}"), "content": format!("this is {name}") }]);
            assert_eq!(found["resources"], expected, "{names:?}");
        }
    }
}
