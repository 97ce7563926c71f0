//! A small data repo whose namespace has objects from templates and secrets, and a sandbox with made-up
//! secrets.

use qontract_testkit::{Scratch, example};

use super::command::qontract;

/// A data repo for base and one for head, and a sandbox.
pub struct SecretsRepo {
    pub scratch: Scratch,
}

/// The output and the exit code of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandResult {
    pub code: Option<i32>,
    /// Stdout, stderr and the record of the run, without names and times of runs.
    pub text: String,
}

const NAMESPACE: &str = "data/services/catalog/namespaces/catalog-stage.yml";

/// The directory of the namespace's objects in the sandbox.
pub const OBJECTS: &str = "sandbox/clusters/cliffs-stage/catalog-stage";

/// The selector of every run.
pub const SELECTED: [&str; 2] = ["--namespace-name", "catalog-stage"];

impl SecretsRepo {
    /// Two copies of the example, in which one namespace has one object without a secret.
    pub fn new() -> Self {
        let scratch = Scratch::new();
        scratch.init_journal("sandbox");
        for side in ["base", "head"] {
            scratch.copy(&example(), side);
        }
        let repo = Self { scratch };
        repo.entries("base", "");
        repo.entries("head", "");
        repo.scratch.write(
            "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-stage}\n",
        );
        repo.secrets("");
        repo
    }

    /// The namespace has these entries, besides one plain object.
    pub fn entries(&self, side: &str, entries: &str) {
        let plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
        self.resource(side, "plain.yaml", plain);
        let text = std::fs::read_to_string(example().join(NAMESPACE)).unwrap();
        let (text, _) = text.split_once("sharedResources:").unwrap();
        let types = "managedResourceTypes: [ConfigMap, Service]\nopenshiftResources:\n";
        let text = format!("{text}{types}- {{provider: resource, path: /plain.yaml}}\n{entries}");
        self.scratch.write(&format!("{side}/{NAMESPACE}"), text);
    }

    /// A resource of a side.
    pub fn resource(&self, side: &str, name: &str, text: &str) {
        self.scratch.write(&format!("{side}/resources/{name}"), text);
    }

    /// Adds a template with its entry.
    pub fn template(&self, side: &str, text: &str) {
        self.resource(side, "x.yaml.j2", text);
        self.entries(side, "- {provider: resource-template, path: /x.yaml.j2}\n");
    }

    /// An object in the namespace.
    pub fn write_object(&self, name: &str, text: &str) {
        self.scratch.write(&format!("{OBJECTS}/{name}.yaml"), text);
    }

    /// The secrets of the sandbox.
    pub fn secrets(&self, toml: &str) {
        self.scratch.write("sandbox/secrets.toml", toml);
    }

    /// Runs an integration on head with these options.
    pub fn reconcile(&self, integration: &str, options: &[&str]) -> CommandResult {
        self.scratch.write("runs/keep", "");
        std::fs::remove_dir_all(self.scratch.path().join("runs")).unwrap();
        let words = ["reconcile", integration, "--data", "head", "--sandbox", "sandbox", "--runs", "runs"];
        let output = qontract(self.scratch.path(), &[&words[..], &SELECTED, options].concat());
        let mut text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // The recorded inputs contain fingerprints with a random key; see `replay.rs`.
        let inputs = self.scratch.path().join("runs/inputs").display().to_string();
        let records = files(&self.scratch.path().join("runs"));
        for (name, file) in records.into_iter().filter(|(name, _)| !name.starts_with(&inputs)) {
            text += &format!("{name}\n{}", String::from_utf8_lossy(&file));
        }
        CommandResult { code: output.status.code(), text: without_runs(&text) }
    }

    /// The plan of an integration from base to head, in all formats.
    pub fn plan(&self, integration: &str) -> CommandResult {
        let mut printed = CommandResult { code: Some(0), text: String::new() };
        for format in [&["-o", "json"][..], &["-o", "md"], &["--full"]] {
            let words =
                ["plan", "base", "head", "-v", "-i", integration, "--sandbox", "sandbox", "--runs", "runs"];
            let output = qontract(self.scratch.path(), &[&words[..], format].concat());
            printed.code = printed.code.max(output.status.code());
            for stream in [&output.stdout, &output.stderr] {
                printed.text += &without_runs(&String::from_utf8_lossy(stream));
            }
        }
        printed
    }

    /// A dry run on the head, compared with the base.
    pub fn check(&self, integration: &str) -> CommandResult {
        self.reconcile(integration, &["--dry-run", "--base", "base", "--log-level", "DEBUG"])
    }
}

/// All files below a directory, by path.
pub fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// The text without parts that differ between runs: ids, times, durations.
fn without_runs(text: &str) -> String {
    let is_run = |word: &str| {
        let word = word.as_bytes();
        word.len() > 17 && word[8] == b'T' && word[15] == b'Z' && word[16] == b'-'
    };
    let keep = |line: &&str| {
        ["\"began\"", "\"started\"", "\"now\"", "\"planned_at\"", "\"milliseconds\"", "\"sha\""]
            .iter()
            .all(|word| !line.trim_start().starts_with(word))
    };
    let lines = text.lines().filter(keep).map(|line| {
        let line = line.split("\"time\":").next().unwrap_or_default();
        let took =
            if line.starts_with("debug: ") { line.rfind(" in ").unwrap_or(line.len()) } else { line.len() };
        let line = &line[..took];
        let words = line.split_inclusive(|one: char| "`\"/ ".contains(one));
        let word = |word: &str| if is_run(word) { "RUN ".to_owned() } else { word.to_owned() };
        words.map(word).collect::<String>() + "\n"
    });
    lines.collect()
}
