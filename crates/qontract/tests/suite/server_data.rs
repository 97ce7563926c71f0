//! Runs on data of `qontract serve`: the same results as on the directory that it serves, with few requests.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use qontract_testkit::{Scratch, eventually, example};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::command;
use crate::support::counting_proxy::{CountingProxy, kinds};
use crate::support::running::{Running, get};

const NAMESPACE: &str = "data/services/catalog/namespaces/catalog-stage.yml";
/// Those that need no secrets: a run on a server does not read the made-up secrets of the data repo.
const CLUSTER_INTEGRATIONS: [&str; 9] = [
    "openshift-namespaces",
    "openshift-resources",
    "openshift-limitranges",
    "openshift-resourcequotas",
    "openshift-network-policies",
    "openshift-rolebindings",
    "openshift-clusterrolebindings",
    "openshift-namespace-labels",
    "openshift-prometheus-rules",
];

/// The example as a data repo, a server that watches it, and a proxy between the server and the runs.
struct Fixture {
    scratch: Scratch,
    server: Running,
    proxy: CountingProxy,
    /// The bundle of the commit.
    base: String,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// `prepare` changes the data before it is committed.
    fn with(prepare: impl FnOnce(&Scratch)) -> Self {
        let scratch = Scratch::copy_of(&example());
        prepare(&scratch);
        scratch.write(".gitignore", "config.toml\nsandbox*\nruns*\n");
        scratch.commit_all("all");
        let (server, address) = serve(&scratch, "127.0.0.1:0");
        let base = sha(&address);
        let proxy = CountingProxy::start(&address);
        scratch.write("config.toml", format!("[graphql]\nserver = \"http://{}/graphql\"\n", proxy.address));
        Self { scratch, server, proxy, base }
    }

    /// Changes a file; returns the new bundle of the server.
    fn change(&mut self, file: &str, from: &str, to: &str) -> String {
        let text = self.scratch.read(file);
        assert!(text.contains(from), "{file} does not contain `{from}`");
        self.scratch.write(file, text.replace(from, to));
        self.server.until("bundle loaded: ");
        let head = sha(&self.proxy.address);
        self.proxy.take();
        head
    }

    fn run(&self, words: &[&str]) -> Output {
        command::qontract(self.scratch.path(), words)
    }

    /// Runs an integration on the directory and on the server; returns both results, without what differs between
    /// any two runs.
    fn both(&self, integration: &str, words: &[&str], base: bool) -> [RunResult; 2] {
        let of_folder = ["--data", ".", "--base", "HEAD"];
        let of_server = ["--config", "config.toml", "--early-exit-compare-sha", self.base.as_str()];
        [("folder", of_folder), ("server", of_server)].map(|(name, data)| {
            let data = if base { &data[..] } else { &data[..2] };
            let (sandbox, runs) = (format!("sandbox-{name}"), format!("runs-{name}"));
            let common = ["reconcile", integration, "--sandbox", &sandbox, "--runs", &runs, "-o", "json"];
            RunResult::of(&self.run(&[&common[..], data, words].concat()))
        })
    }
}

fn serve(scratch: &Scratch, listen: &str) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).args(["serve", ".", "--watch", "--listen", listen]);
    command.env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    let mut server = Running::of(&mut command);
    let line = server.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (server, address)
}

fn sha(address: &str) -> String {
    get(address, "/sha256").split("\r\n\r\n").nth(1).unwrap().trim().to_owned()
}

/// What a run prints, without what differs between any two runs.
#[derive(Debug)]
struct RunResult {
    code: Option<i32>,
    record: Value,
    messages: Vec<String>,
}

impl RunResult {
    fn of(output: &Output) -> Self {
        let mut record: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
        // Whether the files differ from the commit is known only where they are.
        for key in ["run", "began", "started", "now", "milliseconds", "planned_at", "modified"] {
            remove(&mut record, key);
        }
        let printed = text(&output.stderr);
        let messages = printed.lines().map(str::to_owned);
        let of_run = ["gql endpoint", "explain run", "real run · data "];
        let is_stable = |line: &String| !of_run.iter().any(|text| line.contains(text));
        Self { code: output.status.code(), record, messages: messages.filter(is_stable).collect() }
    }
}

/// Compares two results, and prints only the lines that differ.
#[track_caller]
fn check_same([folder, server]: &[RunResult; 2], context: &str) {
    let lines = |result: &RunResult| {
        let record = serde_json::to_string_pretty(&result.record).unwrap();
        let lines = record.lines().map(str::to_owned).chain(result.messages.clone());
        lines.chain([format!("{:?}", result.code)]).collect::<Vec<_>>()
    };
    let (folder, server) = (lines(folder), lines(server));
    let differ = |one: &[String], other: &[String]| {
        one.iter().filter(|line| !other.contains(line)).cloned().collect::<Vec<_>>()
    };
    assert!(folder == server, "{context}: {:#?} {:#?}", differ(&folder, &server), differ(&server, &folder));
}

fn remove(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(key);
            fields.values_mut().for_each(|value| remove(value, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| remove(value, key)),
        _ => {}
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// **Invariant:** a run on a server has the plan, the lines, the causes, the messages and the exit code of the run
/// on the directory that it serves.
#[test]
fn a_run_on_a_server_is_the_run_on_its_directory() {
    let mut fixture = Fixture::new();
    fixture.change(NAMESPACE, "name: catalog-stage", "name: catalog-staging");
    let (mut lines, mut exits) = (0, 0);
    for integration in CLUSTER_INTEGRATIONS {
        for (words, base) in [(&["--dry-run"][..], false), (&["--dry-run"], true), (&[], false)] {
            let results = fixture.both(integration, words, base);
            check_same(&results, &format!("{integration} {words:?} {base}"));
            let [folder, _] = results;
            let printed = folder.record.to_string();
            lines += usize::from(printed.contains("catalog-stage.yml:"));
            exits += usize::from(printed.contains("no change between"));
        }
    }
    assert!(lines >= 10 && exits >= 1, "{lines} runs with a line of the change, {exits} early exits");
}

/// The audit log of a real run names the lines of the data, too.
#[test]
fn the_audit_log_of_a_run_on_a_server_has_lines() {
    let fixture = Fixture::new();
    check_same(&fixture.both("openshift-namespaces", &[], false), "a real run");
    let places = |name: &str| -> Vec<String> {
        let trail = fixture.scratch.read(&format!("runs-{name}/trail.jsonl"));
        let lines = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut places: Vec<String> = lines.map(|line| line["place"].to_string()).collect();
        places.sort();
        places
    };
    let places = [places("folder"), places("server")];
    assert_eq!(places[0], places[1]);
    assert!(!places[0].is_empty() && places[0].iter().all(|place| place.contains(".yml:")), "{places:?}");
}

#[test]
fn errors_of_the_data_have_lines_on_a_server() {
    let mut fixture = Fixture::new();
    // Two namespaces with one name.
    fixture.change(NAMESPACE, "name: catalog-stage", "name: billing-stage");
    for base in [false, true] {
        check_same(&fixture.both("openshift-namespaces", &["--dry-run"], base), "an error");
    }
}

#[test]
fn a_forbidden_schema_is_found_before_the_data_is_read() {
    let listed = "- /openshift/cluster-1.yml\n";
    let fixture = Fixture::with(|scratch| {
        let file = "data/integrations/openshift-namespaces.yml";
        scratch.write(file, scratch.read(file).replace(listed, ""));
    });
    let results = fixture.both("openshift-namespaces", &["--dry-run"], false);
    check_same(&results, "a forbidden schema");
    let [folder, _] = results;
    assert_eq!(folder.code, Some(5));
    let printed = folder.record.to_string();
    assert!(printed.contains("can read `/openshift/cluster-1.yml` through"), "{printed}");
    let (requests, _) = fixture.proxy.take();
    let expect = [
        ("GET /git-commit-info/#", 1),
        ("GET /sha256", 1),
        ("POST /batch/#", 1),
        // The line of `schemas`.
        ("POST /locate/#", 1),
    ];
    assert_eq!(kinds(&requests), expect.map(|(kind, count)| (kind.to_owned(), count)).into());
}

/// **Invariant:** an early exit on two shas needs one request for the comparison, and no data.
#[test]
fn an_early_exit_on_two_shas_costs_one_comparison() {
    let mut fixture = Fixture::new();
    fixture.change("data/products/shop/product.yml", "description: ", "description: another ");
    let words =
        ["reconcile", "openshift-namespaces", "--dry-run", "--config", "config.toml", "--runs", "runs"];
    let compared = ["--sandbox", "sandbox", "--early-exit-compare-sha", fixture.base.as_str()];
    let output = fixture.run(&[&words[..], &compared].concat());
    assert!(output.status.success() && text(&output.stderr).contains("no change between"), "{output:?}");
    let (requests, bytes) = fixture.proxy.take();
    let expect = [
        // Of head, and of base.
        ("GET /git-commit-info/#", 2),
        ("GET /sha256", 1),
        // The definition of the integration, and the static check of its queries.
        ("POST /batch/#", 1),
        ("POST /compare/#/#", 1),
    ];
    assert_eq!(kinds(&requests), expect.map(|(kind, count)| (kind.to_owned(), count)).into());
    // The definitions of all integrations, and the heads of the responses.
    assert!(bytes < 16 << 10, "{bytes} bytes");
}

#[test]
fn declared_queries_and_resources_are_requested_in_batches() {
    let fixture = Fixture::new();
    let words =
        ["reconcile", "openshift-resources", "--dry-run", "--config", "config.toml", "--runs", "runs"];
    let output = fixture.run(&[&words[..], &["--sandbox", "sandbox"]].concat());
    assert!(output.status.success(), "{output:?}");
    let (requests, _) = fixture.proxy.take();
    let expect = [
        ("GET /git-commit-info/#", 1),
        ("GET /sha256", 1),
        // The definition with the static check, and all resources.
        ("POST /batch/#", 2),
        // The declared query, those of templates, and three for approvals.
        ("POST /graphqlsha/#", 6),
        ("POST /locate/#", 1),
    ];
    assert_eq!(kinds(&requests), expect.map(|(kind, count)| (kind.to_owned(), count)).into());
}

/// Of three declared queries, one is left out because the types lack its fields.
#[test]
fn all_declared_queries_of_an_integration_take_one_request() {
    let fixture = Fixture::new();
    let describe = json!({
        "name": "service-dependencies", "description": "writes cards", "sandbox": true,
        "queries": [
            { "name": "Apps", "text": "query Apps { apps_v1 { name } }" },
            { "name": "Paths", "text": "query Paths { apps_v1 { path } }" },
            { "name": "Windows", "text": "query Windows { windows_v1 { name } }", "if_known": true },
        ],
    });
    fixture.scratch.write("describe.json", describe.to_string());
    let program = "case $1 in\ndescribe) cat describe.json ;;\n\
                   declare) cat > declare-request.json; echo '{\"shards\": []}' ;;\nesac\n";
    fixture.scratch.write("program.sh", program);
    let config = fixture.scratch.read("config.toml");
    let program = "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n";
    fixture.scratch.write("config.toml", format!("{config}{program}"));
    let words =
        ["reconcile", "service-dependencies", "--dry-run", "--config", "config.toml", "--runs", "runs"];
    let output = fixture.run(&[&words[..], &["--sandbox", "sandbox"]].concat());
    assert!(output.status.success(), "{output:?}");
    let request: Value = serde_json::from_str(&fixture.scratch.read("declare-request.json")).unwrap();
    let answers = request["answers"].as_object().unwrap();
    let count = |query: &str| answers[query]["apps_v1"].as_array().unwrap().len();
    assert!(count("Apps") > 1 && count("Apps") == count("Paths"), "{answers:?}");
    let kinds = kinds(&fixture.proxy.take().0);
    assert_eq!(kinds["POST /batch/#"], 2, "{kinds:?}");
    // Those for approvals.
    assert_eq!(kinds["POST /graphqlsha/#"], 3, "{kinds:?}");
}

#[test]
fn a_change_transfers_only_the_elements_that_it_can_affect() {
    let mut fixture = Fixture::new();
    fixture.change(NAMESPACE, "name: catalog-stage", "name: catalog-staging");
    let words = ["affected", "-i", "openshift-namespaces", "--config", "config.toml"];
    let head = sha(&fixture.proxy.address);
    fixture.proxy.take();
    let output = fixture.run(&[&words[..], &[&fixture.base, &head]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (requests, _) = fixture.proxy.take();
    let kinds = kinds(&requests);
    // What can be affected, why, and the lines.
    assert_eq!(kinds["POST /compare/#/#"], 3, "{kinds:?}");
    let all: usize = kinds.values().sum();
    assert!(all <= 12, "{kinds:?}");
}

#[test]
fn affected_and_plan_compare_two_shas_of_a_server() {
    let mut fixture = Fixture::new();
    let head = fixture.change(NAMESPACE, "name: catalog-stage", "name: catalog-staging");
    let seen = |output: Output| {
        let messages = text(&output.stderr);
        let messages: Vec<&str> =
            messages.lines().filter(|line| !line.contains("planning against")).collect();
        (output.status.code(), text(&output.stdout), messages.join("\n"))
    };
    for format in ["text", "md", "json"] {
        let words = ["affected", "--config", "config.toml", "-o", format];
        let folder = seen(fixture.run(&[&words[..], &["HEAD", "."]].concat()));
        let server = seen(fixture.run(&[&words[..], &[&fixture.base, &head]].concat()));
        assert_eq!(folder, server, "{format}");
        assert!(folder.1.contains("catalog-stage.yml:"), "{}", folder.1);
    }
    let words = ["plan", "--config", "config.toml", "--sandbox", "sandbox", "-o", "md"];
    let folder = seen(fixture.run(&[&words[..], &["HEAD", "."]].concat()));
    let server = seen(fixture.run(&[&words[..], &[&fixture.base, &head]].concat()));
    let changes = |text: &str| -> Vec<String> {
        // The data is named by directory or sha.
        text.lines()
            .filter(|line| !line.contains("bundle") && !line.contains("modified"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!((folder.0, changes(&folder.1)), (server.0, changes(&server.1)));
    assert!(folder.1.contains("catalog-stage.yml:"), "{}", folder.1);
}

/// Without the header of the extensions, a run uses what qontract-server supports.
#[test]
fn a_server_without_extensions_gets_only_requests_of_qontract_server() {
    let mut fixture = Fixture::new();
    fixture.change(NAMESPACE, "name: catalog-stage", "name: catalog-staging");
    let words =
        ["reconcile", "openshift-resources", "--dry-run", "--config", "config.toml", "--runs", "runs"];
    let words = [&words[..], &["--sandbox", "sandbox", "--early-exit-compare-sha", &fixture.base]].concat();
    let ours = fixture.run(&words);
    fixture.proxy.take();
    fixture.proxy.hide_extensions();
    let plain = fixture.run(&words);
    assert_eq!(plain.status.code(), ours.status.code());
    let changes = |output: &Output| {
        let text = text(&output.stdout);
        text.lines().filter(|line| line.starts_with(['+', '~', '-'])).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!changes(&ours).is_empty());
    assert_eq!(changes(&plain), changes(&ours));
    let (requests, _) = fixture.proxy.take();
    let kinds = kinds(&requests);
    let known = ["GET /git-commit-info/#", "GET /sha256", "POST /graphqlsha/#"];
    assert_eq!(kinds.keys().map(String::as_str).collect::<Vec<_>>(), known, "{kinds:?}");
}

/// A loop compares with the data of its last run: the server tells that the change affects no declared state, and
/// the older data is not requested.
#[test]
fn a_loop_asks_the_server_whether_the_older_data_differs() {
    let mut fixture = Fixture::new();
    let words =
        "reconcile openshift-namespaces --every 1s --config config.toml --sandbox sandbox --runs runs";
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(fixture.scratch.path()).args(words.split(' ')).args(["--listen", "127.0.0.1:0"]);
    let mut running = Running::of(&mut command);
    running.until("run ended: ok");
    let head = fixture.change("data/products/shop/product.yml", "description: ", "description: another ");
    let mut requests = Vec::new();
    eventually("the loop compares both bundles", || {
        requests.extend(fixture.proxy.take().0);
        let compared = format!("POST /compare/{}/{head}", fixture.base);
        requests.contains(&compared).then_some(())
    });
    running.until("run ended: ok");
    requests.extend(fixture.proxy.take().0);
    // The definition of the integration is read from the head only.
    let of_base = [format!("/graphqlsha/{}", fixture.base), format!("/batch/{}", fixture.base)];
    let begin = requests.iter().position(|request| request.contains(&head)).unwrap();
    let of_base =
        requests[begin..].iter().filter(|request| of_base.iter().any(|path| request.ends_with(path)));
    assert_eq!(of_base.count(), 0, "{requests:?}");
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(0));
}

/// The server is killed in the middle of a run, or stopped for some seconds.
#[test]
fn a_server_that_dies_is_a_transient_fault_and_the_next_run_converges() {
    let fixture = Fixture::new();
    let words = [
        "reconcile",
        "openshift-namespaces",
        "--config",
        "config.toml",
        "--sandbox",
        "sandbox",
        "--runs",
        "runs",
    ];
    // Stopped before the declared queries: the request is answered when the server continues.
    let pid = Pid::from_child(&fixture.server.child);
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&stopped);
    fixture.proxy.before_requests(move |request| {
        if request.contains("/graphqlsha/") && count.fetch_add(1, Ordering::Relaxed) == 0 {
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_secs(2));
                kill_process(pid, Signal::CONT).unwrap();
            });
        }
    });
    let output = fixture.run(&[&words[..], &["--dry-run"]].concat());
    assert!(output.status.success() && stopped.load(Ordering::Relaxed) > 0, "{output:?}");
    // Killed at the same request: a transient failure, and nothing was applied.
    let first = Arc::new(AtomicUsize::new(0));
    fixture.proxy.before_requests(move |request| {
        if request.contains("/graphqlsha/") && first.fetch_add(1, Ordering::Relaxed) == 0 {
            kill_process(pid, Signal::KILL).unwrap();
        }
    });
    let output = fixture.run(&words);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(!fixture.scratch.path().join("sandbox/clusters").exists());
    // A new server with the same data: the run is completed, and the next one has nothing to do.
    let (_server, address) = serve(&fixture.scratch, "127.0.0.1:0");
    fixture.proxy.before_requests(|_| {});
    fixture.proxy.forward_to(&address);
    let output = fixture.run(&words);
    assert!(output.status.success() && text(&output.stdout).contains("✓ + create"), "{output:?}");
    let output = fixture.run(&words);
    assert!(output.status.success() && text(&output.stderr).contains("nothing to change"), "{output:?}");
}

/// Processes that a merge wakes share the evaluations of the server.
#[test]
fn runs_that_start_together_share_the_evaluations() {
    let fixture = Fixture::new();
    let made = |fixture: &Fixture| -> usize {
        let metrics = get(&fixture.proxy.address, "/metrics");
        let name = "qontract_server_answers_total{outcome=\"made\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().unwrap())
    };
    let folder = fixture.scratch.path();
    let run = |number: usize| {
        let (sandbox, runs) = (format!("sandbox-{number}"), format!("runs-{number}"));
        let words = ["reconcile", "openshift-resources", "--dry-run", "--config", "config.toml"];
        let output =
            command::qontract(folder, &[&words[..], &["--sandbox", &sandbox, "--runs", &runs]].concat());
        assert!(output.status.success(), "{output:?}");
    };
    run(0);
    let one = made(&fixture);
    assert!(one > 0);
    std::thread::scope(|scope| {
        for number in 1..5 {
            let run = &run;
            scope.spawn(move || run(number));
        }
    });
    assert_eq!(made(&fixture), one, "four more runs cost no further evaluation");
}

#[test]
fn hostile_requests_of_our_routes_are_refused() {
    let fixture = Fixture::new();
    let post = |path: &str, body: &str| -> u16 {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&fixture.proxy.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.contains('\u{1b}'), "{answer:?}");
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let base = fixture.base.as_str();
    let zero = "0".repeat(64);
    let survey = json!({ "survey": { "integration": "\u{1b}[31m", "queries": [], "adHocReads": "never", "trigger": "\u{1b}" } });
    for (path, body, status) in [
        (format!("/compare/{base}/{base}"), survey.to_string(), 200),
        (format!("/compare/{base}/{zero}"), survey.to_string(), 404),
        (format!("/compare/{zero}/{base}"), survey.to_string(), 404),
        (format!("/compare/{base}/{base}"), json!({ "\u{1b}[31m": 1 }).to_string(), 400),
        (format!("/compare/{base}/{base}"), "[".repeat(100_000), 400),
        (format!("/compare/{base}"), "{}".to_owned(), 404),
        (
            format!("/locate/{base}"),
            json!({ "places": [{ "path": "/../../etc/passwd", "pointer": "\u{1b}" }] }).to_string(),
            200,
        ),
        (format!("/locate/{base}"), json!({ "places": "x" }).to_string(), 400),
        (format!("/locate/{zero}"), json!({ "places": [] }).to_string(), 404),
        (format!("/batch/{base}"), json!({ "\u{1b}[31m": [] }).to_string(), 400),
        ("/batch/%1b%5b31m".to_owned(), "{}".to_owned(), 404),
    ] {
        assert_eq!(post(&path, &body), status, "{path} {body:.100}");
    }
    eventually("the server is healthy", || {
        get(&fixture.proxy.address, "/healthz").contains(" 200 ").then_some(())
    });
}
