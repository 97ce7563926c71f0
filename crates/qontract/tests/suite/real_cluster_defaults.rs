//! Tests that everyday changes of a Deployment are applied on a real API server, and reverted: the defaults
//! that the API server added to a field are removed together with it.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qontract_testkit::cluster::{Api, shared, unique_name};
use serde_json::{Value, json};

use crate::support::cluster_repo::ClusterRepo;

const RESOURCES: &str = "openshift-resources";

const PROBE: &str = "livenessProbe: {httpGet: {path: /, port: 80}}\n";
const EXEC: &str = "livenessProbe: {exec: {command: ['true']}}\n";
const VALUE: &str = "env: [{name: B, value: '2'}]\n";
const FIELD: &str = "env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n";
const KEY: &str = "env: [{name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}]\n";

/// A namespace with the Deployment `web`.
struct WebFixture {
    api: &'static Api,
    repo: ClusterRepo,
    namespace: String,
}

impl WebFixture {
    fn new() -> Self {
        let api = shared();
        let ca = api.ca.display();
        let repo = ClusterRepo::new(&format!(
            "[kubernetes]\nrequests_per_second = 400\nvalidate_in_dry_run = true\nca = \"{ca}\"\n[creds.admin]\n\
             token = {:?}\n",
            api.token
        ));
        let namespace = unique_name("web");
        repo.cluster("c1", &api.url);
        let more = "managedResourceTypes: [Deployment]\nopenshiftResources:\n- {provider: resource, path: /web.yaml}\n";
        repo.namespace("c1", &namespace, more);
        let fixture = Self { api, repo, namespace };
        fixture.declare("", "");
        let (code, plan) = fixture.run("openshift-namespaces", &[]);
        assert_eq!(code, 0, "{plan}");
        fixture
    }

    /// A run on the cluster.
    fn command(&self, integration: &str, more: &[&str]) -> Command {
        let words = ["--cluster-name", "c1", "--log-level", "WARNING"];
        self.repo.command(integration, &[&words, more].concat())
    }

    /// Runs an integration: its exit code, and its plan.
    fn run(&self, integration: &str, more: &[&str]) -> (i32, String) {
        let output = self.command(integration, more).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap();
        (code, if code == 0 { text } else { text + &String::from_utf8_lossy(&output.stderr) })
    }

    /// Runs and kills the process after a while.
    fn kill_after(&self, patience: Duration) {
        let mut child =
            self.command(RESOURCES, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + patience;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        // On Unix this is SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Declares the Deployment, with fields of its container and of its spec.
    fn declare(&self, container: &str, spec: &str) {
        let indented = |text: &str, indent: &str| -> String {
            text.lines().flat_map(|line| [indent, line, "\n"]).collect()
        };
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 0\n{}  \
             selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
             spec:\n      containers:\n      - name: web\n        image: example.com/i:1\n{}",
            indented(spec, "  "),
            indented(container, "        ")
        );
        self.repo.0.write("repo/resources/web.yaml", &text);
    }

    /// Runs until the Deployment is as declared; the plan of the first run. Controllers write to it as well.
    fn apply(&self) -> String {
        let (code, plan) = self.run(RESOURCES, &[]);
        assert_eq!(code, 0, "{plan}");
        let (code, again) = self.run(RESOURCES, &[]);
        assert_eq!((code, again.as_str()), (0, ""), "the second run has nothing to do");
        let managed = self.web()["metadata"]["managedFields"].clone();
        let is_ours = |entry: &&Value| entry["manager"] == "qontract";
        let ours: Vec<&Value> = managed.as_array().unwrap().iter().filter(is_ours).collect();
        assert!(ours.len() == 1 && ours[0]["operation"] == "Apply", "{managed}");
        plan
    }

    /// Declares and applies the Deployment; the plan. A dry run predicts the same.
    fn change(&self, container: &str, spec: &str) -> String {
        self.declare(container, spec);
        let (code, predicted) = self.run(RESOURCES, &["--dry-run"]);
        assert_eq!(code, 0, "{predicted}");
        let plan = self.apply();
        let fields = |plan: &str| -> Vec<String> {
            let is_field = |line: &&str| line.get(2..).is_some_and(|path| path.starts_with("spec."));
            plan.lines().map(str::trim).filter(is_field).map(str::to_owned).collect()
        };
        assert_eq!(fields(&predicted), fields(&plan));
        plan
    }

    fn web(&self) -> Value {
        let words = ["get", "deployment", "web", "--namespace", &self.namespace, "--output", "json"];
        serde_json::from_str(&self.api.kubectl(&words, "").text()).unwrap()
    }

    fn container(&self) -> Value {
        self.web()["spec"]["template"]["spec"]["containers"][0].clone()
    }

    fn kubectl(&self, words: &[&str], input: &str) {
        let output = self.api.kubectl(&[words, &["--namespace", &self.namespace]].concat(), input);
        assert!(output.ok, "{}", output.stderr);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn everyday_changes_of_a_deployment_are_applied_and_reverted_on_a_real_cluster() {
    let fixture = WebFixture::new();
    let first = [PROBE, VALUE].concat();
    fixture.change(&first, "");
    let plan = fixture.change(VALUE, "");
    for field in ["httpGet.path: \"/\"", "httpGet.port: 80", "httpGet.scheme: \"HTTP\"", "timeoutSeconds: 1"]
    {
        let line = format!("- spec.template.spec.containers[web].livenessProbe.{field}");
        assert!(plan.contains(&line), "{line}\n{plan}");
    }
    assert_eq!(fixture.container().get("livenessProbe"), None);
    fixture.change(&first, "");
    fixture.change(&[EXEC, FIELD].concat(), "");
    assert_eq!(fixture.container()["livenessProbe"].get("httpGet"), None);
    for container in [&first, &[PROBE, KEY].concat(), &first] {
        fixture.change(container, "");
    }
    assert_eq!(fixture.container()["env"], json!([{"name": "B", "value": "2"}]));
    fixture.change(&first, "strategy: {type: Recreate}\n");
    assert_eq!(fixture.web()["spec"]["strategy"], json!({"type": "Recreate"}));
    fixture.change(&first, "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n");
    fixture.change("", "strategy: {type: Recreate}\n");
    assert_eq!(fixture.web()["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_adopted_deployment_changes_like_our_own_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.declare(&[PROBE, KEY].concat(), "");
    let text = fixture.repo.0.read("repo/resources/web.yaml");
    fixture.kubectl(&["apply", "-f", "-"], &text);
    fixture.change(VALUE, "strategy: {type: Recreate}\n");
    let container = fixture.container();
    assert_eq!(container.get("livenessProbe"), None);
    assert_eq!(container["env"], json!([{"name": "B", "value": "2"}]));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_rewrite_that_is_killed_is_completed_on_a_real_cluster() {
    let fixture = WebFixture::new();
    fixture.change(PROBE, "");
    // The update of a run that was killed before the apply.
    let updated = json!({"spec": {"template": {"spec": {"containers": [{"name": "web",
        "image": "example.com/i:1", "livenessProbe": {"exec": {"command": ["true"]}}}]}}}});
    let patch = updated.to_string();
    let words = ["patch", "deployment", "web", "--type=merge", "--field-manager=qontract", "-p", &patch];
    fixture.kubectl(&words, "");
    fixture.declare(EXEC, "");
    let plan = fixture.apply();
    assert!(plan.contains("Deployment `web`"), "the marks are not written yet: {plan}");
    assert_eq!(fixture.container()["livenessProbe"].get("httpGet"), None);

    let began = Instant::now();
    fixture.declare(PROBE, "");
    assert_eq!(fixture.run(RESOURCES, &[]).0, 0);
    let duration = began.elapsed();
    for (percent, container) in (50..100).step_by(8).zip([EXEC, PROBE].into_iter().cycle()) {
        fixture.declare(container, "");
        let patience = Duration::from_millis(u64::try_from(duration.as_millis()).unwrap() * percent / 100);
        fixture.kill_after(patience);
        fixture.apply();
        assert_eq!(fixture.container()["livenessProbe"].get("exec").is_some(), container == EXEC);
    }
}
