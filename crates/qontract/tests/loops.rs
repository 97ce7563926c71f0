//! Loops as processes: what wakes them, what ends them, and what they answer.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, Signal, kill_process};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const FILE: &str = "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml";

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("config.toml", "[sandbox]\ndirectory = \"sandbox\"\n");
    scratch
}

fn qontract(scratch: &Scratch) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command
}

/// A loop that runs, and what it tells.
struct Loop {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Loop {
    fn start(scratch: &Scratch) -> Self {
        let words = [
            "reconcile",
            "openshift-namespaces",
            "--every",
            "1h",
            "--data",
            "repo",
            "--config",
            "config.toml",
        ];
        let mut child = qontract(scratch)
            .args(words)
            .args(["--runs", "runs", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// Reads until a line has this; the line.
    fn until(&mut self, text: &str) -> serde_json::Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended before it said `{text}`");
            if line.contains(text) {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Already gone, if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_loop_runs_at_once_wakes_with_new_data_answers_and_ends_when_asked() {
    let scratch = stage();
    let mut running = Loop::start(&scratch);
    let told = running.until("answers on")["message"].as_str().unwrap().to_owned();
    let address = told.strip_prefix("answers on http://").unwrap().trim_end_matches('/').to_owned();
    let line = running.until("create Namespace `catalog-stage`");
    for field in ["run", "commit", "bundle", "place", "integration"] {
        assert!(line[field].is_string(), "an audit line has `{field}`: {line}");
    }
    qontract_testcluster::eventually("it is ready", || {
        get(&address, "/readyz").starts_with("HTTP/1.1 200").then_some(())
    });
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    let metrics = get(&address, "/metrics");
    let labels = "{integration=\"openshift-namespaces\",shards=\"1\",shard_id=\"0-1\"}";
    assert!(metrics.contains(&format!("qontract_reconcile_last_run_status{labels} 0")), "{metrics}");
    assert!(
        metrics.contains(
            "qontract_reconcile_phase_seconds_count{integration=\"openshift-namespaces\",phase=\"observe\"}"
        ),
        "{metrics}"
    );
    scratch.write(NAMESPACE, scratch.read(NAMESPACE).replace("tier: edge", "tier: core"));
    running.until("change Namespace `catalog-stage`");
    assert!(scratch.read(FILE).contains("tier: core"));
    running.signal(Signal::USR1);
    assert_eq!(running.until("\"WARNING\"")["integration"], "openshift-namespaces");
    running.signal(Signal::TERM);
    running.until("asked to end");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_environment_of_the_established_runtime_is_understood() {
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
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(scratch.path().join(FILE).exists());
    assert!(
        !scratch.path().join("sandbox/clusters/harbor-prod").exists(),
        "the flags of the integration count"
    );
    assert!(scratch.read("log.txt").contains("create Namespace `catalog-stage`"));
    // Errors are in the file, too.
    scratch.write("repo/data/twice.yml", scratch.read(NAMESPACE));
    let output = command.env("RUN_ONCE", "1").output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(scratch.read("log.txt").contains("ERROR"), "{}", scratch.read("log.txt"));
    let output = command.env_remove("INTEGRATION_NAME").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
