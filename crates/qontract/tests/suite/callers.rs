//! Tests of callers through the binary: a program declares objects for several callers in one namespace.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::{Scratch, eventually};
use rustix::process::Signal;
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

    /// The files of the `ConfigMaps` in the namespace.
    fn files(&self) -> Vec<PathBuf> {
        let folder = self.0.path().join("sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        // A run in progress has temporary files, whose names begin with a dot.
        let is_object = |file: &PathBuf| !name(file).starts_with('.');
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).filter(is_object).collect();
        files.sort();
        files
    }

    /// The `ConfigMaps` in the namespace, each with its caller.
    fn objects(&self) -> Vec<(String, String)> {
        self.files().iter().map(|file| object(file)).collect()
    }

    /// Gives each object a uid, as an API server does: it lasts as long as the object.
    fn assign_uids(&self) {
        for file in self.files() {
            let text = std::fs::read_to_string(&file).unwrap();
            let uid = format!("  annotations:\n    example.com/uid: {}\n", name(&file));
            std::fs::write(&file, text.replacen("  annotations:\n", &uid, 1)).unwrap();
        }
    }

    /// The number of objects that still have their uid.
    fn uids(&self) -> usize {
        let uid = |file: &Path| read(file)["metadata"]["annotations"]["example.com/uid"].clone();
        self.files().iter().filter(|file| uid(file) == name(file)).count()
    }

    /// Checks that a run has nothing to do.
    #[track_caller]
    fn check_settled(&self) {
        let (code, text) = self.reconcile(&[]);
        assert!(code == 0 && text.contains("nothing to change"), "{text}");
    }

    /// Lets the program read its callers from the data: the lines of a description.
    fn callers_of_data(&self, lines: &str) {
        let app = "repo/data/services/catalog/app.yml";
        let text = self.0.read(app);
        let (before, rest) = text.split_once("description: |\n").unwrap();
        let (_, after) = rest.split_once("product:").unwrap();
        let lines = lines.trim_end().replace('\n', "\n  ");
        self.0.write(app, format!("{before}description: |\n  {lines}\nproduct:{after}"));
        let query = r#""queries": [{"name": "Apps", "text": "query Apps { apps_v1 { name description } }"}]"#;
        let answer = r#"[app["description"] for app in request["answers"]["Apps"]["apps_v1"] if app["name"] == "catalog"][0]"#;
        let program = PROGRAM
            .replace("\"form\": \"objects\"", &format!("\"form\": \"objects\", {query}"))
            .replace("open(\"callers\").read()", answer);
        self.0.write("program.py", program);
    }
}

fn read(file: &Path) -> Value {
    qontract_yaml::json::read(&std::fs::read(file).unwrap()).unwrap()
}

/// The name of the object in a file.
fn name(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

fn object(file: &Path) -> (String, String) {
    let body = read(file);
    let caller = body["metadata"]["annotations"]["qontract.caller_name"].as_str().unwrap_or_default();
    (name(file), caller.to_owned())
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

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn an_object_that_moves_to_another_existing_caller_is_an_error_and_stays() {
    let fixture = Fixture::new();
    fixture.callers("one a b\ntwo c d\n");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    fixture.assign_uids();
    fixture.callers("one a b c\ntwo d\n");
    let before = fixture.objects();
    for _ in 0..2 {
        let (code, text) = fixture.reconcile(&[]);
        assert_eq!(code, 1, "{text}");
        let errors = text.lines().filter(|line| line.starts_with("error: ")).count();
        assert!(errors == 1 && text.contains("`two`"), "one error that names the caller: {text}");
        assert!(text.contains("another caller declares it"), "{text}");
        assert_eq!((fixture.objects(), fixture.uids()), (before.clone(), 4), "{text}");
    }
    // The slot of the old caller is that of the new one, so that it cannot remove the object either.
    let slot = |caller: &str| {
        let key = format!("cluster=cliffs-stage,namespace=catalog-stage,caller={caller}");
        let words = ["shards", "of", &key, "--shards", "97", "--integration", "service-dependencies"];
        let output = run_with(fixture.0.path(), &[], &[&words[..], &["--config", "config.toml"]].concat());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let slots = [slot("one"), slot("two")];
    assert_eq!(slots[0], slots[1]);
    let (code, text) = fixture.reconcile(&["--shards", "97", "--shard-id", &slots[0]]);
    assert_eq!((code, fixture.uids()), (1, 4), "{text}");
    fixture.callers("one a b\ntwo c d\n");
    fixture.check_settled();
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_caller_that_is_renamed_while_a_loop_runs_keeps_its_objects() {
    let fixture = Fixture::new();
    fixture.callers_of_data("old a b c\nother z\n");
    let mut command = fixture.command("service-dependencies");
    let mut running = Running::of(command.args(["--every", "1h"]));
    running.until("run ended: ok");
    fixture.assign_uids();
    fixture.callers_of_data("new a b c\nother z\n");
    let printed = running.collect_until("run ended: ");
    assert!(printed.contains("take over ConfigMap `a`") && printed.contains("run ended: ok"), "{printed}");
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(fixture.objects(), pairs(&[("a", "new"), ("b", "new"), ("c", "new"), ("z", "other")]));
    assert_eq!(fixture.uids(), 4);
    fixture.check_settled();
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_caller_that_is_renamed_since_the_base_keeps_its_objects() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..60).map(|number| format!("c{number:02}")).collect();
    let declare = |caller: &str| fixture.callers_of_data(&format!("{caller} {}\nother z\n", names.join(" ")));
    declare("old");
    assert_eq!(fixture.reconcile(&[]).0, 0);
    fixture.assign_uids();
    fixture.0.copy(&fixture.0.path().join("repo"), "base");
    declare("new");
    let running = Running::of(fixture.command("service-dependencies").args(["--base", "base"]));
    let is_new = |(_, caller): &(String, String)| caller == "new";
    eventually("the take-over begins", || fixture.objects().iter().any(is_new).then_some(()));
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!((fixture.files().len(), fixture.uids()), (61, 61));
    let (code, text) = fixture.reconcile(&["--base", "base"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(
        (fixture.objects().iter().filter(|one| is_new(one)).count(), fixture.uids()),
        (60, 61),
        "{text}"
    );
    fixture.check_settled();
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_percentage_refers_to_the_objects_of_the_caller() {
    let fixture = Fixture::new();
    let guards = "[guards]\nshard_removals = 100\ncaller_removals = 1\ncaller_percent = 10\n";
    fixture.0.write("config.toml", fixture.0.read("config.toml") + guards);
    let names = |prefix: &str, from: usize, to: usize| {
        (from..to).map(|number| format!("{prefix}{number:02}")).collect::<Vec<_>>().join(" ")
    };
    let declare = |one: usize, two: usize| {
        fixture.callers(&format!("one {}\ntwo {}\n", names("a", one, 20), names("b", two, 30)));
    };
    declare(0, 0);
    assert_eq!(fixture.reconcile(&[]).0, 0);
    declare(3, 3);
    let (code, text) = fixture.reconcile(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("3 removals exceed the limit of 2 for the caller `one`"), "{text}");
    let of = |name: &str| fixture.objects().iter().filter(|(_, caller)| caller == name).count();
    assert_eq!((of("one"), of("two")), (20, 27), "{text}");
    declare(0, 3);
    assert_eq!(fixture.reconcile(&[]).0, 0);
    fixture.check_settled();
}

/// A program with a Deployment and the `ConfigMap` that it uses, whose change restarts it.
const RESTARTED: &str = r#"
import json, sys
json.load(sys.stdin)
if sys.argv[1] == "describe":
    print(json.dumps({"name": "service-dependencies", "description": "deploys", "form": "objects"}))
else:
    container = {"name": "web", "image": "example.com/web", "envFrom": [{"configMapRef": {"name": "settings"}}]}
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    metadata = {"name": "settings", "annotations": {"qontract.recycle": "true"}}
    data = {"value": open("value").read()}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    shard = {"cluster": "cliffs-stage", "namespace": "catalog-stage", "caller": "shop",
             "kinds": ["Deployment.apps", "ConfigMap"], "objects": [web, settings]}
    print(json.dumps({"shards": [shard]}))
"#;

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_restart_is_completed_in_the_run_that_causes_it() {
    let fixture = Fixture::new();
    fixture.0.write("program.py", RESTARTED);
    for (value, expect) in [("1", "create Deployment `web`"), ("2", "restart Deployment `web`")] {
        fixture.0.write("value", value);
        let (code, text) = fixture.reconcile(&[]);
        assert!(code == 0 && text.contains(expect), "{text}");
        fixture.check_settled();
    }
}
