//! Footprints are never too small: a change outside of a footprint does not change the response.

use std::sync::Arc;

use proptest::prelude::*;
use qontract_bundle::diff::{Diff, changed_backrefs};
use qontract_bundle::json::JsonParser;
use qontract_bundle::{Bundle, Map, Pool, load};
use qontract_graphql::{Engine, Footprint, QueryLimits, Request};
use serde_json::{Value, json};

use crate::support::queries::Queries;
use crate::support::random_bundle;
use crate::support::rng::TestRng;

fn engine(bundle: &Value) -> Engine {
    let bytes = serde_json::to_vec(bundle).unwrap();
    let loaded = load(&bytes, &Pool::default()).expect("a bundle");
    Engine::new(Arc::new(loaded)).expect("a schema").with_limits(QueryLimits::none())
}

fn answer(engine: &Engine, query: &str, variables: Option<&Map>) -> Vec<u8> {
    engine.answer(Request { query, variables, ..Request::default() }).body
}

/// Changes a value at a random position.
fn change(rng: &mut TestRng, value: &mut Value) {
    match value {
        Value::Object(map) if !map.is_empty() && rng.below(4) > 0 => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = &keys[rng.below(keys.len())];
            match rng.below(6) {
                0 => drop(map.remove(key)),
                1 => drop(map.insert("kind".to_owned(), json!("round"))),
                2 => drop(map.insert("added".to_owned(), json!({"$ref": "/o/1.yml"}))),
                _ => change(rng, map.get_mut(key).unwrap()),
            }
        }
        Value::Array(items) if !items.is_empty() && rng.below(3) > 0 => {
            let index = rng.below(items.len());
            change(rng, &mut items[index]);
        }
        other => {
            let choices = [json!("changed"), json!({"$ref": "/o/0.yml"}), json!(7), json!(null), json!([])];
            *other = rng.pick(&choices);
        }
    }
}

/// The bundle with one datafile or resource changed or removed.
fn changed(before: &Value, rng: &mut TestRng) -> Bundle {
    let mut after = before.clone();
    if rng.below(4) == 0 {
        random_bundle::change_resources(rng, after["resources"].as_object_mut().unwrap());
    }
    let confs = before["graphql"]["confs"].clone();
    let data = after["data"].as_object_mut().unwrap();
    let paths: Vec<String> = data.keys().cloned().collect();
    if !paths.is_empty() {
        let path = &paths[rng.below(paths.len())];
        match rng.below(12) {
            0 => drop(data.remove(path)),
            1 => {
                let file = &mut data[path];
                let schema = file["$schema"].clone();
                change(rng, file);
                if !file.is_object() {
                    *file = json!({});
                }
                file["$schema"] = schema;
            }
            _ => random_bundle::change(rng, &confs, &mut data[path]),
        }
    }
    load(&serde_json::to_vec(&after).unwrap(), &Pool::default()).expect("a bundle")
}

/// Whether a difference between two bundles is in the footprint, including the mistyped targets of both.
fn sees(footprint: &Footprint, base: &Engine, head: &Engine) -> bool {
    let paths = |engine: &Engine| {
        engine.bundle().datafiles().iter().map(|file| file.path.clone()).collect::<Vec<_>>()
    };
    let resources = Diff::between(base.bundle(), head.bundle()).resources;
    if footprint.resources() && !resources.is_empty()
        || footprint.reads_backrefs() && changed_backrefs(base.bundle(), head.bundle()).next().is_some()
    {
        return true;
    }
    let mut all = [paths(base), paths(head)].concat();
    all.sort();
    all.dedup();
    all.iter().any(|path| {
        let (old, new) = (base.bundle().datafile(path), head.bundle().datafile(path));
        let changed = old.map(|old| &old.value) != new.map(|new| &new.value);
        let stray = base.mistyped_targets().contains(path) || head.mistyped_targets().contains(path);
        changed && (stray || footprint.sees(old.map(|old| &**old), new.map(|new| &**new)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_change_outside_of_a_footprint_changes_no_answer(seed: u64) {
        let before: Value = serde_json::from_slice(&random_bundle::bundle(seed)).unwrap();
        let base = engine(&before);
        let confs = &before["graphql"]["confs"];
        let mut rng = TestRng::new(seed.wrapping_add(1));
        let heads: Vec<Engine> = (0..12).map(|_| base.derive(Arc::new(changed(&before, &mut rng))).unwrap()).collect();
        let mut queries = Queries::new(confs.as_array().unwrap(), seed, 3);
        for _ in 0..12 {
            let (query, variables) = queries.request();
            let text = Value::Object(variables).to_string();
            let given = JsonParser::new(&text).parse().unwrap();
            let request = Request { query: &query, variables: given.as_map(), ..Request::default() };
            let footprint = base.footprint(request).unwrap();
            let known = answer(&base, &query, given.as_map());
            for head in &heads {
                let same = known == answer(head, &query, given.as_map());
                prop_assert!(same || sees(&footprint, &base, head), "{query}\n{text}\n{footprint:#?}");
            }
        }
    }

    #[test]
    fn files_that_were_read_are_in_the_footprint(seed: u64) {
        let bundle: Value = serde_json::from_slice(&random_bundle::bundle(seed)).unwrap();
        let engine = engine(&bundle);
        let mut queries = Queries::new(bundle["graphql"]["confs"].as_array().unwrap(), seed, 4);
        for _ in 0..8 {
            let (query, variables) = queries.request();
            let text = Value::Object(variables).to_string();
            let given = JsonParser::new(&text).parse().unwrap();
            let request = Request { query: &query, variables: given.as_map(), touched: true, ..Request::default() };
            let footprint = engine.footprint(request).unwrap();
            let touched = engine.answer(request).touched.unwrap();
            for file in touched.files() {
                let file = &engine.bundle().datafiles()[file];
                let known = file.document.schema().is_some_and(|schema| footprint.keys(schema).is_some());
                prop_assert!(known || engine.mistyped_targets().contains(&file.path), "{query}\n{} {footprint:#?}", file.path);
            }
            prop_assert!(footprint.resources() || touched.resources().count() == 0, "{query}");
        }
    }
}

#[test]
fn footprints_list_schemas_and_fields() {
    let engine = engine(&serde_json::from_slice(&random_bundle::bundle(1)).unwrap());
    let footprint = |query| engine.footprint(Request { query, ..Request::default() }).unwrap();
    let schemas = |footprint: &Footprint| {
        footprint.datafiles().map(|(schema, _)| schema.to_owned()).collect::<Vec<_>>()
    };
    let fields =
        |footprint: &Footprint| footprint.fields().map(|(a, b)| format!("{a}.{b}")).collect::<Vec<_>>();

    let plain = footprint("{ others_v1 { name } }");
    assert_eq!(schemas(&plain), ["/w/other-1.yml"]);
    assert_eq!(fields(&plain), ["Other_v1.name", "Query.others_v1"]);
    assert!(!plain.resources() && !plain.schema());

    // A filter reads the keys that it filters by, also through references.
    let filtered = footprint("{ things_v1(filter: {other: {filter: {number: 3}}}) { __typename } }");
    // `Query` lists the type under two schemas.
    assert_eq!(schemas(&filtered), ["/w/none-1.yml", "/w/other-1.yml", "/w/thing-1.yml"]);
    assert_eq!(fields(&filtered), ["Other_v1.number", "Query.things_v1", "Thing_v1.other"]);

    // A back-reference reads the referring files and the keys of the reference.
    let back = footprint("{ others_v1 { deep { __typename } } }");
    assert_eq!(schemas(&back), ["/w/other-1.yml", "/w/thing-1.yml"]);

    // A field of an interface type may return any of its object types.
    let any = footprint("{ things_v1 { any { path } } }");
    assert_eq!(schemas(&any), ["/w/none-1.yml", "/w/other-1.yml", "/w/shape-1.yml", "/w/thing-1.yml"]);

    assert!(footprint("{ resources_v1 { path } }").resources());
    assert!(footprint("{ things_v1 { file { content } } }").resources());
    assert!(footprint("{ __schema { types { name } } }").schema());
}
