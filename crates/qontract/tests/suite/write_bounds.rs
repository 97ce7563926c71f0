//! Tests of `guards.writes`: a real run sends only the writes that the operator allows, whatever it plans and
//! however the target responds.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::api_server::{ApiFault, ApiServer};
use crate::support::cluster_repo::ClusterRepo;
use crate::support::operator::run_with;

const CONFIG: &str =
    "[kubernetes]\nrequests_per_second = 400\ndeadline_seconds = 2\n[creds.admin]\ntoken = \"t0ken\"\n";

/// The only write that the bounds of these tests allow and that is planned.
const ALLOWED: &str = "PATCH /api/v1/namespaces/allowed";

/// A data repo with namespaces on a scripted cluster: `old` is to be removed, `allowed` and `other` are new.
struct Fixture {
    server: ApiServer,
    repo: ClusterRepo,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { server: ApiServer::start(), repo: ClusterRepo::new(CONFIG) };
        let repo = &fixture.repo;
        repo.cluster("c1", fixture.server.url());
        repo.namespace("c1", "kept", "");
        repo.namespace("c1", "old", "");
        let (code, text) = fixture.reconcile();
        assert_eq!(code, 0, "{text}");
        repo.namespace("c1", "old", "delete: true\n");
        repo.namespace("c1", "allowed", "");
        repo.namespace("c1", "other", "");
        fixture
    }

    /// Allows `PATCH` of the namespaces `allowed` and `old`.
    fn bound(&self) {
        let origin = self.server.url();
        let paths = r#"["/api/v1/namespaces/allowed", "/api/v1/namespaces/old"]"#;
        let bounds = format!("writes = [{{ origin = {origin:?}, methods = [\"PATCH\"], paths = {paths} }}]");
        self.repo.0.write("config.toml", format!("[guards]\n{bounds}\n{CONFIG}"));
    }

    fn reconcile(&self) -> (i32, String) {
        self.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1"])
    }

    /// The writes that this run sends.
    fn writes_of_run(&self) -> (Vec<String>, String) {
        let before = self.server.received_writes().len();
        let (code, text) = self.reconcile();
        assert!(matches!(code, 1 | 75), "{code}: {text}");
        (self.server.received_writes().split_off(before), text)
    }
}

#[test]
fn a_bounded_run_writes_only_within_its_bounds() {
    let fixture = Fixture::new();
    fixture.bound();
    // The redirect would lead out of the bounds.
    fixture.server.fail(Some(ApiFault::RedirectedWrites("other")));
    let (writes, text) = fixture.writes_of_run();
    assert_eq!(writes, [ALLOWED], "{text}");
    assert_eq!(fixture.server.namespaces(), ["kept", "old"]);
    // A retry is within the bounds as well.
    fixture.server.fail(Some(ApiFault::ThrottledWrites));
    let (writes, text) = fixture.writes_of_run();
    assert!(!writes.is_empty() && writes.iter().all(|write| write == ALLOWED), "{writes:?} {text}");
    assert_eq!(fixture.server.namespaces(), ["kept", "old"]);
    // Without a fault, the allowed write takes effect, and the others are refused: by their path, and by their
    // method.
    fixture.server.fail(None);
    let (writes, text) = fixture.writes_of_run();
    assert_eq!(writes, [ALLOWED], "{text}");
    assert_eq!(fixture.server.namespaces(), ["allowed", "kept", "old"], "{text}");
    let refusal = format!(
        "is refused: the write permit of this run allows `PATCH {url}/api/v1/namespaces/allowed`, `PATCH {url}/api/v1/namespaces/old`",
        url = fixture.server.url()
    );
    assert_eq!(text.matches(&refusal).count(), 2, "{text}");

    // The record names the bounds.
    let words = ["runs", "show", "last", "--runs", "runs"];
    let shown = run_with(fixture.repo.0.path(), &[], &words);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(&format!("writes only `PATCH {}/", fixture.server.url())), "{shown}");

    // Without bounds, the next run completes the work, and the one after it has nothing to do.
    fixture.repo.0.write("config.toml", CONFIG);
    let (code, text) = fixture.reconcile();
    assert_eq!(code, 0, "{text}");
    assert_eq!(fixture.server.namespaces(), ["allowed", "kept", "other"]);
    let writes = fixture.server.writes();
    let (code, text) = fixture.reconcile();
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
    assert_eq!(fixture.server.writes(), writes, "{text}");
}

#[test]
fn bounds_of_nothing_write_nothing_and_do_not_apply_to_a_sandbox() {
    let fixture = Fixture::new();
    fixture.repo.0.write("config.toml", format!("[guards]\nwrites = []\n{CONFIG}"));
    let (writes, text) = fixture.writes_of_run();
    assert_eq!(writes, Vec::<String>::new(), "{text}");
    assert!(text.contains("the write permit of this run allows nothing"), "{text}");
    let (code, text) =
        fixture.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1", "--sandbox", "sandbox"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        fixture.repo.0.path().join("sandbox/clusters/c1/_cluster/Namespace/allowed.yaml").exists(),
        "{text}"
    );
    // A command whose requests cannot be judged does not run.
    let command = "[foreign.query-validator]\ncommand = [\"false\"]\nreal_runs = true\n";
    fixture.repo.0.write("config.toml", format!("[guards]\nwrites = []\n{command}{CONFIG}"));
    let (code, text) = fixture.repo.reconcile("query-validator", &[]);
    assert!(code == 2 && text.contains("cannot be compared with `guards.writes`"), "{code} {text}");
}

#[test]
fn wrong_bounds_end_every_command_that_reads_the_configuration() {
    let fixture = Fixture::new();
    let bounds = "writes = [{ origin = \"c1\", methods = [\"PATCH\"], paths = [\"/\"] }]";
    fixture.repo.0.write("config.toml", format!("[guards]\n{bounds}\n{CONFIG}"));
    let before = fixture.server.requests();
    let (code, text) = fixture.reconcile();
    assert!(code == 2 && text.contains("line 2: `guards.writes`: `c1` is not an origin"), "{text}");
    let check = run_with(fixture.repo.0.path(), &[], &["config", "check", "--config", "config.toml"]);
    assert!(String::from_utf8_lossy(&check.stdout).contains("`guards.writes`: `c1`"), "{check:?}");
    assert_eq!(fixture.server.requests(), before);
}
