//! A data repo whose fleet is deployed to namespaces of a real cluster.

use std::process::{Child, Command, Stdio};

use qontract_client_http::Method;
use serde_json::Value;

use super::api_request::ApiUser;
use super::cluster::ClusterFixture;

/// The integration that deploys the fleet.
const MANAGER: &str = "integrations-manager";

/// The repository of the integrations, and the caller in the marks of their objects.
pub const UPSTREAM: &str = "https://github.com/shop/platform";

/// Compute resources, which every deployment must set.
pub const RESOURCES: &str = "resources: {requests: {cpu: 100m, memory: 200Mi}, limits: {memory: 400Mi}}";

/// The kinds of the objects of a fleet, in the versions that the server serves.
const KINDS: [(&str, &str, &str); 6] = [
    ("ConfigMap", "v1", "configmaps"),
    ("CronJob", "batch/v1beta1", "cronjobs"),
    ("Deployment", "apps/v1", "deployments"),
    ("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    ("Service", "v1", "services"),
    ("StatefulSet", "apps/v1", "statefulsets"),
];

/// A data repo with an environment (`prod`), and a namespace for the fleet.
pub struct FleetFixture {
    pub cluster: ClusterFixture,
    /// The administrator of the cluster.
    pub admin: ApiUser,
    /// The namespace.
    pub namespace: String,
}

impl FleetFixture {
    /// A fleet without integrations, in a new namespace.
    pub fn new() -> Self {
        let cluster = ClusterFixture::new();
        // The integrations of the example are deployed to namespaces of the example.
        std::fs::remove_dir_all(cluster.path().join("repo/data/integrations")).unwrap();
        let definition = "$schema: /app-sre/integration-1.yml\nname: integrations-manager\ndescription: deploys the others\n\
            schemas: [/app-interface/app-interface-settings-1.yml, /app-sre/integration-1.yml, /openshift/namespace-1.yml, \
            /openshift/cluster-1.yml, /app-sre/environment-1.yml, /aws/account-1.yml, \
            /openshift/openshift-cluster-manager-1.yml, /app-sre/integration-shards-1.yml]\n";
        cluster.write("data/integrations/integrations-manager.yml", definition);
        cluster.write("data/env/prod.yml", "$schema: /app-sre/environment-1.yml\nname: prod\n");
        let namespace = cluster.name("fleet");
        let fleet = Self { admin: ApiUser::admin(cluster.api), cluster, namespace };
        fleet.add_namespace(&fleet.namespace);
        fleet
    }

    /// Declares and creates a namespace of the environment.
    pub fn add_namespace(&self, name: &str) {
        self.cluster.declare(name, "environment: {$ref: /env/prod.yml}");
        self.cluster.api.kubectl(&["create", "namespace", name], "").text();
    }

    /// Declares an integration that is deployed to the namespace of the fixture.
    pub fn integration(&self, name: &str, spec: &str, sharding: &str) {
        self.integration_of(UPSTREAM, name, &self.entry(spec, sharding));
    }

    /// An entry of `managed`: fields of `spec`, one per line, and the value of `sharding`, if any.
    pub fn entry(&self, spec: &str, sharding: &str) -> String {
        Self::entry_in(&self.namespace, spec, sharding)
    }

    /// An entry of `managed` for a namespace.
    pub fn entry_in(namespace: &str, spec: &str, sharding: &str) -> String {
        let spec: String =
            [RESOURCES].into_iter().chain(spec.lines()).flat_map(|line| ["    ", line, "\n"]).collect();
        let sharding = if sharding.is_empty() { String::new() } else { format!("  sharding: {sharding}\n") };
        format!("- namespace: {{$ref: /{namespace}.yml}}\n  spec:\n{spec}{sharding}")
    }

    /// Declares an integration of a repository, with its entries of `managed`.
    pub fn integration_of(&self, upstream: &str, name: &str, managed: &str) {
        let managed =
            if managed.is_empty() { "managed: []\n".to_owned() } else { format!("managed:\n{managed}") };
        let text = format!(
            "$schema: /app-sre/integration-1.yml\nname: {name}\ndescription: a test\nschemas: []\nupstream: {upstream}\n{managed}"
        );
        self.cluster.write(&format!("data/integrations/{name}.yml"), &text);
    }

    /// Declares an AWS account.
    pub fn account(&self, name: &str) {
        self.cluster
            .write(&format!("data/aws/{name}.yml"), &format!("$schema: /aws/account-1.yml\nname: {name}\n"));
    }

    /// Removes a file of the data repo.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.cluster.path().join("repo").join(path)).unwrap();
    }

    /// Runs the manager: its exit code and its plan.
    pub fn run(&self, more: &[&str]) -> (i32, String) {
        self.run_as(UPSTREAM, more)
    }

    /// Runs the manager of another repository.
    pub fn run_of(&self, upstream: &str) -> (i32, String) {
        self.run_as(upstream, &[])
    }

    /// The exit code and the plan of a run. The plan of a failed run is followed by its messages.
    fn run_as(&self, upstream: &str, more: &[&str]) -> (i32, String) {
        let output = self.command(upstream, more).output().unwrap();
        let (code, plan) = (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap());
        (code, if code == 0 { plan } else { plan + &String::from_utf8_lossy(&output.stderr) })
    }

    /// Approves everything that the last run held.
    pub fn approve(&self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.cluster.path());
        command.args([
            "approve",
            "last",
            "--runs",
            "runs",
            "--out",
            "repo/data/approvals",
            "--reason",
            "the test",
        ]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the manager.
    pub fn start(&self, more: &[&str]) -> Child {
        self.command(UPSTREAM, more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn command(&self, upstream: &str, more: &[&str]) -> Command {
        self.cluster.command(MANAGER, &[&["--upstream", upstream], more].concat())
    }

    /// Runs the manager, and then checks that a second run with the same flags changes nothing. Returns the changes of
    /// the first run, without those of fields.
    #[track_caller]
    pub fn converge(&self, more: &[&str]) -> Vec<String> {
        let (code, plan) = self.run(more);
        assert_eq!(code, 0, "{plan}");
        self.assert_settled(more);
        changes(&plan)
    }

    /// Checks that a run changes nothing.
    #[track_caller]
    pub fn assert_settled(&self, more: &[&str]) {
        let before = self.versions();
        let (code, plan) = self.run(more);
        assert_eq!(code, 0, "{plan}");
        assert_eq!(changes(&plan), Vec::<String>::new(), "the second run changes nothing: {plan}");
        assert_eq!(self.versions(), before, "the second run writes nothing");
    }

    /// The uids and generations of the objects in the namespace.
    fn versions(&self) -> Vec<String> {
        let version = |object: &Value| {
            let metadata = &object["metadata"];
            format!("{} {} {} {}", object["kind"], metadata["name"], metadata["uid"], metadata["generation"])
        };
        self.objects(&self.namespace).iter().map(version).collect()
    }

    /// The objects of a fleet in a namespace.
    pub fn objects(&self, namespace: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for (kind, version, plural) in KINDS {
            let root = if version == "v1" { "api" } else { "apis" };
            let path = format!("/{root}/{version}/namespaces/{namespace}/{plural}");
            let (status, mut list) = self.admin.send(&Method::GET, &path, None);
            assert_eq!(status, 200, "{list}");
            for object in list["items"].as_array_mut().unwrap() {
                // The objects of a list have no kind.
                object["kind"] = kind.into();
                let is_own = object["metadata"]["name"].as_str().unwrap().starts_with("qontract-reconcile");
                found.extend(is_own.then(|| object.take()));
            }
        }
        found
    }

    /// The names of the objects of a kind in the namespace, without the common prefix.
    pub fn names(&self, kind: &str) -> Vec<String> {
        self.names_in(&self.namespace, kind)
    }

    /// The names of the objects of a kind in a namespace, without the common prefix.
    pub fn names_in(&self, namespace: &str, kind: &str) -> Vec<String> {
        let objects = self.objects(namespace);
        let names = objects.iter().filter(|object| object["kind"] == kind);
        names
            .map(|object| object["metadata"]["name"].as_str().unwrap().replacen("qontract-reconcile", "", 1))
            .map(|name| name.trim_start_matches('-').to_owned())
            .collect()
    }

    /// An object of the namespace; its name is given without the common prefix.
    pub fn object(&self, kind: &str, name: &str) -> Value {
        let name = format!("qontract-reconcile-{name}");
        let is_it = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects(&self.namespace)
            .into_iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{kind} {name} exists"))
    }
}

/// The changes of a plan: sign, kind and name, without the marks of their results.
pub fn changes(plan: &str) -> Vec<String> {
    let line = |line: &str| {
        let line = line.trim_start_matches(['✓', '✗', '·', ' ']);
        let is_change = ["+ ", "~ ", "- ", "± "].iter().any(|sign| line.starts_with(sign));
        is_change
            .then(|| line.split(" (cluster=").next().unwrap_or(line).replace("`qontract-reconcile-", "`"))
    };
    plan.lines().filter(|line| !line.starts_with("    ")).filter_map(line).collect()
}
