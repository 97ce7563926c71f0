//! Tests of an API server that throttles, or whose responses end in the middle: nothing is removed, and the runs
//! converge when the fault ends.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::api_server::{ApiFault, ApiServer};
use crate::support::cluster_repo::ClusterRepo;
use crate::support::running::{Running, get};
use qontract_testkit::{BodyFraming, chaos_count, eventually};
use rustix::process::Signal;

const CONFIG: &str =
    "[kubernetes]\nrequests_per_second = 400\ndeadline_seconds = 2\n[creds.admin]\ntoken = \"t0ken\"\n";

/// A data repo with namespaces on a scripted cluster.
struct Fixture {
    server: ApiServer,
    repo: ClusterRepo,
}

impl Fixture {
    /// The namespaces `kept` and `old` exist. In the data, `old` is to be removed, and `new` is new.
    fn new() -> Self {
        let fixture = Self { server: ApiServer::start(), repo: ClusterRepo::new(CONFIG) };
        let repo = &fixture.repo;
        repo.cluster("c1", fixture.server.url());
        repo.namespace("c1", "kept", "");
        repo.namespace("c1", "old", "");
        let (code, text) = fixture.reconcile();
        assert_eq!(code, 0, "{text}");
        assert_eq!(fixture.server.namespaces(), ["kept", "old"]);
        repo.namespace("c1", "old", "delete: true\n");
        repo.namespace("c1", "new", "");
        fixture
    }

    fn command(&self, more: &[&str]) -> Command {
        self.repo.command("openshift-namespaces", &[&["--cluster-name", "c1"], more].concat())
    }

    fn reconcile(&self) -> (i32, String) {
        self.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1"])
    }

    /// Nothing was written during the fault.
    fn assert_untouched(&self, writes: usize, text: &str) {
        assert_eq!(self.server.namespaces(), ["kept", "old"], "{text}");
        assert_eq!(self.server.writes(), writes, "{text}");
    }

    /// Without the fault, the next run completes the work, and the one after it has nothing to do.
    fn assert_convergence(&self) {
        self.server.fail(None);
        let (code, text) = self.reconcile();
        assert_eq!(code, 0, "{text}");
        self.assert_settled();
    }

    fn assert_settled(&self) {
        assert_eq!(self.server.namespaces(), ["kept", "new"]);
        let writes = self.server.writes();
        let (code, text) = self.reconcile();
        assert!(code == 0 && text.contains("nothing to change"), "{text}");
        assert_eq!(self.server.writes(), writes, "{text}");
    }
}

#[test]
fn a_list_that_ends_in_the_middle_removes_nothing() {
    let fixture = Fixture::new();
    let writes = fixture.server.writes();
    for fault in [
        ApiFault::HalfLists(BodyFraming::Length),
        ApiFault::HalfLists(BodyFraming::Chunks),
        ApiFault::HalfLists(BodyFraming::Close),
        ApiFault::NoSecondPage,
    ] {
        fixture.server.fail(Some(fault));
        let (code, text) = fixture.reconcile();
        assert!(matches!(code, 1 | 75), "{fault:?}: {text}");
        assert!(text.contains("cannot read `cluster=c1`"), "{fault:?}: {text}");
        fixture.assert_untouched(writes, &text);
    }
    fixture.assert_convergence();
}

/// `cargo xtask chaos throttling` throttles for three minutes.
#[test]
fn a_cluster_that_throttles_for_minutes_is_unknown_until_it_recovers() {
    let fixture = Fixture::new();
    let writes = fixture.server.writes();
    // A single run ends with a transient failure.
    fixture.server.fail(Some(ApiFault::ThrottledUntil(Instant::now() + Duration::from_hours(1))));
    let (code, text) = fixture.reconcile();
    assert_eq!(code, 75, "{text}");
    assert!(text.contains("cannot read `cluster=c1`"), "{text}");
    fixture.assert_untouched(writes, &text);

    // A loop goes on, alive, and does not flood the cluster.
    let length = Duration::from_secs(chaos_count(4));
    let end = Instant::now() + length;
    fixture.server.fail(Some(ApiFault::ThrottledUntil(end)));
    let before = fixture.server.throttled();
    let mut running = Running::of(&mut fixture.command(&["--every", "2s", "--listen", "127.0.0.1:0"]));
    let listening = running.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    while Instant::now() < end {
        let line = running.until("run ended: ");
        assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"), "{line}");
        if line.contains("run ended: failed") {
            assert_eq!(fixture.server.writes(), writes, "{line}");
        }
    }
    let requests = fixture.server.throttled() - before;
    assert!(requests as u64 <= 4 * length.as_secs(), "{requests} requests in {length:?}");
    eventually("the namespaces are as declared", || {
        (fixture.server.namespaces() == ["kept", "new"]).then_some(())
    });
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(0));
    fixture.assert_settled();
}
