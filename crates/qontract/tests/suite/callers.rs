//! Tests of callers through the binary: a program declares objects for several callers in one namespace.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::Scratch;
use serde_json::Value;

/// A program with one caller per line of `callers`: a caller, its `ConfigMaps`, and optionally `broken`, or `+any`
/// or `+KIND` if it consents to the removal of its objects. If there is a file `die`, `declare` is killed.
const PROGRAM: &str = r#"
import json, os, sys
request = json.load(sys.stdin)
if sys.argv[1] == "describe":
    print(json.dumps({"name": "service-dependencies", "description": "declares settings", "form": "objects"}))
elif sys.argv[1] == "declare":
    if os.path.exists("die"):
        os.kill(os.getpid(), 9)
    shards, faults = [], []
    for line in open("callers").read().splitlines():
        caller, *words = line.split()
        # `NAME=VALUE` sets the content of the ConfigMap.
        names = [word for word in words if word[0] != "+"]
        consent = [word[1:] for word in words if word[0] == "+"]
        key = [["cluster", "cliffs-stage"], ["namespace", "catalog-stage"], ["caller", caller]]
        if "broken" in names:
            faults.append({"key": key, "text": "the settings of %s cannot be read" % caller})
            continue
        objects = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.split("=")[0]},
                    "data": {"of": (name.split("=") + [caller])[1]}}
                   for name in names]
        namespace = open("namespace").read() if os.path.exists("namespace") else "catalog-stage"
        shard = {"cluster": "cliffs-stage", "namespace": namespace, "caller": caller,
                 "kinds": ["ConfigMap"], "objects": objects}
        if consent:
            shard["may_remove"] = "any" if consent == ["any"] else consent
        shards.append(shard)
    print(json.dumps({"shards": shards, "faults": faults}))
else:
    sys.exit("an object program only declares")
"#;

struct Fixture(Scratch);

impl Fixture {
    fn new() -> Self {
        let scratch = operator_fixture();
        scratch.write("program.py", PROGRAM);
        scratch.write(
            "config.toml",
            "[integrations.service-dependencies]\ncommand = [\"python3\", \"program.py\"]\n",
        );
        // The integration may read the namespaces and clusters that its objects are in.
        let definition = "repo/data/integrations/service-dependencies.yml";
        let text = std::fs::read_to_string(scratch.path().join(definition)).unwrap();
        let cluster = "- /openshift/cluster-1.yml\n";
        let more = format!("{cluster}- /openshift/cluster-integrations-1.yml\n");
        scratch.write(definition, text.replace(cluster, &more));
        let fixture = Self(scratch);
        let (code, text) = fixture.reconcile_named("openshift-namespaces", &[]);
        assert_eq!(code, 0, "{text}");
        fixture
    }

    fn callers(&self, lines: &str) {
        self.0.write("callers", lines);
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        let words = ["reconcile", name, "--data", "repo", "--config", "config.toml", "--sandbox", "sandbox"];
        command.current_dir(self.0.path()).env("HOME", self.0.path()).args(words).args(["--runs", "runs"]);
        command
    }

    fn reconcile(&self, more: &[&str]) -> (i32, String) {
        self.reconcile_named("service-dependencies", more)
    }

    fn reconcile_named(&self, name: &str, more: &[&str]) -> (i32, String) {
        let words = ["reconcile", name, "--data", "repo", "--config", "config.toml", "--sandbox", "sandbox"];
        let output = run_with(self.0.path(), &[], &[&words[..], &["--runs", "runs"], more].concat());
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        (output.status.code().unwrap(), text)
    }

    /// The `ConfigMaps` in the namespace, each with its caller.
    fn objects(&self) -> Vec<(String, String)> {
        let folder = self.0.path().join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap");
        let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| object(&file.path()))
            .collect();
        found.sort();
        found
    }
}

fn object(file: &Path) -> (String, String) {
    let body: Value = qontract_yaml::json::read(&std::fs::read(file).unwrap()).unwrap();
    let caller = body["metadata"]["annotations"]["qontract.caller_name"].as_str().unwrap_or_default();
    (file.file_stem().unwrap().to_string_lossy().into_owned(), caller.to_owned())
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, caller)| ((*name).to_owned(), (*caller).to_owned())).collect()
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn callers_share_a_namespace_without_touching_each_others_objects() {
    let fixture = Fixture::new();
    fixture.callers("one a b\ntwo c d\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 0, "{text}");
    let both = pairs(&[("a", "one"), ("b", "one"), ("c", "two"), ("d", "two")]);
    assert_eq!(fixture.objects(), both);

    // One caller drops an object; the objects of the other are not concerned.
    fixture.callers("one a\ntwo c d\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("kind=ConfigMap, caller=one"), "{text}");
    assert_eq!(fixture.objects(), pairs(&[("a", "one"), ("c", "two"), ("d", "two")]));

    // Emptying the scope of one caller needs an approval, although the namespace has objects of another.
    fixture.callers("one a\ntwo\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "it would empty `cluster=cliffs-stage, namespace=catalog-stage, kind=ConfigMap, caller=two`"
        ),
        "{text}"
    );
    assert_eq!(fixture.objects().len(), 3);

    // A broken caller blocks only its own removals.
    fixture.callers("one e\ntwo broken\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 1, "{text}");
    assert_eq!(fixture.objects(), pairs(&[("c", "two"), ("d", "two"), ("e", "one")]), "{text}");

    // The object of a caller that exists is an error that names both.
    fixture.callers("one e c\ntwo c d\n");
    let (code, text) = fixture.reconcile(&[]);
    assert!(code == 1 && text.contains("`two`"), "{text}");
    assert_eq!(fixture.objects(), pairs(&[("c", "two"), ("d", "two"), ("e", "one")]));
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn the_objects_of_a_caller_that_is_gone_are_taken_over() {
    let fixture = Fixture::new();
    fixture.callers("old a\nother z\n");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    // The caller was renamed: its objects are declared by the new one, and nothing is removed.
    fixture.callers("new a\nother z\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("take over ConfigMap `a`"), "{text}");
    assert!(text.contains("from the caller `old`, which no longer exists"), "{text}");
    assert_eq!(fixture.objects(), pairs(&[("a", "new"), ("z", "other")]));
    let (code, text) = fixture.reconcile(&[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

/// The process is killed from outside while it takes objects over, in several rounds of renames: a half-done
/// take-over is completed by the next run.
#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_take_over_that_is_killed_is_completed_by_the_next_run() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..150).map(|number| format!("c{number:03}")).collect();
    let declare = |caller: &str| fixture.callers(&format!("{caller} {}\nother z\n", names.join(" ")));
    let count = |caller: &str| fixture.objects().iter().filter(|(_, own)| own == caller).count();
    declare("round0");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    let mut half = 0;
    for round in 1..=8 {
        let (before, caller) = (format!("round{}", round - 1), format!("round{round}"));
        declare(&caller);
        let mut child = fixture
            .command("service-dependencies")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_running = |child: &mut Child| child.try_wait().unwrap().is_none();
        while is_running(&mut child) && count(&caller) == 0 {}
        // On Unix this is SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        let (done, left) = (count(&caller), count(&before));
        assert_eq!(done + left, names.len(), "no object is lost");
        half += usize::from(done > 0 && left > 0);
        let (code, text) = fixture.reconcile(&[]);
        assert_eq!(code, 0, "round {round}: {text}");
        assert_eq!((count(&caller), count("other")), (names.len(), 1), "round {round}: {text}");
        let (code, text) = fixture.reconcile(&[]);
        assert!(code == 0 && text.contains("nothing to change"), "round {round}: {text}");
        if half == 2 {
            return;
        }
    }
    panic!("{half} of 8 take-overs were killed while they wrote: too few");
}

#[test]
fn a_caller_can_consent_to_the_removal_of_its_objects() {
    let fixture = Fixture::new();
    fixture.callers("one a b\ntwo c d\n");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    // The consent of one caller does not approve the removals of another, and names other kinds.
    fixture.callers("one +any\ntwo +Secret\n");
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("2 removals approved as a whole by the declaration of the shard"), "{text}");
    assert_eq!(fixture.objects(), pairs(&[("c", "two"), ("d", "two")]), "{text}");
    // A program that is killed declares nothing, and consents to nothing.
    fixture.callers("one +any\ntwo +ConfigMap\n");
    fixture.0.write("die", "");
    let (code, text) = fixture.reconcile(&[]);
    assert_ne!(code, 0, "{text}");
    assert_eq!(fixture.objects().len(), 2, "{text}");
    std::fs::remove_file(fixture.0.path().join("die")).unwrap();
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!((code, fixture.objects().len()), (0, 0), "{text}");
    let (code, text) = fixture.reconcile(&[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_namespace_that_the_data_does_not_declare_has_a_hint() {
    let fixture = Fixture::new();
    fixture.callers("one a");
    fixture.0.write("namespace", "catalog-stag");
    let (code, text) = fixture.reconcile(&["--dry-run"]);
    assert!(code == 1 && text.contains("the data does not declare the namespace `catalog-stag`"), "{text}");
    assert!(text.contains("did you mean `catalog-stage`?"), "{text}");
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn an_object_that_is_declared_twice_with_different_content_is_not_written() {
    let fixture = Fixture::new();
    fixture.callers("one same same twice=a other twice=b");
    for more in [&["--dry-run"][..], &[], &[]] {
        let (code, text) = fixture.reconcile(more);
        assert_eq!(code, 1, "{text}");
        assert!(
            text.contains("2 entries declare the same object: numbers 3 and 5 of the objects of the shard"),
            "{text}"
        );
        assert!(!text.contains("ConfigMap `twice`\n") && !text.contains("modified concurrently"), "{text}");
    }
    let folder = fixture.0.path().join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap");
    let is_there = |name: &str| folder.join(format!("{name}.yaml")).exists();
    assert!(is_there("same") && is_there("other") && !is_there("twice"));
    fixture.callers("one same twice=a other");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    let (code, text) = fixture.reconcile(&[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn a_program_that_dies_while_it_declares_takes_nothing_over() {
    let fixture = Fixture::new();
    fixture.callers("old a\nother z\n");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    fixture.callers("new a\nother\n");
    fixture.0.write("die", "");
    let (code, text) = fixture.reconcile(&[]);
    assert_ne!(code, 0, "{text}");
    assert_eq!(fixture.objects(), pairs(&[("a", "old"), ("z", "other")]), "{text}");
    std::fs::remove_file(fixture.0.path().join("die")).unwrap();
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(fixture.objects(), pairs(&[("a", "new")]), "{text}");
    let (code, text) = fixture.reconcile(&[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn mistakes_of_a_program_are_reported_as_mistakes_of_the_program() {
    let fixture = Fixture::new();
    let program = PROGRAM.replace("\"kinds\": [\"ConfigMap\"]", "\"kinds\": [\"ConfigMapp\"]");
    fixture.0.write("program.py", program);
    fixture.callers("one a\n");
    let (code, text) = fixture.reconcile(&["--dry-run"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("add it to `kinds` in the response of the program"), "{text}");
    assert!(!text.contains("managedResourceTypes"), "{text}");
    fixture.0.write("program.py", PROGRAM);
    fixture.callers("one a\none b\n");
    let (code, text) = fixture.reconcile(&["--dry-run"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("caller=one` more than once"), "{text}");
    assert!(text.contains("return each shard once, with all of its objects"), "{text}");
    assert!(!text.contains("keep one of the files"), "{text}");
}
