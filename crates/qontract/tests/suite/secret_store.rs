//! Tests of a secret store that fails during a run: nothing is removed, and objects whose secrets were read
//! are processed.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::command::qontract;
use crate::support::running::Running;
use qontract_testkit::eventually;
use qontract_testkit::vault::{ROOT, TestVault, VaultFault};
use qontract_testkit::{Scratch, example};
use serde_json::json;

#[test]
fn a_store_that_fails_during_a_run_removes_nothing() {
    let (scratch, vault) = (Scratch::new(), TestVault::start());
    scratch.copy(&example(), "repo");
    let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    let text = scratch.read(namespace);
    let text =
        text.replace("path: shop/stage/catalog/search\n  version: 3", "path: secret/search\n  version: 1");
    let shared = "sharedResources:\n- $ref: /platform/shared-resources/trust.yml\n";
    assert!(text.contains("secret/search") && text.contains(shared), "{text}");
    scratch.write(namespace, text.replace(shared, ""));
    vault.put("search", &json!({"user": "ann"}));
    let config = format!(
        "[sandbox]\ndirectory = \"sandbox\"\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n",
        vault.url()
    );
    scratch.write("config.toml", config);
    scratch.init_journal("sandbox");
    scratch.write(
        "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-stage}\n",
    );
    let words = [
        "reconcile",
        "openshift-vault-secrets",
        "--data",
        "repo",
        "--config",
        "config.toml",
        "--runs",
        "runs",
        "--namespace-name",
        "catalog-stage",
    ];
    assert_eq!(qontract(scratch.path(), &words).status.code(), Some(0));
    let secret = "sandbox/clusters/cliffs-stage/catalog-stage/Secret/catalog-search.yaml";
    let made = scratch.read(secret);
    assert!(made.contains("YW5u"), "{made}");
    // An object that would be removed if it were known that nothing declares it.
    let other = "sandbox/clusters/cliffs-stage/catalog-stage/Secret/old.yaml";
    scratch.write(other, made.replace("name: catalog-search", "name: old"));

    let (held, before) = (vault.hold(), vault.requests(""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let mut running = Running::of(command.current_dir(scratch.path()).args(words));
    let printed = running.drain();
    eventually("the store is asked", || (vault.requests("") > before).then_some(()));
    vault.fail(Some(VaultFault::Status(503)));
    drop(held);
    let code = running.child.wait().unwrap().code();
    let printed = printed.join().unwrap();
    assert!(matches!(code, Some(1 | 75)), "{code:?} {printed}");
    assert!(scratch.path().join(other).exists(), "nothing is removed: {printed}");
    assert_eq!(scratch.read(secret), made, "and nothing is changed");
    vault.fail(None);
    assert_eq!(qontract(scratch.path(), &words).status.code(), Some(0));
    assert!(!scratch.path().join(other).exists(), "once it is known that nothing names it, it goes");
}
