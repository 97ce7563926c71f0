//! Tests of a real API server that is stopped with `SIGSTOP`: it accepts connections, and responds to nothing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::cluster_repo::ClusterRepo;
use crate::support::running::{Running, get};
use qontract_testkit::cluster::TestCluster;
use qontract_testkit::eventually;
use rustix::process::Signal;

/// A data repo with namespaces, on a cluster of its own.
struct Fixture {
    cluster: TestCluster,
    repo: ClusterRepo,
}

impl Fixture {
    fn new() -> Self {
        let cluster = TestCluster::start();
        let (ca, token) = (cluster.api.ca.display().to_string(), &cluster.api.token);
        let config =
            format!("[kubernetes]\nca = {ca:?}\ndeadline_seconds = 3\n[creds.admin]\ntoken = {token:?}\n");
        let repo = ClusterRepo::new(&config);
        repo.cluster("c1", &cluster.api.url);
        Self { cluster, repo }
    }

    fn command(&self, more: &[&str]) -> Command {
        self.repo.command("openshift-namespaces", &[&["--cluster-name", "c1"], more].concat())
    }

    fn reconcile(&self) -> (i32, String) {
        self.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1"])
    }

    fn exists(&self, name: &str) -> bool {
        let words = ["get", "namespace", name, "--output", "name", "--ignore-not-found"];
        !self.cluster.api.kubectl(&words, "").text().trim().is_empty()
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_stopped_real_cluster_ends_runs_in_time_and_the_next_run_converges() {
    let mut fixture = Fixture::new();
    fixture.repo.namespace("c1", "old", "");
    assert_eq!(fixture.reconcile().0, 0);
    fixture.repo.namespace("c1", "old", "delete: true\n");
    fixture.repo.namespace("c1", "new", "");

    fixture.cluster.suspend_api_server();
    let begun = Instant::now();
    let (code, text) = fixture.reconcile();
    assert_eq!(code, 75, "{text}");
    assert!(text.contains("cannot read `cluster=c1`"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}: {text}", begun.elapsed());

    let mut running = Running::of(&mut fixture.command(&["--every", "2s", "--listen", "127.0.0.1:0"]));
    let listening = running.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    running.until("run ended: failed");
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    fixture.cluster.resume_api_server();
    eventually("the namespaces are as declared", || {
        (fixture.exists("new") && !fixture.exists("old")).then_some(())
    });
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(0));
    let (code, text) = fixture.reconcile();
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}
