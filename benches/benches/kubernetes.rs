//! Objects of a real API server: a run without changes and a run that creates everything, compared with
//! `kubectl`.
//!
//! Each measured run is a separate process, so that its memory can be measured; the server counts the
//! requests.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics on unexpected errors"
)]

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../../crates/objects/tests/suite/support/test_integration.rs"]
mod test_integration;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit};
use qontract_client_http::{Proxies, Secret, Settings};
use qontract_client_kubernetes::{Cluster, ClusterSettings, ClusterToken, Clusters, TokenError, TokenSource};
use qontract_inventory::Owner;
use qontract_testkit::cluster::{Api, TestCluster};
use serde_json::{Value, json};
use test_integration::{TestIntegration, TestObject};

/// A workload: number of namespaces, objects per namespace, and requests per second.
#[derive(Clone, Copy)]
struct Workload {
    prefix: &'static str,
    namespaces: usize,
    objects: usize,
    per_second: u32,
}

const IDLE: Workload = Workload { prefix: "idle", namespaces: 100, objects: 100, per_second: 2000 };
const BUSY: Workload = Workload { prefix: "busy", namespaces: 10, objects: 100, per_second: 50 };

/// A `ConfigMap` of a kilobyte.
fn config_map(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number:04}")},
        "data": {"settings": "x".repeat(1000)}})
}

struct AdminToken(String);

impl TokenSource for AdminToken {
    fn token<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>> {
        std::future::ready(Ok(ClusterToken { secret: Secret::new(self.0.clone()), server: None })).boxed()
    }
}

/// A real run over all namespaces of a workload. Runs in the child process.
fn reconcile(shape: Workload, api: &[String]) {
    let [url, ca, token] = api else { panic!("the arguments are url, ca and token") };
    let settings = ClusterSettings {
        ca: Some(std::fs::read(ca).unwrap()),
        per_second: shape.per_second.try_into().unwrap(),
        ..ClusterSettings::default()
    };
    let http = Settings { proxies: Proxies::Never, ..Settings::default() };
    let by_name = BTreeMap::from([("c1".to_owned(), settings)]);
    let permit = ReadPermit::for_targets(Mode::Real);
    let clusters = Clusters::new(&permit, http, Arc::new(AdminToken(token.clone())), by_name);
    let cluster = Cluster { name: "c1".to_owned(), server: url.clone(), token: None };
    let owner = Owner::of("openshift-resources", None).unwrap();
    let mut integration = TestIntegration::new(Arc::new(clusters), cluster, owner, &["ConfigMap"]);
    for namespace in 0..shape.namespaces {
        let objects = (0..shape.objects).map(|number| TestObject::for_object(config_map(number))).collect();
        integration = integration.with_namespace(&format!("{}-{namespace}", shape.prefix), objects);
    }
    let start = Instant::now();
    let outcome = integration.run(Mode::Real);
    let faults: Vec<_> = outcome.all_faults().collect();
    assert!(faults.is_empty(), "{:?}", faults.first());
    println!("{} {}", outcome.applied(), start.elapsed().as_millis());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{}", peak.split_whitespace().nth(1).unwrap());
}

/// Runs a child process; returns steps, seconds and megabytes.
fn child(shape: Workload, api: &Api) -> (usize, f64, f64) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--child", shape.prefix, &api.url, api.ca.to_str().unwrap(), &api.token])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of steps")]
    (numbers[0] as usize, numbers[1] / 1000.0, numbers[2] / 1024.0)
}

/// Number of `ConfigMap` requests that the server received so far, by verb.
fn requests(api: &Api) -> BTreeMap<String, f64> {
    let text = api.kubectl(&["get", "--raw", "/metrics"], "").text();
    let mut counts = BTreeMap::new();
    let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    for line in lines.filter(|line| line.contains("resource=\"configmaps\"")) {
        let verb = line.split("verb=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        *counts.entry(verb).or_default() += line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    }
    counts
}

fn request_delta(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> String {
    let grown = after.iter().map(|(verb, count)| (verb, count - before.get(verb).unwrap_or(&0.0)));
    let counts: Vec<String> =
        grown.filter(|(_, more)| *more > 0.0).map(|(verb, more)| format!("{more} {verb}")).collect();
    counts.join(", ")
}

fn make_namespaces(api: &Api, prefix: &str, count: usize) {
    let namespace = |number: usize| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{prefix}-{number}")}});
    let list =
        json!({"apiVersion": "v1", "kind": "List", "items": (0..count).map(namespace).collect::<Vec<_>>()});
    api.kubectl(&["create", "--filename", "-"], &list.to_string()).text();
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "--child") {
        let shape = if words[2] == IDLE.prefix { IDLE } else { BUSY };
        return reconcile(shape, &words[3..]);
    }
    let cluster = TestCluster::start();
    let api = &cluster.api;

    make_namespaces(api, IDLE.prefix, IDLE.namespaces);
    let (steps, seconds, _) = child(IDLE, api);
    println!("fill: {steps} objects written in {seconds:.1} s");
    let before = requests(api);
    let (steps, seconds, peak) = child(IDLE, api);
    let seen = request_delta(&before, &requests(api));
    println!("idle: {steps} steps in {seconds:.2} s, peak {peak:.0} MB; the server saw {seen}");
    assert!(seen == "100 LIST" && peak <= 100.0, "a run without changes uses more than allowed");

    make_namespaces(api, BUSY.prefix, BUSY.namespaces);
    let (steps, seconds, peak) = child(BUSY, api);
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let share = steps as f64 / seconds / f64::from(BUSY.per_second) * 100.0;
    println!(
        "busy: {steps} objects in {seconds:.1} s at {} per second: {share:.0} % of the budget, peak {peak:.0} MB",
        BUSY.per_second
    );
    assert!(share >= 90.0, "less than 90 % of the budget is used");

    make_namespaces(api, "kubectl", BUSY.namespaces);
    let items = (0..BUSY.namespaces).flat_map(|namespace| {
        (0..BUSY.objects).map(move |number| {
            let mut object = config_map(number);
            object["metadata"]["namespace"] = format!("kubectl-{namespace}").into();
            object
        })
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()}).to_string();
    let start = Instant::now();
    api.kubectl(&["apply", "--server-side", "--filename", "-"], &list).text();
    println!("kubectl apply --server-side: 1000 objects in {:.1} s", start.elapsed().as_secs_f64());
}
