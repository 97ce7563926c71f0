//! Cost of a query over HTTP, compared with Apollo Server on Express on the same bundle in the same run; and
//! the cost of loading, comparing and replacing bundles.
//!
//! `cargo xtask bench server` prints Markdown tables, and fails if something costs more than promised. Both
//! servers are processes on the loopback interface; our response cache is off. `QONTRACT_BENCH_SIZES` sets
//! the sizes; beyond 50,000 datafiles the peer is not measured.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "measure.rs"]
mod measure;
#[path = "served.rs"]
mod served;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use qontract_benches::corpus;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, Sha256, build};
use serde_json::{Value, json};
use served::ServerProcess;

const Q1: &str = "{ namespaces_v1 { path name description cluster { name serverUrl } app { name path } \
                  environment { name product { name } } } }";
const Q3: &str = "{ users_v1 { path name org_username roles { path name permissions { path name service \
                  ... on PermissionSlackUsergroup_v1 { handle workspace { name } } \
                  ... on PermissionGithubOrgTeam_v1 { org team } } } } }";

/// Measurement time per request and side.
const MEASURE_TIME: Duration = Duration::from_secs(4);
/// Number of reloads.
const RELOADS: usize = 50;
/// Time between reloads: a fifth of all reloads takes several times the TTL of an unused bundle, so that the
/// number of held bundles is the same then and at the end.
const RELOAD_INTERVAL: Duration = Duration::from_millis(300);
/// Number of concurrent clients during the reloads.
const CLIENTS: usize = 200;
/// The number of datafiles for which figures are promised.
const PROMISED_SIZE: usize = 50_000;

fn main() {
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "10000,50000".to_owned());
    let mut missed = Vec::new();
    for size in sizes.split(',') {
        let size: usize = size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers");
        let folder = tempfile::tempdir().expect("a temporary directory");
        let bundles = bundles(size, folder.path());
        measure::print_line(&format!("\n## {size} datafiles\n"));
        answers(&bundles, size == PROMISED_SIZE, &mut missed);
        holding(&bundles, size == PROMISED_SIZE, &mut missed);
        if size < PROMISED_SIZE {
            reloads(&bundles, folder.path(), &mut missed);
        }
    }
    assert!(missed.is_empty(), "more than promised:\n{}", missed.join("\n"));
}

/// A bundle, and one in which ten files differ.
struct Bundles {
    first: PathBuf,
    second: PathBuf,
    shas: [String; 2],
    bytes: u64,
    /// The path of one namespace.
    namespace: String,
    /// Whether the peer is measured, too.
    has_peer: bool,
}

fn bundles(size: usize, folder: &Path) -> Bundles {
    let repo = folder.join("repo");
    corpus::generate(size, corpus::DEFAULT_SEED).write(&repo).expect("the corpus can be written");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
    measure::copy(&example.join("schemas"), &repo.join("schemas"));
    measure::copy(&example.join("graphql-schemas"), &repo.join("graphql-schemas"));
    let make = |file: &Path| {
        let outcome =
            build(&Repo::directory(&repo, Layout::default()), CommitStamp::default(), &Pool::default());
        let built = outcome.expect("the corpus can be read").built.expect("the corpus is good");
        let bytes = built.to_vec();
        fs::write(file, &bytes).expect("a file");
        (Sha256::of(&bytes).to_string(), built)
    };
    let (first, second) = (folder.join("first.json"), folder.join("second.json"));
    let (sha, bundle) = make(&first);
    let of_namespace =
        |file: &&qontract_bundle::Datafile| file.document.schema() == Some("/openshift/namespace-1.yml");
    let namespaces: Vec<String> =
        bundle.datafiles().iter().filter(of_namespace).map(|file| file.path.to_string()).collect();
    for path in namespaces.iter().take(10) {
        let file = repo.join("data").join(path.trim_start_matches('/'));
        let text = fs::read_to_string(&file).expect("a datafile");
        fs::write(&file, format!("{text}\n# changed\n")).expect("a datafile");
    }
    let (other, _) = make(&second);
    let bytes = fs::metadata(&first).expect("a file").len();
    let has_peer = size <= PROMISED_SIZE;
    Bundles { first, second, shas: [sha, other], bytes, namespace: namespaces[0].clone(), has_peer }
}

/// Starts Apollo Server on Express with these bundles.
fn theirs(bundles: &[&Path]) -> ServerProcess {
    let folder = std::env::var("QONTRACT_APOLLO").expect("`cargo xtask bench server` sets QONTRACT_APOLLO");
    let mut command = Command::new("node");
    command
        .args([
            "--max-old-space-size=8192",
            concat!(env!("CARGO_MANIFEST_DIR"), "/benches/server/peer.mjs"),
            "0",
        ])
        .args(bundles)
        .env("NODE_ENV", "production")
        .current_dir(folder);
    ServerProcess::start(command.stdout(Stdio::piped()), |child| {
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a port");
        line.trim().parse().expect("a port")
    })
}

/// CPU milliseconds of a server per request, and the median time of a request.
fn cost(server: &ServerProcess, query: &str) -> (f64, f64) {
    let mut client = server.connect();
    for _ in 0..3 {
        client.query(query);
    }
    let (begun, before, mut times) = (Instant::now(), server.cpu(), Vec::new());
    while begun.elapsed() < MEASURE_TIME || times.len() < 5 {
        let one = Instant::now();
        client.query(query);
        times.push(one.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    ((server.cpu() - before) / times.len() as f64, times[times.len() / 2])
}

fn answers(bundles: &Bundles, is_promised: bool, missed: &mut Vec<String>) {
    let q2 = format!(
        "{{ namespaces_v1(path: \"{}\") {{ path name description labels cluster {{ name serverUrl }} app {{ name }} \
         environment {{ name }} quota {{ name }} openshiftResources {{ provider ... on \
         NamespaceOpenshiftResourceResource_v1 {{ path {{ path content }} }} }} }} }}",
        bundles.namespace
    );
    let first = bundles.first.display().to_string();
    let ours = ServerProcess::ours(&["--bundle", &first]);
    let theirs = bundles.has_peer.then(|| theirs(&[&bundles.first]));
    measure::print_line(
        "| request | response bytes | CPU ms | peer's CPU ms | times | p50 ms | peer's p50 ms |",
    );
    measure::print_line("|---|---|---|---|---|---|---|");
    for (name, query, least) in [("Q1", Q1, 20.0), ("Q2", q2.as_str(), 10.0), ("Q3", Q3, 20.0)] {
        let answer = ours.connect().query(query);
        let (cpu, p50) = cost(&ours, query);
        let Some(theirs) = &theirs else {
            measure::print_line(&format!("| {name} | {} | {cpu:.3} | – | – | {p50:.2} | – |", answer.len()));
            continue;
        };
        let read = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("JSON");
        assert_eq!(read(&answer), read(&theirs.connect().query(query)), "{name}");
        let (peer, peer_p50) = cost(theirs, query);
        let times = peer / cpu;
        measure::print_line(&format!(
            "| {name} | {} | {cpu:.3} | {peer:.3} | {times:.0} | {p50:.2} | {peer_p50:.2} |",
            answer.len()
        ));
        if is_promised && times < least {
            missed.push(format!("{name}: {times:.1} times less CPU, at least {least} promised"));
        }
    }
    measure::print_line("");
}

fn holding(bundles: &Bundles, is_promised: bool, missed: &mut Vec<String>) {
    let (first, second) = (bundles.first.display().to_string(), bundles.second.display().to_string());
    let one = ServerProcess::ours(&["--bundle", &first]);
    let (file, alone) = (bundles.bytes as f64, one.memory());
    let (load, cpu) = (one.load.as_secs_f64(), one.load_cpu / 1000.0);
    measure::check_promise(
        missed,
        is_promised,
        load <= 0.5,
        format!("load: {load:.2} s ({cpu:.2} s of CPU), 0.5 s promised"),
    );
    let times = alone / file;
    measure::check_promise(
        missed,
        is_promised,
        times <= 2.5,
        format!(
            "memory with one bundle of {:.1} MB: {:.0} MB, {times:.2} times the file, 2.5 promised",
            file / 1e6,
            alone / 1e6
        ),
    );
    drop(one);
    let two = ServerProcess::ours(&["--bundle", &second, "--bundle", &first]);
    let times = two.memory() / alone;
    measure::check_promise(
        missed,
        is_promised,
        times <= 1.2,
        format!("memory with two that differ in ten files: {times:.2} times that, 1.2 promised"),
    );
    let mut client = two.connect();
    let path = format!("/diff/{}/{}", bundles.shas[0], bundles.shas[1]);
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let begun = Instant::now();
            let diff: Value = serde_json::from_slice(&client.get(&path)).expect("JSON");
            assert_eq!(diff["datafiles"].as_object().map(serde_json::Map::len), Some(10));
            begun.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    measure::check_promise(
        missed,
        is_promised,
        times[4] <= 20.0,
        format!("/diff of ten files: {:.1} ms, 20 ms promised", times[4]),
    );
}

/// The median of the last five measurements: a single one may be taken while memory is being released.
fn median_of_last_five(memories: &[f64]) -> f64 {
    let mut last = memories[memories.len() - 5..].to_vec();
    last.sort_by(f64::total_cmp);
    last[2]
}

/// Many clients send queries while the bundle is replaced repeatedly.
fn reloads(bundles: &Bundles, folder: &Path, missed: &mut Vec<String>) {
    let served = folder.join("served.json");
    let texts = [&bundles.first, &bundles.second].map(|file| fs::read_to_string(file).expect("a bundle"));
    fs::write(&served, &texts[0]).expect("a file");
    let server = ServerProcess::ours(&["--bundle", &served.display().to_string(), "--ttl", "1s"]);
    let (is_over, sent, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let query =
        json!({ "query": format!("{{ namespaces_v1(path: \"{}\") {{ name }} }}", bundles.namespace) });
    let query = query.to_string();
    let memories: Vec<f64> = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    let (status, body) = client.send("POST", "/graphql", &query);
                    let is_good = status == 200 && body.starts_with(b"{\"data\":{\"namespaces_v1\":[{");
                    failed.fetch_add(usize::from(!is_good), Ordering::Relaxed);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.connect();
        let memories = (1..=RELOADS)
            .map(|number| {
                // Another commit makes each bundle a new one.
                let text =
                    texts[number % 2].replacen("\"git_commit\":\"", &format!("\"git_commit\":\"{number}"), 1);
                fs::write(&served, text).expect("a file");
                let begun = Instant::now();
                let (status, body) = client.send("POST", "/reload", "");
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                std::thread::sleep(RELOAD_INTERVAL.saturating_sub(begun.elapsed()));
                server.memory()
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        memories
    });
    let (sent, failed) = (sent.into_inner(), failed.into_inner());
    measure::check_promise(
        missed,
        true,
        failed == 0,
        format!("{CLIENTS} clients during {RELOADS} reloads: {sent} requests, {failed} failed"),
    );
    let (fifth, last) = (median_of_last_five(&memories[..RELOADS / 5]), median_of_last_five(&memories));
    let times = last / fifth;
    measure::check_promise(
        missed,
        true,
        times <= 1.1,
        format!(
            "memory at the end: {:.0} MB, {times:.2} times that after the first fifth, 1.1 promised",
            last / 1e6
        ),
    );
}
