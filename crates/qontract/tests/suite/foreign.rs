//! Tests of foreign commands through the binary: the data endpoint, the plan that is not known, and the
//! real qontract-reconcile.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::records::records;
use crate::support::running::Running;
use qontract_testkit::{Scratch, eventually, example, tool};
use qontract_testserver::DataServer;
use rustix::process::Signal;
use serde_json::Value;

/// An integration that the example data defines.
const NAME: &str = "service-dependencies";

/// Queries the endpoint of its configuration, and prints what it gets.
const CLIENT: &str = r#"
import json, os, sys, tomllib, urllib.error, urllib.request
with open(os.environ["CONFIG"], "rb") as file:
    config = tomllib.load(file)
server, token = config["graphql"]["server"], config["graphql"]["token"]
def get(path, body=None, token=token):
    headers = {"Authorization": token, "Content-Type": "application/json"} if token else {}
    request = urllib.request.Request(server.rsplit("/", 1)[0] + path, body, headers)
    try:
        return urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as error:
        return error.code
query = json.dumps({"query": "{ apps_v1 { name } }"}).encode()
apps = lambda sha: len(json.loads(get("/graphqlsha/" + sha, query))["data"]["apps_v1"])
head, base = get("/sha256").strip(), os.environ["EARLY_EXIT_COMPARE_SHA"]
print("different", head != base)
print("apps", apps(head) - apps(base))
print("third", get("/graphqlsha/" + "0" * 64, query))
print("anonymous", get("/graphqlsha/" + head, query, None))
print("mode", os.environ["DRY_RUN"])
print("own", config["own"]["key"])
print("token", token)
sys.stdout.flush()
"#;

fn stage(then: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.write("client.py", format!("{CLIENT}{then}\n"));
    scratch.write("own.toml", "[own]\nkey = \"value-that-is-secret\"\n[graphql]\nserver = \"http://old\"\n");
    let python = tool("QONTRACT_PYTHON").display().to_string();
    let config = format!("[foreign.{NAME}]\ncommand = [{python:?}, \"client.py\"]\nconfig = \"own.toml\"\n");
    scratch.write("config.toml", config);
    scratch
}

fn qontract(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command.args(words.split(' ')).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The only record in a directory.
fn record(scratch: &Scratch, runs: &str) -> Value {
    let mut records = records(&scratch.path().join(runs));
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0).1
}

fn output(record: &Value) -> Vec<&str> {
    let shard = record["shards"].as_object().unwrap().values().next().unwrap();
    shard["output"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_command_reads_base_and_head_and_its_plan_is_not_known() {
    let scratch = stage("");
    let words = format!(
        "reconcile {NAME} --dry-run --data repo --base repo --config config.toml --runs runs --detailed-exitcode"
    );
    let ended = qontract(scratch.path(), &words);
    let printed = text(&ended);
    assert_eq!(ended.status.code(), Some(2), "it may have changes: {printed}");
    assert!(printed.contains("warning: plan not known"), "{printed}");
    assert!(!printed.contains("nothing to change"), "{printed}");
    let record = record(&scratch, "runs");
    assert_eq!((&record["ended"], &record["exit"]), (&"plan not known".into(), &0.into()));
    let lines = output(&record);
    for expect in ["different False", "apps 0", "third 404", "anonymous 401", "mode --dry-run"] {
        assert!(lines.contains(&expect), "{expect}: {lines:?}");
    }
    let all = lines.join("\n");
    assert!(!all.contains("value-that-is-secret") && !all.contains("token"), "secrets are redacted: {all}");
    let shown = text(&qontract(
        scratch.path(),
        &format!("runs show {} --runs runs", record["run"].as_str().unwrap()),
    ));
    assert!(shown.contains("ended `plan not known`") && shown.contains("output: third 404"), "{shown}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_command_compares_two_bundles_on_one_endpoint() {
    let scratch = stage("");
    let app = "repo/data/services/catalog/app.yml";
    scratch.copy(&example(), "base");
    scratch.write(app, scratch.read(app).replace("description: ", "description: still "));
    let words =
        format!("reconcile {NAME} --dry-run --data repo --base base --config config.toml --runs runs");
    let ended = qontract(scratch.path(), &words);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    let record = record(&scratch, "runs");
    assert!(output(&record).contains(&"different True"), "{record:#}");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_real_run_has_to_be_allowed() {
    let scratch = stage("");
    let words = format!("reconcile {NAME} --data repo --config config.toml --runs runs");
    let refused = qontract(scratch.path(), &words);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("set `foreign.service-dependencies.real_runs`"), "{}", text(&refused));
    let sandboxed = qontract(scratch.path(), &format!("{words} --dry-run --sandbox sandbox"));
    assert_eq!(sandboxed.status.code(), Some(2));
    assert!(text(&sandboxed).contains("does not support a sandbox"), "{}", text(&sandboxed));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_command_that_is_killed_fails_for_now_and_the_next_run_succeeds() {
    let scratch = stage(
        "import signal\nif not os.path.exists('killed'):\n    open('killed', 'w').close()\n    os.kill(os.getpid(), signal.SIGKILL)",
    );
    let words =
        format!("reconcile {NAME} --dry-run --data repo --base repo --config config.toml --runs runs");
    let killed = qontract(scratch.path(), &words);
    assert_eq!(killed.status.code(), Some(75), "{}", text(&killed));
    assert!(text(&killed).contains("was killed"), "{}", text(&killed));
    let again = qontract(scratch.path(), &words);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    scratch.write("own.toml", "[own\n");
    let broken = qontract(scratch.path(), &words);
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken).contains("is not a TOML file"), "{}", text(&broken));
}

/// Waits while there is a file `hold`.
const HOLD: &str = "import time\nopen('child', 'w').write(str(os.getpid()))\nwhile os.path.exists('hold'):\n    time.sleep(0.01)";

/// Whether a process is gone, or waits only to be reaped.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// The files below a directory, except one, that contain a string.
fn files_with(folder: &Path, text: &str, except: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with(except) {
                let bytes = std::fs::read(&path).unwrap_or_default();
                found.extend(String::from_utf8_lossy(&bytes).contains(text).then_some(path));
            }
        }
    }
    found
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn a_real_run_that_is_killed_leaves_neither_its_command_nor_a_secret_behind() {
    let scratch = stage(HOLD);
    let server = DataServer::with_token("Basic of-the-data-server");
    let bundle = |folder: &str| {
        let ended = qontract(&scratch.path().join(folder), "bundle . --no-validate -o -");
        server.load(&ended.stdout)
    };
    let base = bundle("repo");
    let app = "repo/data/services/catalog/app.yml";
    scratch.write(app, scratch.read(app).replace("description: ", "description: still "));
    let head = bundle("repo");
    assert_ne!(base, head);
    let config = scratch.read("config.toml") + "real_runs = true\n";
    let graphql = format!("[graphql]\nserver = {:?}\ntoken = \"Basic of-the-data-server\"\n", server.url());
    scratch.write("config.toml", config + &graphql);
    scratch.write("hold", "");
    let words = format!("reconcile {NAME} --config config.toml --runs runs --early-exit-compare-sha {base}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).env("TMPDIR", scratch.path());
    let running = Running::of(command.args(words.split(' ')));
    let child = eventually("the command runs", || {
        let pid = std::fs::read_to_string(scratch.path().join("child")).ok()?;
        (!pid.is_empty()).then_some(pid)
    });
    assert_eq!(server.leases(), 2, "both bundles stay while the command runs");
    running.signal(Signal::KILL);
    running.wait();
    eventually("the command is gone", || is_gone(&child).then_some(()));
    for (secret, except) in [("value-that-is-secret", "own.toml"), ("of-the-data-server", "config.toml")] {
        let found = files_with(scratch.path(), secret, except);
        assert!(found.is_empty(), "{secret} is in {found:?}");
    }
    scratch.remove("hold");
    let again = qontract(scratch.path(), &words);
    let printed = text(&again);
    assert!(again.status.success() && printed.contains("plan not known"), "{printed}");
    assert!(printed.contains("did not finish"), "the killed run is reported: {printed}");
    let shown = text(&qontract(scratch.path(), "runs show last --runs runs"));
    for line in
        ["ended `plan not known`", "output: mode --no-dry-run", "output: different True", "output: apps 0"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

/// The example with the data that two integrations of qontract-reconcile need, and the configuration that
/// runs them.
fn stage_of_peer() -> Scratch {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign-peer");
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    for folder in ["data", "schemas", "resources"] {
        scratch.copy(&fixture.join(folder), &format!("repo/{folder}"));
    }
    let types = "repo/graphql-schemas/schema.yml";
    let mut text = scratch.read(types);
    let mut insert = |after: &str, line: &str| {
        assert!(text.contains(after), "{after}");
        text = text.replace(after, &format!("{after}{line}"));
    };
    let field = "type: CloudflareDnsZone_v1, isList: true, datafileSchema: /cloudflare/dns-zone-1.yml}\n";
    insert("- name: Query\n  fields:\n", &format!("  - {{name: cloudflare_dns_zone_v1, {field}"));
    insert(
        "  - {name: observabilityNamespace, type: Namespace_v1}\n",
        "  - {name: jumpHost, type: ClusterJumpHost_v1}\n",
    );
    insert("      osd: ClusterSpecOSD_v1\n", "      rosa: ClusterSpecROSA_v1\n");
    insert(
        "  - {name: private, type: boolean, isRequired: true}\n",
        "  - {name: hypershift, type: boolean}\n",
    );
    insert(
        "  - {name: mergeRequestGateway, type: string}\n",
        "  - {name: cloudflareDNSZoneMaxRecords, type: int}\n",
    );
    text.push_str(&std::fs::read_to_string(fixture.join("graphql-types.yml")).unwrap());
    scratch.write(types, text);
    let settings = "repo/data/settings.yml";
    scratch.write(settings, scratch.read(settings).replace("vault: true", "vault: false"));
    for program in ["terraform", "promtool"] {
        let script = std::fs::read_to_string(fixture.join(format!("{program}.sh"))).unwrap();
        scratch.write(&format!("bin/{program}"), script);
        let file = scratch.path().join("bin").join(program);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    scratch.write(
        "peer.toml",
        "[cloudflare.credentials]\napi_token = \"token-of-cloudflare\"\naccount_id = \"account-of-cloudflare\"\n\
         api_key = \"key-of-cloudflare\"\nemail = \"mail-of-cloudflare\"\n\
         [aws.credentials]\naws_access_key_id = \"id-of-aws\"\naws_secret_access_key = \"secret-of-aws\"\n",
    );
    let python = tool("QONTRACT_PEER_PYTHON").display().to_string();
    let command = format!(
        "[\"{python}\", \"-c\", \"import sys; from reconcile.run_integration import main; sys.exit(main())\"]"
    );
    let table = |name: &str| {
        format!(
            "[foreign.{name}]\ncommand = {command}\nconfig = \"peer.toml\"\nenvironment = [\"LOG_LEVEL\"]\n"
        )
    };
    scratch.write("config.toml", table("terraform-cloudflare-dns") + &table("prometheus-rules-tester"));
    scratch
}

/// Runs an integration of qontract-reconcile that compares head with a base; its output.
fn run_peer(scratch: &Scratch, name: &str, base: &str) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    command.env("LOG_LEVEL", "DEBUG").env("PATH", format!("{}/bin:{path}", scratch.path().display()));
    let runs = format!("runs-{name}-{base}");
    let words =
        format!("reconcile {name} --dry-run --data repo --base {base} --config config.toml --runs {runs}");
    let ended = command.args(words.split(' ')).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    let record = record(scratch, &runs);
    assert_eq!(record["ended"], "plan not known");
    output(&record).join("\n")
}

#[test]
#[ignore = "needs QONTRACT_PEER_PYTHON; run by `cargo xtask test`"]
fn qontract_reconcile_exits_early_if_the_desired_states_are_equal_and_runs_the_shard_that_changed() {
    let scratch = stage_of_peer();
    scratch.copy(&scratch.path().join("repo"), "base");
    let zone = "repo/data/cloudflare/zone-two.yml";
    scratch.write(zone, scratch.read(zone).replace("ttl: 300", "ttl: 301"));
    let rule = "repo/resources/monitoring/harbor-prod.prometheusrule.yaml";
    scratch.write(rule, scratch.read(rule).replace("for: 5m", "for: 6m"));
    let check = |name: &str, base: &str, expect: &str| {
        let shown = run_peer(&scratch, name, base);
        assert!(shown.contains(expect), "{shown}");
        for secret in ["token-of-cloudflare", "secret-of-aws"] {
            assert!(!shown.contains(secret), "{secret}");
        }
    };
    // A class with shards by zone, and a module with shards by cluster.
    check("terraform-cloudflare-dns", "repo", "No changes in desired state. Exit PR check early.");
    check("terraform-cloudflare-dns", "base", "run terraform-cloudflare-dns for shards ['zone-two']");
    check("prometheus-rules-tester", "repo", "No changes in desired state. Exit PR check early.");
    check("prometheus-rules-tester", "base", "run prometheus-rules-tester for shards ['harbor-prod']");
}
