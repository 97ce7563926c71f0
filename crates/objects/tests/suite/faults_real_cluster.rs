//! Two hundred objects against an API server that refuses requests, loses responses or restarts: the
//! following runs converge, and foreign objects are not touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_inventory::Owner;
use qontract_runtime::{RunEnd, RunOutcome};
use qontract_testkit::cluster::TestCluster;
use serde_json::{Value, json};

use crate::support::fault_proxy::{FaultProxy, FaultRates};
use crate::support::test_integration::{TestIntegration, TestObject};
use crate::support::test_target::{RealCluster, TestTarget};

/// Number of namespaces, and of objects in each.
const SHAPE: (usize, usize) = (4, 50);

fn config_map(number: usize, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number:02}")}, "data": {"x": value}})
}

fn integration(target: &RealCluster, namespaces: &[String], value: &str) -> TestIntegration {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let clusters = Arc::new(target.clusters(Mode::Real, 1000));
    namespaces.iter().fold(
        TestIntegration::new(clusters, target.cluster(), owner, &["ConfigMap"]),
        |integration, namespace| {
            let objects = (0..SHAPE.1).map(|number| TestObject::for_object(config_map(number, value)));
            integration.with_namespace(namespace, objects.collect())
        },
    )
}

/// Creates a foreign object in a namespace, and returns it with its version.
fn create_foreign(target: &RealCluster, namespace: &str) -> BTreeMap<String, Value> {
    let foreign =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}, "data": {"y": "1"}});
    target.create(namespace, &[foreign]);
    config_maps(target, namespace).into_iter().filter(|(name, _)| name == "foreign").collect()
}

fn config_maps(target: &RealCluster, namespace: &str) -> BTreeMap<String, Value> {
    let all = target.list(namespace, &["ConfigMap"]).into_iter();
    all.map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object)).collect()
}

fn is_done(outcome: &RunOutcome) -> bool {
    outcome.ended == RunEnd::Ok
}

fn assert_converged(
    target: &RealCluster,
    namespaces: &[String],
    foreign: &[BTreeMap<String, Value>],
    value: &str,
) {
    for (namespace, before) in namespaces.iter().zip(foreign) {
        let now = config_maps(target, namespace);
        for number in 0..SHAPE.1 {
            assert_eq!(now[&format!("c{number:02}")]["data"]["x"], value);
        }
        assert_eq!(now["foreign"], before["foreign"]);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn runs_converge_despite_server_faults() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let direct = RealCluster::new();
    let namespaces: Vec<String> = (0..SHAPE.0).map(|_| direct.namespace()).collect();
    let foreign: Vec<_> = namespaces.iter().map(|namespace| create_foreign(&direct, namespace)).collect();
    let rates = FaultRates { conflicts: 6, throttles: 1, failures: 6, lost_responses: 6 };
    let proxy = tokio.block_on(FaultProxy::start(&direct.cluster().server, &direct.ca(), rates, 11));
    let through = RealCluster::through(proxy.address);
    for value in ["1", "2"] {
        let mut runs = 0;
        while !is_done(&tokio.block_on(integration(&through, &namespaces, value).run_in(Mode::Real))) {
            runs += 1;
            assert!(runs < 30, "it does not converge");
        }
        assert_converged(&direct, &namespaces, &foreign, value);
    }
    let counts = proxy.counts();
    assert!(counts.faults > 50, "{counts:?}: too few faults");
    let calm = tokio.block_on(integration(&direct, &namespaces, "2").run_in(Mode::DryRun));
    assert!(calm.shards.values().all(|shard| shard.changes.is_empty()), "the second plan is empty");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn runs_converge_after_a_server_restart() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = TestCluster::start();
    let target = RealCluster::of(&cluster.api);
    let namespaces: Vec<String> = (0..SHAPE.0).map(|_| target.namespace()).collect();
    let foreign: Vec<_> = namespaces.iter().map(|namespace| create_foreign(&target, namespace)).collect();
    for value in ["1", "2"] {
        let run = tokio.spawn(integration(&target, &namespaces, value).run_in(Mode::Real));
        // Restarts once some objects are written.
        qontract_testkit::eventually("the run has begun", || {
            let written = config_maps(&target, &namespaces[0]);
            written.values().any(|object| object["data"]["x"] == value).then_some(())
        });
        cluster.restart_api_server();
        let interrupted = tokio.block_on(run).unwrap();
        let mut runs = 0;
        while !is_done(&tokio.block_on(integration(&target, &namespaces, value).run_in(Mode::Real))) {
            runs += 1;
            assert!(runs < 10, "it does not converge; first: {interrupted:?}");
        }
        assert_converged(&target, &namespaces, &foreign, value);
    }
}
