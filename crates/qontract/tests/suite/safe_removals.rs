//! Tests that nothing is removed by mistake: because of a half-updated work tree, after a failed write, because
//! of a misspelt kind, again and again, or after a restart.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::{Scratch, eventually};
use rustix::process::Signal;

const USER: &str = "repo/data/access/users/dev-catalog-two.yml";

fn git(folder: &Path, arguments: &[&str]) {
    let git = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(git.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&git.stderr));
}

/// The example in a sandbox that has everything that it declares.
fn reconciled(integrations: &[&str]) -> Scratch {
    let scratch = operator_fixture();
    for integration in ["openshift-namespaces"].iter().chain(integrations) {
        let (code, text) = reconcile(&scratch, integration, &[]);
        assert_eq!(code, 0, "{text}");
    }
    scratch
}

fn reconcile(scratch: &Scratch, integration: &str, more: &[&str]) -> (i32, String) {
    let words = ["reconcile", integration, "--data", "repo", "--sandbox", "sandbox", "--runs", "runs"];
    let output = run_with(scratch.path(), &[], &[&words[..], more].concat());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    (output.status.code().unwrap(), text)
}

/// Starts a loop that runs whenever the data changes.
fn start_loop(scratch: &Scratch, integration: &str, more: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).env("NO_COLOR", "1");
    command.args(["reconcile", integration, "--data", "repo", "--sandbox", "sandbox", "--runs", "runs"]);
    command.args(["--every", "60s"]).args(more);
    Running::of(&mut command)
}

/// The files of a kind in the sandbox.
fn objects(scratch: &Scratch, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    for cluster in std::fs::read_dir(scratch.path().join("sandbox/clusters")).unwrap() {
        for namespace in std::fs::read_dir(cluster.unwrap().path()).unwrap() {
            let folder = namespace.unwrap().path().join(kind);
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            found.extend(
                files.map(|file| file.path().strip_prefix(scratch.path()).unwrap().display().to_string()),
            );
        }
    }
    found.sort();
    found
}

#[test]
fn a_half_updated_work_tree_removes_nothing() {
    let scratch = reconciled(&["openshift-rolebindings"]);
    let repo = scratch.path().join("repo");
    git(&repo, &["init", "--quiet", "--initial-branch", "one"]);
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "-m", "one"]);
    // Another branch has the same users in another directory, and many other files to write before them.
    git(&repo, &["checkout", "--quiet", "-b", "two"]);
    for number in 0..800 {
        let name = format!("repo/resources/filler/{number}.txt");
        scratch.write(&name, "filler");
    }
    std::fs::create_dir(repo.join("data/people")).unwrap();
    for user in ["dev-catalog-two.yml", "dev-checkout-two.yml"] {
        git(&repo, &["mv", &format!("data/access/users/{user}"), &format!("data/people/{user}")]);
    }
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "-m", "two"]);
    git(&repo, &["checkout", "--quiet", "one"]);

    let mut running = start_loop(&scratch, "openshift-rolebindings", &[]);
    running.until("run ended: ok");
    let before = objects(&scratch, "RoleBinding");
    assert!(before.len() > 10);
    let user = std::fs::read(scratch.path().join(USER)).unwrap();
    for pause in [20, 100, 300] {
        std::fs::remove_file(scratch.path().join(USER)).unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        std::fs::write(scratch.path().join(USER), &user).unwrap();
        std::thread::sleep(Duration::from_millis(700));
    }
    for branch in ["two", "one", "two", "one"] {
        git(&repo, &["checkout", "--quiet", branch]);
        std::thread::sleep(Duration::from_millis(700));
    }
    assert_eq!(objects(&scratch, "RoleBinding"), before);
    let log = running.drain();
    running.signal(Signal::TERM);
    running.wait();
    let log = log.join().unwrap();
    assert!(!log.contains("remove RoleBinding") && !log.contains("invalid"), "{log}");
    let (code, text) = reconcile(&scratch, "openshift-rolebindings", &[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn no_removal_follows_a_failed_write_in_its_scope() {
    let scratch = reconciled(&["openshift-resources"]);
    let file = "repo/resources/shop/catalog/search-index.service.yaml";
    let manifest = std::fs::read_to_string(scratch.path().join(file)).unwrap();
    let before = objects(&scratch, "Service");
    // A name that is valid, but too long for a file of the sandbox: the create fails.
    let long = "a".repeat(253);
    scratch.write(file, manifest.replace("name: search-index", &format!("name: {long}")));
    let (code, text) = reconcile(&scratch, "openshift-resources", &["--namespace-name", "catalog-stage"]);
    assert_ne!(code, 0, "{text}");
    assert!(text.contains("✗ + create Service"), "{text}");
    assert!(
        text.contains("1 removal in `cluster=cliffs-stage, namespace=catalog-stage, kind=Service` postponed"),
        "{text}"
    );
    assert_eq!(objects(&scratch, "Service"), before, "the old Service still serves");

    scratch.write(file, manifest.replace("name: search-index", "name: search-index-two"));
    for _ in 0..2 {
        reconcile(&scratch, "openshift-resources", &["--namespace-name", "catalog-stage"]);
    }
    let here = |name: &str| format!("sandbox/clusters/cliffs-stage/catalog-stage/Service/{name}.yaml");
    let after = objects(&scratch, "Service");
    assert!(after.contains(&here("search-index-two")) && !after.contains(&here("search-index")), "{after:?}");
}

#[test]
fn no_removal_follows_a_refused_write_in_its_scope() {
    let scratch = reconciled(&["openshift-resources"]);
    let file = "repo/resources/shop/catalog/search-index.service.yaml";
    let manifest = std::fs::read_to_string(scratch.path().join(file)).unwrap();
    let folder = "sandbox/clusters/cliffs-stage/catalog-stage/Service";
    let live = std::fs::read_to_string(scratch.path().join(format!("{folder}/search-index.yaml"))).unwrap();
    assert!(live.contains("qontract.integration: openshift_resources"), "{live}");
    // Another integration owns the Service that the data declares instead.
    let theirs = live
        .replace("search-index", "search-index-v2")
        .replace("openshift_resources", "openshift-saas-deploy");
    scratch.write(&format!("{folder}/search-index-v2.yaml"), theirs);
    scratch.write(file, manifest.replace("name: search-index", "name: search-index-v2"));
    let before = objects(&scratch, "Service");
    for more in
        [&["--namespace-name", "catalog-stage", "--dry-run"][..], &["--namespace-name", "catalog-stage"]]
    {
        let (code, text) = reconcile(&scratch, "openshift-resources", more);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("keep it in one of the two"), "{text}");
        assert!(text.contains("left unchanged: Service `search-index`"), "{text}");
        assert!(
            text.contains("Service `search-index-v2`, which may replace it, cannot be written"),
            "{text}"
        );
    }
    assert_eq!(objects(&scratch, "Service"), before, "the old Service still serves");
}

#[test]
fn a_misspelt_kind_removes_nothing_and_is_a_finding() {
    let scratch = reconciled(&["openshift-resources"]);
    let before = (objects(&scratch, "Service"), objects(&scratch, "ConfigMap"));
    let service = "repo/resources/shop/catalog/search-index.service.yaml";
    let manifest = std::fs::read_to_string(scratch.path().join(service)).unwrap();
    scratch.write(service, manifest.replace("kind: Service", "kind: Servce"));
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    let text = std::fs::read_to_string(scratch.path().join(template)).unwrap();
    scratch.write(template, text.replace("kind: ConfigMap", "kind: Configmap"));

    let (code, text) = reconcile(&scratch, "openshift-resources", &["--no-validate"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("left unchanged: Service `search-index`"), "{text}");
    assert!(text.contains("left unchanged: ConfigMap `catalog-config`"), "{text}");
    assert_eq!((objects(&scratch, "Service"), objects(&scratch, "ConfigMap")), before);

    let validated = run_with(scratch.path(), &[], &["validate", "repo"]);
    let text = format!("{}{}", String::from_utf8_lossy(&validated.stdout), stderr(&validated));
    assert_eq!(validated.status.code(), Some(1), "{text}");
    assert!(text.contains("Q2063") && text.contains("did you mean `Service`?"), "{text}");
    assert!(text.contains("did you mean `ConfigMap`?"), "{text}");
}

#[test]
fn every_removal_of_an_object_counts_against_the_budget() {
    let scratch = reconciled(&["openshift-rolebindings"]);
    let users =
        ["dev-catalog-two.yml", "dev-checkout-two.yml"].map(|user| format!("repo/data/access/users/{user}"));
    let texts = users.each_ref().map(|user| std::fs::read_to_string(scratch.path().join(user)).unwrap());
    let mut removed = 0;
    for _ in 0..5 {
        let before = objects(&scratch, "RoleBinding").len();
        for user in &users {
            std::fs::remove_file(scratch.path().join(user)).unwrap();
        }
        reconcile(&scratch, "openshift-rolebindings", &[]);
        removed += before - objects(&scratch, "RoleBinding").len();
        for (user, text) in users.iter().zip(&texts) {
            scratch.write(user, text);
        }
        let (code, text) = reconcile(&scratch, "openshift-rolebindings", &[]);
        assert_eq!(code, 0, "{text}");
    }
    assert!((11..=30).contains(&removed), "{removed} removals, and the budget is 30 in 24 hours");
}

/// Removes the namespace `checkout-mailer-prod` from the data.
fn remove_namespace(scratch: &Scratch) {
    let folder = "repo/data/services/checkout";
    let path = "/services/checkout/namespaces/checkout-mailer-prod.yml";
    let edit = |file: &str, change: &dyn Fn(&str) -> String| {
        let file = format!("{folder}/{file}");
        let text = std::fs::read_to_string(scratch.path().join(&file)).unwrap();
        scratch.write(&file, change(&text));
    };
    edit("namespaces/checkout-prod.yml", &|text| text.replace(&format!("- $ref: {path}\n"), ""));
    edit("saas/checkout.yml", &|text| text.replace(path, "/services/checkout/namespaces/checkout-prod.yml"));
    std::fs::remove_file(scratch.path().join(format!("{folder}/namespaces/checkout-mailer-prod.yml")))
        .unwrap();
}

#[test]
fn a_held_removal_of_a_removed_shard_is_not_forgotten_by_a_restart() {
    let scratch = reconciled(&["openshift-resources"]);
    let mut first = start_loop(&scratch, "openshift-resources", &[]);
    first.until("run ended: ok");
    remove_namespace(&scratch);
    first.until("held: - remove");
    first.signal(Signal::KILL);
    first.wait();

    let mut second = start_loop(&scratch, "openshift-resources", &["--listen", "127.0.0.1:0"]);
    let listening = second.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    second.until("held: - remove");
    second.until("run ended: held");
    eventually("the metric counts it", || {
        let metrics = crate::support::running::get(&address, "/metrics");
        let held = metrics.lines().find(|line| line.starts_with("qontract_reconcile_held{"))?;
        (!held.ends_with(" 0")).then_some(())
    });
    let status = crate::support::running::get(&address, "/status");
    assert!(status.contains(r#""state":"held""#) || status.contains(r#""state": "held""#), "{status}");
    second.signal(Signal::TERM);
    second.wait();

    // A single run knows only the data that it is given; it must not look as if nothing were held.
    let (code, text) = reconcile(&scratch, "openshift-resources", &[]);
    assert!(text.contains("cannot be planned") && text.contains("--base REV"), "{text}");
    assert_eq!(code, 1, "{text}");
}

#[test]
fn a_removed_shard_whose_clean_up_failed_is_cleaned_up_after_a_restart() {
    let scratch = reconciled(&["openshift-limitranges"]);
    let ours = |objects: Vec<String>| -> Vec<String> {
        objects.into_iter().filter(|file| file.contains("/checkout-mailer-prod/")).collect()
    };
    let live = ours(objects(&scratch, "LimitRange"));
    assert_eq!(live.len(), 1, "{live:?}");
    let mut first = start_loop(&scratch, "openshift-limitranges", &[]);
    first.until("run ended: ok");
    // The scope cannot be read, so nothing in it is removed.
    let object = std::fs::read_to_string(scratch.path().join(&live[0])).unwrap();
    scratch.write(&live[0], "{{{");
    remove_namespace(&scratch);
    first.until("run ended: failed");
    first.signal(Signal::KILL);
    first.wait();
    scratch.write(&live[0], &object);

    let mut second = start_loop(&scratch, "openshift-limitranges", &[]);
    second.until("run ended: ok");
    assert_eq!(ours(objects(&scratch, "LimitRange")), [""; 0]);
    second.signal(Signal::TERM);
    second.wait();
    // Nothing is left to do, also for a process that starts with the new data.
    let mut third = start_loop(&scratch, "openshift-limitranges", &[]);
    let line = third.until("run ended: ok");
    assert!(line.contains("changes=0"), "{line}");
}

#[test]
fn a_cluster_whose_name_and_address_change_keeps_its_objects() {
    let scratch = reconciled(&["openshift-limitranges"]);
    let file = "repo/data/clusters/cliffs-stage.yml";
    let text = std::fs::read_to_string(scratch.path().join(file)).unwrap();
    let mut first = start_loop(&scratch, "openshift-limitranges", &[]);
    first.until("run ended: ok");
    first.signal(Signal::TERM);
    first.wait();
    let renamed = text.replace("name: cliffs-stage\n", "name: cliffs-stg\n");
    let renamed = renamed.replace("serverUrl: https://", "serverUrl: https://other.");
    assert!(renamed.contains("cliffs-stg\n") && renamed.contains("//other."), "{renamed}");
    scratch.write(file, &renamed);
    // The same files under both names are one target.
    let clusters = scratch.path().join("sandbox/clusters");
    link_files(&clusters.join("cliffs-stage"), &clusters.join("cliffs-stg"));
    let before = objects(&scratch, "LimitRange");
    assert!(before.iter().any(|object| object.contains("/cliffs-stg/")), "{before:?}");

    let mut second = start_loop(&scratch, "openshift-limitranges", &[]);
    let kept = second.until("left unchanged: LimitRange");
    assert!(kept.contains("kept: the shard `cluster=cliffs-stg, namespace="), "{kept}");
    assert!(kept.contains("observes the same object (the target was renamed)"), "{kept}");
    let line = second.until("run ended: ok");
    assert!(line.contains("changes=0"), "{line}");
    assert_eq!(objects(&scratch, "LimitRange"), before);
    second.signal(Signal::TERM);
    second.wait();
    // The older data is settled: nothing is left to do or to keep.
    let mut third = start_loop(&scratch, "openshift-limitranges", &[]);
    let lines = third.collect_until("run ended");
    assert!(lines.contains("run ended: ok changes=0") && !lines.contains("left unchanged"), "{lines}");
    assert_eq!(objects(&scratch, "LimitRange"), before);
}

/// Links the files of a directory into another one.
fn link_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            link_files(&entry.path(), &target);
        } else {
            std::fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn another_number_of_slots_is_a_warning_if_the_older_data_is_not_compared() {
    let scratch = operator_fixture();
    let slot = |id: &str, count: &str| {
        let mut running =
            start_loop(&scratch, "openshift-namespaces", &["--shards", count, "--shard-id", id]);
        let lines = running.collect_until("run ended");
        running.signal(Signal::TERM);
        running.wait();
        lines
    };
    for id in ["0", "1", "2"] {
        slot(id, "3");
    }
    // The same data: nothing is lost.
    assert!(!slot("0", "2").contains("number of slots"));
    remove_namespace(&scratch);
    let lines = slot("1", "2");
    assert!(lines.contains("WARNING") && lines.contains("the number of slots changed"), "{lines}");
    let (_, bundle) = lines.split_once("`--base ").unwrap();
    let bundle = bundle.split('`').next().unwrap();
    assert!(!slot("1", "2").contains("number of slots"), "it is reported once");
    let (code, text) = reconcile(&scratch, "openshift-namespaces", &["--base", bundle, "--dry-run"]);
    assert!(code == 1 && text.contains("remove Namespace"), "{text}");
}

#[test]
fn a_renamed_cluster_keeps_its_objects() {
    let scratch = reconciled(&["openshift-limitranges", "openshift-network-policies"]);
    let file = "repo/data/clusters/cliffs-stage.yml";
    let text = std::fs::read_to_string(scratch.path().join(file)).unwrap();
    let renamed = text.replace("name: cliffs-stage\n", "name: cliffs-stg\n");
    assert_ne!(renamed, text);
    let kinds = ["LimitRange", "NetworkPolicy"];
    for (integration, kind) in ["openshift-limitranges", "openshift-network-policies"].iter().zip(kinds) {
        let before = objects(&scratch, kind);
        let mut first = start_loop(&scratch, integration, &[]);
        first.until("run ended: ok");
        first.signal(Signal::TERM);
        first.wait();
        scratch.write(file, &renamed);
        // In the sandbox, the renamed cluster is another directory, which needs the namespaces.
        let (code, output) = reconcile(&scratch, "openshift-namespaces", &[]);
        assert_eq!(code, 0, "{output}");
        let mut second = start_loop(&scratch, integration, &[]);
        let line = second.until("run ended");
        assert!(line.contains("run ended: ok"), "{line}");
        second.signal(Signal::TERM);
        second.wait();
        let after = objects(&scratch, kind);
        assert!(before.iter().all(|object| after.contains(object)), "{before:?}\n{after:?}");
        scratch.write(file, &text);
    }
}
