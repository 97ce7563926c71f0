//! Our extensions of GraphQL, batches, and evaluations that requests share.

use std::sync::{Arc, Barrier};

use qontract_graphql::Engine;
use qontract_server::{AnalysisError, BundleAnalysis, Settings, Token};
use serde_json::{Value, json};

use crate::support::running::{RunningServer, Setup};

/// Two apps with endpoints, which refer to a team, and a resource.
fn bundle(description: &str) -> Vec<u8> {
    let app = |name: &str| json!({ "$schema": "/app.yml", "name": name, "team": { "$ref": "/team.yml" }, "endpoints": [{ "url": "u" }] });
    json!({
        "git_commit": "c", "git_commit_timestamp": "1", "schemas": {},
        "resources": { "/a.txt": { "path": "/a.txt", "content": "one\ntwo\n", "$schema": null, "sha256sum": "" } },
        "data": {
            "/a.yml": app("a"), "/b.yml": app("b"),
            "/team.yml": { "$schema": "/team.yml", "name": "core", "description": description },
        },
        "graphql": [
            { "name": "Query", "fields": [
                { "name": "apps", "type": "App", "isList": true, "datafileSchema": "/app.yml" },
                { "name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml" }] },
            { "name": "App", "fields": [
                { "name": "name", "type": "string" },
                { "name": "team", "type": "Team" },
                { "name": "endpoints", "type": "Endpoint", "isList": true }] },
            { "name": "Endpoint", "fields": [{ "name": "url", "type": "string" }] },
            { "name": "Team", "fields": [
                { "name": "name", "type": "string" }, { "name": "description", "type": "string" }] },
        ],
    })
    .to_string()
    .into_bytes()
}

const APPS: &str = "query Apps { apps { name team { name } endpoints { url } } }";

fn start() -> (RunningServer, String) {
    let server = RunningServer::start(Setup::default(), &[&bundle("d")]);
    let sha = server.get("/sha256").text();
    (server, sha)
}

fn body(query: &str, extension: &Value) -> Value {
    json!({ "query": query, "operationName": "Apps", "extensions": { "qontract": extension } })
}

fn extended(server: &RunningServer, extension: &Value) -> (u16, Value) {
    let answer = server.post("/graphql", &body(APPS, extension).to_string());
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

#[test]
fn a_request_gets_the_locations_of_its_objects() {
    let (server, _) = start();
    let plain: Value = serde_json::from_slice(&server.query("/graphql", APPS).body).unwrap();
    assert_eq!(plain["extensions"], json!({ "schemas": ["/app.yml", "/team.yml"] }));
    let (status, located) = extended(&server, &json!({ "locations": true }));
    assert_eq!((status, &located["data"]), (200, &plain["data"]));
    let locations = &located["extensions"]["qontract"]["locations"];
    let expect = json!({
        "datafiles": {
            "/a.yml": { "/apps/0": "", "/apps/0/endpoints/0": "/endpoints/0" },
            "/b.yml": { "/apps/1": "", "/apps/1/endpoints/0": "/endpoints/0" },
            "/team.yml": { "/apps/0/team": "", "/apps/1/team": "" },
        },
        "resources": {},
    });
    assert_eq!(locations, &expect);
}

#[test]
fn a_request_selects_elements_or_only_schemas() {
    let (server, _) = start();
    let (_, only) = extended(&server, &json!({ "only": { "apps": ["/b.yml", "/nope.yml"] } }));
    assert_eq!(only["data"]["apps"].as_array().unwrap().len(), 1);
    assert_eq!(only["data"]["apps"][0]["name"], "b");
    assert_eq!(only["extensions"]["qontract"], json!({}));
    let (_, checked) = extended(&server, &json!({ "check": true, "only": { "apps": [] } }));
    assert_eq!(checked, json!({ "data": {}, "extensions": { "schemas": [], "qontract": {} } }));
    let (_, checked) = extended(&server, &json!({ "check": true }));
    assert_eq!(checked["extensions"]["schemas"], json!(["/app.yml", "/team.yml"]));
    let (_, reachable) = extended(&server, &json!({ "reachable": true }));
    let expect = json!({ "/app.yml": "Query.apps", "/team.yml": "App.team" });
    assert_eq!(reachable["extensions"]["qontract"]["reachable"], expect);
    assert_eq!(reachable["data"], json!({}));
}

#[test]
fn a_query_that_can_read_a_schema_that_is_not_allowed_is_refused() {
    let (server, _) = start();
    let (status, allowed) = extended(&server, &json!({ "allowedSchemas": ["/app.yml", "/team.yml"] }));
    assert_eq!((status, allowed["data"]["apps"].as_array().unwrap().len()), (200, 2));
    let (status, refused) =
        extended(&server, &json!({ "allowedSchemas": ["/app.yml"], "only": { "apps": [] } }));
    assert_eq!((status, refused.get("data")), (400, None));
    let error = json!({
        "message": "the query `Apps` can read `/team.yml` through `App.team`, which is not listed",
        "extensions": { "code": "FORBIDDEN_SCHEMA", "schemas": ["/team.yml"] },
    });
    assert_eq!(refused["errors"], json!([error]));
    // An invalid query has the errors that it has without the extension.
    let invalid = |extensions: Value| {
        let body = json!({ "query": "{ nope }", "extensions": extensions }).to_string();
        serde_json::from_slice::<Value>(&server.post("/graphql", &body).body).unwrap()["errors"].clone()
    };
    let plain = invalid(json!({}));
    for extension in [json!({ "allowedSchemas": [] }), json!({ "reachable": true }), json!({ "check": true })]
    {
        assert_eq!(invalid(json!({ "qontract": extension })), plain);
    }
}

#[test]
fn an_invalid_extension_is_refused() {
    let (server, _) = start();
    for extension in
        [json!(1), json!(null), json!({ "nope": 1 }), json!({ "only": [] }), json!({ "check": "x" })]
    {
        let (status, refused) = extended(&server, &extension);
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains("extensions.qontract"), "{message}");
    }
    // In a `GET`, too.
    let target = "/graphql?query=%7B__typename%7D&extensions=%7B%22qontract%22%3A1%7D";
    assert_eq!(server.get(target).status, 400);
}

#[test]
fn our_extensions_are_named_only_on_request() {
    let (server, sha) = start();
    for target in ["/graphql?query=%7B__typename%7D", "/sha256", "/git-commit-info", "/metrics", "/healthz"] {
        assert_eq!(server.get(target).header("qontract-extensions"), None, "{target}");
    }
    let target = format!("/git-commit-info/{sha}");
    assert_eq!(server.get(&target).header("qontract-extensions"), None);
    let answer = server.request("GET", &target, &[("qontract-extensions", "?")], b"");
    assert_eq!(answer.header("qontract-extensions"), Some("query batch"));
    assert_eq!(answer.body, server.get(&target).body);
}

#[test]
fn a_batch_has_the_responses_of_its_parts() {
    let (server, sha) = start();
    let parts = [
        json!({ "query": APPS }),
        body(APPS, &json!({ "locations": true })),
        json!({ "query": "{ nope }" }),
        json!({ "query": 1 }),
        json!({ "query": "{ teams { name } }", "extensions": { "qontract": { "nope": 1 } } }),
    ];
    let batch = json!({ "queries": parts, "resources": ["/a.txt", "/nope"], "typedSchemas": true });
    let answer = server.post(&format!("/batch/{sha}"), &batch.to_string());
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json; charset=utf-8"))
    );
    let batch: Value = serde_json::from_slice(&answer.body).unwrap();
    for (part, answer) in parts.iter().zip(batch["answers"].as_array().unwrap()) {
        let single = server.post(&format!("/graphqlsha/{sha}"), &part.to_string());
        assert_eq!(answer["status"], json!(single.status), "{part}");
        assert_eq!(answer["body"], serde_json::from_slice::<Value>(&single.body).unwrap(), "{part}");
    }
    assert_eq!(batch["resources"], json!({ "/a.txt": "one\ntwo\n" }));
    assert_eq!(batch["typedSchemas"], json!(["/app.yml", "/team.yml"]));
    assert_eq!(server.post(&format!("/batch/{sha}"), "{}").text(), "{\"answers\":[],\"resources\":{}}\n");
}

#[test]
fn hostile_batches_are_refused() {
    let (server, sha) = start();
    let target = format!("/batch/{sha}");
    let deep = format!("{{\"queries\":[{}{}]}}", "[".repeat(5_000), "]".repeat(5_000));
    let many = format!("{{\"queries\":[{}]}}", vec!["{}"; 10_000].join(","));
    let duplicate = r#"{"queries":[],"queries":[]}"#;
    for body in ["", "[]", "{", "null", r#"{"nope":1}"#, r#"{"queries":{}}"#, r#"{"resources":[1]}"#]
        .into_iter()
        .chain([duplicate, deep.as_str(), many.as_str()])
    {
        assert_eq!(server.post(&target, body).status, 400, "{}", &body[..body.len().min(80)]);
    }
    let aliases = (0..300).map(|number| format!("a{number}: name")).collect::<Vec<_>>().join(" ");
    let aliased = format!("{{ teams {{ {aliases} }} }}");
    let answer = server.post(&target, &json!({ "queries": [{ "query": aliased }] }).to_string());
    assert!(answer.status == 200 && answer.text().contains("LIMIT_EXCEEDED"), "{}", answer.text());
    let persisted = json!({ "persistedQuery": { "version": 1, "sha256Hash": "0" } });
    let part = json!({ "queries": [{ "query": "{ __typename }", "extensions": persisted }] });
    assert!(server.post(&target, &part.to_string()).text().contains("persisted"));
    assert_eq!(server.get(&target).status, 405);
    for sha in ["0".repeat(64), "latest".to_owned(), "..%2f..".to_owned(), sha.to_uppercase()] {
        assert_eq!(server.post(&format!("/batch/{sha}"), "{}").status, 404, "{sha}");
    }
    let large = json!({ "resources": ["x".repeat(2 << 20)] }).to_string();
    assert_eq!(server.post(&target, &large).status, 413);
}

/// Writes what it is asked.
struct Echo;

impl BundleAnalysis for Echo {
    fn compare(&self, base: &Arc<Engine>, head: &Arc<Engine>, body: &[u8]) -> Result<Vec<u8>, AnalysisError> {
        let word = str::from_utf8(body).map_err(|error| AnalysisError(error.to_string()))?;
        let shas = [base, head].map(|engine| engine.bundle().sha().to_string());
        Ok(json!({ "compared": shas, "request": word }).to_string().into_bytes())
    }

    fn locate(&self, _: &Arc<Engine>, _: &[u8]) -> Result<Vec<u8>, AnalysisError> {
        panic!("a defect");
    }
}

#[test]
fn comparisons_are_routed_and_evaluated_once() {
    let settings = Settings { analysis: Some(Arc::new(Echo)), ..Settings::default() };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle("d")]);
    let base = server.get("/sha256").text();
    server.source.set(&bundle("e"));
    assert_eq!(server.post("/reload", "").status, 200);
    let head = server.get("/sha256").text();
    let target = format!("/compare/{base}/{head}");
    for _ in 0..3 {
        let answer = server.post(&target, "{}");
        assert_eq!(answer.text(), json!({ "compared": [base, head], "request": "{}" }).to_string());
    }
    assert!(server.get("/metrics").text().contains("qontract_server_answers_total{outcome=\"made\"} 1\n"));
    assert_eq!(server.request("POST", &target, &[], b"\xff").status, 400);
    assert_eq!(server.post(&format!("/compare/{base}/{}", "0".repeat(64)), "{}").status, 404);
    assert_eq!(server.get(&target).status, 405);
    assert_eq!(server.post(&format!("/locate/{base}"), "{}").status, 500);
    assert_eq!(server.get("/healthz").status, 200);
    let answer =
        server.request("GET", &format!("/git-commit-info/{base}"), &[("qontract-extensions", "")], b"");
    assert_eq!(answer.header("qontract-extensions"), Some("query batch compare locate"));
}

#[test]
fn our_routes_require_the_token() {
    let settings = Settings {
        token: Some(Token::new("Basic abc")),
        analysis: Some(Arc::new(Echo)),
        ..Settings::default()
    };
    let server = RunningServer::start(Setup { settings, ..Setup::default() }, &[&bundle("d")]);
    for target in ["/batch/x", "/compare/x/y", "/locate/x"] {
        assert_eq!(server.post(target, "{}").status, 401, "{target}");
        let known = [("authorization", "Basic abc"), ("content-type", "application/json")];
        assert_eq!(server.request("POST", target, &known, b"{}").status, 404, "{target}");
    }
}

/// **Invariant:** identical requests share one evaluation, however many clients send them at once.
#[test]
fn two_hundred_clients_cost_one_evaluation_per_query() {
    const CLIENTS: usize = 200;
    let (server, sha) = start();
    let parts = [
        body(APPS, &json!({ "locations": true, "allowedSchemas": ["/app.yml", "/team.yml"] })),
        json!({ "query": "{ teams { name description } }" }),
    ];
    let batch = json!({ "queries": parts }).to_string();
    let barrier = Barrier::new(CLIENTS);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    server.post(&format!("/batch/{sha}"), &batch)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
    let metrics = server.get("/metrics").text();
    let count = |outcome: &str| {
        let name = format!("qontract_server_answers_total{{outcome=\"{outcome}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    };
    assert_eq!(count("made"), parts.len());
    // Batches that are sent at the same time are shared as a whole.
    assert!(count("shared") + count("remembered") <= (CLIENTS - 1) * parts.len());
}

/// Without a response cache, requests still share the evaluations that are in progress.
#[test]
fn a_large_evaluation_is_shared_while_it_runs() {
    let settings = Settings { cache_bytes: 0, ..Settings::default() };
    let server =
        RunningServer::start(Setup { settings, ..Setup::default() }, &[&super::clients::bundle(100)]);
    let barrier = Barrier::new(20);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    server.query("/graphql", super::clients::HEAVY).body.len()
                })
            })
            .collect();
        let sizes: Vec<usize> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        assert!(sizes.iter().all(|size| *size == sizes[0] && *size > 10_000_000));
    });
    let metrics = server.get("/metrics").text();
    let made = metrics
        .lines()
        .find_map(|line| line.strip_prefix("qontract_server_answers_total{outcome=\"made\"} "));
    // All clients that arrive while the first evaluation runs share it; a late one may need its own.
    assert!(made.unwrap().parse::<usize>().unwrap() <= 10, "{metrics}");
}
