//! Compares the executor with the reference implementation, on random data and requests, and on a corpus of
//! requests for the example repo and, if present, the public schemas.

use std::path::Path;

use proptest::prelude::*;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_testkit::{Scratch, example, not_tested, public_schemas};
use serde_json::{Map, Value, json};

use crate::support::compare::EnginePair;
use crate::support::queries::Queries;
use crate::support::random_bundle;
use crate::support::rng::TestRng;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_on_random_data_are_those_of_the_reference(seed: u64) {
        let both = EnginePair::new(&random_bundle::bundle(seed));
        let confs = both.reference.confs.clone();
        let mut queries = Queries::new(&confs, seed, 4);
        for _ in 0..8 {
            let (query, variables) = queries.request();
            both.check(&query, &variables);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// The second query of a long list builds columns; the third one reads them.
    #[test]
    fn long_lists_are_equal_with_and_without_columns(seed: u64) {
        let both = EnginePair::new(&random_bundle::bundle_of(&mut TestRng::new(seed), [300, 260, 3]));
        let confs = both.reference.confs.clone();
        let mut queries = Queries::new(&confs, seed, 2);
        let plain = ["{ others_v1 { path name number peer { name } } }", "{ things_v1 { name one_string one_int other { name } } }"];
        let plain = plain.map(|query| (query.to_owned(), Map::new()));
        for (query, variables) in plain.into_iter().chain(std::iter::repeat_with(|| queries.request()).take(6)) {
            let answers = [(); 3].map(|()| both.check(&query, &variables));
            assert_eq!(answers[0], answers[2]);
        }
    }
}

/// The bundle of a data repo, as bytes.
fn bundle_of(folder: &Path) -> Vec<u8> {
    let repo = Repo::directory(folder, Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).unwrap();
    outcome.built.expect("a good data repo").to_vec()
}

/// Requests that together select every field of every type in every possible way.
fn corpus(confs: &[Value]) -> Vec<String> {
    let conf = |name: &Value| confs.iter().find(|conf| conf["name"] == *name);
    let fields = |conf: &'_ Value| conf["fields"].as_array().unwrap().clone();
    let is_scalar = |field: &Value| field["resolveResource"] != true && conf(&field["type"]).is_none();
    let scalars = |type_: &Value| {
        let names = fields(type_).into_iter().filter(|field| is_scalar(field));
        names.map(|field| field["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    // All leaf fields of a type, and those that its object types add.
    let all = |type_: &Value| {
        let mut text = format!("__typename {}", scalars(type_));
        for (index, one) in confs.iter().filter(|one| one["interface"] == type_["name"]).enumerate() {
            let keyed: Vec<String> =
                scalars(one).split(' ').map(|name| format!("k{index}_{name}: {name}")).collect();
            text += &format!(" ... on {} {{ {} }}", one["name"].as_str().unwrap(), keyed.join(" "));
        }
        text
    };
    let mut requests = Vec::new();
    for kind in fields(conf(&json!("Query")).unwrap()) {
        let name = kind["name"].as_str().unwrap();
        let Some(type_) = conf(&kind["type"]) else { continue };
        requests.push(format!("{{ {name} {{ {} }} }}", all(type_)));
        if kind["datafileSchema"].is_string() {
            for value in ["null", "{ne: null}", "{in: [\"billing\", \"catalog\"]}", "\"billing\""] {
                requests.push(format!("{{ {name}(filter: {{path: {value}}}) {{ path }} }}"));
            }
        }
        for field in fields(type_) {
            let inner = field["name"].as_str().unwrap();
            if field["isSearchable"] == true {
                requests.push(format!("{{ {name}({inner}: \"billing\") {{ path {inner} }} }}"));
                requests
                    .push(format!("{{ {name}(filter: {{{inner}: {{ne: \"billing\"}}}}) {{ {inner} }} }}"));
            }
            let resource = json!("Resource_v1");
            let target = conf(if field["resolveResource"] == true { &resource } else { &field["type"] });
            let Some(target) = target else { continue };
            requests.push(format!("{{ {name} {{ __typename {inner} {{ {} }} }} }}", all(target)));
            if kind["datafileSchema"].is_string() && field["resolveResource"] != true {
                let filter = format!("{{{inner}: {{filter: {{path: {{ne: null}}}}}}}}");
                if fields(target).iter().any(|field| field["name"] == "path") {
                    requests.push(format!("{{ {name}(filter: {filter}) {{ __typename }} }}"));
                }
            }
        }
    }
    requests
}

fn check_corpus(bundle: &[u8], least: usize) {
    let both = EnginePair::new(bundle);
    let requests = corpus(&both.reference.confs);
    assert!(requests.len() >= least, "only {} requests", requests.len());
    let mut bytes = 0;
    for request in &requests {
        bytes += both.check(request, &Map::new()).len();
    }
    // Random requests that are nested deeper.
    let confs = both.reference.confs.clone();
    for seed in 0..100 {
        let (query, variables) = Queries::new(&confs, seed, 5).request();
        bytes += both.check(&query, &variables).len();
    }
    assert!(bytes > 100_000, "the answers have only {bytes} bytes");
}

#[test]
fn a_corpus_over_the_example_is_answered_as_by_the_reference() {
    check_corpus(&bundle_of(&example()), 300);
}

#[test]
#[ignore = "needs the public schemas; run by `cargo xtask test`"]
fn a_corpus_over_the_public_schemas_is_answered_as_by_the_reference() {
    let Some(public) = public_schemas() else {
        return not_tested("GraphQL over the public schemas: they are not available");
    };
    let scratch = Scratch::copy_of(&example());
    let types = std::fs::read_to_string(public.join("graphql-schemas/schema.yml")).unwrap();
    scratch.write("graphql-schemas/schema.yml", types);
    check_corpus(&bundle_of(scratch.path()), 700);
}
