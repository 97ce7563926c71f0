//! Tests that an error in the data is never taken for a removal: nothing of a namespace is removed while an error
//! in the file that declared it may be the reason why it is missing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::Scratch;
use rustix::process::Signal;

const NAMESPACE: &str = "repo/data/services/checkout/namespaces/checkout-prod.yml";

/// The example, reconciled with a sandbox.
struct Fixture {
    scratch: Scratch,
    original: String,
}

impl Fixture {
    fn new() -> Self {
        let scratch = operator_fixture();
        scratch.copy(&scratch.path().join("repo"), "old");
        let original = scratch.read(NAMESPACE);
        let fixture = Self { scratch, original };
        let (code, text) = fixture.up(&[]);
        assert_eq!(code, 0, "{text}");
        fixture
    }

    fn run(&self, words: &[&str]) -> (i32, String) {
        let output = run_with(self.scratch.path(), &[], words);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        (output.status.code().unwrap(), text)
    }

    fn up(&self, more: &[&str]) -> (i32, String) {
        let words = ["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"];
        self.run(&[&words[..], more].concat())
    }

    /// Renames the namespace.
    fn rename(&self, name: &str) {
        self.scratch
            .write(NAMESPACE, self.original.replace("\nname: checkout-prod\n", &format!("\nname: {name}\n")));
    }

    /// All files of the clusters in the sandbox.
    fn objects(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        collect(&self.scratch.path().join("sandbox/clusters"), &mut found);
        found
    }

    /// The objects in the namespace, of all kinds.
    fn in_namespace(&self, name: &str) -> Vec<PathBuf> {
        let folder = self.scratch.path().join("sandbox/clusters/harbor-prod").join(name);
        self.objects().into_keys().filter(|path| path.starts_with(&folder)).collect()
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.insert(path.clone(), std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn nothing_is_removed_because_of_an_invalid_name() {
    let fixture = Fixture::new();
    let before = fixture.in_namespace("checkout-prod");
    assert!(before.len() > 10, "{before:?}");
    // The last name is that of another namespace of the cluster.
    for (name, error) in [
        ("checkout-prod.", "`checkout-prod.` is not a valid namespace name"),
        ("checkout_prod", "`checkout_prod` is not a valid namespace name"),
        ("catalog-prod", "namespace=catalog-prod` is declared more than once"),
    ] {
        fixture.rename(name);
        for more in [&["--dry-run"][..], &[], &[]] {
            let (code, text) = fixture.up(more);
            assert_eq!(code, 1, "{name}: {text}");
            assert!(text.contains(error), "{name}: {text}");
            // Without a base, a dry run does not know what is missing.
            if more != ["--dry-run"] {
                assert!(text.contains("left unchanged: LimitRange"), "{name}: {text}");
                assert!(
                    text.contains("may be the reason why the data no longer declares it"),
                    "{name}: {text}"
                );
            }
            assert_eq!(fixture.in_namespace("checkout-prod"), before, "{name}: {text}");
        }
    }
    // Nor does a single run that does not validate the data.
    let words = ["reconcile", "openshift-limitranges", "--data", "repo", "--sandbox", "sandbox"];
    let more = ["--runs", "runs", "--base", "old", "--no-validate"];
    let (code, text) = fixture.run(&[&words[..], &more].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("left unchanged: LimitRange"), "{text}");
    assert_eq!(fixture.in_namespace("checkout-prod"), before, "{text}");

    fixture.scratch.write(NAMESPACE, &fixture.original);
    let (code, text) = fixture.up(&[]);
    assert_eq!(code, 0, "{text}");
    let after = fixture.objects();
    assert_eq!(fixture.up(&[]).0, 0);
    assert_eq!(fixture.objects(), after, "the second run has nothing to do");
    assert_eq!(fixture.in_namespace("checkout-prod"), before);

    // A rename to a valid name removes the objects of the old namespace that the guards let pass.
    fixture.rename("checkout-live");
    let (code, text) = fixture.up(&[]);
    assert_eq!(code, 1, "the removal of the namespace is held: {text}");
    assert!(text.contains("- remove LimitRange"), "{text}");
    assert!(!text.contains("left unchanged: LimitRange"), "{text}");
    assert!(fixture.in_namespace("checkout-prod").len() < before.len(), "{text}");
    assert!(fixture.in_namespace("checkout-live").len() > 5, "{text}");
}

#[test]
fn a_loop_removes_nothing_because_of_an_invalid_name() {
    let fixture = Fixture::new();
    let range = |name: &str| {
        fixture.in_namespace(name).iter().filter(|path| path.to_string_lossy().contains("LimitRange")).count()
    };
    assert_eq!(range("checkout-prod"), 1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(fixture.scratch.path()).env("HOME", fixture.scratch.path()).env("NO_COLOR", "1");
    command.args(["reconcile", "openshift-limitranges", "--data", "repo", "--sandbox", "sandbox"]);
    command.args(["--runs", "runs", "--every", "60s"]);
    let mut running = Running::of(&mut command);
    running.until("run ended: ok");
    fixture.rename("checkout_prod");
    running.until("left unchanged: LimitRange");
    running.until("run ended: failed");
    assert_eq!(range("checkout-prod"), 1);
    // The loop still compares with the data before the error, so it cleans up after the correction.
    fixture.rename("checkout-live");
    running.until("run ended: ");
    let log = running.drain();
    running.signal(Signal::TERM);
    running.wait();
    let _ = log.join().unwrap();
    assert_eq!(
        (range("checkout-prod"), range("checkout-live")),
        (0, 0),
        "the new namespace does not exist yet"
    );
}

#[test]
fn an_invalid_name_of_a_namespace_is_a_finding() {
    let fixture = operator_fixture();
    let text = fixture.read(NAMESPACE).replace("\nname: checkout-prod\n", "\nname: checkout-prod.\n");
    fixture.write(NAMESPACE, text);
    let output = run_with(fixture.path(), &[], &["validate", "repo"]);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error[Q2066]: `checkout-prod.` is not a valid namespace name"), "{text}");
    assert!(text.contains("checkout-prod.yml:8:7"), "{text}");
}

#[test]
fn objects_that_a_run_or_a_cluster_refuses_are_findings() {
    let scratch = operator_fixture();
    scratch.write(
        "repo/data/services/catalog/namespaces/catalog-demo.yml",
        "$schema: /openshift/namespace-1.yml
labels: {}
name: catalog-demo
description: catalog for demonstrations
cluster: {$ref: /clusters/cliffs-stage.yml}
app: {$ref: /services/catalog/app.yml}
environment: {$ref: /products/shop/environments/stage.yml}
managedResourceTypes: [ConfigMap, Service]
openshiftResources:
- {provider: resource, path: /shop/demo/settings.yaml}
- {provider: resource, path: /shop/demo/one.yaml}
- {provider: resource, path: /shop/demo/two.yaml}
- {provider: vault-secret, path: shop/stage/catalog/one, name: search, version: 1}
- {provider: vault-secret, path: shop/stage/catalog/two, name: search, version: 1}
- {provider: vault-secret, path: shop/stage/catalog/three, name: Catalog_Search, version: 1}
",
    );
    let folder = "repo/resources/shop/demo";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: demo}\nspec: {ports: [{port: ";
    scratch.write(&format!("{folder}/one.yaml"), format!("{service}80}}]}}\n"));
    scratch.write(&format!("{folder}/two.yaml"), format!("{service}81}}]}}\n"));
    let settings =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {WAIT: 300, MODE: \"1\"}\n";
    scratch.write(&format!("{folder}/settings.yaml"), settings);
    let output = run_with(scratch.path(), &[], &["validate", "repo"]);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (error, line) in [
        ("error[Q2069]: `data.WAIT` of ConfigMap `demo` is not a string", 10),
        ("error[Q2067]: another entry of the namespace declares Service `demo`, too", 12),
        ("error[Q2067]: another entry of the namespace declares Secret `search`, too", 14),
        ("error[Q2068]: Secret `Catalog_Search`: ", 15),
    ] {
        let (_, rest) = text.split_once(error).unwrap_or_else(|| panic!("no `{error}` in {text}"));
        let place = rest.lines().nth(1).unwrap();
        assert!(place.contains(&format!("catalog-demo.yml:{line}:")), "{error}: {place}");
    }
    assert!(text.contains("4 errors in 1 file"), "{text}");
}

/// A value that no API server accepts is an error of its object in the plan and in the run, and nothing of the object
/// changes.
#[test]
fn a_value_that_no_api_server_accepts_is_an_error_of_the_run() {
    let scratch = operator_fixture();
    let quota = "repo/data/platform/quotas/small.yml";
    let words = "reconcile openshift-resourcequotas --data repo --sandbox sandbox --runs runs --no-validate";
    let run = |more: &[&str]| {
        let words: Vec<&str> = words.split(' ').chain(more.iter().copied()).collect();
        let output = run_with(scratch.path(), &[], &words);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    let namespaces = words.replace("resourcequotas", "namespaces");
    let output = run_with(scratch.path(), &[], &namespaces.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(run(&[]).0, Some(0));
    let file = "sandbox/clusters/cliffs-stage/billing-stage/ResourceQuota/compute.yaml";
    let (before, data) = (scratch.read(file), scratch.read(quota));
    scratch.write(quota, data.replace("8Gi", "8Gigs").replace("4Gi", "four"));
    for more in [&["--dry-run"][..], &[]] {
        let (code, text) = run(more);
        assert_eq!(code, Some(1), "{text}");
        let error = "ResourceQuota `compute`: `spec.hard.limits.memory` is not a quantity, \
                     `spec.hard.requests.memory` is not a quantity";
        assert!(text.contains(error), "{text}");
        assert_eq!(scratch.read(file), before);
    }
    scratch.write(quota, data);
    let (code, text) = run(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(scratch.read(file), before, "nothing to do");
}
