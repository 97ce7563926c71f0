//! Tests of trusted addresses through the binary: a program with several targets in a check.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::{Scratch, example};
use serde_json::Value;

/// A program with one shard, whose targets are the servers of all clusters. It marks each of them, and keeps the
/// last request for `plan`. If there is a file `die`, `plan` is killed.
const PROGRAM: &str = r#"
import json, os, sys
request = json.load(sys.stdin)
if sys.argv[1] == "describe":
    query = "query Clusters { clusters: clusters_v1 { name serverUrl } }"
    print(json.dumps({"name": "service-dependencies", "description": "visits clusters", "sandbox": True,
                      "base": True, "queries": [{"name": "Clusters", "text": query}]}))
elif sys.argv[1] == "declare":
    servers = sorted(cluster["serverUrl"] for cluster in request["answers"]["Clusters"]["clusters"])
    print(json.dumps({"shards": [{"targets": servers, "state": len(servers), "may_remove": "any"}]}))
elif sys.argv[1] == "plan":
    if os.path.exists("die"):
        os.kill(os.getpid(), 9)
    json.dump(request, open("plan.json", "w"))
    scopes, groups = [], []
    for server in request["targets"]:
        scope = [["server", server]]
        scopes.append({"scope": scope, "count": 1})
        mark = server.split("/")[-1]
        if not os.path.exists(mark):
            thing = {"scope": scope, "kind": "mark", "name": "new"}
            change = {"kind": "add", "what": "write mark", "thing": thing}
            groups.append({"steps": [{"changes": [change], "action": mark}]})
    for server in request["refused"]:
        scope = [["server", server]]
        scopes.append({"scope": scope, "unknown": "`%s` is not contacted" % server, "refused": True})
        thing = {"scope": scope, "kind": "mark", "name": "old"}
        groups.append({"steps": [{"changes": [{"kind": "remove", "what": "remove mark", "thing": thing}]}]})
    print(json.dumps({"scopes": scopes, "groups": groups}))
else:
    open(request["action"], "w").close()
    print("{}")
"#;

const CLUSTER: &str = "repo/data/clusters/cliffs-stage.yml";

fn fixture() -> Scratch {
    let scratch = operator_fixture();
    scratch.write("program.py", PROGRAM);
    scratch.write(
        "config.toml",
        "[integrations.service-dependencies]\ncommand = [\"python3\", \"program.py\"]\n",
    );
    scratch
}

fn plan_against(scratch: &Scratch, base: &str, more: &[&str]) -> (i32, String) {
    reconcile(scratch, &[&["--data", "repo", "--base", base, "--dry-run"], more].concat())
}

fn reconcile(scratch: &Scratch, more: &[&str]) -> (i32, String) {
    let words = ["reconcile", "service-dependencies", "--config", "config.toml", "--sandbox", "sandbox"];
    let rest = ["--runs", "runs", "--no-validate-schemas"];
    let output = run_with(scratch.path(), &[], &[&words[..], &rest, more].concat());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    (output.status.code().unwrap(), text)
}

fn request(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.read("plan.json")).unwrap()
}

fn count(request: &Value, field: &str) -> usize {
    request[field].as_array().map_or(0, Vec::len)
}

#[test]
fn a_program_gets_only_the_addresses_that_base_knows_and_the_rest_is_planned() {
    let scratch = fixture();
    scratch.copy(&scratch.path().join("repo"), "base");
    let text = scratch.read(CLUSTER);
    let server = text.lines().find(|line| line.starts_with("serverUrl:")).unwrap();
    scratch.write(CLUSTER, text.replace(server, "serverUrl: https://evil.example.com:6443"));

    let (code, shown) = plan_against(&scratch, "base", &[]);
    assert_eq!(code, 0, "{shown}");
    let seen = request(&scratch);
    assert_eq!(seen["refused"], serde_json::json!(["https://evil.example.com:6443"]), "{seen}");
    assert!(count(&seen, "targets") > 0 && !seen["targets"].to_string().contains("evil"), "{seen}");
    assert!(shown.contains("not planned: `server=https://evil.example.com:6443`"), "{shown}");
    assert!(!shown.contains("would be removed"), "{shown}");
    let listed = run_with(scratch.path(), &[], &["runs", "show", "last", "--runs", "runs", "-o", "json"]);
    let record: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let shard = record["shards"].as_object().unwrap().values().next().unwrap();
    let planned = count(&seen, "targets");
    assert_eq!((&shard["not_planned"], count(shard, "changes")), (&1.into(), planned), "{shard}");
    assert_eq!(shard["held"][0]["hold"], "unresolved", "nothing is removed behind it, whatever the consent");

    // A program that is killed is a failure, and not an address that was refused.
    scratch.write("die", "");
    assert_ne!(plan_against(&scratch, "base", &[]).0, 0);
    std::fs::remove_file(scratch.path().join("die")).unwrap();

    let (code, shown) = plan_against(&scratch, "base", &["--trust-head"]);
    assert_eq!(code, 0, "{shown}");
    let trusted = request(&scratch);
    assert_eq!(count(&trusted, "refused"), 0, "{trusted}");
    assert_eq!(count(&trusted, "targets"), count(&seen, "targets") + 1, "{trusted}");

    // After the merge, the data is trusted, and then nothing is left to do.
    let (code, shown) = reconcile(&scratch, &["--data", "repo"]);
    assert_eq!(code, 0, "{shown}");
    assert!(scratch.path().join("evil.example.com:6443").exists(), "{shown}");
    let (code, shown) = reconcile(&scratch, &["--data", "repo"]);
    assert!(code == 0 && shown.contains("nothing to change"), "{shown}");
}

#[test]
#[ignore = "needs python3; run by `cargo xtask test`"]
fn a_program_gets_both_commits_and_the_data_of_base() {
    let scratch = fixture();
    let repo = Scratch::copy_of(&example());
    let base = repo.commit_all("base");
    let cluster = "data/clusters/cliffs-stage.yml";
    let text = repo.read(cluster);
    let server = text.lines().find(|line| line.starts_with("serverUrl:")).unwrap();
    repo.write(cluster, text.replace(server, "serverUrl: https://new.example.com:6443"));
    let head = repo.commit_all("head");
    let data = ["--repo", repo.path().to_str().unwrap(), "--data", &head, "--dry-run"];
    let (code, shown) = reconcile(&scratch, &[&data[..], &["--base", &base]].concat());
    assert_eq!(code, 0, "{shown}");
    let seen = request(&scratch);
    assert_eq!(
        (seen["commit"].as_str(), seen["base_commit"].as_str()),
        (Some(&*head), Some(&*base)),
        "{seen}"
    );
    let servers = seen["base"]["Clusters"].to_string();
    assert!(servers.contains(server.trim_start_matches("serverUrl: ")), "{seen}");
    assert!(!servers.contains("new.example.com"), "{seen}");
    // Without a base there is only one commit.
    let (code, shown) = reconcile(&scratch, &data);
    assert_eq!(code, 0, "{shown}");
    let seen = request(&scratch);
    assert_eq!(seen["commit"].as_str(), Some(&*head), "{seen}");
    assert!(seen.get("base_commit").is_none() && seen.get("base").is_none(), "{seen}");
}
