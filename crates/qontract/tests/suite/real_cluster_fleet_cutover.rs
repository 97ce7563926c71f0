//! Tests of replacing a living fleet that the Helm chart of qontract-reconcile has deployed, on a real API server with
//! the controllers of Kubernetes. The test plays scheduler and kubelet, and judges a watch over all pods: a shard
//! never has two pods, and has none only while a pod ends and the next one starts.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::Duration;

use qontract_testkit::{SeededRng, chaos_count, eventually};
use serde_json::Value;

use crate::support::fleet::{FleetFixture, UPSTREAM, changes};
use crate::support::kubelet::{END, Kubelet, START};
use crate::support::peer_fleet::{GRACE_SECONDS, PeerWorkload, service};
use crate::support::pod_history::{Judgement, PodEvent, PodState, judge};

/// Number of static shards of an integration: more than may be replaced without an approval.
const SHARDS: usize = 11;

/// Number of pods: the static shards, those of two accounts, and one with a cache.
const PODS: usize = SHARDS + 3;

/// The time for garbage collection, controllers and the manager, in addition to the start of a pod.
const SLACK: Duration = Duration::from_secs(5);

/// The name of the integration with static shards.
const STATIC: &str = "openshift-resources";

/// A fleet of the chart with all of its pods, and the data that declares the same shards.
struct CutOver {
    fleet: FleetFixture,
    kubelet: Kubelet,
}

impl CutOver {
    /// `grace` is the grace period of the shards with even numbers, whose pods take all of it.
    fn new(shards: usize, grace: u64) -> Self {
        let fleet = FleetFixture::new();
        fleet.integration(STATIC, "", &format!("{{strategy: static, shards: {shards}}}"));
        let count = shards.to_string();
        let mut objects = vec![service(&fleet.namespace, UPSTREAM)];
        let mut add = |workload: PeerWorkload<'_>| objects.push(workload.object(&fleet.namespace, UPSTREAM));
        for number in 0..shards {
            let (id, slow) = (number.to_string(), (number % 2 == 0).then_some(grace));
            let shard = [("SHARDS", count.as_str()), ("SHARD_ID", id.as_str())];
            let suffix = format!("-{id}");
            add(PeerWorkload {
                kind: "Deployment",
                integration: STATIC,
                suffix: &suffix,
                shard: &shard,
                slow,
            });
        }
        if shards == SHARDS {
            fleet.integration("terraform-users", "", "{strategy: per-aws-account}");
            fleet.integration("cached", "cache: true", "");
            fleet.integration("nightly", "cron: 0 3 * * *", "");
            for (account, suffix) in [("a", "-a"), ("b", "-b")] {
                fleet.account(account);
                let shard = [("SHARD_KEY", account)];
                let integration = "terraform-users";
                add(PeerWorkload { kind: "Deployment", integration, suffix, shard: &shard, slow: None });
            }
            let one = [("SHARDS", "1"), ("SHARD_ID", "0")];
            add(PeerWorkload {
                kind: "StatefulSet",
                integration: "cached",
                suffix: "",
                shard: &one,
                slow: None,
            });
            add(PeerWorkload { kind: "CronJob", integration: "nightly", suffix: "", shard: &[], slow: None });
        }
        let kubelet = Kubelet::start(fleet.cluster.api, &fleet.namespace);
        // `kubectl apply` and `oc apply` differ in the name of the field manager.
        let (some, others) = objects.split_at(objects.len() / 2);
        for (objects, manager) in [(some, "kubectl-client-side-apply"), (others, "oc")] {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let words = ["apply", "--field-manager", manager, "--filename", "-"];
            fleet.cluster.api.kubectl(&words, &list.to_string()).text();
        }
        let cut_over = Self { fleet, kubelet };
        cut_over.await_pods(if shards == SHARDS { PODS } else { shards });
        cut_over
    }

    /// Waits until this number of pods are ready, and no others exist.
    fn await_pods(&self, count: usize) {
        eventually("all pods are ready", || (self.kubelet.pods() == (count, count)).then_some(()));
    }

    /// Starts the manager and kills it when this number of pods are gone since `begun`.
    fn kill_when_gone(&self, begun: usize, count: usize, flags: &[&str]) {
        let mut manager: Child = self.fleet.start(flags);
        eventually("pods are gone", || {
            let events = self.kubelet.events();
            let gone = events[begun..].iter().filter(|event| event.state == PodState::Gone).count();
            (gone >= count || manager.try_wait().unwrap().is_some()).then_some(())
        });
        // On Unix this is SIGKILL.
        manager.kill().unwrap();
        manager.wait().unwrap();
    }

    /// Judges the pods since an event.
    fn judge_since(&self, begun: usize) -> Judgement {
        let events = self.kubelet.events();
        // The pods that exist at the beginning are part of the history.
        let mut pods: BTreeMap<&str, &PodEvent> = BTreeMap::new();
        for event in &events[..begun] {
            match event.state {
                PodState::Gone => drop(pods.remove(event.uid.as_str())),
                _ => drop(pods.insert(&event.uid, event)),
            }
        }
        let history: Vec<PodEvent> = pods.into_values().chain(&events[begun..]).cloned().collect();
        judge(&history)
    }
}

/// Checks that a judgement has no overlaps, and that no shard was down for longer than a restart.
#[track_caller]
fn check_restarts(judgement: &Judgement, shards: usize, grace: Duration) {
    assert_eq!(judgement.overlaps, Vec::<String>::new(), "two pods of one shard at a time");
    let outages = &judgement.outages;
    assert!(outages.len() == shards && outages.iter().all(|one| one.starting.is_some()), "{outages:#?}");
    let longest = outages.iter().map(|outage| outage.ending).max().unwrap();
    assert!(longest <= END.max(grace) + SLACK, "{outages:#?}");
    assert!(judgement.longest_start() <= START + SLACK, "{outages:#?}");
}

/// Replaces a fleet: plans it, is held, is approved, and is killed in the middle.
fn cut_over(grace: u64, kills: &[usize]) -> Judgement {
    let stage = CutOver::new(SHARDS, grace);
    let CutOver { fleet, kubelet } = &stage;
    let begun = kubelet.events().len();
    // The dry run shows each replacement, and why it is held.
    let (code, plan) = fleet.run(&["--dry-run"]);
    assert_eq!(code, 1, "{plan}");
    let replaced = |plan: &str| plan.lines().filter(|line| line.contains("± replace ")).count();
    assert_eq!(replaced(&plan), PODS, "{plan}");
    assert!(plan.contains("held: ± replace Deployment `qontract-reconcile-openshift-resources-0`"), "{plan}");
    assert!(plan.contains("`spec.selector` cannot change in place"), "{plan}");
    let limit = format!("{PODS} removals exceed the limit of 10 for a shard without approval");
    assert!(plan.contains(&limit), "{plan}");
    // Without an approval, no pod ends.
    let (code, plan) = fleet.run(&[]);
    assert!(code == 1 && plan.contains(&limit), "{plan}");
    fleet.approve();

    for count in kills {
        stage.kill_when_gone(begun, *count, &[]);
    }
    let (code, plan) = fleet.run(&[]);
    assert_eq!(code, 0, "{plan}");
    stage.await_pods(PODS);
    let judgement = stage.judge_since(begun);
    check_restarts(&judgement, PODS, Duration::from_secs(grace));
    fleet.assert_settled(&[]);
    // Each workload has its own selector.
    let selectors: BTreeSet<String> = fleet
        .objects(&fleet.namespace)
        .iter()
        .filter(|object| object["kind"] == "Deployment" || object["kind"] == "StatefulSet")
        .map(|object| object["spec"]["selector"].to_string())
        .collect();
    assert_eq!(selectors.len(), PODS);
    check_image_update(&stage);
    judgement
}

/// Changes the image of all pods: the fleet rolls without overlaps.
fn check_image_update(stage: &CutOver) {
    let begun = stage.kubelet.events().len();
    let flags = ["--image-tag-from-ref", "prod=0123456789abcdef0123456789abcdef01234567"];
    let (code, plan) = stage.fleet.run(&flags);
    assert_eq!((code, changes(&plan).len()), (0, PODS + 1), "{plan}");
    eventually("all pods are new", || {
        let events = stage.kubelet.events();
        let ready = events[begun..].iter().filter(|event| event.state == PodState::Ready);
        let new: BTreeSet<&str> = ready.map(|event| event.uid.as_str()).collect();
        (new.len() >= PODS).then_some(())
    });
    stage.await_pods(PODS);
    check_restarts(&stage.judge_since(begun), PODS, END);
    stage.fleet.assert_settled(&flags);
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_living_fleet_is_replaced_without_overlaps_even_if_the_manager_is_killed() {
    let (rounds, mut chance) = (chaos_count(1), SeededRng::new(3));
    for round in 0..rounds {
        // In some rounds, half of the pods take longer to end than the manager waits for other objects.
        let grace = if round % 4 == 3 { 40 } else { GRACE_SECONDS };
        let kills: Vec<usize> = match round {
            0 => vec![3],
            _ => (0..chance.below(4)).map(|_| chance.below(PODS)).collect(),
        };
        let judgement = cut_over(grace, &kills);
        print(&format!(
            "{PODS} shards, killed when {kills:?} pods were gone: {} overlaps, longest time from the end of a pod to a \
             ready one {:.1?}, longest outage {:.1?}",
            judgement.overlaps.len(),
            judgement.longest_start(),
            judgement.longest_outage()
        ));
    }
}

#[expect(clippy::print_stdout, reason = "the figures of a chaos run")]
fn print(line: &str) {
    println!("{line}");
}

/// The same judge finds overlaps if workloads are removed in the background, or have rolling updates.
#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn background_removals_and_rolling_updates_are_found_as_overlaps() {
    let stage = CutOver::new(2, GRACE_SECONDS);
    let CutOver { fleet, kubelet } = &stage;
    let (code, manifests) = fleet.run(&["--print-only"]);
    assert_eq!(code, 0, "{manifests}");
    let kubectl = |words: &[&str], input: &str| {
        let words = [words, &["--namespace", &fleet.namespace]].concat();
        fleet.cluster.api.kubectl(&words, input).text()
    };
    let shards = vec![format!("{STATIC} 0"), format!("{STATIC} 1")];
    let overlaps = |begun: usize| {
        let mut overlaps = stage.judge_since(begun).overlaps;
        overlaps.sort();
        overlaps
    };

    let begun = kubelet.events().len();
    kubectl(&["delete", "deployments", "--all", "--cascade=background"], "");
    kubectl(&["apply", "--filename", "-"], &manifests);
    eventually("new pods are beside the old ones", || (overlaps(begun) == shards).then_some(()));
    stage.await_pods(2);

    let begun = kubelet.events().len();
    let rolling = manifests.replace("type: Recreate", "type: RollingUpdate").replace(":latest", ":next");
    kubectl(&["apply", "--filename", "-"], &rolling);
    eventually("new pods are beside the old ones", || (overlaps(begun) == shards).then_some(()));
    stage.await_pods(2);

    let begun = kubelet.events().len();
    fleet.cluster.api.kubectl(&["apply", "--filename", "-"], &manifests).text();
    let strategies = |object: &Value| object["spec"]["strategy"]["type"].clone();
    let live = fleet.objects(&fleet.namespace);
    assert!(
        live.iter().filter(|object| object["kind"] == "Deployment").all(|one| strategies(one) == "Recreate")
    );
    eventually("both pods are gone", || {
        let gone = |event: &&PodEvent| event.state == PodState::Gone;
        (kubelet.events()[begun..].iter().filter(gone).count() == 2).then_some(())
    });
    stage.await_pods(2);
    assert_eq!(overlaps(begun), Vec::<String>::new(), "`Recreate` has no overlap");
}
