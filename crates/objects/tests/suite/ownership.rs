//! Each ownership rule is a case in `tests/cases`, run on the sandbox and on a real cluster: a dry run shows
//! the plan and changes nothing, a real run produces the expected objects, and the second plan is empty.

use std::collections::BTreeSet;
use std::fs;

use qontract_access::Mode;
use qontract_inventory::{Callers, Owner};
use qontract_runtime::RunOutcome;
use qontract_testkit::Case;
use serde_json::Value;

use crate::support::test_integration::{TestIntegration, TestIntent, TestObject};
use crate::support::test_target::{RealCluster, SandboxTarget, TestTarget, case_object, with_marks};

/// A parsed case.
struct CaseRun {
    case: Case,
    us: Value,
    objects: Vec<TestObject>,
}

impl CaseRun {
    fn read(text: &str) -> Self {
        let case = Case::parse(text).unwrap();
        let yaml = |text: &str| qontract_yaml::json::read(text.as_bytes()).unwrap();
        let us = yaml(&case.files["data/us.yml"]);
        let objects = match yaml(&case.files["data/want.yml"]) {
            Value::Array(objects) => objects.into_iter().map(test_object).collect(),
            _ => Vec::new(),
        };
        Self { case, us, objects }
    }

    fn kinds(&self) -> Vec<&str> {
        self.us["kinds"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect()
    }

    fn run(&self, target: &dyn TestTarget, namespace: &str, mode: Mode) -> RunOutcome {
        let text = |field: &str| self.us[field].as_str().map(str::to_owned);
        let owner =
            Owner::new(text("integration").unwrap(), text("version").unwrap(), text("caller")).unwrap();
        let callers = match &self.us["callers"] {
            Value::Array(all) => {
                Callers::Whole(all.iter().map(|one| one.as_str().unwrap().to_owned()).collect())
            }
            _ => Callers::Unknown,
        };
        let integration =
            TestIntegration::new(target.kubernetes(mode), target.cluster(), owner, &self.kinds());
        integration.callers(callers).with_namespace(namespace, self.objects.clone()).run(mode)
    }

    fn live_objects(&self, target: &dyn TestTarget, namespace: &str) -> Vec<Value> {
        let mut all: Vec<Value> =
            target.list(namespace, &self.kinds()).into_iter().filter_map(case_object).collect();
        all.sort_by_key(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
        all
    }

    fn run_case(&self, target: &dyn TestTarget) -> Result<(), String> {
        let namespace = target.namespace();
        let mut created = list(&self.case.world);
        let edits: Vec<Option<Value>> =
            created.iter_mut().map(|object| object.as_object_mut().unwrap().remove("edited")).collect();
        target.create(&namespace, &created.iter().cloned().map(with_marks).collect::<Vec<_>>());
        for (object, edit) in created.iter().zip(edits) {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            if let Some(edit) = edit {
                target.edit(&namespace, &text(&object["kind"]), &text(&object["metadata"]["name"]), &edit);
            }
        }
        let before = self.live_objects(target, &namespace);
        let dry = self.run(target, &namespace, Mode::DryRun);
        let shown = shown(&dry, &namespace);
        if shown != self.case.plan {
            return Err(format!("expected plan:\n{}actual plan:\n{shown}", self.case.plan));
        }
        if self.live_objects(target, &namespace) != before {
            return Err("the dry run changed the cluster".to_owned());
        }
        let real = self.run(target, &namespace, Mode::Real);
        let after = self.case.after.as_deref().map_or_else(|| before.clone(), list);
        let now = self.live_objects(target, &namespace);
        if now != after {
            let (after, now) = (Value::Array(after), Value::Array(now));
            return Err(format!("expected objects:\n{after:#}\nactual objects:\n{now:#}\n{:?}", real.shards));
        }
        let again = self.run(target, &namespace, Mode::DryRun);
        let left: Vec<String> =
            again.shards.values().flat_map(|shard| &shard.changes).map(ToString::to_string).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("the second plan is not empty: {left:?}")) }
    }
}

fn test_object(mut body: Value) -> TestObject {
    let map = body.as_object_mut().unwrap();
    let (delete, unresolved, moved) =
        (map.remove("delete"), map.remove("unresolved"), map.remove("moved_from"));
    let intent = match (delete, unresolved) {
        (Some(_), _) => TestIntent::Delete,
        (_, Some(_)) => TestIntent::Unresolved,
        (None, None) => TestIntent::Present,
    };
    let moved_from: BTreeSet<String> = moved.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    TestObject { body, intent, moved_from }
}

fn list(text: &str) -> Vec<Value> {
    match qontract_yaml::json::read(text.as_bytes()).unwrap() {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

/// The plan as the command line prints it, with a fixed name for the namespace.
fn shown(outcome: &RunOutcome, namespace: &str) -> String {
    let mut text = String::new();
    for shard in outcome.shards.values() {
        for change in &shard.changes {
            text.push_str(&format!("{change}\n"));
            // The manager that created an object by hand differs between the sandbox and an API server.
            let lines = change.diff.iter().map(ToString::to_string);
            for line in lines.filter(|line| !line.starts_with("overrules the field manager ")) {
                text.push_str(&format!("    {line}\n"));
            }
        }
        for held in &shard.held {
            text.push_str(&format!("held: {}\n    {}\n", held.change, held.why));
        }
        for wait in &shard.waits {
            text.push_str(&format!("waits: {}\n", wait.text));
        }
        for fault in &shard.faults {
            text.push_str(&format!("error: {}\n", fault.text));
        }
    }
    text.replace(&format!("namespace={namespace}"), "namespace=ns").replace(&format!("`{namespace}`"), "`ns`")
}

fn check(target: impl Fn() -> Box<dyn TestTarget>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "the cases are there");
    let mut problems = Vec::new();
    for file in &files {
        let run = CaseRun::read(&fs::read_to_string(file).unwrap());
        if let Err(problem) = run.run_case(&*target()) {
            problems.push(format!("{}: {}\n{problem}", file.file_stem().unwrap().display(), run.case.title));
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {} cases fail\n\n{}",
        problems.len(),
        files.len(),
        problems.join("\n\n")
    );
}

#[test]
fn the_cases_hold_on_the_sandbox() {
    check(|| Box::new(SandboxTarget::new()));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn the_cases_hold_on_a_real_cluster() {
    check(|| Box::new(RealCluster::new()));
}
