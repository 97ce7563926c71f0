//! Tests of all integrations: no dry run writes, and impact analysis is sound.

mod folders;
#[allow(dead_code, reason = "the binary uses all of it")]
#[path = "../../src/integrations.rs"]
mod registry;
mod write_proof_clients;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qontract_access::Mode;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build, load};
use qontract_client_promtool::{Promtool, find};
use qontract_config::Config;
use qontract_daemon::targets::Targets;
use qontract_graphql::Engine;
use qontract_runtime::affected::{AffectedVerdict, BundlePair, affected};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::{
    BundleReader, Data, Integration, LoadedBundle, Options, RunEnd, RunRequest, flags_error, run,
};
use qontract_testkit::{Scratch, SeededRng, chaos_count, example};
use registry::{ALL, REGISTRY};
use serde_json::Value;
use write_proof_clients::{Writes, clients};

fn example_bundle() -> Vec<u8> {
    let repo = Repo::directory(example(), Layout::default());
    build(&repo, CommitStamp::default(), &Pool::default()).unwrap().built.unwrap().to_vec()
}

fn loaded(bytes: &[u8], pool: &Pool) -> Option<Arc<dyn BundleReader>> {
    let bundle = load(bytes, pool).ok()?;
    Some(Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).ok()?))))
}

#[test]
fn the_flags_of_every_integration_can_be_on_one_command_line() {
    for meta in REGISTRY.metas() {
        assert_eq!(flags_error(&meta.flags), None, "{}", meta.name);
    }
}

/// The namespaces of a bundle: cluster and name.
fn namespaces(bundle: &[u8]) -> Vec<(String, String)> {
    let bundle: Value = serde_json::from_slice(bundle).unwrap();
    let files = bundle["data"].as_object().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = files.values().filter(|file| file["$schema"] == "/openshift/namespace-1.yml");
    all.map(|file| (text(&files[file["cluster"]["$ref"].as_str().unwrap()]["name"]), text(&file["name"])))
        .collect()
}

/// A program that declares one object.
const OBJECT_PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "declares", "form": "objects"}' ;;
declare) echo '{"shards": [{"cluster": "cliffs-stage", "namespace": "catalog-stage", "caller": "one",
    "kinds": ["ConfigMap"], "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}]}]}' ;;
esac
"#;

/// Every file below a directory, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

#[tokio::test]
#[ignore = "needs QONTRACT_PROMTOOL; run by `cargo xtask test`"]
async fn no_integration_writes_in_a_dry_run() {
    let (scratch, bytes) = (Scratch::new(), example_bundle());
    // All namespaces exist, so that there are namespaces to label, and one to delete.
    for (cluster, name) in namespaces(&bytes) {
        let body = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
        scratch.write(&format!("world/clusters/{cluster}/_cluster/Namespace/{name}.yaml"), body);
    }
    let world = scratch.path().join("world");
    let (writes, before) = (Writes::default(), files(&world));
    let program = std::env::var_os("QONTRACT_PROMTOOL").expect("`cargo xtask test` sets QONTRACT_PROMTOOL");
    let promtool = Promtool::new(find(Some(program.as_ref()), None));
    let targets = Targets::of(clients(&world, promtool, &writes));
    let head = loaded(&bytes, &Pool::default()).unwrap();
    let today = jiff::civil::date(2026, 1, 1);
    // An object program as well: its objects are managed by the adapter of the others.
    let program = scratch.write("program.sh", OBJECT_PROGRAM);
    let config = format!("[integrations.service-dependencies]\ncommand = [\"sh\", {program:?}]\n");
    let config = Config::read(Some(&scratch.write("config.toml", config))).unwrap();
    let program = REGISTRY.integration("service-dependencies", &config, &targets).unwrap();
    let integrations = ALL.iter().map(|entry| (entry.create)(&targets).unwrap()).chain([program]);
    for integration in integrations {
        let name = integration.meta().name.clone();
        let request = |run, mode| {
            let protected = ProtectedKinds::new(qontract_kinds::protected_kinds());
            // The definition of the program in the example does not allow clusters.
            let validate_schemas = name != "service-dependencies";
            RunRequest { validate_schemas, ..RunRequest::new(run, mode, Arc::clone(&head), today, protected) }
        };
        let dry = run(&integration, &request("dry", Mode::DryRun)).await;
        assert_eq!(dry.ended, RunEnd::Ok, "{name}: {dry:?}");
        assert_eq!(writes.take(), [""; 0], "{name} wrote in a dry run");
        assert_eq!(files(&world), before, "{name} wrote in a dry run");
        // The same world records the writes of a real run, so this test can fail.
        let changes: usize = dry.shards.values().map(|shard| shard.changes.len()).sum();
        let real = run(&integration, &request("real", Mode::Real)).await;
        let seen = writes.take();
        assert_eq!(seen.len(), changes, "{name}");
        assert_eq!(real.ended, if changes == 0 { RunEnd::Ok } else { RunEnd::Failed }, "{name}");
        assert!(changes > 0 || name != "service-dependencies", "{dry:?}");
    }
}

/// Copies a field from one namespace to another: its name, its cluster, its quota …
fn mix(bundle: &mut Value, chance: &mut SeededRng) {
    let files = bundle["data"].as_object_mut().unwrap();
    let is_namespace = |file: &&Value| file["$schema"] == "/openshift/namespace-1.yml";
    let mut all: Vec<Value> = files.values().filter(is_namespace).cloned().collect();
    let other = all.swap_remove(chance.below(all.len()));
    let (key, value) =
        other.as_object().unwrap().iter().nth(chance.below(other.as_object().unwrap().len())).unwrap();
    let mut namespaces = files.values_mut().filter(|file| is_namespace(&&**file));
    if let Some(namespace) = namespaces.nth(chance.below(all.len())) {
        namespace[key] = value.clone();
    }
}

/// Makes a random change in a bundle.
fn mutate(bundle: &mut Value, chance: &mut SeededRng) {
    if chance.below(3) == 0 {
        return mix(bundle, chance);
    }
    let part = ["data", "data", "data", "resources"][chance.below(4)];
    let files = bundle[part].as_object_mut().unwrap();
    // Half of the changes are in files that integrations read.
    let read = |path: &&String| {
        ["/namespaces/", "/clusters/", "/queries/", "/access/", "/platform/"]
            .iter()
            .any(|part| path.contains(part))
    };
    let near: Vec<&String> = files.keys().filter(read).collect();
    let path = match chance.below(2) {
        0 if !near.is_empty() => near[chance.below(near.len())].clone(),
        _ => files.keys().nth(chance.below(files.len())).unwrap().clone(),
    };
    match chance.below(10) {
        0 => drop(files.remove(&path)),
        1 => {
            let copy = files[&path].clone();
            files.insert(format!("{path}.copy.yml"), copy);
        }
        _ => {
            if let Some(document) = files.get_mut(&path) {
                change(document, chance);
            }
        }
    }
}

/// Makes a random change in a value, at a random depth.
fn change(value: &mut Value, chance: &mut SeededRng) {
    let deeper = chance.below(4) > 0;
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let key = map.keys().nth(chance.below(map.len())).unwrap().clone();
            if chance.below(12) == 0 {
                map.remove(&key);
            } else {
                change(&mut map[&key], chance);
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let index = chance.below(items.len());
            if chance.below(6) == 0 {
                items.swap(0, index);
            } else {
                change(&mut items[index], chance);
            }
        }
        Value::String(text) => text.push('x'),
        Value::Bool(flag) => *flag = !*flag,
        other => *other = Value::from("something else"),
    }
}

#[test]
fn an_unaffected_integration_has_the_same_declared_state() {
    let seeds = chaos_count(80);
    let (bytes, pool) = (example_bundle(), Pool::default());
    let parsed: Value = serde_json::from_slice(&bytes).unwrap();
    let base = loaded(&bytes, &pool).unwrap();
    let integrations: Vec<Integration> =
        ALL.iter().map(|entry| (entry.create)(&Targets::none()).unwrap()).collect();
    let (mut unaffected, mut hit, mut parts) = (0, 0, 0);
    for seed in 1..=seeds {
        let mut chance = SeededRng::new(seed);
        let mut changed = parsed.clone();
        for _ in 0..=chance.below(3) {
            mutate(&mut changed, &mut chance);
        }
        let Some(head) = loaded(&serde_json::to_vec(&changed).unwrap(), &pool) else { continue };
        for integration in &integrations {
            let pair = BundlePair::new(integration, Arc::clone(&base), Arc::clone(&head));
            let name = &integration.meta().name;
            match affected(integration, &pair, &Options::default()) {
                AffectedVerdict::Unaffected(rule) => {
                    unaffected += 1;
                    let state = |data: &Data| {
                        integration.declare(data, &Options::default()).map(|state| state.unwrap().json())
                    };
                    assert_eq!(
                        state(&pair.base),
                        state(&pair.head),
                        "seed {seed}: {name} by {}",
                        rule.as_str()
                    );
                }
                AffectedVerdict::Affected(found) => {
                    hit += 1;
                    parts += usize::from(found.comparison.is_some() && found.states.is_none());
                    let state = |data: &Data| integration.declare(data, &Options::default());
                    let (Some(comparison), Ok(Some(base)), Ok(Some(head))) =
                        (&found.comparison, state(&pair.base), state(&pair.head))
                    else {
                        continue;
                    };
                    let differs = base.compare(&*head);
                    let missed: Vec<_> =
                        differs.shards.keys().filter(|key| !comparison.affects(key)).collect();
                    assert!(missed.is_empty(), "seed {seed}: {name} misses {missed:?}");
                    assert_eq!(
                        (differs.common, differs.gone),
                        (comparison.common, comparison.gone.clone()),
                        "seed {seed}: {name}"
                    );
                }
                AffectedVerdict::Unknown(_) => hit += 1,
            }
        }
    }
    assert!(
        unaffected > 100 && hit > 10 && parts > 10,
        "{unaffected} unaffected, {hit} affected, {parts} of them compared by shard: too few for a meaningful test"
    );
}
