//! Two hundred objects against an API server that refuses, loses answers, or restarts: runs that follow converge, and
//! nothing foreign is touched.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod ground;
    pub mod meddler;
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod yard;
}

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_inventory::Owner;
use qontract_runtime::{Ended, Outcome};
use qontract_testkit::cluster::TestCluster;
use serde_json::{Value, json};
use support::ground::{Ground, RealCluster};
use support::meddler::{Habits, Meddler};
use support::yard::{Wish, Yard};

/// Namespaces, and objects in each of them.
const SHAPE: (usize, usize) = (4, 50);

fn config_map(number: usize, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number:02}")}, "data": {"x": value}})
}

fn yard(ground: &RealCluster, namespaces: &[String], value: &str) -> Yard {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let clusters = Arc::new(ground.clusters(Mode::Real, 1000));
    namespaces.iter().fold(Yard::new(clusters, ground.cluster(), owner, &["ConfigMap"]), |yard, namespace| {
        let wishes = (0..SHAPE.1).map(|number| Wish::for_object(config_map(number, value)));
        yard.plot(namespace, wishes.collect())
    })
}

/// What is foreign in a namespace, with its versions.
fn plant_foreign(ground: &RealCluster, namespace: &str) -> BTreeMap<String, Value> {
    let foreign =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}, "data": {"y": "1"}});
    ground.plant(namespace, &[foreign]);
    seen(ground, namespace).into_iter().filter(|(name, _)| name == "foreign").collect()
}

fn seen(ground: &RealCluster, namespace: &str) -> BTreeMap<String, Value> {
    let all = ground.harvest(namespace, &["ConfigMap"]).into_iter();
    all.map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object)).collect()
}

fn is_done(outcome: &Outcome) -> bool {
    outcome.ended == Ended::Ok
}

fn assert_converged(
    ground: &RealCluster,
    namespaces: &[String],
    foreign: &[BTreeMap<String, Value>],
    value: &str,
) {
    for (namespace, before) in namespaces.iter().zip(foreign) {
        let now = seen(ground, namespace);
        for number in 0..SHAPE.1 {
            assert_eq!(now[&format!("c{number:02}")]["data"]["x"], value);
        }
        assert_eq!(now["foreign"], before["foreign"]);
    }
}

#[test]
fn whatever_the_server_answers_the_next_runs_converge() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let direct = RealCluster::new();
    let namespaces: Vec<String> = (0..SHAPE.0).map(|_| direct.namespace()).collect();
    let foreign: Vec<_> = namespaces.iter().map(|namespace| plant_foreign(&direct, namespace)).collect();
    let habits = Habits { conflicts: 6, throttles: 1, failures: 6, lost_answers: 6 };
    let meddler = tokio.block_on(Meddler::start(&direct.cluster().server, &direct.ca(), habits, 11));
    let through = RealCluster::through(meddler.address);
    for value in ["1", "2"] {
        let mut runs = 0;
        while !is_done(&tokio.block_on(yard(&through, &namespaces, value).run_in(Mode::Real))) {
            runs += 1;
            assert!(runs < 30, "it does not converge");
        }
        assert_converged(&direct, &namespaces, &foreign, value);
    }
    let counts = meddler.counts();
    assert!(counts.spoilt > 50, "{counts:?}: too few to mean something");
    let calm = tokio.block_on(yard(&direct, &namespaces, "2").run_in(Mode::DryRun));
    assert!(calm.shards.values().all(|shard| shard.changes.is_empty()), "nothing is left to do");
}

#[test]
fn a_server_that_restarts_in_the_midst_of_it_does_no_harm() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = TestCluster::start();
    let ground = RealCluster::of(&cluster.api);
    let namespaces: Vec<String> = (0..SHAPE.0).map(|_| ground.namespace()).collect();
    let foreign: Vec<_> = namespaces.iter().map(|namespace| plant_foreign(&ground, namespace)).collect();
    for value in ["1", "2"] {
        let run = tokio.spawn(yard(&ground, &namespaces, value).run_in(Mode::Real));
        // Once some of them are written.
        qontract_testkit::eventually("it has begun", || {
            let written = seen(&ground, &namespaces[0]);
            written.values().any(|object| object["data"]["x"] == value).then_some(())
        });
        cluster.restart_api_server();
        let interrupted = tokio.block_on(run).unwrap();
        let mut runs = 0;
        while !is_done(&tokio.block_on(yard(&ground, &namespaces, value).run_in(Mode::Real))) {
            runs += 1;
            assert!(runs < 10, "it does not converge; first: {interrupted:?}");
        }
        assert_converged(&ground, &namespaces, &foreign, value);
    }
}
