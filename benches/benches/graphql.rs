//! CPU time of a query, compared with graphql-js on the same bundle in the same run.
//!
//! `cargo xtask bench graphql` prints a Markdown table: CPU milliseconds per request, warm, on one thread.
//! Both sides measure from the request string to the bytes of the response, without HTTP. The responses must
//! be equal. `QONTRACT_BENCH_SIZES=1000,10000,50000` sets the sizes.

#[path = "measure.rs"]
mod measure;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use qontract_benches::corpus;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build, load};
use qontract_graphql::{Engine, Request};
use serde_json::{Value, json};

/// Measurement time per request and side.
const MEASURE_TIME: Duration = Duration::from_secs(3);

const ALL_NAMESPACES: &str = "{ namespaces_v1 { path name description cluster { name serverUrl } app { name path } \
                              environment { name product { name } } } }";
const USERS: &str = "{ users_v1 { path name org_username roles { path name permissions { path name service \
                     ... on PermissionSlackUsergroup_v1 { handle workspace { name } } \
                     ... on PermissionGithubOrgTeam_v1 { org team } } } } }";

fn main() {
    let sizes = std::env::var("QONTRACT_BENCH_SIZES").unwrap_or_else(|_| "1000,10000".to_owned());
    measure::print_line(
        "| datafiles | request | response bytes | `qontract` CPU ms | graphql-js CPU ms | times |",
    );
    measure::print_line("|---|---|---|---|---|---|");
    for size in sizes.split(',') {
        measure_size(size.trim().parse().expect("QONTRACT_BENCH_SIZES is a list of numbers"));
    }
}

fn measure_size(size: usize) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    corpus::generate(size, corpus::DEFAULT_SEED).write(folder.path()).expect("the corpus can be written");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/app-interface");
    measure::copy(&example.join("schemas"), &folder.path().join("schemas"));
    measure::copy(&example.join("graphql-schemas"), &folder.path().join("graphql-schemas"));
    let repo = Repo::directory(folder.path(), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("the corpus can be read");
    let built = outcome.built.expect("the corpus is good");
    let file = folder.path().join("bundle.json");
    let bytes = built.to_vec();
    std::fs::write(&file, &bytes).expect("the bundle can be written");
    // Loaded, as in a server, not built.
    let bundle = load(&bytes, &Pool::default()).expect("a bundle");
    let engine = Engine::new(Arc::new(bundle)).expect("the types are good");

    let one = engine.index().files_of("/openshift/namespace-1.yml")[0];
    let path = &engine.bundle().datafiles()[one as usize].path;
    let one_namespace = format!(
        "{{ namespaces_v1(path: \"{path}\") {{ path name description labels cluster {{ name serverUrl }} app {{ name }} \
         environment {{ name }} quota {{ name }} openshiftResources {{ provider ... on \
         NamespaceOpenshiftResourceResource_v1 {{ path {{ path content }} }} }} }} }}"
    );
    let requests = [
        ("Q1 all namespaces with cluster, app, environment", ALL_NAMESPACES),
        ("Q2 one namespace by path", one_namespace.as_str()),
        ("Q3 users → roles → permissions", USERS),
    ];
    let theirs = peer(&file, "answer", &requests);
    let costs = peer(&file, "measure", &requests);
    for (((name, query), theirs), cost) in requests.iter().zip(theirs).zip(costs) {
        let answer = engine.answer(Request { query, ..Request::default() });
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            theirs["body"].as_str().unwrap_or_default(),
            "{query}"
        );
        let ours = cpu_milliseconds(&engine, query);
        let peer = cost["milliseconds"].as_f64().expect("a number");
        let bytes = answer.body.len();
        measure::print_line(&format!(
            "| {size} | {name} | {bytes} | {ours:.3} | {peer:.3} | {:.0} |",
            peer / ours
        ));
    }
}

/// The output of the peer for each request.
fn peer(bundle: &Path, mode: &str, requests: &[(&str, &str)]) -> Vec<Value> {
    let folder =
        std::env::var("QONTRACT_GRAPHQL_JS").expect("`cargo xtask bench graphql` sets QONTRACT_GRAPHQL_JS");
    let mut child = Command::new("node")
        .arg("--max-old-space-size=8192")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/graphql/peer.mjs"))
        .arg(bundle)
        .arg(mode)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    for (_, query) in requests {
        writeln!(stdin, "{}", json!({"query": query})).expect("the peer listens");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("the peer ends");
    assert!(output.status.success(), "the peer failed");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

fn cpu_milliseconds(engine: &Engine, query: &str) -> f64 {
    let run = || engine.answer(Request { query, ..Request::default() }).body.len();
    for _ in 0..3 {
        run();
    }
    let (start, before) = (Instant::now(), thread_cpu_time());
    let mut rounds = 0_u32;
    while start.elapsed() < MEASURE_TIME || rounds < 3 {
        run();
        rounds += 1;
    }
    thread_cpu_time().saturating_sub(before).as_secs_f64() * 1000.0 / f64::from(rounds)
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps the time of threads");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number");
    Duration::from_nanos(nanoseconds)
}
