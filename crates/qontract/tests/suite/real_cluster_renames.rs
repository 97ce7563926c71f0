//! Tests of clusters that the data renames, on a real API server that has two addresses.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use crate::support::cluster::ClusterFixture;

const QUOTAS: &str = "openshift-resourcequotas";

/// Another address that leads to the same server, until the test ends.
fn forward(server: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, server) = (listener.local_addr().unwrap(), server.to_owned());
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        // The other side may close the connection at any time.
        thread::spawn(move || drop(io::copy(&mut from, &mut to)));
    };
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(target) = TcpStream::connect(&server) else { continue };
            copy(client.try_clone().unwrap(), target.try_clone().unwrap());
            copy(target, client);
        }
    });
    address
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_cluster_whose_name_and_address_change_keeps_its_objects_on_a_real_cluster() {
    let stage = ClusterFixture::new();
    let name = stage.name("renamed");
    let quota = "$schema: /openshift/quota-1.yml\nname: q\nquotas:\n- name: compute\n  resources: {limits: {cpu: '2'}}\n";
    stage.write("data/quota.yml", quota);
    stage.declare(&name, "quota: {$ref: /quota.yml}");
    for (code, plan) in [stage.reconcile(&[]), stage.run(QUOTAS, &[])] {
        assert_eq!(code, 0, "{plan}");
    }
    let uids = || {
        let path = "jsonpath={.items[*].metadata.uid}";
        stage.api.kubectl(&["get", "resourcequota", "--namespace", &name, "--output", path], "").text()
    };
    let before = uids();
    assert!(!before.is_empty());
    let copied = Command::new("cp").current_dir(stage.path()).args(["-r", "repo", "old"]).status().unwrap();
    assert!(copied.success());
    let other = format!("https://{}", forward(stage.api.url.trim_start_matches("https://")));
    stage.write("data/clusters/c1.yml", &ClusterFixture::cluster("c2", &other));

    let (code, plan) = stage.run(QUOTAS, &["--base", "old"]);
    assert_eq!(code, 0, "{plan}");
    let kept = format!("kept: the shard `cluster=c2, namespace={name}` observes the same object");
    assert!(plan.contains("left unchanged: ResourceQuota") && plan.contains(&kept), "{plan}");
    assert_eq!(uids(), before);
    let (code, plan) = stage.run(QUOTAS, &[]);
    assert_eq!((code, plan.as_str()), (0, ""), "the second run has nothing to do");
    assert_eq!(uids(), before);
}
