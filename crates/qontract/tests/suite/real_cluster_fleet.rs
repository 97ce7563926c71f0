//! Tests of a fleet on a real API server: its objects follow the data, and every second run changes nothing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use qontract_testkit::{SeededRng, chaos_count};
use serde_json::{Value, json};

use crate::support::fleet::{FleetFixture, UPSTREAM, changes};

/// A commit, whose first characters are the tag of the image.
const COMMIT: &str = "prod=0123456789abcdef0123456789abcdef01234567";

/// A deployment with one shard for each AWS account.
const PER_ACCOUNT: &str = "{strategy: per-aws-account}";

fn static_shards(count: usize) -> String {
    format!("{{strategy: static, shards: {count}}}")
}

/// The images of the containers of the integrations, by kind.
fn images(fleet: &FleetFixture) -> Vec<String> {
    let pod = |object: &Value| {
        let spec = match object["kind"].as_str().unwrap() {
            "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
            "Deployment" | "StatefulSet" => &object["spec"]["template"]["spec"],
            _ => return None,
        };
        Some(spec["containers"][0]["image"].as_str().unwrap().to_owned())
    };
    fleet.objects(&fleet.namespace).iter().filter_map(pod).collect()
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_fleet_follows_the_data() {
    let fleet = FleetFixture::new();
    fleet.account("a");
    fleet.account("b");
    fleet.integration("openshift-resources", "", &static_shards(2));
    fleet.integration("terraform-users", "", PER_ACCOUNT);
    fleet.integration("cached", "cache: true", "");
    fleet.integration("nightly", "cron: 0 3 * * *", "");
    let created = fleet.converge(&[]);
    let expect = [
        "+ create Service `qontract-reconcile`",
        "+ create StatefulSet `cached`",
        "+ create CronJob `nightly`",
        "+ create Deployment `openshift-resources-0`",
        "+ create Deployment `openshift-resources-1`",
        "+ create Deployment `terraform-users-a`",
        "+ create Deployment `terraform-users-b`",
    ];
    assert_eq!(created, expect);
    // The server stores it in the version that it serves.
    assert_eq!(fleet.object("CronJob", "nightly")["spec"]["schedule"], "0 3 * * *");

    // More shards, and fewer: the guards let a few removals pass.
    fleet.integration("openshift-resources", "", &static_shards(5));
    assert_eq!(fleet.converge(&[]).len(), 5, "two shards change, and three are added");
    fleet.integration("openshift-resources", "", &static_shards(3));
    let scaled = fleet.converge(&[]);
    let removed: Vec<&String> = scaled.iter().filter(|line| line.starts_with('-')).collect();
    assert_eq!(
        removed,
        ["- remove Deployment `openshift-resources-3`", "- remove Deployment `openshift-resources-4`"]
    );

    // A new image, and back to that of the parameters.
    let bumped = fleet.converge(&["--image-tag-from-ref", COMMIT]);
    assert_eq!(bumped.len(), 7, "{bumped:?}");
    assert!(images(&fleet).iter().all(|image| image.ends_with(":0123456")), "{:?}", images(&fleet));
    assert_eq!(fleet.converge(&[]).len(), 7);

    // A disabled shard has no pod.
    let disabled =
        "{strategy: per-aws-account, shardSpecOverrides: [{shard: {$ref: /aws/b.yml}, disabled: true}]}";
    fleet.integration("terraform-users", "", disabled);
    assert_eq!(fleet.converge(&[]), ["~ change Deployment `terraform-users-b`"]);
    assert_eq!(fleet.object("Deployment", "terraform-users-b")["spec"]["replicas"], 0);

    // An account is added, and another is removed.
    fleet.account("c");
    fleet.remove("data/aws/a.yml");
    let moved = fleet.converge(&[]);
    assert_eq!(moved, ["+ create Deployment `terraform-users-c`", "- remove Deployment `terraform-users-a`"]);

    // An account of the data disables the integration.
    let off = "$schema: /aws/account-1.yml\nname: c\ndisable: {integrations: [terraform-users]}\n";
    fleet.cluster.write("data/aws/c.yml", off);
    assert_eq!(fleet.converge(&[]), ["- remove Deployment `terraform-users-c`"]);

    // A loop becomes scheduled runs: another kind.
    fleet.integration("cached", "cron: 0 4 * * *\ncache: true", "");
    let changed = fleet.converge(&[]);
    assert!(changed.contains(&"+ create CronJob `cached`".to_owned()), "{changed:?}");
    assert_eq!(fleet.names("StatefulSet"), Vec::<String>::new());
    assert_eq!(fleet.names("PersistentVolumeClaim"), ["cached-cache"]);
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_integration_that_moves_to_another_namespace_leaves_nothing_behind() {
    let fleet = FleetFixture::new();
    let other = fleet.cluster.name("other");
    fleet.add_namespace(&other);
    fleet.integration("github", "", "");
    fleet.integration("openshift-resources", "logs: {slack: true}", &static_shards(2));
    fleet.converge(&[]);
    let keep = |name: &str| {
        let copied = Command::new("cp").current_dir(fleet.cluster.path()).args(["-r", "repo", name]).status();
        assert!(copied.unwrap().success());
    };
    keep("old");
    let entry = FleetFixture::entry_in(&other, "logs: {slack: true}", &static_shards(2));
    fleet.integration_of(UPSTREAM, "openshift-resources", &entry);
    let (code, plan) = fleet.run(&["--base", "old"]);
    // Both ConfigMaps of the old namespace go, which empties a scope.
    assert!(code == 1 && plan.contains("it would empty"), "{code}: {plan}");
    assert_eq!(fleet.names("ConfigMap").len(), 2);
    fleet.approve();
    let (code, plan) = fleet.run(&["--base", "old"]);
    assert_eq!(code, 0, "{plan}");
    fleet.assert_settled(&["--base", "old"]);
    let moved = ["openshift-resources-0", "openshift-resources-1"];
    assert_eq!(
        (fleet.names("Deployment"), fleet.names("ConfigMap")),
        (vec!["github".to_owned()], Vec::new())
    );
    assert_eq!(fleet.names_in(&other, "Deployment"), moved);
    assert_eq!(fleet.names_in(&other, "Service"), [""]);

    // The last integration leaves the namespace: its Service goes as well.
    keep("older");
    fleet.integration_of(UPSTREAM, "github", &FleetFixture::entry_in(&other, "", ""));
    let (code, plan) = fleet.run(&["--base", "older"]);
    assert_eq!(code, 0, "{plan}");
    assert_eq!(fleet.objects(&fleet.namespace), Vec::<Value>::new());
    fleet.assert_settled(&["--base", "older"]);
}

/// A specification that sets every field; for scheduled runs also those that only they have.
fn every_field(kind: &str) -> String {
    let all = "command: qontract-reconcile\ndisableUnleash: false\nenvironmentAware: true\nextraArgs: --threads 5 --name \"a b\"\n\
        extraEnv: [{name: EMPTY, value: ''}, {name: PLAIN, value: a value}, {secretName: one, secretKey: KEY}]\n\
        internalCertificates: true\nlogs: {slack: true, googleChat: true, slackErrorFilter: true, govSlack: true}\n\
        fluentdResources: {requests: {cpu: 10m, memory: 20Mi}, limits: {cpu: 1000m, memory: 1024Mi}}\n\
        sleepDurationSecs: '60'\nstate: true\nstorage: 2Gi\nstorageClassName: gp3-csi\ntrigger: true\ndashdotdb: true\n\
        imageRef: abcdef0\nenablePushgateway: true\n";
    let more = match kind {
        "Deployment" => "cache: false\n",
        "StatefulSet" => "cache: true\n",
        _ => {
            "cache: true\ncron: '*/5 2,3 1-7 * *'\nconcurrencyPolicy: Forbid\nrestartPolicy: Never\n\
             successfulJobHistoryLimit: 0\nfailedJobHistoryLimit: 0\n"
        }
    };
    format!("{all}{more}")
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_specification_that_sets_every_field_is_stored_as_it_is_declared() {
    let fleet = FleetFixture::new();
    for (name, kind) in [("loop", "Deployment"), ("cached", "StatefulSet"), ("nightly", "CronJob")] {
        fleet.integration(name, &every_field(kind), "");
    }
    fleet.converge(&["--image-tag-from-ref", COMMIT]);
    let (code, printed) = fleet.run(&["--print-only", "--image-tag-from-ref", COMMIT]);
    assert_eq!(code, 0, "{printed}");
    // The version of CronJobs that this server serves. `kubectl` refuses fields that the server does not know.
    let served = printed.replace("batch/v1\n", "batch/v1beta1\n");
    let words = ["create", "--dry-run=client", "--validate=true", "--output", "json", "--filename", "-"];
    let declared = fleet.cluster.api.kubectl(&words, &served).text();
    let mut declared: Vec<Value> =
        serde_json::Deserializer::from_str(&declared).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(declared.len(), 8);
    let live = fleet.objects(&fleet.namespace);
    for object in &mut declared {
        object.as_object_mut().unwrap().remove("apiVersion");
        let name = &object["metadata"]["name"];
        let stored =
            live.iter().find(|one| one["kind"] == object["kind"] && one["metadata"]["name"] == *name);
        let mut missing = Vec::new();
        add_missing(&mut missing, "", object, stored.unwrap());
        assert_eq!(missing, Vec::<String>::new(), "{name}");
    }
}

/// Adds the paths of the declared values that are not stored.
fn add_missing(missing: &mut Vec<String>, path: &str, declared: &Value, stored: &Value) {
    match (declared, stored) {
        (Value::Object(declared), Value::Object(stored)) => {
            for (key, value) in declared {
                add_missing(
                    missing,
                    &format!("{path}.{key}"),
                    value,
                    stored.get(key).unwrap_or(&Value::Null),
                );
            }
        }
        (Value::Array(declared), Value::Array(stored)) if declared.len() == stored.len() => {
            for (index, (one, other)) in declared.iter().zip(stored).enumerate() {
                add_missing(missing, &format!("{path}[{index}]"), one, other);
            }
        }
        // The server does not store zero values, and writes quantities in its own way.
        (Value::Null, _) => {}
        _ if *declared == json!("") && stored.is_null() => {}
        _ if *declared == json!("1000m") && *stored == json!("1") => {}
        _ if *declared == json!("1024Mi") && *stored == json!("1Gi") => {}
        _ if declared == stored => {}
        _ => missing.push(format!("{path}: {declared} is {stored}")),
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn callers_that_share_a_namespace_do_not_touch_the_objects_of_each_other() {
    let fleet = FleetFixture::new();
    let other = "https://github.com/shop/tools";
    fleet.integration("github", "logs: {slack: true}", "");
    fleet.integration_of(other, "quay", &fleet.entry("logs: {slack: true}", &static_shards(2)));
    let runs = || {
        for (upstream, (code, plan)) in [(UPSTREAM, fleet.run(&[])), (other, fleet.run_of(other))] {
            assert_eq!(code, 0, "{upstream}: {plan}");
        }
    };
    let settled = || {
        for (code, plan) in [fleet.run(&[]), fleet.run_of(other)] {
            assert_eq!((code, changes(&plan)), (0, Vec::new()), "{plan}");
        }
    };
    runs();
    settled();
    assert_eq!(fleet.names("Deployment"), ["github", "quay-0", "quay-1"]);
    assert_eq!(fleet.names("Service"), [""], "they share it");
    let caller =
        |kind, name| fleet.object(kind, name)["metadata"]["annotations"]["qontract.caller_name"].clone();
    assert_eq!(
        (caller("Deployment", "github"), caller("Deployment", "quay-0")),
        (json!(UPSTREAM), json!(other))
    );

    // A caller without integrations removes only its own objects.
    fleet.integration_of(other, "quay", &fleet.entry("", ""));
    let (code, plan) = fleet.run(&[]);
    assert_eq!((code, changes(&plan)), (0, Vec::new()), "{plan}");
    let (code, plan) = fleet.run_of(other);
    assert!(code == 1 && plan.contains("it would empty"), "{plan}");
    fleet.approve();
    runs();
    settled();
    assert_eq!(fleet.names("Deployment"), ["github", "quay"]);
    assert_eq!(fleet.names("ConfigMap"), ["github-fluentd"]);
}

/// Kills the manager at random points of runs that create, change and remove objects. The next run finishes.
#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_manager_that_is_killed_at_any_point_converges() {
    let rounds = chaos_count(5);
    let fleet = FleetFixture::new();
    // Slow enough that a run is killed between two writes.
    let guards =
        "[guards]\nshard_removals = 100000\ncaller_removals = 100000\nintegration_removals = 100000\n";
    let (ca, token) = (fleet.cluster.api.ca.display(), &fleet.cluster.api.token);
    fleet.cluster.write_config(&format!(
        "{guards}\n[kubernetes]\nrequests_per_second = 40\nca = \"{ca}\"\n\n[creds.admin]\ntoken = {token:?}\n"
    ));
    fleet.integration("cached", "cache: true\nlogs: {slack: true}", "");
    fleet.integration("nightly", "cron: 0 3 * * *\ncache: true\nlogs: {slack: true}", "");
    fleet.integration("openshift-resources", "logs: {slack: true}", &static_shards(8));
    fleet.converge(&[]);
    let mut chance = SeededRng::new(11);
    let (mut killed, mut half) = (0, 0);
    for round in 0..rounds {
        let shards = [16, 8][usize::try_from(round % 2).unwrap()];
        fleet.integration("openshift-resources", "logs: {slack: true}", &static_shards(shards));
        let tag = format!("prod={round:07x}{:033}", 0);
        let flags = ["--image-tag-from-ref", tag.as_str()];
        let image = format!(":{}", &tag["prod=".len()..][..7]);
        let writes = chance.below(shards);
        let done = || images(&fleet).iter().filter(|one| one.ends_with(&image)).count();
        killed += usize::from(kill_when(&fleet, &flags, || done() >= writes));
        half += usize::from((1..shards + 2).contains(&done()));
        let (code, plan) = fleet.run(&flags);
        assert_eq!(code, 0, "round {round}: {plan}");
        fleet.assert_settled(&flags);
        assert_eq!(fleet.names("Deployment").len(), shards, "round {round}");
    }
    assert!(killed > 0, "no run of {rounds} was killed");
    assert!(half > 0 || rounds < 5, "{killed} of {rounds} runs were killed, none while it wrote");
}

/// Runs the manager and kills it as soon as a condition holds; returns whether it was still running.
fn kill_when(fleet: &FleetFixture, flags: &[&str], is_reached: impl Fn() -> bool) -> bool {
    let mut child = fleet.start(flags);
    while !is_reached() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
    }
    // On Unix this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    true
}
