//! Properties of every corpus: size, bytes, kinds, and valid references.

use super::{Census, CorpusLayout, CorpusTree, DEFAULT_SEED, MIN_DATAFILES, generate};
use super::{cloud, clusters, namespaces, people, products, releases, resources, singletons};
use std::collections::{BTreeMap, BTreeSet};

/// The values of `key: value` in a text, in block or in flow style.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(key).filter_map(|(at, _)| {
        text[at + key.len()..].split([' ', '\n', '}', ',']).find(|value| !value.is_empty())
    })
}

fn schemas(tree: &CorpusTree) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for (path, content) in tree.under("data/") {
        let schema = values(content, "$schema: ").next();
        *kinds.entry(schema.unwrap_or_else(|| panic!("{path} has no schema"))).or_insert(0) += 1;
    }
    kinds
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(generate(400, 7).fingerprint(), generate(400, 7).fingerprint());
    assert_ne!(generate(400, 7).fingerprint(), generate(400, 8).fingerprint());
}

#[test]
fn the_order_of_generation_does_not_matter() {
    let world = CorpusLayout::new(Census::of(400), 7);
    let mut tree = CorpusTree::default();
    resources::write(&world, &mut tree);
    releases::write(&world, &mut tree);
    namespaces::write(&world, &mut tree);
    people::write(&world, &mut tree);
    cloud::write(&world, &mut tree);
    clusters::write(&world, &mut tree);
    products::write(&world, &mut tree);
    singletons::write(&world, &mut tree);
    assert_eq!(tree.fingerprint(), generate(400, 7).fingerprint());
}

#[test]
fn escalation_policies_refer_to_user_groups() {
    let tree = generate(1000, DEFAULT_SEED);
    for (path, content) in tree.under("data/escalation/") {
        let group = values(content, "/access/permissions/")
            .next()
            .map(|name| format!("data/access/permissions/{name}"));
        let group = group.unwrap_or_else(|| panic!("{path} has no user group"));
        let (_, permission) = tree.under(&group).next().unwrap_or_else(|| panic!("{group} is missing"));
        assert!(permission.contains("service: slack-usergroup"), "{path} names {group}");
    }
}

#[test]
fn the_corpus_of_the_published_figures_is_unchanged() {
    assert_eq!(generate(1000, DEFAULT_SEED).fingerprint(), FIGURES);
}

/// A change of the fingerprint invalidates all published figures.
const FIGURES: u64 = 0x50cc_31bf_ef4b_ab25;

#[test]
fn the_number_of_datafiles_is_exact() {
    for datafiles in [MIN_DATAFILES, 201, 333, 1000, 4001] {
        let tree = generate(datafiles, 3);
        assert_eq!(tree.under("data/").count(), datafiles);
        assert_eq!(tree.under("resources/").count(), datafiles * 2 / 5);
    }
}

#[test]
fn a_thousand_datafiles_have_every_kind_and_the_right_mix() {
    let tree = generate(1000, DEFAULT_SEED);
    let kinds = schemas(&tree);
    assert_eq!(kinds.len(), 40, "{kinds:#?}");
    assert_eq!(kinds["/openshift/namespace-1.yml"], 250);
    assert!((150..250).contains(&kinds["/access/user-1.yml"]), "{kinds:#?}");
    assert!(kinds.values().all(|&count| count > 0));
}

#[test]
fn every_reference_is_valid() {
    let tree = generate(1000, DEFAULT_SEED);
    let mut seen = 0;
    for (path, content) in tree.under("data/") {
        for target in values(content, "$ref: ") {
            assert!(tree.contains(&format!("data{target}")), "{path} refers to {target}");
            seen += 1;
        }
    }
    assert!(seen > 3000, "{seen}");
}

#[test]
fn every_resource_path_is_valid_and_every_resource_is_used() {
    let tree = generate(1000, DEFAULT_SEED);
    let mut used = BTreeSet::new();
    for (path, content) in tree.under("data/") {
        for key in [" path: /", " defaults: /", "config_path: /"] {
            for target in values(content, key).filter(|target| !target.starts_with("deploy/")) {
                let file = format!("resources/{target}");
                assert!(tree.contains(&file), "{path} names {file}");
                used.insert(file);
            }
        }
    }
    for (file, _) in tree.under("resources/") {
        assert!(used.contains(file), "nothing names {file}");
    }
}

#[test]
fn the_source_has_the_size_that_the_figures_assume() {
    let tree = generate(2000, DEFAULT_SEED);
    let per_datafile = tree.bytes() / 2000;
    assert!((1050..1300).contains(&per_datafile), "{per_datafile} bytes of source for each datafile");
}
