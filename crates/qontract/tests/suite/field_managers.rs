//! Tests that plans name the other field managers of an object, on a sandbox. `real_cluster` has the tests on a
//! real API server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use qontract_testkit::{Scratch, example};

/// The file of a quota in the sandbox.
const QUOTA: &str = "sandbox/clusters/cliffs-stage/billing-stage/ResourceQuota/compute.yaml";

/// The example with its quotas, one of which another manager changes.
struct ManagedQuota(Scratch);

impl ManagedQuota {
    /// The manager owns the memory limit that it set.
    fn new(manager: &str) -> Self {
        let fixture = Self(Scratch::new());
        fixture.0.copy(&example(), "repo");
        for integration in ["openshift-namespaces", "openshift-resourcequotas"] {
            let (code, text) = fixture.run(&["reconcile", integration]);
            assert_eq!(code, 0, "{text}");
        }
        let quota = fixture.0.read(QUOTA);
        assert!(quota.contains("limits.memory: 8Gi"), "{quota}");
        let quota = quota.replace("limits.memory: 8Gi", "limits.memory: 9Gi");
        let fields = r#"{"f:spec":{"f:hard":{"f:limits.memory":{}}}}"#;
        let entry =
            format!(r#"# managed: {{"fieldsV1":{fields},"manager":"{manager}","operation":"Update"}}"#);
        fixture.0.write(QUOTA, format!("{quota}{entry}\n"));
        fixture
    }

    fn run(&self, words: &[&str]) -> (i32, String) {
        let more = ["--data", "repo", "--sandbox", "sandbox", "--runs", "runs", "--log-level", "WARNING"];
        let output = qontract(self.0.path(), &[words, &more].concat());
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn quotas(&self, more: &[&str]) -> (i32, String) {
        self.run(&[&["reconcile", "openshift-resourcequotas"], more].concat())
    }
}

#[test]
fn a_conflict_is_an_error_of_the_plan_and_of_the_run() {
    let fixture = ManagedQuota::new("quota-operator");
    for more in [&["--dry-run"][..], &[]] {
        let (code, text) = fixture.quotas(more);
        assert_eq!(code, 1, "{text}");
        let expect = "ResourceQuota `compute` in `billing-stage` conflicts with other managers: `quota-operator` owns \
                      `spec.hard[\"limits.memory\"]`";
        assert!(text.contains(expect), "{more:?}: {text}");
        assert!(
            text.contains("hint: remove these fields from the data, or from the other manager"),
            "{text}"
        );
        assert!(!text.contains("may be partially applied"), "{text}");
        assert!(fixture.0.read(QUOTA).contains("9Gi"));
    }
}

#[test]
fn the_plan_names_the_manager_that_the_run_overrules() {
    let fixture = ManagedQuota::new("kubectl-edit");
    let note = "overrules the field manager `kubectl-edit`, which set `spec.hard[\"limits.memory\"]`";
    for more in [&["--dry-run"][..], &[]] {
        let (code, text) = fixture.quotas(more);
        assert!(code == 0 && text.contains(note), "{more:?}: {text}");
        assert!(text.contains("~ spec.hard[\"limits.memory\"]: \"9Gi\" → \"8Gi\""), "{text}");
    }
    let quota = fixture.0.read(QUOTA);
    assert!(quota.contains("8Gi") && !quota.contains("kubectl-edit"), "{quota}");
    let (code, text) = fixture.quotas(&[]);
    assert!(code == 0 && !text.contains('~'), "{text}");
}
