//! Tests of targets on demand: a target is opened when it is used, so its broken configuration harms no other.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::api_server::ApiServer;
use crate::support::cluster_repo::ClusterRepo;
use crate::support::operator::run_with;
use crate::support::running::Running;
use qontract_testkit::eventually;
use rustix::process::Signal;

/// Tables of targets that cannot be opened.
const BROKEN: &str = "[vault]\nserver = \"not a URL\"\ntoken = \"x\"\n[templates]\nallow_s3 = [\"a/b\"]\ns3_endpoint = \"ftp://x\"\n[targets.state]\nbucket = \"b\"\nendpoint = \"nonsense\"\n[targets.queue.orders]\nname = \"orders\"\nendpoint = \"nonsense\"\n";

/// Two clusters with one namespace each. The kubeconfig of the second one is missing.
struct Fixture {
    servers: [ApiServer; 2],
    repo: ClusterRepo,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { servers: [ApiServer::start(), ApiServer::start()], repo: ClusterRepo::new("") };
        for (name, server) in ["c1", "c2"].into_iter().zip(&fixture.servers) {
            fixture.repo.cluster(name, server.url());
            fixture.repo.namespace(name, &format!("in-{name}"), "");
        }
        fixture.kubeconfig("c1", &fixture.servers[0]);
        fixture.configure("");
        fixture
    }

    /// Writes the kubeconfig of a cluster.
    fn kubeconfig(&self, name: &str, server: &ApiServer) {
        let text = format!(
            "current-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: {:?}}}}}]\nusers: [{{name: u, user: {{token: t0ken}}}}]\n",
            server.url()
        );
        self.repo.0.write(&format!("{name}.kubeconfig"), text);
    }

    fn configure(&self, more: &str) {
        let cluster =
            |name: &str| format!("[kubernetes.clusters.{name}]\nkubeconfig = \"{name}.kubeconfig\"\n");
        self.repo.0.write("config.toml", format!("{}{}{BROKEN}{more}", cluster("c1"), cluster("c2")));
    }

    /// A run of the namespaces of both clusters.
    fn command(&self, more: &[&str]) -> Command {
        let words = ["--cluster-name", "c1", "--cluster-name", "c2"];
        self.repo.command("openshift-namespaces", &[&words, more].concat())
    }

    fn reconcile(&self) -> (i32, String) {
        self.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1", "--cluster-name", "c2"])
    }

    fn namespaces(&self) -> [Vec<String>; 2] {
        self.servers.each_ref().map(ApiServer::namespaces)
    }
}

#[test]
fn a_broken_target_is_an_error_where_it_is_used_and_nowhere_else() {
    let fixture = Fixture::new();
    let requests = || fixture.servers.each_ref().map(ApiServer::requests);
    // An integration without targets, and a cluster whose settings are complete.
    let (code, text) = fixture.repo.reconcile("query-validator", &[]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(requests(), [0, 0], "an unused target is not contacted");
    let (code, text) = fixture.repo.reconcile("openshift-namespaces", &["--cluster-name", "c1", "--dry-run"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(requests()[1], 0, "an unused target is not contacted");

    // The second cluster is used: it is an error of its own scope, and the first one is reconciled.
    let (code, text) = fixture.reconcile();
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("`kubernetes.clusters.c2.kubeconfig`: cannot read `c2.kubeconfig`"), "{text}");
    assert!(text.contains("hint: correct the configuration, or the file that the key names"), "{text}");
    assert_eq!(fixture.namespaces(), [vec!["in-c1".to_owned()], Vec::new()]);

    // Unknown keys are refused, whatever is used.
    fixture.configure("[targets.queue.shop]\nurls = \"x\"\n");
    for integration in ["query-validator", "openshift-namespaces"] {
        let (code, text) = fixture.repo.reconcile(integration, &[]);
        assert!(
            code == 2 && text.contains("unknown key `targets.queue.shop.urls`: did you mean `url`?"),
            "{text}"
        );
    }
    fixture.configure("");

    // `config check` reads the settings of all targets.
    let words = ["config", "check", "--config", "config.toml", "--data", "repo"];
    let output = run_with(fixture.repo.0.path(), &[], &words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for expect in ["`vault.server` is not a URL", "`templates.s3_endpoint`"] {
        assert!(text.contains(expect), "{expect}: {text}");
    }

    // A loop uses the file as soon as it exists.
    let mut running = Running::of(&mut fixture.command(&["--every", "1s"]));
    running.until("run ended: failed");
    fixture.kubeconfig("c2", &fixture.servers[1]);
    eventually("the second cluster is reconciled", || (fixture.namespaces()[1] == ["in-c2"]).then_some(()));
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(0));
    let (code, text) = fixture.reconcile();
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}
