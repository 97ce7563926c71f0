//! An incrementally derived engine gives the same responses as an engine that is built from scratch.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::{
    BuildCache, BuildOptions, Bundle, CommitStamp, Layout, Pool, Repo, build, build_with, load,
};
use qontract_graphql::{Engine, Request};
use qontract_testkit::{Scratch, example};

/// Queries that read the datafile itself, references and back-references.
const QUERIES: [&str; 5] = [
    "{ namespaces_v1 { path name description cluster { name } app { name } } }",
    "{ apps_v1 { path name namespaces { path name } } }",
    "{ clusters_v1 { path name namespaces { path name } } }",
    "{ users_v1 { path name roles { path name } } roles_v1 { path users { path } } }",
    "{ resources_v1(path: \"/platform/qontract-settings.configmap.yaml\") { path content } }",
];

fn answers(engine: &Engine) -> Vec<String> {
    let answer = |query| engine.answer(Request { query, ..Request::default() });
    QUERIES.map(|query| String::from_utf8(answer(query).body).unwrap()).into()
}

#[test]
fn a_derived_engine_sees_changed_datafiles() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let (pool, mut memory) = (Pool::default(), BuildCache::default());
    let mut build = |told: &BTreeSet<_>| -> Bundle {
        let aids =
            BuildOptions { cache: Some(&mut memory), changed_paths: Some(told), ..BuildOptions::default() };
        build_with(&repo, CommitStamp::default(), &pool, aids).unwrap().built.unwrap()
    };
    let mut engine = Engine::new(Arc::new(build(&BTreeSet::new()))).unwrap();
    let mut before = answers(&engine);
    assert!(before.iter().all(|answer| !answer.contains("errors")), "{before:?}");
    let file = "data/services/qontract/namespaces/qontract-prod.yml";
    let changes = [
        ("description: where the integrations run", "description: elsewhere"),
        ("$ref: /services/qontract/app.yml", "$ref: /services/catalog/app.yml"),
        ("name: qontract-prod", "name: another"),
    ];
    for (number, (from, to)) in changes.into_iter().enumerate() {
        let text = std::fs::read_to_string(scratch.path().join(file)).unwrap();
        assert!(text.contains(from), "{text}");
        scratch.write(file, text.replacen(from, to, 1));
        let bundle = Arc::new(build(&BTreeSet::from([scratch.path().join(file)])));
        assert!(bundle.has_paths_of(engine.bundle()), "it was built incrementally");
        let loaded = Arc::new(load(&bundle.to_vec(), &Pool::default()).unwrap());
        assert!(!loaded.has_paths_of(engine.bundle()), "it was loaded from bytes");
        let from_bytes = answers(&engine.derive(loaded).unwrap());
        engine = engine.derive(Arc::clone(&bundle)).unwrap();
        let now = answers(&engine);
        assert_eq!(now, from_bytes, "{to}");
        assert_eq!(now, answers(&Engine::new(bundle).unwrap()), "{to}");
        let changed: Vec<bool> = now.iter().zip(&before).map(|(now, before)| now != before).collect();
        let expected = [
            [true, false, false, false, false],
            [true, true, false, false, false],
            [true, true, true, false, false],
        ];
        assert_eq!(changed, expected[number], "{to}");
        before = now;
    }
}

#[test]
fn a_derived_engine_sees_added_and_removed_resources() {
    let scratch = Scratch::copy_of(&example());
    let repo = Repo::directory(scratch.path(), Layout::default());
    let pool = Pool::default();
    let build = || build(&repo, CommitStamp::default(), &pool).unwrap().built.unwrap();
    let mut engine = Engine::new(Arc::new(build())).unwrap();
    let before = answers(&engine);
    let first = scratch.path().join("resources/0-first.txt");
    for is_there in [true, false] {
        if is_there {
            scratch.write("resources/0-first.txt", "no datafile names it");
        } else {
            std::fs::remove_file(&first).unwrap();
        }
        let bundle = build().sharing_paths_with(engine.bundle());
        assert!(!bundle.has_paths_of(engine.bundle()), "resources have other numbers now");
        engine = engine.derive(Arc::new(bundle)).unwrap();
        assert_eq!(answers(&engine), before, "{is_there}");
    }
}
