//! Tests of loops as processes: wake-up, shutdown and health.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::support::running::{Running, get};
use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, Signal, kill_process};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const FILE: &str = "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml";

/// The variable that sets the purge delay of the allocator.
const DELAY: &str = "MIMALLOC_PURGE_DELAY";

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("config.toml", "[sandbox]\ndirectory = \"sandbox\"\n");
    scratch
}

fn qontract(scratch: &Scratch) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command.env_remove(DELAY);
    command
}

fn start(scratch: &Scratch) -> Running {
    let words = "reconcile openshift-namespaces --every 1h --data repo --config config.toml --runs runs";
    let mut command = qontract(scratch);
    command.args(words.split(' ')).args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
    Running::of(&mut command)
}

/// The purge delay in the environment of a process.
fn delay(running: &Running) -> String {
    let environment = std::fs::read(format!("/proc/{}/environ", running.child.id())).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let mut variables = environment.split('\0').filter_map(|variable| variable.split_once('='));
    variables.find(|(name, _)| *name == DELAY).map(|(_, delay)| delay.to_owned()).unwrap_or_default()
}

#[test]
fn idle_loops_release_memory_immediately() {
    let scratch = stage();
    let mut one = start(&scratch);
    one.until("listening on");
    assert_eq!(delay(&one), "0");
    for (messages, taken) in [(Some("7"), "7"), (None, "0")] {
        let mut command = qontract(&scratch);
        command.args(["up", "repo", "--sandbox", "another", "--runs", "runs"]);
        let mut all = Running::with_log_on_stdout(command.envs(messages.map(|messages| (DELAY, messages))));
        all.until("bundle ");
        assert_eq!(delay(&all), taken, "unless the variable is set");
    }
}

#[test]
fn a_loop_on_a_server_logs_its_mode_at_once_and_its_clusters_after_the_first_run() {
    let scratch = stage();
    let mut server = Running::of(qontract(&scratch).args(["serve", "repo", "--listen", "127.0.0.1:0"]));
    let line = server.until("Running at http://");
    let (_, address) = line.trim_end().split_once("http://").unwrap();
    let data = format!("http://{address}");
    for (flag, mode, word) in [(Some("--dry-run"), "dry run", "dry-run"), (None, "real run", "real")] {
        let mut command = qontract(&scratch);
        command.args(["reconcile", "openshift-limitranges", "--every", "1h", "--data", &data]);
        command.args(["--config", "config.toml", "--runs", "runs"]).args(flag);
        let mut running = Running::of(&mut command);
        running.until(&format!("{mode} · data {data} · sandbox sandbox"));
        let line = running.until(&format!("{mode} · "));
        assert!(line.contains(" shards · clusters cliffs-stage, "), "{line}");
        let line = running.until("run ended: ");
        assert!(line.contains(&format!(" mode={word} ")), "{line}");
    }
}

#[test]
fn a_loop_runs_at_once_wakes_with_new_data_serves_health_and_shuts_down() {
    let scratch = stage();
    let mut running = start(&scratch);
    let printed = running.json("listening on")["message"].as_str().unwrap().to_owned();
    let address = printed.strip_prefix("listening on http://").unwrap().trim_end_matches('/').to_owned();
    let line = running.json("create Namespace `catalog-stage`");
    for field in ["run", "bundle", "shard", "place", "integration"] {
        assert!(line[field].is_string(), "an audit line has `{field}`: {line}");
    }
    assert!(
        scratch.read("runs/trail.jsonl").contains("create Namespace `catalog-stage`"),
        "the write is in the audit log"
    );
    qontract_testkit::eventually("it is ready", || {
        get(&address, "/readyz").starts_with("HTTP/1.1 200").then_some(())
    });
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    let metrics = get(&address, "/metrics");
    let labels = "{integration=\"openshift-namespaces\",shards=\"1\",shard_id=\"0-1\"}";
    assert!(metrics.contains(&format!("qontract_reconcile_last_run_status{labels} 0")), "{metrics}");
    assert!(
        metrics.contains(
            "qontract_reconcile_phase_seconds_count{integration=\"openshift-namespaces\",shards=\"1\",shard_id=\"0-1\",phase=\"observe\"}"
        ),
        "{metrics}"
    );
    let other = scratch.read(NAMESPACE).replace("name: catalog-stage", "name: catalog-staging");
    scratch.write(NAMESPACE, other);
    running.json("create Namespace `catalog-staging`");
    assert!(scratch.path().join(FILE.replace("catalog-stage", "catalog-staging")).exists());
    // The old namespace is no longer declared, which does not remove it: that takes `delete: true`.
    assert!(scratch.path().join(FILE).exists());
    running.signal(Signal::USR1);
    // It may still run, or sleep already.
    let printed = running.json("\"WARNING\"");
    let text = printed["message"].as_str().unwrap();
    assert!(text.starts_with("running, ") || text.starts_with("sleeping, next run in"), "{printed}");
    assert_eq!(printed["integration"], "openshift-namespaces");
    running.signal(Signal::TERM);
    running.until("shutting down; no step in progress");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    // The last run had a base: the data of the first one.
    let shown = qontract(&scratch).args(["runs", "show", "last", "--runs", "runs"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\nbase: ") && !shown.contains("before a decision"), "{shown}");
}

#[test]
fn the_record_of_a_loop_says_whether_the_data_differs_from_the_commit() {
    let scratch = stage();
    scratch.write(".gitignore", "/sandbox/\n/runs/\n");
    scratch.commit_all("as it is");
    let shown_after_run = || {
        let up = ["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"];
        assert!(qontract(&scratch).args(up).output().unwrap().status.success());
        let show = ["runs", "show", "openshift-namespace-labels", "--runs", "runs"];
        String::from_utf8(qontract(&scratch).args(show).output().unwrap().stdout).unwrap()
    };
    let text = shown_after_run();
    assert!(text.contains(" (commit ") && !text.contains("modified"), "{text}");
    scratch.write(NAMESPACE, scratch.read(NAMESPACE).replace("tier: edge", "tier: core"));
    let text = shown_after_run();
    assert!(text.contains(", modified)\n") && text.contains("core"), "{text}");
}

#[test]
fn objects_of_a_shard_that_leaves_the_data_are_removed_by_a_running_loop() {
    let scratch = stage();
    let limits = scratch.path().join("sandbox/clusters/cliffs-stage/catalog-stage/LimitRange");
    let count = |folder: &std::path::Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let mut command = qontract(&scratch);
    command.args(["up", "repo", "--sandbox", "sandbox", "--runs", "runs", "--every", "1h"]);
    let mut running = Running::with_log_on_stdout(&mut command);
    running.until("create LimitRange");
    qontract_testkit::eventually("the limit range exists", || (count(&limits) == 1).then_some(()));
    scratch.write(NAMESPACE, scratch.read(NAMESPACE).replace("name: catalog-stage", "name: catalog-staging"));
    running.until("- remove LimitRange");
    qontract_testkit::eventually("the limit range is gone", || (count(&limits) == 0).then_some(()));
    let new_limits = scratch.path().join("sandbox/clusters/cliffs-stage/catalog-staging/LimitRange");
    qontract_testkit::eventually("the new one exists", || (count(&new_limits) == 1).then_some(()));
    running.signal(Signal::TERM);
    assert!(running.wait().success());
    // The next run has nothing to do.
    let words = "reconcile openshift-limitranges --data repo --config config.toml --runs runs";
    let again = qontract(&scratch).args(words.split(' ')).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && text.contains("nothing to change"), "{text}");
}

#[test]
fn the_environment_variables_of_the_peer_are_read() {
    let scratch = stage();
    let mut command = qontract(&scratch);
    command.args(["peer", "run-integration"]).env_clear();
    for (name, value) in [
        ("INTEGRATION_NAME", "openshift-namespaces"),
        ("CONFIG", "config.toml"),
        ("DRY_RUN", "--no-dry-run"),
        ("RUN_ONCE", "true"),
        ("PROMETHEUS_PORT", "0"),
        ("LOG_FILE", "log.txt"),
        ("INTEGRATION_EXTRA_ARGS", "--data repo --runs runs --cluster-name cliffs-stage"),
    ] {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(scratch.path().join(FILE).exists());
    assert!(
        !scratch.path().join("sandbox/clusters/harbor-prod").exists(),
        "the flags of the integration count"
    );
    assert!(scratch.read("log.txt").contains("create Namespace `catalog-stage`"));
    // Errors are also in the file.
    scratch.write("repo/data/twice.yml", scratch.read(NAMESPACE));
    let output = command.env("RUN_ONCE", "1").output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(scratch.read("log.txt").contains("is declared more than once"), "{}", scratch.read("log.txt"));
    // Errors that prevent the start are also in the file.
    let output = command.env("CONFIG", "no.toml").env("PREFIX_LOG_LEVEL", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(scratch.read("log.txt").contains("[ERROR] cannot start: cannot read `no.toml`"));
    let output = command.env_remove("INTEGRATION_NAME").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_start_that_fails_is_retried() {
    let scratch = stage();
    std::fs::rename(scratch.path().join("config.toml"), scratch.path().join("later.toml")).unwrap();
    let mut command = qontract(&scratch);
    command.args(["peer", "run-integration"]).env_clear();
    for (name, value) in [
        ("INTEGRATION_NAME", "openshift-namespaces"),
        ("CONFIG", "config.toml"),
        ("PROMETHEUS_PORT", "0"),
        ("SLEEP_ON_ERROR", "1"),
        ("QONTRACT_LOG_FORMAT", "json"),
        ("INTEGRATION_EXTRA_ARGS", "--data repo --runs runs"),
    ] {
        command.env(name, value);
    }
    let mut running = Running::of(&mut command);
    running.json("cannot start: cannot read `config.toml`");
    assert_eq!(delay(&running), "0");
    std::fs::rename(scratch.path().join("later.toml"), scratch.path().join("config.toml")).unwrap();
    running.json("create Namespace `catalog-stage`");
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_loop_ends_while_a_server_is_unresponsive() {
    let (scratch, silent) = (stage(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let server = format!("http://{}", silent.local_addr().unwrap());
    let mut command = qontract(&scratch);
    let words = "reconcile openshift-namespaces --every 10m --config config.toml --runs runs --data";
    let mut running = Running::of(command.args(words.split(' ')).arg(server));
    // Both the poll for new data and the first run send requests.
    let _asked = (silent.accept().unwrap(), silent.accept().unwrap());
    let printed = running.drain();
    running.signal(Signal::TERM);
    let printed = printed.join().unwrap();
    assert!(printed.contains("shutting down") && !printed.contains("panicked"), "{printed}");
}

/// Number of threads of a process.
fn threads(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap().count()
}

#[test]
fn a_failed_start_leaves_no_thread_behind() {
    let (scratch, taken) = (stage(), std::net::TcpListener::bind("0.0.0.0:0").unwrap());
    let mut command = qontract(&scratch);
    command.args(["peer", "run-integration"]).env_clear();
    for (name, value) in [
        ("INTEGRATION_NAME", "openshift-namespaces"),
        ("CONFIG", "config.toml"),
        ("PROMETHEUS_PORT", &taken.local_addr().unwrap().port().to_string()),
        ("SLEEP_ON_ERROR", "1"),
        ("QONTRACT_LOG_FORMAT", "json"),
        ("INTEGRATION_EXTRA_ARGS", "--data repo --runs runs"),
    ] {
        command.env(name, value);
    }
    let mut running = Running::of(&mut command);
    running.json("cannot start: cannot listen on");
    let first = threads(&running);
    running.json("cannot start: cannot listen on");
    assert_eq!(threads(&running), first, "each try leaves as many threads as the one before");
    // Signals are not handled yet, so the process ends immediately.
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), None);
}

#[test]
fn an_integration_that_cannot_be_started_is_not_ready_until_it_can() {
    let scratch = stage();
    let program = scratch.path().join("deps.sh");
    let config = format!(
        "[sandbox]\ndirectory = \"sandbox\"\n[integrations.service-dependencies]\ncommand = [\"sh\", {:?}]\n",
        program.to_str().unwrap()
    );
    scratch.write("config.toml", config);
    let mut command = qontract(&scratch);
    let words = "up repo --every 1s --config config.toml --runs runs --listen 127.0.0.1:0 --log-format json";
    let mut child = command
        .args(words.split(' '))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let printed = lines.by_ref().map_while(Result::ok).find(|line| line.contains("listening on")).unwrap();
    // Its output has to be read while waiting.
    let reading = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let (_, rest) = printed.split_once("http://").unwrap();
    let address = rest.split('/').next().unwrap().to_owned();
    let missing = "service-dependencies: cannot be started\n";
    qontract_testkit::eventually("only it is missing", || {
        let answer = get(&address, "/readyz");
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.ends_with(&format!("\r\n\r\n{missing}")).then_some(())
    });
    let alive = get(&address, "/healthz");
    assert!(alive.starts_with("HTTP/1.1 200") && alive.ends_with(&format!("ok\n{missing}")), "{alive}");
    let script = SLOW.replace("\"slow\"", "\"service-dependencies\"");
    scratch.write("deps.sh", script);
    qontract_testkit::eventually("it is started when it can be", || {
        get(&address, "/readyz").starts_with("HTTP/1.1 200").then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    reading.join().unwrap();
}

/// A program whose steps take as long as a file exists.
const SLOW: &str = r#"
case $1 in
describe) echo '{"name": "slow", "description": "takes its time", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan) echo '{"scopes": [{"scope": [["app", "a"]], "count": 0}], "groups": [{"steps": [
    {"action": 1, "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "thing", "name": "one"}, "what": "create thing"}]},
    {"action": 2, "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "thing", "name": "two"}, "what": "create thing"}]}]}]}' ;;
apply) echo begun > begun; while [ -e hold ]; do sleep 0.01; done; echo done >> done; echo '{}' ;;
esac
"#;

#[test]
fn an_integration_of_a_configuration_that_appears_later_is_found() {
    let scratch = stage();
    let registered = "[integrations.slow]\ncommand = [\"sh\", \"slow.sh\"]\n";
    let config = format!("[sandbox]\ndirectory = \"sandbox\"\n{registered}");
    std::fs::remove_file(scratch.path().join("config.toml")).unwrap();
    scratch.write("slow.sh", SLOW);
    let mut command = qontract(&scratch);
    command.args(["peer", "run-integration"]).env_clear();
    for (name, value) in [
        ("INTEGRATION_NAME", "slow"),
        ("CONFIG", "config.toml"),
        ("PROMETHEUS_PORT", "0"),
        ("SLEEP_ON_ERROR", "1"),
        ("QONTRACT_LOG_FORMAT", "json"),
        ("PATH", &std::env::var("PATH").unwrap()),
        ("INTEGRATION_EXTRA_ARGS", "--data repo --runs runs --no-validate-schemas"),
    ] {
        command.env(name, value);
    }
    let mut running = Running::of(&mut command);
    running.json("cannot start: cannot read `config.toml`");
    scratch.write("config.toml", config);
    assert_eq!(running.json("create thing")["done"], true);
    running.signal(Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_shutdown_during_a_step_finishes_it_and_starts_no_other() {
    let scratch = stage();
    scratch.write("slow.sh", SLOW);
    scratch.write("hold", "");
    let config = "[sandbox]\ndirectory = \"sandbox\"\n[integrations.slow]\ncommand = [\"sh\", \"slow.sh\"]\n";
    scratch.write("config.toml", config);
    let mut command = qontract(&scratch);
    let words = "reconcile --every 1h --data repo --runs runs --log-format json --no-validate-schemas";
    command.args(words.split(' ')).args(["--config", "config.toml", "slow"]);
    let mut running = Running::of(&mut command);
    qontract_testkit::eventually("a step is under way", || {
        scratch.path().join("begun").exists().then_some(())
    });
    running.signal(Signal::TERM);
    running.until("shutting down; waiting for 1 step in progress");
    std::fs::remove_file(scratch.path().join("hold")).unwrap();
    let line = running.json("create thing");
    assert_eq!(line["done"], true, "{line}");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert_eq!(scratch.read("done"), "done\n", "the first step is done, and the second was not begun");
}

/// The address of the health listener of a loop that logs JSON.
fn listener(running: &mut Running) -> String {
    let printed = running.json("listening on")["message"].as_str().unwrap().to_owned();
    printed.strip_prefix("listening on http://").unwrap().trim_end_matches('/').to_owned()
}

/// A program whose only step takes as long as a file `hold` exists, and whose plan is empty afterwards.
const SLOW_PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "slow", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    if [ -e done ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 1}]}'; exit; fi
    echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [{"action": 1, "changes": [
        {"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card"}]}]}]}' ;;
apply) echo > applying; while [ -e hold ]; do sleep 0.02; done; echo > done; echo '{}' ;;
esac
"#;

#[test]
fn an_honest_step_is_alive_for_longer_than_the_stall_timeout() {
    let scratch = stage();
    scratch.write("program.sh", SLOW_PROGRAM);
    scratch.write("hold", "");
    let program = "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n";
    scratch.write("config.toml", format!("{}{program}", scratch.read("config.toml")));
    let words = "reconcile service-dependencies --every 1h --data repo --config config.toml --runs runs";
    let mut command = qontract(&scratch);
    command.args(words.split(' ')).args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
    let mut running = Running::of(command.env("QONTRACT_STALL_SECONDS", "2"));
    let address = listener(&mut running);
    qontract_testkit::eventually("the step is applied", || {
        scratch.path().join("applying").exists().then_some(())
    });
    let began = std::time::Instant::now();
    qontract_testkit::eventually("the stall timeout passes twice", || {
        (began.elapsed() > std::time::Duration::from_secs(4)).then_some(())
    });
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    scratch.remove("hold");
    running.until("write card `one`");
    let metrics = get(&address, "/metrics");
    let is_zero = |line: &str| line.starts_with("qontract_reconcile_stuck_total{") && line.ends_with(" 0");
    assert!(metrics.lines().any(is_zero), "{metrics}");
    running.signal(Signal::TERM);
    assert!(running.wait().success());
    let again = qontract(&scratch)
        .args("reconcile service-dependencies --data repo --config config.toml --runs runs".split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && text.contains("nothing to change"), "{text}");
}

#[test]
fn a_blocked_thread_is_found_within_the_stall_timeout() {
    let scratch = stage();
    // Reading a pipe without a writer blocks the thread, as an unresponsive file system does.
    let pipe = scratch.path().join("sandbox/clusters/cliffs-stage/_cluster/Namespace/blocked.yaml");
    std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = "reconcile openshift-namespaces --every 1s --data repo --config config.toml --runs runs";
    let mut command = qontract(&scratch);
    command.args(words.split(' ')).args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
    let mut running = Running::of(command.env("QONTRACT_STALL_SECONDS", "2"));
    let address = listener(&mut running);
    let began = std::time::Instant::now();
    let line = running.until("no progress");
    assert!(line.contains("observe"), "{line}");
    // The stall timeout, with the pause between two observations and a busy machine.
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"), "the watchdog is alive");
    std::fs::remove_file(&pipe).unwrap();
    running.until("create Namespace `catalog-stage`");
    running.until("run ended: ok");
    assert!(scratch.path().join(FILE).exists());
    running.signal(Signal::TERM);
    running.wait();
    let words = "reconcile openshift-namespaces --data repo --config config.toml --runs runs";
    let again = qontract(&scratch).args(words.split(' ')).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && text.contains("nothing to change"), "{text}");
}
