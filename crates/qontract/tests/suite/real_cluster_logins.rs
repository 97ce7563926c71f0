//! Tests of logins to a real API server: with a client certificate of a kubeconfig, and with a configuration
//! of the peer.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::cluster::ClusterFixture;
use qontract_testkit::vault::{ROOT, TestVault};
use qontract_testserver::DataServer;
use serde_json::json;

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_client_certificate_of_a_kubeconfig_logs_in() {
    let stage = ClusterFixture::new();
    let name = stage.name("certified");
    stage.declare(&name, "labels: {team: shop}");
    // No token: the certificate is the only credential.
    let kubeconfig = stage.api.certificate_kubeconfig.display().to_string();
    let config = |kubeconfig: &str| {
        format!("[kubernetes.clusters.c1]\nkubeconfig = {kubeconfig:?}\nrequests_per_second = 400\n")
    };
    stage.write_config(&config(&kubeconfig));
    let check = || {
        let words = ["config", "check", "--config", "config.toml", "--data", "repo"];
        let output = crate::support::command::qontract(stage.path(), &words);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = check();
    assert!(code == Some(0) && text.contains("reachable, credentials accepted"), "{text}");
    let (code, plan) = stage.reconcile(&[]);
    assert!(code == 0 && plan.contains(&format!("+ create Namespace `{name}`")), "{plan}");
    assert_eq!(stage.run("openshift-namespace-labels", &[]).0, 0);
    assert_eq!(stage.namespace(&name).unwrap()["metadata"]["labels"]["team"], "shop");
    assert_eq!(stage.reconcile(&[]), (0, String::new()), "the second run has nothing to do");

    // With the certificate and its key in the kubeconfig, and with one that another CA signed.
    let file = |name: &str| std::fs::read(stage.api.certificate_kubeconfig.with_file_name(name)).unwrap();
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let inline = |certificate: &[u8], key: &[u8]| {
        let user = format!(
            r#"{{"client-certificate-data": "{}", "client-key-data": "{}"}}"#,
            base64(certificate),
            base64(key)
        );
        text.replace(r#"{"client-certificate": "client.crt", "client-key": "client.key"}"#, &user)
    };
    std::fs::write(stage.path().join("kubeconfig"), inline(&file("client.crt"), &file("client.key")))
        .unwrap();
    stage.write_config(&config("kubeconfig"));
    assert_eq!(stage.reconcile(&[]), (0, String::new()));
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /O=system:masters/CN=other -keyout other.key -out other.crt".split(' '))
        .current_dir(stage.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let other = |name: &str| std::fs::read(stage.path().join(name)).unwrap();
    std::fs::write(stage.path().join("kubeconfig"), inline(&other("other.crt"), &other("other.key")))
        .unwrap();
    let (code, text) = check();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("cannot log in to the cluster `c1`: the credentials are not accepted"), "{text}");
}

/// A kubeconfig holds certificates in base64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = bytes.chunks(3).flat_map(|three| {
        let number =
            three.iter().chain([0, 0].iter()).take(3).fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        (0..4).map(move |at| {
            let letter = LETTERS[(number >> (18 - 6 * at) & 63) as usize];
            if at > three.len() { '=' } else { char::from(letter) }
        })
    });
    letters.collect()
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn the_configuration_of_the_peer_reconciles_a_cluster_of_the_data() {
    let stage = ClusterFixture::new();
    let name = stage.name("peer");
    stage.declare(&name, "labels: {team: shop}");
    let (vault, server) = (TestVault::start(), DataServer::start());
    let cluster = ClusterFixture::cluster("c1", &stage.api.url).replace("creds/admin", "secret/clusters/c1");
    stage.write("data/clusters/c1.yml", &cluster);
    vault.put("clusters/c1", &json!({"token": stage.api.token, "server": stage.api.url}));
    let words = ["bundle", "repo", "--no-validate", "-o", "bundle.json"];
    let output = crate::support::command::qontract(stage.path(), &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.load(&std::fs::read(stage.path().join("bundle.json")).unwrap());
    // Only keys that the peer reads.
    stage.write_config(&format!(
        "[graphql]\nserver = {:?}\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n",
        server.url(),
        vault.url()
    ));
    let run = |integration: &str, more: &[&str]| {
        let words =
            [&["peer", "reconcile", "--config", "config.toml", "--runs", "runs"], more, &[integration]];
        let output = Command::new(env!("CARGO_BIN_EXE_qontract"))
            .current_dir(stage.path())
            .args(words.concat())
            // It has no key for a CA: the system's are trusted.
            .env("SSL_CERT_FILE", &stage.api.ca)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains(&stage.api.token), "{text}");
        (output.status.code(), text)
    };
    let (code, text) = run("openshift-namespaces", &["--dry-run"]);
    assert!(code == Some(0) && text.contains(&format!("+ create Namespace `{name}`")), "{text}");
    assert_eq!(stage.namespace(&name), None, "a dry run makes nothing");
    for integration in ["openshift-namespaces", "openshift-namespace-labels"] {
        let (code, text) = run(integration, &[]);
        assert_eq!(code, Some(0), "{text}");
    }
    let made = stage.namespace(&name).unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "shop");
    let (code, text) = run("openshift-namespaces", &[]);
    assert!(code == Some(0) && !text.contains("create Namespace"), "{text}");
}
