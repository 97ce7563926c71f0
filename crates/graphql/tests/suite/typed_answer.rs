//! Typed responses are equal whether they are deserialized from the executor's tree or from JSON.

#[path = "queries/namespaces/query.rs"]
mod namespaces;

use std::sync::Arc;

use namespaces::NamespaceOpenshiftResource as Resource;
use qontract_bundle::json::JsonParser;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_graphql::{Engine, Request, TypedError};
use qontract_testkit::example;

const QUERY: &str = include_str!("queries/namespaces/query.graphql");

fn engine() -> Engine {
    let repo = Repo::directory(example(), Layout::default());
    let built = build(&repo, CommitStamp::default(), &Pool::default()).unwrap().built.unwrap();
    Engine::new(Arc::new(built)).unwrap()
}

fn request<'r>(operation: &'r str, variables: Option<&'r qontract_bundle::Map>) -> Request<'r> {
    Request { query: QUERY, operation: Some(operation), variables, provenance: true, ..Request::default() }
}

#[test]
fn tree_and_json_text_deserialize_to_the_same_value() {
    let engine = engine();
    let typed = engine.query::<namespaces::Namespaces>(request("Namespaces", None)).unwrap();
    let body = engine.answer(request("Namespaces", None)).body;
    let mut text: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let from_text: namespaces::Namespaces = serde_json::from_value(text["data"].take()).unwrap();
    assert_eq!(typed.data, from_text);
    let all = typed.data.namespaces_v1.unwrap();
    assert!(all.len() > 5);
    assert!(all.iter().all(|one| one.cluster.is_some() && !one.environment.product.name.is_empty()));
    let resources: Vec<&Resource> =
        all.iter().filter_map(|one| one.openshift_resources.as_ref()).flatten().collect();
    let contents = resources.iter().filter_map(|one| match one {
        Resource::Resource(one) => Some(&one.resource.as_ref()?.content),
        _ => None,
    });
    assert!(contents.clone().count() > 0 && contents.clone().all(|content| !content.is_empty()));
    let path = typed.provenance.unwrap().of("/namespaces_v1/0").unwrap().path.clone();
    assert!(path.ends_with(".yml"), "{path}");
}

#[test]
fn fields_excluded_by_a_condition_are_absent() {
    let engine = engine();
    let variables = JsonParser::new("{\"withCluster\": false}").parse().unwrap();
    let typed = engine.query::<namespaces::Namespaces>(request("Namespaces", variables.as_map())).unwrap();
    assert!(typed.data.namespaces_v1.unwrap().iter().all(|one| one.cluster.is_none()));
    let typed = engine.query::<namespaces::Permissions>(request("Permissions", None)).unwrap();
    assert!(typed.data.permissions_v1.iter().any(|one| one.service == "slack-usergroup"));
}

#[test]
fn an_error_in_the_answer_is_an_error() {
    let error = engine().query::<namespaces::Namespaces>(request("Nope", None)).unwrap_err();
    assert!(matches!(error, TypedError::Failed(_)));
    assert_eq!(error.to_string(), "Unknown operation named \"Nope\".");
    let wrong = engine().query::<namespaces::Permissions>(request("Namespaces", None)).unwrap_err();
    assert!(wrong.to_string().starts_with("the response does not match the Rust type"), "{wrong}");
}

#[test]
fn a_check_reads_the_same_schemas_and_fails_with_the_same_errors() {
    let engine = engine();
    for operation in ["Namespaces", "Permissions"] {
        // Without provenance, repeated objects are copied and not executed again.
        let request = Request { provenance: false, ..request(operation, None) };
        let mut answered = engine.tree(request).unwrap().schemas;
        let mut checked = engine.check(request).unwrap().schemas;
        answered.sort();
        checked.sort();
        assert_eq!(checked, answered, "{operation}");
        assert!(!checked.is_empty());
    }
    let [answered, checked] =
        [engine.tree(request("Nope", None)).err(), engine.check(request("Nope", None)).err()]
            .map(|error| error.unwrap().to_string());
    assert_eq!(checked, answered);
    let half = "{ namespaces_v1 { name nope } }";
    let request = Request { query: half, ..Request::default() };
    assert_eq!(engine.check(request).unwrap_err().to_string(), engine.tree(request).unwrap_err().to_string());
}
