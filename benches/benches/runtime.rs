//! Declared states of base and head compared: two of 100 MB, equal but for one value. And what it takes to decide whether a change
//! affects integrations, with both bundles loaded: the benchmark fails if one takes longer than promised at 50,000 datafiles.
//!
//! `QONTRACT_BENCH_SIZES` chooses the sizes.

#[path = "measure.rs"]
mod measure;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use measure::say;
use qontract_benches::corpus;
use qontract_bundle::{Layout, Pool, Repo, Stamp, build};
use qontract_client_kubernetes::{Kubernetes, Sandbox};
use qontract_graphql::Engine;
use qontract_integration_openshift_limitranges as openshift_limitranges;
use qontract_integration_openshift_namespaces as openshift_namespaces;
use qontract_integration_openshift_rolebindings as openshift_rolebindings;
use qontract_runtime::affected::{Pair, Verdict, affected};
use qontract_runtime::state::{Declared, Shard, compare};
use qontract_runtime::{Loaded, Options, Room, ShardKey, Source};

type State = Vec<BTreeMap<String, String>>;

/// About 100 MB of state: a thousand shards of namespaces with their objects.
fn state() -> Declared<(), String, State> {
    let mut declared = Declared::new(());
    for shard in 0..1000 {
        let object = |number: usize| {
            let entry = |key: &str, value: String| (key.to_owned(), value);
            BTreeMap::from([
                entry("name", format!("object-{number}-of-{shard}")),
                entry("kind", "ConfigMap".to_owned()),
                entry("content", format!("key: \"value {number}\"\nother: {}\n", "text ".repeat(180))),
                entry("place", format!("/services/app-{shard}/namespaces/namespace-{number}.yml")),
            ])
        };
        let key = ShardKey::new([("cluster", "c1"), ("namespace", &format!("namespace-{shard:04}"))]);
        declared
            .add(key, Shard::new("https://api.example.com".to_owned(), (0..100).map(object).collect(), None));
    }
    declared
}

fn main() {
    states();
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "10000,50000".to_owned());
    let mut missed = Vec::new();
    for size in sizes.split(',') {
        verdicts(size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers"), &mut missed);
    }
    assert!(missed.is_empty(), "more than promised:\n{}", missed.join("\n"));
}

/// Whether a change affects an integration, for several of them and changes.
fn verdicts(size: usize, missed: &mut Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let repo = folder.path().join("repo");
    let tree = corpus::generate(size, corpus::DEFAULT_SEED);
    tree.write(&repo).expect("the corpus can be written");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
    measure::copy(&example.join("schemas"), &repo.join("schemas"));
    measure::copy(&example.join("graphql-schemas"), &repo.join("graphql-schemas"));
    let pool = Pool::default();
    let load = || -> Arc<dyn Source> {
        let outcome = build(&Repo::directory(&repo, Layout::default()), Stamp::default(), &pool);
        let bundle = outcome.expect("a data repo").built.expect("a good data repo");
        Arc::new(Loaded::new(Arc::new(Engine::new(Arc::new(bundle)).expect("types"))))
    };
    let base = load();
    let change = |schema: &str, from: &str, to: &str| {
        let wanted = format!("$schema: {schema}\n");
        let all = tree.under("data/");
        let (path, text) = all
            .filter(|(_, text)| text.contains(&wanted) && text.contains(from))
            .nth(7)
            .expect("such a file");
        std::fs::write(repo.join(path), text.replacen(from, to, 1)).expect("a datafile");
        (repo.join(path), text.to_owned())
    };
    let kubernetes: Arc<dyn Kubernetes> = Arc::new(Sandbox::new(folder.path().join("sandbox")));
    let rooms = [
        Room::staged(openshift_namespaces::OpenshiftNamespaces::room(Arc::clone(&kubernetes))),
        Room::staged(openshift_limitranges::room(Arc::clone(&kubernetes))),
        Room::staged(openshift_rolebindings::room(kubernetes)),
    ];
    say(&format!("\n## {size} datafiles: does a change affect an integration?\n"));
    say("| change | integration | verdict | ms |");
    say("|---|---|---|---|");
    for (what, schema, from, to) in [
        (
            "a namespace is described otherwise",
            "/openshift/namespace-1.yml",
            "description: ",
            "description: Now ",
        ),
        ("a user is called otherwise", "/access/user-1.yml", "\nname: ", "\nname: Now "),
    ] {
        let (file, text) = change(schema, from, to);
        let head = load();
        for room in &rooms {
            let mut times = Vec::new();
            let mut verdict = "";
            for _ in 0..5 {
                let pair = Pair::new(room, Arc::clone(&base), Arc::clone(&head));
                let begun = Instant::now();
                verdict = match affected(room, &pair, &Options::default()) {
                    Verdict::Unaffected(rule) => rule.as_str(),
                    Verdict::Affected(found) => found.rule.as_str(),
                    Verdict::Unknown(fault) => panic!("{fault}"),
                };
                times.push(begun.elapsed().as_secs_f64() * 1000.0);
            }
            times.sort_by(f64::total_cmp);
            let name = &room.about().name;
            say(&format!("| {what} | `{name}` | {verdict} | {:.1} |", times[2]));
            if size == 50_000 && times[2] > 150.0 {
                missed.push(format!("{what}, {name}: {:.0} ms, 150 ms promised", times[2]));
            }
        }
        std::fs::write(file, text).expect("a datafile");
    }
}

/// Two large declared states.
fn states() {
    let (base, mut head) = (state(), state());
    let size = serde_json::to_vec(&base.shards.values().map(|shard| &shard.state).collect::<Vec<_>>())
        .map(|text| text.len());
    let middle = head.shards.values_mut().nth(500);
    if let Some(object) = middle.and_then(|shard| shard.state.get_mut(7)) {
        object.insert("content".to_owned(), "something else".to_owned());
    }
    say("| what | MB each | differing shards | seconds |");
    say("|---|---|---|---|");
    let mut times: Vec<f64> = Vec::new();
    let mut differing = 0;
    for _ in 0..5 {
        let began = Instant::now();
        differing = compare(&base, &head).shards.len();
        times.push(began.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let megabytes = size.unwrap_or_default() / 1_000_000;
    say(&format!("| two declared states compared | {megabytes} | {differing} | {:.2} |", times[2]));
}
