//! A thousand secret values in plans, diffs, faults and records: none of them is printed.

use qontract_access::Mode;
use qontract_inventory::Owner;
use qontract_runtime::{LineResolvers, RunOutcome, RunRecord, RunTiming};
use serde_json::{Value, json};

use crate::support::test_integration::{TestIntegration, TestObject};
use crate::support::test_target::{SandboxTarget, TestTarget};

const COUNT: usize = 1000;

fn canary(number: usize, round: &str) -> String {
    format!("canary-{round}-{number:04}")
}

/// A Secret; every third has its value as text, every seventh needs a replacement.
fn secret(number: usize, round: &str) -> Value {
    let (name, value) = (format!("s{number:04}"), canary(number, round));
    let kind = if number.is_multiple_of(7) { format!("example.com/{round}") } else { "Opaque".to_owned() };
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind});
    if number.is_multiple_of(3) {
        object["stringData"] = json!({"p": value});
    } else {
        object["data"] = json!({"p": value});
    }
    object
}

fn printed(outcome: &RunOutcome) -> String {
    let record = RunRecord::new(
        outcome,
        RunTiming { began: jiff::Timestamp::UNIX_EPOCH, milliseconds: 0 },
        LineResolvers::uniform(&|place| format!("{place:?}")),
    );
    let shard = outcome.shards.values().next().unwrap();
    let changes: Vec<String> = shard.changes.iter().map(ToString::to_string).collect();
    format!("{outcome:?}\n{}\n{}", serde_json::to_string(&record).unwrap(), changes.join("\n"))
}

#[test]
fn values_of_secrets_are_not_printed() {
    let target = SandboxTarget::new();
    let namespace = target.namespace();
    let run = |round: &str, mode: Mode| {
        let owner = Owner::of("openshift-vault-secrets", None).unwrap();
        let integration = TestIntegration::new(target.kubernetes(mode), target.cluster(), owner, &["Secret"]);
        let objects = (0..COUNT).map(|number| TestObject::for_object(secret(number, round))).collect();
        integration.with_namespace(&namespace, objects).run(mode)
    };
    let mut all = printed(&run("one", Mode::DryRun)) + &printed(&run("one", Mode::Real));
    // Changed by hand, so that the live objects differ, too.
    for number in 0..50 {
        let edit = json!({"data": {"p": canary(number, "edit"), "q": "canary-added"}});
        target.edit(&namespace, "Secret", &format!("s{number:04}"), &edit);
    }
    all += &(printed(&run("one", Mode::DryRun))
        + &printed(&run("two", Mode::DryRun))
        + &printed(&run("two", Mode::Real)));
    assert!(all.matches("change Secret").count() > COUNT, "the test is meaningful");
    assert!(all.contains("replace Secret") || all.contains("held"), "some cannot be changed in place");
    let hits = all.matches("canary-").count();
    assert_eq!(
        hits,
        0,
        "{}",
        &all[all.find("canary-").unwrap_or_default().saturating_sub(200)..][..400.min(all.len())]
    );
}
