//! Recorded queries and endpoints of qontract-server, over HTTP.
#![allow(clippy::unwrap_used, reason = "a test unwraps what it expects")]

mod support {
    pub mod running;
}

use qontract_bundle::Sha256;
use qontract_testkit::vectors;
use serde_json::{Value, json};
use support::running::{RunningServer, Setup};

struct RecordedServer {
    answers: Value,
    server: RunningServer,
    shas: [String; 2],
}

fn recorded() -> RecordedServer {
    let read = |name: &str| std::fs::read(vectors().join(name)).unwrap();
    let [older, newer] = ["bundle2.json", "bundle.json"].map(read);
    let shas = [&older, &newer].map(|bytes| Sha256::of(bytes).to_string());
    let answers = serde_json::from_slice(&read("answers.json")).unwrap();
    RecordedServer { answers, server: RunningServer::start(Setup::default(), &[&older, &newer]), shas }
}

#[test]
fn queries_are_answered_as_they_were_recorded() {
    let RecordedServer { answers, server, shas } = recorded();
    let queries = answers["queries"].as_array().unwrap();
    assert_eq!(queries.len(), 25);
    for query in queries {
        let body = json!({ "query": query["query"], "variables": query["variables"] }).to_string();
        // Once computed and once cached, by both names of the bundle.
        for target in ["/graphql".to_owned(), format!("/graphqlsha/{}", shas[1]), "/graphql".to_owned()] {
            let answer = server.post(&target, &body);
            assert_eq!(json!(answer.status), query["status"], "{}", query["name"]);
            assert_eq!(answer.header("content-type"), query["content_type"].as_str());
            assert_eq!(answer.text(), query["body"].as_str().unwrap(), "{}", query["name"]);
        }
    }
}

#[test]
fn introspection_is_answered_as_it_was_recorded() {
    const QUERY: &str = "{ __schema { queryType { name } types { kind name fields { name args { name type { kind name ofType { name } } } type { kind name ofType { kind name ofType { kind name ofType { name } } } } } interfaces { name } possibleTypes { name } } } }";
    let RecordedServer { answers, server, .. } = recorded();
    let answer = server.query("/graphql", QUERY);
    assert_eq!(json!(answer.status), answers["introspection"]["status"]);
    assert_eq!(answer.text(), answers["introspection"]["body"].as_str().unwrap());
}

#[test]
fn endpoints_answer_as_they_were_recorded() {
    let RecordedServer { answers, server, shas: [older, newer] } = recorded();
    let endpoints = answers["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 13);
    for endpoint in endpoints {
        let request = endpoint["request"].as_str().unwrap();
        let request = request.replace("{bundle}", &newer).replace("{bundle2}", &older);
        let (method, target) = request.split_once(' ').unwrap();
        let answer = server.request(method, target, &[], b"");
        assert_eq!(json!(answer.status), endpoint["status"], "{request}");
        assert_eq!(answer.header("content-type"), endpoint["content_type"].as_str(), "{request}");
        assert_eq!(answer.text(), endpoint["body"].as_str().unwrap(), "{request}");
    }
}
