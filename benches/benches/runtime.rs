//! Three measurements of the runtime:
//!
//! - the comparison of two declared states of 100 MB that differ in one value;
//! - the time to decide whether a change affects an integration, with both bundles loaded. Fails if the first
//!   decision takes longer than promised at 50,000 datafiles;
//! - the memory of a hundred concurrent dry runs of one integration, one hash slot each, without the shared
//!   data. Fails if it is more than twice that of one run of all shards.
//!
//! `QONTRACT_BENCH_SIZES` sets the sizes.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "measure.rs"]
mod measure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use measure::print_line;
use qontract_access::Mode;
use qontract_benches::corpus;
use qontract_bundle::{Bundle, CommitStamp, Layout, Pool, Repo, build};
use qontract_client_kubernetes::{Kubernetes, Sandbox};
use qontract_client_secrets::ConfigSecrets;
use qontract_graphql::Engine;
use qontract_integration_openshift_clusterrolebindings as openshift_clusterrolebindings;
use qontract_integration_openshift_limitranges as openshift_limitranges;
use qontract_integration_openshift_namespaces as openshift_namespaces;
use qontract_integration_openshift_resources as openshift_resources;
use qontract_integration_openshift_rolebindings as openshift_rolebindings;
use qontract_objects::templates::ExternalLookups;
use qontract_objects::{ManagedObjects, ObjectIntegration};
use qontract_runtime::affected::{AffectedVerdict, BundlePair, affected};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::slot::Slot;
use qontract_runtime::state::{DeclaredState, Shard, compare};
use qontract_runtime::{BundleReader, Integration, LoadedBundle, Options, RunRequest, ShardKey, run};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type BenchState = Vec<BTreeMap<String, String>>;

/// About 100 MB of state: a thousand shards of namespaces with their objects.
fn state() -> DeclaredState<(), String, BenchState> {
    let mut declared = DeclaredState::new(());
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
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "10000,50000".to_owned());
    let mut missed = Vec::new();
    for size in sizes.split(',') {
        let size = size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers");
        let folder = tempfile::tempdir().expect("a temporary directory");
        let corpus = Corpus::new(size, folder.path());
        // First, because memory left over from other measurements would be counted.
        dry_runs(&corpus, &mut missed);
        verdicts(&corpus, &mut missed);
    }
    states();
    assert!(missed.is_empty(), "more than promised:\n{}", missed.join("\n"));
}

/// A generated data repo.
struct Corpus {
    size: usize,
    folder: PathBuf,
    repo: PathBuf,
    tree: corpus::CorpusTree,
    pool: Pool,
}

impl Corpus {
    fn new(size: usize, folder: &Path) -> Self {
        let repo = folder.join("repo");
        let tree = corpus::generate(size, corpus::DEFAULT_SEED);
        tree.write(&repo).expect("the corpus can be written");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
        measure::copy(&example.join("schemas"), &repo.join("schemas"));
        measure::copy(&example.join("graphql-schemas"), &repo.join("graphql-schemas"));
        Self { size, folder: folder.to_owned(), repo, tree, pool: Pool::default() }
    }

    fn bundle(&self) -> Bundle {
        let outcome =
            build(&Repo::directory(&self.repo, Layout::default()), CommitStamp::default(), &self.pool);
        outcome.expect("a data repo").built.expect("a good data repo")
    }

    fn kubernetes(&self) -> Arc<dyn Kubernetes> {
        Arc::new(Sandbox::new(self.folder.join("sandbox")))
    }
}

/// A queryable bundle, loaded as in commands: incrementally from the previous one, if there is one.
fn source(bundle: Bundle, previous: Option<&Arc<dyn BundleReader>>) -> Arc<dyn BundleReader> {
    let bundle = Arc::new(bundle);
    let engine = match previous.and_then(|last| last.engine()) {
        Some(last) => last.derive(bundle),
        None => Engine::new(bundle),
    };
    Arc::new(LoadedBundle::new(Arc::new(engine.expect("types"))))
}

/// Time after which a measurement is not repeated.
const MAX_MEASURE_TIME: Duration = Duration::from_secs(10);

/// Number of dry runs, one hash slot each.
const RUNS: u32 = 100;

/// Memory of concurrent dry runs, without the data.
fn dry_runs(corpus: &Corpus, missed: &mut Vec<String>) {
    let file = corpus.folder.join("bundle.json");
    qontract_bundle::store::write(&corpus.bundle(), &file).expect("a bundle file");
    let bundle = qontract_bundle::load_from(&mut std::fs::File::open(&file).expect("a file"), &corpus.pool);
    let head = source(bundle.expect("a bundle"), None);
    let loaded = measure::memory();
    let integration = managed(openshift_limitranges::OpenshiftLimitranges, &corpus.kubernetes());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let concurrently = |runs: u32| {
        measure::reset_peak();
        let begun = Instant::now();
        let outcomes = runtime.block_on(futures_util::future::join_all((0..runs).map(|slot| {
            let today = jiff::civil::date(2025, 1, 1);
            let mut request = RunRequest::new(
                format!("run-{slot}"),
                Mode::DryRun,
                Arc::clone(&head),
                today,
                ProtectedKinds::default(),
            );
            request.slot = Slot::new(slot, runs).expect("a slot");
            // The corpus does not define this integration.
            request.validate_schemas = false;
            let integration = &integration;
            async move { run(integration, &request).await }
        })));
        for outcome in &outcomes {
            assert!(outcome.faults.is_empty(), "{}: {:?}", outcome.run, outcome.faults);
        }
        let shards: usize = outcomes.iter().map(|outcome| outcome.shards.len()).sum();
        (shards, begun.elapsed().as_secs_f64(), (measure::peak() - loaded) / 1e6)
    };
    let data = std::fs::metadata(&file).expect("a file").len() as f64 / 1e6;
    print_line(&format!(
        "\n## {} datafiles: dry runs on one copy of the data, a bundle of {data:.0} MB\n",
        corpus.size
    ));
    print_line("| runs | shards | seconds | peak MB without the loaded bundle |");
    print_line("|---|---|---|---|");
    // Many runs first, because memory left over from the single run would be counted.
    let [many, one] = [RUNS, 1].map(|runs| {
        let (shards, seconds, more) = concurrently(runs);
        print_line(&format!("| {runs} | {shards} | {seconds:.1} | {more:.0} |"));
        more
    });
    if corpus.size == 50_000 && many > 2.0 * one {
        missed.push(format!("{RUNS} dry runs: {many:.0} MB, at most twice the {one:.0} MB of one promised"));
    }
}

/// Whether a change affects an integration, for several of them and changes.
fn verdicts(corpus: &Corpus, missed: &mut Vec<String>) {
    let Corpus { size, repo, tree, .. } = corpus;
    let base = source(corpus.bundle(), None);
    let change = |schema: &str, from: &str, to: &str| {
        let wanted = format!("$schema: {schema}\n");
        let all = tree.under("data/");
        let (path, text) = all
            .filter(|(_, text)| text.contains(&wanted) && text.contains(from))
            .take(8)
            .last()
            .expect("such a file");
        std::fs::write(repo.join(path), text.replacen(from, to, 1)).expect("a datafile");
        (repo.join(path), text.to_owned())
    };
    let kubernetes = corpus.kubernetes();
    let integrations = [
        managed(openshift_namespaces::OpenshiftNamespaces, &kubernetes),
        managed(openshift_limitranges::OpenshiftLimitranges, &kubernetes),
        managed(openshift_rolebindings::OpenshiftRolebindings, &kubernetes),
        managed(openshift_clusterrolebindings::OpenshiftClusterrolebindings, &kubernetes),
        managed(openshift_resources::OpenshiftResources::default(), &kubernetes),
    ];
    print_line(&format!("\n## {size} datafiles: does a change affect an integration?\n"));
    print_line("| change | integration | verdict | shards | ms, the first time | ms |");
    print_line("|---|---|---|---|---|---|");
    for (what, schema, from, to) in [
        ("description of a namespace", "/openshift/namespace-1.yml", "description: ", "description: Now "),
        ("name of a user", "/access/user-1.yml", "\nname: ", "\nname: Now "),
        (
            "`managedByExternal` of a namespace",
            "/openshift/namespace-1.yml",
            "\nname: ",
            "\nmanagedByExternal: true\nname: ",
        ),
        ("name of a namespace", "/openshift/namespace-1.yml", "\nname: ", "\nname: now-"),
        (
            "`github_username` of a user",
            "/access/user-1.yml",
            "\ngithub_username: ",
            "\ngithub_username: now-",
        ),
        (
            "`serverUrl` of a cluster",
            "/openshift/cluster-1.yml",
            "\nserverUrl: https://",
            "\nserverUrl: https://now-",
        ),
    ] {
        let (file, text) = change(schema, from, to);
        let head = source(corpus.bundle(), Some(&base));
        for integration in &integrations {
            let mut times = Vec::new();
            let (mut verdict, mut shards) = ("", 0);
            let all = Instant::now();
            while times.len() < 5 && all.elapsed() < MAX_MEASURE_TIME {
                let pair = BundlePair::new(integration, Arc::clone(&base), Arc::clone(&head));
                let begun = Instant::now();
                let decided = affected(integration, &pair, &Options::default());
                times.push(begun.elapsed().as_secs_f64() * 1000.0);
                (verdict, shards) = match decided {
                    AffectedVerdict::Unaffected(rule) => (rule.as_str(), 0),
                    AffectedVerdict::Affected(found) => {
                        (found.rule.as_str(), found.comparison.map_or(0, |differs| differs.shards.len()))
                    }
                    AffectedVerdict::Unknown(fault) => panic!("{fault}"),
                };
            }
            let first = times[0];
            times.sort_by(f64::total_cmp);
            let name = &integration.meta().name;
            let middle = times[times.len() / 2];
            print_line(&format!("| {what} | `{name}` | {verdict} | {shards} | {first:.1} | {middle:.1} |"));
            if *size == 50_000 && first > 150.0 {
                missed.push(format!("{what}, {name}: {first:.0} ms, 150 ms promised"));
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
    print_line("| comparison | MB each | differing shards | seconds |");
    print_line("|---|---|---|---|");
    let mut times: Vec<f64> = Vec::new();
    let mut differing = 0;
    for _ in 0..5 {
        let began = Instant::now();
        differing = compare(&base, &head).shards.len();
        times.push(began.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let megabytes = size.unwrap_or_default() / 1_000_000;
    print_line(&format!("| two declared states | {megabytes} | {differing} | {:.2} |", times[2]));
}

/// An integration over Kubernetes objects, without secrets to look up.
fn managed(integration: impl ObjectIntegration, kubernetes: &Arc<dyn Kubernetes>) -> Integration {
    let lookups = ExternalLookups::secrets(Arc::new(ConfigSecrets::new(toml::Table::new())));
    Integration::staged(ManagedObjects::new(integration, Arc::clone(kubernetes), Arc::new(lookups)))
}
