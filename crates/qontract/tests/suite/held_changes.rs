//! Tests of held removals: every loop reports them, and the command line can approve them.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::clock::SteppedClock;
use crate::support::running::{Running, get};
use qontract_testkit::{Scratch, eventually, example};
use rustix::process::Signal;

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const INTEGRATION: &str = "openshift-limitranges";
const LABELS: &str = "{integration=\"openshift-limitranges\",shards=\"1\",shard_id=\"0-1\"}";

/// The example on a sandbox with its limit ranges, one of which is removed from the data. No removal passes
/// the guards without approval.
struct HeldFixture {
    scratch: Scratch,
    limits: PathBuf,
}

impl HeldFixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        scratch.write(
            "config.toml",
            "[sandbox]\ndirectory = \"sandbox\"\n[guards]\nshard_removals = 0\nshard_percent = 0\n",
        );
        let limits = scratch.path().join("sandbox/clusters/cliffs-stage/catalog-stage/LimitRange");
        let stage = Self { scratch, limits };
        for integration in ["openshift-namespaces", INTEGRATION] {
            let made = stage.reconcile(integration, &[]);
            assert_eq!(made.status.code(), Some(0), "{}", seen(&made));
        }
        let text = stage.scratch.read(NAMESPACE);
        let without: Vec<&str> = text.lines().filter(|line| !line.contains("limitRanges")).collect();
        assert!(without.len() < text.lines().count(), "the namespace has limit ranges");
        stage.scratch.write(NAMESPACE, without.join("\n") + "\n");
        assert_eq!(stage.limit_ranges(), 1);
        stage
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command
            .current_dir(self.scratch.path())
            .args(words)
            .env("QONTRACT_RUNS", "runs")
            .env("NO_COLOR", "1");
        command.env("GIT_CEILING_DIRECTORIES", self.scratch.path().parent().unwrap());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn reconcile(&self, integration: &str, more: &[&str]) -> Output {
        let words = ["reconcile", integration, "--data", "repo", "--config", "config.toml"];
        self.run(&[&words, more].concat())
    }

    /// Number of limit ranges of the namespace in the sandbox.
    fn limit_ranges(&self) -> usize {
        std::fs::read_dir(&self.limits).map_or(0, Iterator::count)
    }

    /// The file of the limit range and its content. A link keeps the file itself, which identifies the object.
    fn keep_limit_range(&self) -> (PathBuf, String) {
        let file = std::fs::read_dir(&self.limits).unwrap().next().unwrap().unwrap().path();
        std::fs::hard_link(&file, self.scratch.path().join("kept")).unwrap();
        let live = std::fs::read_to_string(&file).unwrap();
        (file, live)
    }

    /// Restores the limit range that was kept: the same object, not one that was created again.
    fn restore_limit_range(&self, file: &Path) {
        let _ = std::fs::remove_file(file);
        std::fs::hard_link(self.scratch.path().join("kept"), file).unwrap();
    }

    /// An approval of the limit range, with one word in place of another.
    fn approve(&self, file: &str, from: &str, to: &str) {
        self.approve_with(&[], file, from, to);
    }

    /// An approval of the limit range with these flags, with one word in place of another.
    fn approve_with(&self, flags: &[&str], file: &str, from: &str, to: &str) {
        let approval = self.run(&[&["approve", "last", "--expires", "2099-01-31"], flags].concat());
        let text = String::from_utf8(approval.stdout.clone()).unwrap();
        assert!(text.contains(from), "{text} has no {from}");
        self.scratch.write(&format!("repo/data/approvals/{file}"), text.replacen(from, to, 1));
    }
}

fn seen(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn a_held_removal_is_approved_from_the_command_line_and_then_applied() {
    let stage = HeldFixture::new();
    let held = stage.reconcile(INTEGRATION, &[]);
    let shown = seen(&held);
    assert_eq!(code(&held), 1, "{shown}");
    assert!(shown.contains("held: - remove LimitRange `"), "{shown}");
    let warning = shown.lines().find(|line| line.starts_with("warning: 1 change held: ")).unwrap();
    assert!(
        warning.contains("`qontract explain run ") && warning.contains("`qontract approve "),
        "{warning}"
    );
    let listed = seen(&stage.run(&["runs", "list"]));
    assert!(listed.lines().last().unwrap().contains(" held "), "{listed}");
    // With JSON output, each held change has its own warning.
    let json = stage.reconcile(INTEGRATION, &["-o", "json", "--dry-run"]);
    let warnings = String::from_utf8_lossy(&json.stderr).into_owned();
    assert!(warnings.contains("warning: held: - remove LimitRange `"), "{warnings}");
    let record: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&record["ended"], &record["exit"]), (&"held".into(), &1.into()));
    // Written to stdout, with the file name on stderr; or into a directory, under that name.
    let printed = stage.run(&["approve", INTEGRATION, "--reason", "the team has quotas now"]);
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        code(&printed) == 0 && text.contains("description: the team has quotas now\n"),
        "{}",
        seen(&printed)
    );
    let id = record["run"].as_str().unwrap();
    let (time, own) = (&id[..16], id.rsplit('-').next().unwrap());
    let name = format!("{INTEGRATION}-{time}-{own}");
    assert!(seen(&printed).contains(&format!("`data/approvals/{name}.yml`")), "{}", seen(&printed));
    std::fs::create_dir(stage.scratch.path().join("repo/data/approvals")).unwrap();
    let prefix = &id[..id.len() - 2];
    let written = stage.run(&["approve", prefix, "--out", "repo/data/approvals", "--expires", "2099-01-31"]);
    assert_eq!(code(&written), 0, "{}", seen(&written));
    assert!(
        stage.scratch.read(&format!("repo/data/approvals/{name}.yml")).contains("expiration: \"2099-01-31\"")
    );
    let again = stage.run(&["approve", prefix, "--out", "repo/data/approvals"]);
    assert!(code(&again) != 0 && seen(&again).contains("already exists"), "{}", seen(&again));
    let valid = stage.run(&["validate", "repo"]);
    assert!(seen(&valid).contains("no findings"), "{}", seen(&valid));
    let removed = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&removed), stage.limit_ranges()), (0, 0), "{}", seen(&removed));
    let idle = stage.reconcile(INTEGRATION, &[]);
    assert!(code(&idle) == 0 && seen(&idle).contains("nothing to change"), "{}", seen(&idle));
    assert!(seen(&idle).contains("matches no planned removal"), "used up: {}", seen(&idle));
    let refused = stage.run(&["approve", "last"]);
    assert!(code(&refused) == 1 && seen(&refused).contains("held nothing"), "{}", seen(&refused));
}

#[test]
fn an_approval_that_is_bound_to_a_plan_does_not_approve_another_one() {
    let stage = HeldFixture::new();
    assert_eq!(code(&stage.reconcile(INTEGRATION, &[])), 1);
    let shown: serde_json::Value =
        serde_json::from_slice(&stage.run(&["runs", "show", "last", "-o", "json"]).stdout).unwrap();
    let shards = shown["shards"].as_object().unwrap();
    let held = shards.values().flat_map(|shard| shard["held"].as_array().unwrap()).next().unwrap();
    let plan = held["plan"].as_str().unwrap().to_owned();
    assert_eq!(plan.len(), 64, "{held}");
    // The approval of another plan.
    stage.approve_with(
        &["--bound"],
        "limits.yml",
        &format!("  plan: \"{plan}\""),
        &format!("  plan: \"{}\"", "0".repeat(64)),
    );
    let refused = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&refused), stage.limit_ranges()), (1, 1), "{}", seen(&refused));
    let why = format!(
        "approval `data/approvals/limits.yml` is for another plan ({}); the current one is {plan}",
        "0".repeat(64)
    );
    assert!(seen(&refused).contains(&why), "{why}: {}", seen(&refused));
    // The approval of this plan.
    stage.approve_with(&["--bound"], "limits.yml", "labels: {}", "labels: {}");
    let (file, live) = stage.keep_limit_range();
    let removed = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&removed), stage.limit_ranges()), (0, 0), "{}", seen(&removed));
    // An object that was created again is another one, so the plan is another one, too.
    std::fs::write(&file, &live).unwrap();
    let again = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&again), stage.limit_ranges()), (1, 1), "{}", seen(&again));
    assert!(seen(&again).contains("is for another plan"), "{}", seen(&again));
    // The same object gives the same plan: the approval is not for a single use.
    stage.restore_limit_range(&file);
    let again = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&again), stage.limit_ranges()), (0, 0), "{}", seen(&again));
    let idle = stage.reconcile(INTEGRATION, &[]);
    assert!(code(&idle) == 0 && seen(&idle).contains("nothing to change"), "{}", seen(&idle));
}

#[test]
fn an_approval_for_a_single_use_is_used_once_and_never_without_the_ledger() {
    let stage = HeldFixture::new();
    assert_eq!(code(&stage.reconcile(INTEGRATION, &[])), 1);
    stage.approve_with(&["--once"], "limits.yml", "once: true", "once: true");
    // A damaged ledger: nothing is removed.
    let ledger = stage.scratch.path().join(format!("sandbox/journal/ledger/{INTEGRATION}.blob"));
    let intact = std::fs::read(&ledger).unwrap();
    std::fs::write(&ledger, &intact[..intact.len() / 2]).unwrap();
    let refused = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&refused), stage.limit_ranges()), (1, 1), "{}", seen(&refused));
    std::fs::write(&ledger, &intact).unwrap();
    let (file, live) = stage.keep_limit_range();
    let removed = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&removed), stage.limit_ranges()), (0, 0), "{}", seen(&removed));
    // As after a crash between the reservation and the removal: the same object is still there.
    stage.restore_limit_range(&file);
    let repeated = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&repeated), stage.limit_ranges()), (0, 0), "{}", seen(&repeated));
    let idle = stage.reconcile(INTEGRATION, &[]);
    assert!(code(&idle) == 0 && seen(&idle).contains("nothing to change"), "{}", seen(&idle));
    // The run has seen that the object is gone; now it is created again.
    std::fs::write(&file, &live).unwrap();
    let held = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&held), stage.limit_ranges()), (1, 1), "{}", seen(&held));
    assert!(seen(&held).contains("is for a single use, and run "), "{}", seen(&held));
    // Neither a new name nor a new date of the file renews the approval.
    let approval = stage.scratch.read("repo/data/approvals/limits.yml");
    stage.scratch.write("repo/data/approvals/limits.yml", approval.replace("2099-01-31", "2099-02-28"));
    assert_eq!((code(&stage.reconcile(INTEGRATION, &[])), stage.limit_ranges()), (1, 1));
    std::fs::remove_file(stage.scratch.path().join("repo/data/approvals/limits.yml")).unwrap();
    stage.scratch.write("repo/data/approvals/renamed.yml", &approval);
    assert_eq!((code(&stage.reconcile(INTEGRATION, &[])), stage.limit_ranges()), (1, 1));
    // Both together are a new approval.
    stage.scratch.write("repo/data/approvals/renamed.yml", approval.replace("2099-01-31", "2099-03-31"));
    let removed = stage.reconcile(INTEGRATION, &[]);
    assert_eq!((code(&removed), stage.limit_ranges()), (0, 0), "{}", seen(&removed));
}

/// The clock is stepped from outside: an approval expires by the date of each run, and a loop stays alive.
#[test]
#[ignore = "needs QONTRACT_FAKETIME; run by `cargo xtask test`"]
fn a_step_of_the_clock_expires_an_approval_and_a_step_back_does_not() {
    let stage = HeldFixture::new();
    let clock = SteppedClock::new(&stage.scratch);
    let words = ["reconcile", INTEGRATION, "--data", "repo", "--config", "config.toml"];
    let loop_words = ["--every", "1s", "--listen", "127.0.0.1:0"];
    let mut command = stage.command(&[&words[..], &loop_words].concat());
    let mut running = Running::of(clock.apply(&mut command));
    let listening = running.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    running.until("run ended: held");
    let approval = stage.run(&["approve", "last", "--expires", "2099-01-31"]);
    let approval = String::from_utf8(approval.stdout).unwrap();
    clock.step("+75y");
    stage.scratch.write("repo/data/approvals/x.yml", &approval);
    running.until("expired on 2099-01-31");
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    assert_eq!(stage.limit_ranges(), 1);
    clock.step("-1d");
    eventually("the approval is valid again", || (stage.limit_ranges() == 0).then_some(()));
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(0));
    let again = stage.reconcile(INTEGRATION, &[]);
    assert!(code(&again) == 0 && seen(&again).contains("nothing to change"), "{}", seen(&again));
}

#[test]
fn a_loop_warns_of_held_changes_once_and_counts_them() {
    let stage = HeldFixture::new();
    let words = ["reconcile", INTEGRATION, "--every", "1s", "--data", "repo", "--config", "config.toml"];
    let mut command =
        stage.command(&[&words[..], &["--listen", "127.0.0.1:0", "--log-format", "json"]].concat());
    let mut running = Running::of(&mut command);
    let listens = running.json("listening on")["message"].as_str().unwrap().to_owned();
    let address = listens.strip_prefix("listening on http://").unwrap().trim_end_matches('/').to_owned();
    let warning = running.json("\"WARNING\"");
    let (text, run) = (warning["message"].as_str().unwrap(), warning["run"].as_str().unwrap());
    assert!(text.starts_with("held: - remove LimitRange `"), "{warning}");
    assert!(text.contains(" the limit of "), "it has the reason: {warning}");
    assert!(text.contains(&format!("`qontract explain run {run}`")), "{warning}");
    assert_eq!(warning["integration"], INTEGRATION);
    let ended = running.json("run ended: held");
    assert_eq!(
        (&ended["level"], &ended["state"], &ended["run"]),
        (&"INFO".into(), &"held".into(), &run.into())
    );
    assert_eq!((&ended["changes"], &ended["held"]), (&0.into(), &1.into()), "{ended}");
    assert!(ended["took"].is_string() && ended["next_in"].is_string(), "{ended}");
    assert!(get(&address, "/metrics").contains(&format!("qontract_reconcile_held{LABELS} 1")));
    let explained = stage.run(&["explain", "run", run]);
    assert!(seen(&explained).contains("ended `held` (exit 1)"), "{}", seen(&explained));
    // The next run also holds it, and does not report it again.
    running.json("run ended: held");
    stage.approve("limits.yml", "labels: {}", "labels: {}");
    let released = running.until("no longer held: - remove LimitRange `");
    assert!(!released.contains("WARNING"), "{released}");
    running.json("run ended: ok");
    assert!(get(&address, "/metrics").contains(&format!("qontract_reconcile_held{LABELS} 0")));
    assert_eq!(stage.limit_ranges(), 0);
    let rest = running.drain();
    running.signal(Signal::TERM);
    running.child.wait().unwrap();
    assert!(!rest.join().unwrap().contains("\"held: "));
}

#[test]
fn metrics_of_a_loop_start_at_zero_name_the_build_and_sum_over_shards() {
    let stage = HeldFixture::new();
    let words =
        ["reconcile", "openshift-namespaces", "--every", "1h", "--data", "repo", "--config", "config.toml"];
    let mut running = Running::of(&mut stage.command(&[&words[..], &["--listen", "127.0.0.1:0"]].concat()));
    let line = running.until("listening on http://");
    let address = line.split("http://").nth(1).unwrap().trim().trim_end_matches('/').to_owned();
    running.until("run ended: ok");
    let metrics = get(&address, "/metrics");
    let labels = LABELS.replace(INTEGRATION, "openshift-namespaces");
    assert!(metrics.contains(&format!("qontract_reconcile_stuck_total{labels} 0\n")), "{metrics}");
    assert!(metrics.contains(&format!("qontract_reconcile_held{labels} 0\n")), "{metrics}");
    let version = format!("qontract_build_info{{version=\"{}\",commit=\"", env!("CARGO_PKG_VERSION"));
    assert!(metrics.contains(&version), "{metrics}");
    let namespaces = |state: &str| -> u64 {
        let labels = format!(
            "{{integration=\"openshift-namespaces\",cluster=\"harbor-prod\",namespace=\"\",kind=\"Namespace\",state=\"{state}\"}} "
        );
        let line = metrics.lines().find_map(|line| line.split_once(&labels)).unwrap();
        line.1.parse().unwrap()
    };
    let there =
        std::fs::read_dir(stage.scratch.path().join("sandbox/clusters/harbor-prod/_cluster/Namespace"));
    let there = u64::try_from(there.unwrap().count()).unwrap();
    assert!(
        there > 1 && (namespaces("current"), namespaces("desired")) == (there, there),
        "{there}: {metrics}"
    );
}

#[test]
fn requests_are_logged_at_debug_with_status_and_duration() {
    let stage = HeldFixture::new();
    let mut server = Running::of(&mut stage.command(&["serve", "repo", "--listen", "127.0.0.1:0"]));
    let line = server.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let url = format!("http://{address}/graphql");
    let words = ["reconcile", INTEGRATION, "--config", "config.toml", "--dry-run", "--data", &url];
    let shown = seen(&stage.run(&[&words[..], &["--log-level", "DEBUG"]].concat()));
    let is_request = |line: &&str| line.starts_with("debug: `POST http://") && line.contains("`: 200 OK in ");
    assert!(shown.lines().any(|line| is_request(&line)), "{shown}");
    let quiet = seen(&stage.run(&words));
    assert!(!quiet.contains("debug: ") && !quiet.contains("managedByExternal"), "{quiet}");
}

#[test]
fn up_and_run_integration_warn_of_held_changes() {
    let stage = HeldFixture::new();
    let mut command = stage.command(&["peer", "run-integration"]);
    for (name, value) in [
        ("INTEGRATION_NAME", INTEGRATION),
        ("CONFIG", "config.toml"),
        ("RUN_ONCE", "true"),
        ("PROMETHEUS_PORT", "0"),
        ("INTEGRATION_EXTRA_ARGS", "--data repo"),
    ] {
        command.env(name, value);
    }
    let once = command.output().unwrap();
    let shown = seen(&once);
    assert_eq!(code(&once), 1, "{shown}");
    assert!(shown.contains("WARNING held: - remove LimitRange `"), "{shown}");
    assert!(shown.contains("INFO    run ended: held"), "{shown}");
    let up = stage.run(&[
        "up",
        "repo",
        "--config",
        "config.toml",
        "--sandbox",
        "sandbox",
        "--once",
        "--log-level",
        "DEBUG",
    ]);
    let shown = seen(&up);
    assert_eq!(code(&up), 1, "{shown}");
    assert!(shown.contains("WARNING held: - remove LimitRange `"), "{shown}");
    assert!(shown.contains("held changes=0 held=1 integration=openshift-limitranges"), "{shown}");
    // At DEBUG, decisions, skipped shards, and activities with their durations are logged.
    let lines = || shown.lines().filter(|line| line.contains(" DEBUG "));
    assert!(lines().any(|line| {
        line.contains("skipped: disabled for namespace `observability-stage` (managedByExternal)")
    }));
    assert!(lines().any(|line| line.contains("done: query `")), "{shown}");
    assert!(lines().any(|line| line.contains("done: observe `cluster=")), "{shown}");
}

#[test]
fn approvals_that_expired_or_are_misspelt_are_named_by_the_run_and_by_validate() {
    let stage = HeldFixture::new();
    stage.reconcile(INTEGRATION, &["--dry-run"]);
    let check = |from: &str, to: &str, run: &str, validate: Option<&str>| {
        stage.approve("x.yml", from, to);
        let held = seen(&stage.reconcile(INTEGRATION, &["--dry-run"]));
        assert!(held.contains(run), "{run}: {held}");
        let found = seen(&stage.run(&["validate", "repo"]));
        match validate {
            Some(warning) => assert!(found.contains(warning), "{warning}: {found}"),
            None => assert!(found.contains("no findings"), "{found}"),
        }
        assert_eq!(code(&stage.run(&["validate", "repo"])), 0, "it is a warning");
    };
    check(
        "2099-01-31",
        "2026-01-31",
        "; approval `data/approvals/x.yml` expired on 2026-01-31",
        Some("warning[Q4010]: the approval expired on 2026-01-31\n --> repo/data/approvals/x.yml:8:13"),
    );
    check(
        "integration: openshift-limitranges",
        "integration: openshift-limitrange",
        "approval `data/approvals/x.yml` is for the integration `openshift-limitrange`, not for `openshift-limitranges`",
        Some("warning[Q4011]: the approval is for `openshift-limitrange`, which the data does not define"),
    );
    check(
        "kind: \"LimitRange\"",
        "kind: \"limitRange\"",
        "approval `data/approvals/x.yml` does not match: its kind is `limitRange`, not `LimitRange`",
        None,
    );
    assert_eq!(stage.limit_ranges(), 1);
}

#[test]
fn a_template_error_is_neither_done_nor_held_and_logged_once() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    let command = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(scratch.path()).env("QONTRACT_RUNS", "runs").env("NO_COLOR", "1");
        command.args(["up", "repo", "--sandbox", "sandbox"]).args(more);
        command
    };
    command(&["--once"]).output().unwrap();
    scratch.write(template, scratch.read(template).replace("{{ replicas }}", "{{ replicaz }}"));
    let shown = seen(&command(&["--once"]).output().unwrap());
    let error = shown.lines().find(|line| line.contains(" ERROR ")).unwrap();
    assert!(
        error.contains(
            "cannot render `/shop/app-config.configmap.yaml.j2`, line 11: `replicaz` is undefined; "
        ),
        "{error}"
    );
    assert!(error.contains(" place=data/services/") && error.contains(" run="), "{error}");
    assert!(shown.contains("left unchanged: ConfigMap `"), "{shown}");
    assert!(!shown.contains("WARNING held: "), "{shown}");
}
