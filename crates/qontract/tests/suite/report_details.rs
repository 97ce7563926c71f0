//! Tests of details in reports: the current reason of a held change, and the values that a replacement
//! removes.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use crate::support::secrets_repo::{SELECTED, SecretsRepo};
use qontract_testkit::{Scratch, example};

/// The output of a command.
fn output(scratch: &Scratch, words: &[&str]) -> String {
    let output = qontract(scratch.path(), words);
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_held_change_is_reported_with_its_current_reason() {
    let repo = SecretsRepo::new();
    let guards = "[sandbox]\ndirectory = \"sandbox\"\n[guards]\nshard_removals = 0\nshard_percent = 0\n";
    repo.scratch.write("config.toml", guards);
    let object = |keys: usize| {
        let data = (0..keys).map(|number| format!("  k{number}: v\n")).collect::<Vec<_>>().concat();
        repo.resource(
            "head",
            "x.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n{data}"),
        );
        repo.entries("head", "- {provider: resource, path: /x.yaml}\n");
    };
    let run = |more: &[&str]| {
        let words = [
            "reconcile",
            "openshift-resources",
            "--data",
            "head",
            "--config",
            "config.toml",
            "--runs",
            "runs",
        ];
        output(&repo.scratch, &[&words[..], &SELECTED, more].concat())
    };
    object(7);
    assert!(run(&[]).contains("+ create ConfigMap `x`"));
    // First it would lose keys.
    object(1);
    let text = run(&[]);
    assert!(text.contains("it loses 6 of 7 keys"), "{text}");
    let text = run(&["--dry-run"]);
    assert!(text.contains("held since ") && text.contains("approved: it loses 6 of 7 keys"), "{text}");
    assert!(text.contains("the limit of 0 for a shard"), "{text}");
    // Then it would be removed.
    repo.entries("head", "");
    for more in [&["--dry-run"][..], &[], &["--dry-run"]] {
        let text = run(more);
        assert!(text.contains("- remove ConfigMap `x`") && text.contains("held since "), "{more:?} {text}");
        assert!(text.contains("its loss of keys was held before and is not approved"), "{more:?} {text}");
        assert!(!text.contains("it loses"), "{more:?} {text}");
    }
    // Then it would lose other keys.
    object(2);
    for more in [&["--dry-run"][..], &[]] {
        let text = run(more);
        assert!(text.contains("approved: it loses 5 of 7 keys"), "{more:?} {text}");
        assert!(text.contains("its removal was held before and is not approved"), "{more:?} {text}");
    }
    let approved = output(&repo.scratch, &["approve", "last", "--runs", "runs"]);
    assert!(approved.contains("name: \"x\""), "{approved}");
}

#[test]
fn the_value_of_an_item_that_a_replacement_removes_is_shown() {
    let scratch = Scratch::new();
    for side in ["base", "head"] {
        scratch.copy(&example(), side);
    }
    let here = ["--sandbox", "sandbox", "--runs", "runs"];
    for integration in ["openshift-namespaces", "openshift-resourcequotas"] {
        let made = output(&scratch, &[&["reconcile", integration, "--data", "base"][..], &here].concat());
        assert!(made.contains("+ create"), "{made}");
    }
    let quotas = "head/data/platform/quotas/small.yml";
    let text = scratch.read(quotas);
    let before = "  scopes:\n  - NotTerminating\n";
    assert!(text.contains(before), "{text}");
    for (after, md, json) in [
        ("", "removed `spec.scopes[0]`: `\"NotTerminating\"`", "\"before\": \"NotTerminating\""),
        (
            "  scopes: [NotTerminating, Terminating]\n",
            "added `spec.scopes[1]`: `\"Terminating\"`",
            "\"after\": \"Terminating\"",
        ),
    ] {
        scratch.write(quotas, text.replace(before, after));
        let plan = |format: &str| {
            output(
                &scratch,
                &[&["plan", "base", "head", "-i", "openshift-resourcequotas", "-o", format][..], &here]
                    .concat(),
            )
        };
        let (shown, whole) = (plan("md"), plan("json"));
        assert!(shown.contains(md), "{md}: {shown}");
        assert!(whole.contains(json), "{json}: {whole}");
    }
}
