//! A data repo with namespaces of the real cluster of this test run.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qontract_testkit::cluster::{Api, shared, unique_name};
use qontract_testkit::{Scratch, example};
use serde_json::Value;

/// A data repo, and a configuration for the cluster.
pub struct ClusterFixture {
    /// The cluster.
    pub api: &'static Api,
    scratch: Scratch,
    suffix: String,
}

impl ClusterFixture {
    /// A data repo without namespaces.
    pub fn new() -> Self {
        let stage = Self { api: shared(), scratch: Scratch::new(), suffix: unique_name("x") };
        stage.scratch.init_journal("runs");
        for part in ["schemas", "graphql-schemas"] {
            stage.scratch.copy(&example().join(part), &format!("repo/{part}"));
        }
        for integration in [
            "clusterrolebindings",
            "limitranges",
            "namespace-labels",
            "namespaces",
            "network-policies",
            "resourcequotas",
            "rolebindings",
        ] {
            let own = format!("data/integrations/openshift-{integration}.yml");
            stage.write(&own, &std::fs::read_to_string(example().join(&own)).unwrap());
        }
        stage.write("data/clusters/c1.yml", &Self::cluster("c1", &stage.api.url));
        stage.configure(&format!("[creds.admin]\ntoken = {:?}\n", stage.api.token));
        stage
    }

    /// Writes the configuration, with these secrets.
    pub fn configure(&self, secrets: &str) {
        let usual = "[kubernetes]\nrequests_per_second = 400\nvalidate_in_dry_run = true\n";
        self.scratch.write("config.toml", format!("{usual}ca = \"{}\"\n\n{secrets}", self.api.ca.display()));
    }

    /// Writes the configuration as a whole.
    pub fn write_config(&self, text: &str) {
        self.scratch.write("config.toml", text);
    }

    /// The directory of the data repo (`repo`) and the configuration.
    pub fn path(&self) -> &std::path::Path {
        self.scratch.path()
    }

    /// A unique name.
    pub fn name(&self, what: &str) -> String {
        format!("{what}-{}", self.suffix)
    }

    /// Writes a file of the data repo.
    pub fn write(&self, path: &str, text: &str) {
        self.scratch.write(&format!("repo/{path}"), text);
    }

    /// The datafile of a cluster.
    pub fn cluster(name: &str, server: &str) -> String {
        format!(
            "$schema: /openshift/cluster-1.yml\nname: {name}\nserverUrl: {server}\nauth: []\nautomationToken: {{path: creds/admin, field: token}}\n"
        )
    }

    /// Declares a namespace of the cluster.
    pub fn declare(&self, name: &str, more: &str) {
        let text = format!(
            "$schema: /openshift/namespace-1.yml\nname: {name}\ncluster: {{$ref: /clusters/c1.yml}}\n{more}\n"
        );
        self.write(&format!("data/{name}.yml"), &text);
    }

    /// Runs `openshift-namespaces`: its exit code and its plan.
    pub fn reconcile(&self, more: &[&str]) -> (i32, String) {
        self.reconcile_with(more, &[])
    }

    /// Runs another integration.
    pub fn run(&self, integration: &str, more: &[&str]) -> (i32, String) {
        exit_and_plan(self.command(integration, more))
    }

    /// Runs `openshift-namespaces` with these environment variables.
    pub fn reconcile_with(&self, more: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let mut command = self.command("openshift-namespaces", more);
        command.envs(variables.iter().copied());
        exit_and_plan(command)
    }

    /// A run of an integration.
    pub fn command(&self, integration: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.scratch.path()).env_remove("SHARDS").env_remove("SHARD_ID");
        command.args(["reconcile", integration, "--data", "repo", "--config", "config.toml"]);
        // The data contains only the objects of the test.
        command.args(["--no-validate", "--runs", "runs", "--log-level", "WARNING"]).args(more);
        command
    }

    /// Runs an integration and kills it after a while; returns whether it was still running.
    pub fn kill_after(&self, integration: &str, patience: Duration) -> bool {
        let mut child =
            self.command(integration, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        // On Unix this is SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        true
    }

    /// A namespace, if it exists.
    pub fn namespace(&self, name: &str) -> Option<Value> {
        let words = ["get", "namespace", name, "--output", "json", "--ignore-not-found"];
        let text = self.api.kubectl(&words, "").text();
        (!text.trim().is_empty()).then(|| serde_json::from_str(&text).unwrap())
    }

    /// Number of namespaces of this data repo with a label.
    pub fn count(&self, label: &str) -> usize {
        let words = ["get", "namespaces", "--selector", label, "--output", "name"];
        self.api.kubectl(&words, "").text().lines().filter(|line| line.ends_with(&self.suffix)).count()
    }
}

/// The exit code and the plan of a run.
fn exit_and_plan(mut command: Command) -> (i32, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// The phase of a namespace.
pub fn phase(namespace: &Value) -> &str {
    namespace["status"]["phase"].as_str().unwrap_or_default()
}
