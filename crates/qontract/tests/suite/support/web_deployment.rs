//! A Deployment on a real API server, and the data that declares it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qontract_testkit::cluster::{Api, shared, unique_name};
use serde_json::Value;

use super::cluster_repo::ClusterRepo;

/// The integration that writes the Deployment.
pub const RESOURCES: &str = "openshift-resources";

/// A namespace with the Deployment `web`.
pub struct WebFixture {
    api: &'static Api,
    pub repo: ClusterRepo,
    pub namespace: String,
}

impl WebFixture {
    pub fn new() -> Self {
        let api = shared();
        let repo = ClusterRepo::new(&Self::config(api));
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

    fn config(api: &Api) -> String {
        let ca = api.ca.display();
        format!(
            "[kubernetes]\nrequests_per_second = 400\nvalidate_in_dry_run = true\nca = \"{ca}\"\n[creds.admin]\n\
             token = {:?}\n",
            api.token
        )
    }

    /// Also declares these objects, each with the name of its kind in lower case.
    pub fn declare_also(&self, objects: &[[&str; 2]]) {
        let kinds: Vec<&str> = objects.iter().map(|[kind, _]| *kind).collect();
        let mut more = format!("managedResourceTypes: [Deployment, {}]\n", kinds.join(", "));
        more += "openshiftResources:\n- {provider: resource, path: /web.yaml}\n";
        for [kind, fields] in objects {
            let name = kind.to_lowercase();
            let text = format!("kind: {kind}\nmetadata: {{name: {name}}}\n{fields}\n");
            self.repo.0.write(&format!("repo/resources/{name}.yaml"), text);
            more += &format!("- {{provider: resource, path: /{name}.yaml}}\n");
        }
        self.repo.namespace("c1", &self.namespace, &more);
    }

    /// Sets these guards.
    pub fn guard(&self, guards: &str) {
        self.repo.0.write("config.toml", format!("{}[guards]\n{guards}", Self::config(self.api)));
    }

    /// A run on the cluster.
    pub fn command(&self, integration: &str, more: &[&str]) -> Command {
        let words = ["--cluster-name", "c1", "--log-level", "WARNING"];
        self.repo.command(integration, &[&words, more].concat())
    }

    /// Runs an integration: its exit code, and its plan.
    pub fn run(&self, integration: &str, more: &[&str]) -> (i32, String) {
        let output = self.command(integration, more).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap();
        (code, if code == 0 { text } else { text + &String::from_utf8_lossy(&output.stderr) })
    }

    /// Runs and kills the process after a while.
    pub fn kill_after(&self, patience: Duration) {
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
    pub fn declare(&self, container: &str, spec: &str) {
        self.declare_pod(container, "", spec);
    }

    /// Declares the Deployment, with fields of its container, of its pod and of its spec.
    pub fn declare_pod(&self, container: &str, pod: &str, spec: &str) {
        let indented = |text: &str, indent: &str| -> String {
            text.lines().flat_map(|line| [indent, line, "\n"]).collect()
        };
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 0\n{}  \
             selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
             spec:\n{}      containers:\n      - name: web\n        image: example.com/i:1\n{}",
            indented(spec, "  "),
            indented(pod, "      "),
            indented(container, "        ")
        );
        self.repo.0.write("repo/resources/web.yaml", &text);
    }

    /// Runs until the Deployment is as declared; the plan of the first run. Controllers write to it as well.
    pub fn apply(&self) -> String {
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
    pub fn change(&self, container: &str, spec: &str) -> String {
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

    pub fn web(&self) -> Value {
        let words = ["get", "deployment", "web", "--namespace", &self.namespace, "--output", "json"];
        serde_json::from_str(&self.api.kubectl(&words, "").text()).unwrap()
    }

    /// An object of [`Self::declare_also`].
    pub fn object(&self, kind: &str) -> Value {
        let name = kind.to_lowercase();
        let words = ["get", kind, &name, "--namespace", &self.namespace, "--output", "json"];
        serde_json::from_str(&self.api.kubectl(&words, "").text()).unwrap()
    }

    pub fn container(&self) -> Value {
        self.web()["spec"]["template"]["spec"]["containers"][0].clone()
    }

    pub fn kubectl(&self, words: &[&str], input: &str) {
        let output = self.api.kubectl(&[words, &["--namespace", &self.namespace]].concat(), input);
        assert!(output.ok, "{}", output.stderr);
    }

    /// Runs a `kubectl` command that a message of ours suggests, as the administrator.
    pub fn run_shell(&self, command: &str) {
        let (kubectl, kubeconfig) = (self.api.kubectl.display(), self.api.kubeconfig.display());
        let rest = command.strip_prefix("kubectl").unwrap();
        let line = format!("{kubectl} --kubeconfig {kubeconfig} {rest}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
