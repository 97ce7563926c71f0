//! A thousand tokens in the configuration, at the most talkative level: none of them is in what is printed or kept.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    pub mod command;
    pub mod running;
}

use std::process::Command;

use qontract_testcluster::eventually;
use qontract_testkit::{Scratch, example};
use qontract_testvault::{ROOT, TestVault};
use serde_json::json;
use support::command::qontract;
use support::running::{Running, get};

const COUNT: usize = 1000;

#[test]
fn no_token_is_in_what_is_printed_or_kept() {
    let scratch = Scratch::new();
    for part in ["schemas", "graphql-schemas"] {
        scratch.copy(&example().join(part), &format!("repo/{part}"));
    }
    let own = "data/integrations/openshift-namespaces.yml";
    scratch.write(&format!("repo/{own}"), std::fs::read_to_string(example().join(own)).unwrap());
    let mut config = "[kubernetes]\nrequests_per_second = 50\n".to_owned();
    for number in 0..COUNT {
        let cluster = format!(
            "$schema: /openshift/cluster-1.yml\nname: c{number}\nserverUrl: https://127.0.0.1:{}\nautomationToken: {{path: creds/c{number}, field: token}}\n",
            1000 + number
        );
        scratch.write(&format!("repo/data/clusters/c{number}.yml"), cluster);
        let namespace = format!(
            "$schema: /openshift/namespace-1.yml\nname: n\ncluster: {{$ref: /clusters/c{number}.yml}}\n"
        );
        scratch.write(&format!("repo/data/n{number}.yml"), namespace);
        // Some tokens are for another server, some cannot be sent, some are no text.
        let token = match number % 3 {
            0 => format!("\"canary-{number}\"\nserver = \"https://other.example.com\""),
            1 => format!("\"canary-{number}\\nsecond line\""),
            _ => format!("[\"canary-{number}\"]"),
        };
        config.push_str(&format!("[creds.c{number}]\ntoken = {token}\n"));
    }
    scratch.write("config.toml", config);
    let words = [
        "reconcile",
        "openshift-namespaces",
        "--data",
        "repo",
        "--no-validate",
        "--config",
        "config.toml",
        "--runs",
        "runs",
    ];
    let mut told = String::new();
    for more in [&["--dry-run", "--log-level", "DEBUG"][..], &["--log-level", "DEBUG", "-o", "json"][..]] {
        let output = qontract(scratch.path(), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        told += &String::from_utf8_lossy(&output.stdout);
        told += &String::from_utf8_lossy(&output.stderr);
    }
    for entry in std::fs::read_dir(scratch.path().join("runs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            told += &std::fs::read_to_string(path).unwrap();
        }
    }
    assert!(
        told.matches("cannot log in to the cluster").count() > COUNT,
        "the test means something: {}",
        &told[..500]
    );
    assert_eq!(told.matches("canary-").count(), 0);
}

/// A loop at its most talkative, with tokens in Vault: what it logs, its metrics, its records and its trail.
#[test]
fn no_token_of_vault_is_in_what_a_loop_tells() {
    let (scratch, vault) = (Scratch::new(), TestVault::start());
    scratch.copy(&example(), "repo");
    let cluster = scratch.read("repo/data/clusters/cliffs-stage.yml");
    let namespace = scratch.read("repo/data/services/catalog/namespaces/catalog-stage.yml");
    for number in 0..COUNT {
        let cluster = cluster
            .replace("name: cliffs-stage\n", &format!("name: c{number}\n"))
            .replace("https://api.cliffs-stage.example.com:6443", "https://127.0.0.1:1")
            .replace("platform/clusters/cliffs-stage", &format!("secret/c{number}"));
        scratch.write(&format!("repo/data/clusters/c{number}.yml"), cluster);
        let namespace = namespace.replace("/cliffs-stage.yml", &format!("/c{number}.yml"));
        scratch.write(&format!("repo/data/n{number}.yml"), namespace);
        // A few tokens are sent to a server that is not there, some are for another one, some cannot be sent.
        let fields = match number % 2 {
            _ if number < 5 => json!({"token": format!("canary-{number}")}),
            0 => json!({"token": format!("canary-{number}"), "server": "https://other.example.com"}),
            _ => json!({"token": format!("canary-{number}\n")}),
        };
        vault.put(&format!("c{number}"), &fields);
    }
    let vault = format!("[kubernetes]\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n", vault.url());
    scratch.write("config.toml", vault);
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command
        .current_dir(scratch.path())
        .args(["reconcile", "openshift-namespaces", "--every", "1h", "--data", "repo", "--runs", "runs"])
        .args(["--config", "config.toml", "--log-level", "DEBUG", "--listen", "127.0.0.1:0"]);
    let mut running = Running::of(&mut command);
    let mut told = running.until("answers on http://");
    let address = told.split_once("http://").unwrap().1.trim().trim_end_matches('/').to_owned();
    let lines = running.drain();
    told += &eventually("the run has ended", || {
        let metrics = get(&address, "/metrics");
        metrics.contains("qontract_reconcile_last_run_status{").then_some(metrics)
    });
    drop(running);
    told += &lines.join().unwrap();
    assert!(told.matches(" ERROR ").count() >= COUNT, "the test means something");
    for entry in std::fs::read_dir(scratch.path().join("runs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            told += &std::fs::read_to_string(path).unwrap();
        }
    }
    assert_eq!(told.matches("canary-").count(), 0);
}
