//! The example with further clusters and namespaces: valid data, as loops need it.

use std::process::Command;

use qontract_testkit::{Scratch, example};

use super::operator::{operator_fixture, stderr};

/// A data repo (`repo`), to which tests add clusters, with a journal and a configuration.
pub struct ClusterRepo(pub Scratch);

impl ClusterRepo {
    /// The example, with this configuration.
    pub fn new(config: &str) -> Self {
        let scratch = operator_fixture();
        scratch.write("config.toml", config);
        Self(scratch)
    }

    /// Adds a cluster, whose token is the secret `creds/admin`.
    pub fn cluster(&self, name: &str, server: &str) {
        let text =
            std::fs::read_to_string(example().join("data/clusters/cliffs-stage.yml")).expect("a cluster");
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some(("name", _)) => format!("name: {name}"),
            Some(("serverUrl", _)) => format!("serverUrl: {server}"),
            Some(("  path", _)) => "  path: creds/admin".to_owned(),
            _ => line.to_owned(),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        self.0.write(&format!("repo/data/clusters/{name}.yml"), text + "\n");
    }

    /// Declares a namespace of a cluster.
    pub fn namespace(&self, cluster: &str, name: &str, more: &str) {
        let head = "$schema: /openshift/namespace-1.yml\nlabels: {}\ndescription: a namespace of a test\n";
        let refs = "app: {$ref: /services/catalog/app.yml}\nenvironment: {$ref: /products/shop/environments/stage.yml}\n";
        let text = format!("{head}{refs}name: {name}\ncluster: {{$ref: /clusters/{cluster}.yml}}\n{more}");
        self.0.write(&format!("repo/data/services/catalog/namespaces/{name}.yml"), text);
    }

    /// A run of an integration.
    pub fn command(&self, integration: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.0.path()).env("HOME", self.0.path()).env("NO_COLOR", "1");
        command.env("GIT_CEILING_DIRECTORIES", self.0.path());
        command.args([
            "reconcile",
            integration,
            "--data",
            "repo",
            "--config",
            "config.toml",
            "--runs",
            "runs",
        ]);
        command.args(more);
        command
    }

    /// Runs an integration: its exit code, and what it printed.
    pub fn reconcile(&self, integration: &str, more: &[&str]) -> (i32, String) {
        let output = self.command(integration, more).output().expect("it runs");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        (output.status.code().expect("it is not killed"), text)
    }
}
