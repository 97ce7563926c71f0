//! Elements that a change does not affect have identical responses.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use qontract_bundle::diff::Diff;
use qontract_bundle::{Bundle, Pool, load};
use qontract_graphql::{ElementSelection, Engine, NamedOperation, QueryLimits, Request};
use serde_json::{Value, json};

use crate::support::queries::Queries;
use crate::support::random_bundle;
use crate::support::rng::TestRng;

const NAME: &str = "Q";

fn loaded(bundle: &Value, pool: &Pool) -> Bundle {
    load(&serde_json::to_vec(bundle).unwrap(), pool).unwrap()
}

fn engine(bundle: &Value, pool: &Pool) -> Engine {
    Engine::new(Arc::new(loaded(bundle, pool))).unwrap().with_limits(QueryLimits::none())
}

/// Derives an engine from another one, as the server does.
fn derived(base: &Engine, bundle: &Value, pool: &Pool) -> Engine {
    base.derive(Arc::new(loaded(bundle, pool).sharing_paths_with(base.bundle()))).unwrap()
}

/// Changes, adds or removes something in a bundle.
fn changed(before: &Value, rng: &mut TestRng) -> Value {
    let mut after = before.clone();
    let confs = before["graphql"]["confs"].clone();
    let data = after["data"].as_object_mut().unwrap();
    let paths: Vec<String> = data.keys().cloned().collect();
    for _ in 0..=rng.below(2) {
        let Some(path) = paths.get(rng.below(paths.len().max(1))) else { break };
        match rng.below(10) {
            0 => drop(data.remove(path)),
            1 => {
                let copy = data.get(path).cloned().unwrap_or_else(|| json!({}));
                data.insert(path.replace('.', "-copy."), copy);
            }
            _ => {
                if let Some(file) = data.get_mut(path) {
                    random_bundle::change(rng, &confs, file);
                }
            }
        }
    }
    if rng.below(4) == 0 {
        random_bundle::change_resources(rng, after["resources"].as_object_mut().unwrap());
    }
    after
}

/// The response for one element of a list, with its errors.
fn answer_for(engine: &Engine, query: &str, (list, path): (&str, &str)) -> (Value, Vec<Value>) {
    let only = ElementSelection::from([(list.into(), BTreeSet::from([path.into()]))]);
    let request = Request { query, operation: Some(NAME), only_elements: Some(&only), ..Request::default() };
    let answer: Value = serde_json::from_slice(&engine.answer(request).body).unwrap();
    let errors = answer["errors"].as_array().into_iter().flatten();
    let own = errors.filter(|error| error["path"][0] == *list).cloned().collect();
    (answer["data"].get(list).cloned().unwrap_or_default(), own)
}

/// Queries two bundles for every element of every list, and compares the elements that are not affected.
/// Returns the number of unaffected and of affected elements.
fn check(base: &Engine, head: &Engine, query: &str) -> (usize, usize) {
    let diff = Diff::between(base.bundle(), head.bundle());
    let mut affected = ElementSelection::new();
    for engine in [base, head] {
        let mut concerned = engine.datafiles_naming(diff.resources.iter().map(|change| &*change.path));
        concerned.extend(diff.datafiles.iter().map(|change| Box::from(&*change.path)));
        let Some(lists) = engine.affected_elements(NamedOperation { query, operation: NAME }, &concerned)
        else {
            return (0, 0);
        };
        for (list, mut paths) in lists {
            affected.entry(list).or_default().append(&mut paths);
        }
    }
    let files = [base, head].into_iter().flat_map(|engine| engine.bundle().datafiles());
    let paths: BTreeSet<&str> = files.map(|file| &*file.path).collect();
    let (mut unaffected, mut seen) = (0, 0);
    for (list, hit) in &affected {
        for path in &paths {
            if hit.contains(*path) {
                seen += 1;
                continue;
            }
            unaffected += 1;
            let [old, new] = [base, head].map(|engine| answer_for(engine, query, (list, path)));
            assert_eq!(old, new, "{query}: {list} {path}");
        }
    }
    (unaffected, seen)
}

/// A named request without variables.
fn named(queries: &mut Queries<'_>) -> Option<String> {
    let (query, _) = queries.request();
    query.starts_with('{').then(|| format!("query {NAME} {query}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn elements_that_are_not_affected_have_identical_answers(seed: u64) {
        let before: Value = serde_json::from_slice(&random_bundle::bundle(seed)).unwrap();
        let pool = Pool::default();
        let base = engine(&before, &pool);
        let mut rng = TestRng::new(seed.wrapping_add(1));
        let confs = &before["graphql"]["confs"];
        let mut queries = Queries::new(confs.as_array().unwrap(), seed, 3);
        for round in 0..8 {
            let after = changed(&before, &mut rng);
            let head = match round % 3 {
                0 => engine(&after, &pool),
                _ => derived(&base, &after, &pool),
            };
            if round % 2 == 0 {
                head.derive_references(&base);
            }
            for query in (0..24).filter_map(|_| named(&mut queries)) {
                check(&base, &head, &query);
            }
        }
    }
}

/// Requests that follow long paths: references, back-references, interfaces, and resources.
const LONG_PATH_QUERIES: [&str; 5] = [
    "query Q { others_v1 { name peer { name peer { tags } } } }",
    "query Q { others_v1 { deep { name other { number } } } }",
    "query Q { things_v1 { inners { other { name things { name } } } file { content } } }",
    "query Q { things_v1 { shape { ... on Square_v1 { peer { name } } } any { ... on Thing_v1 { name } } } }",
    "query Q { shapes_v1 { name ... on Square_v1 { peer { kind } } } others_v1 { things { others { name } } } }",
];

#[test]
fn most_elements_are_not_affected() {
    let (mut unaffected, mut affected) = (0, 0);
    for seed in 0..80 {
        let mut rng = TestRng::new(seed);
        let before: Value = serde_json::from_slice(&random_bundle::bundle_of(&mut rng, [12, 6, 6])).unwrap();
        let pool = Pool::default();
        let (base, head) = (engine(&before, &pool), engine(&changed(&before, &mut rng), &pool));
        for query in LONG_PATH_QUERIES {
            let (more_unaffected, more_affected) = check(&base, &head, query);
            (unaffected, affected) = (unaffected + more_unaffected, affected + more_affected);
        }
    }
    assert!(
        affected > 200 && unaffected > 2 * affected,
        "{affected} affected, {unaffected} not: too few to be significant"
    );
}

/// Only a back-reference reads a thing as a type that has `extra`.
#[test]
fn elements_read_only_through_back_references_are_affected() {
    let field = |name: &str, type_: &str| json!({"name": name, "type": type_});
    let back = json!({"schema": "/thing.yml", "subAttr": "other"});
    let bundle = |name: &str| {
        json!({
            "git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
            "graphql": [
                {"name": "Query", "fields": [{"name": "others", "type": "Other", "isList": true, "datafileSchema": "/other.yml"}]},
                {"name": "Other", "fields": [field("name", "string"), {"name": "things", "type": "Lite", "isList": true, "synthetic": back}]},
                {"name": "Lite", "fields": [field("extra", "Other")]},
            ],
            "data": {
                "/o/far.yml": {"$schema": "/other.yml", "name": name},
                "/o/near.yml": {"$schema": "/other.yml", "name": "near"},
                "/t/one.yml": {"$schema": "/thing.yml", "other": {"$ref": "/o/near.yml"}, "extra": {"$ref": "/o/far.yml"}},
            },
        })
    };
    let pool = Pool::default();
    let (base, head) = (engine(&bundle("far"), &pool), engine(&bundle("farther"), &pool));
    let query = "query Q { others { things { extra { name } } } }";
    assert_eq!(check(&base, &head, query), (1, 2), "the thing is not an other, the rest is affected");
}
