//! Tests of the configuration: refused keys, and the success and failure of every check of
//! `qontract config check`, which never writes.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::{Command, Output};

use crate::support::loopback::{Loopback, Reply};
use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::cluster::shared;
use qontract_testkit::{Scratch, example};
use serde_json::Value;

/// Runs the check.
fn check(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(folder)
        .args(["config", "check"])
        .args(arguments)
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("QONTRACT_CONFIG")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .output()
        .unwrap()
}

/// The exit code and the rows, each as `STATUS CHECK: DETAIL`.
fn rows(folder: &Path, arguments: &[&str]) -> (i32, Vec<String>) {
    let output = check(folder, &[arguments, &["-o", "json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let rows = report["checks"].as_array().unwrap().iter();
    let rows =
        rows.map(|row| format!("{} {}: {}", text(row, "status"), text(row, "check"), text(row, "detail")));
    (output.status.code().unwrap(), rows.collect())
}

#[track_caller]
fn has(rows: &[String], expect: &str) {
    assert!(rows.iter().any(|row| row.starts_with(expect)), "no `{expect}` in {rows:#?}");
}

/// A data repo with one cluster at this address, and some namespaces.
fn repo(server: &str) -> Scratch {
    let scratch = Scratch::new();
    for part in ["schemas", "graphql-schemas"] {
        scratch.copy(&example().join(part), &format!("repo/{part}"));
    }
    for name in ["namespaces", "limitranges", "resources", "clusterrolebindings"] {
        let file = format!("data/integrations/openshift-{name}.yml");
        scratch.write(&format!("repo/{file}"), std::fs::read_to_string(example().join(&file)).unwrap());
    }
    scratch.write(
        "repo/data/clusters/c1.yml",
        format!("$schema: /openshift/cluster-1.yml\nname: c1\nserverUrl: {server}\nauth: []\nautomationToken: {{path: creds/c1, field: token}}\n"),
    );
    let namespace = "$schema: /openshift/namespace-1.yml\nname: n1\ncluster: {$ref: /clusters/c1.yml}\nmanagedResourceTypes: [ConfigMap, Deployment.apps]\n";
    scratch.write("repo/data/n1.yml", namespace);
    scratch
}

const WORDS: [&str; 4] = ["--config", "config.toml", "--data", "repo"];

#[test]
fn a_wrong_configuration_fails_the_check() {
    let scratch = Scratch::new();
    scratch.write("config.toml", "[kubernets]\n");
    let (code, found) = rows(scratch.path(), &["--config", "config.toml"]);
    assert_eq!(code, 1);
    has(
        &found,
        "failed configuration: `config.toml`, line 1: unknown table `[kubernets]`: did you mean `[kubernetes]`?",
    );
    let text = String::from_utf8(check(scratch.path(), &["--config", "config.toml"]).stdout).unwrap();
    assert!(
        text.starts_with("failed   configuration  `config.toml`, line 1: ")
            && text.ends_with("0 ok, 0 warnings, 1 failed\n"),
        "{text}"
    );
    let (code, found) = rows(scratch.path(), &[]);
    assert_eq!(code, 0, "{found:?}");
    has(&found, "warning configuration: none found");
    has(&found, "warning data: ");
    has(&found, "warning clusters: no `[kubernetes]` table");
    let text = String::from_utf8(check(scratch.path(), &[]).stdout).unwrap();
    assert!(
        text.contains("only `qontract-reconcile` and `run-integration` run `openshift-*` integrations"),
        "{text}"
    );
}

#[test]
fn keys_without_effect_are_warnings() {
    let scratch = repo("https://127.0.0.1:1");
    scratch.write(
        "config.toml",
        "debug = true\n[promtool]\npath = \"nowhere\"\n[sandbox]\ndirectory = \"sandbox\"\n",
    );
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 0, "{found:?}");
    has(&found, "ok configuration: config.toml (--config)");
    has(&found, "warning configuration: `debug` has no effect at the top level");
    has(&found, "warning promtool: not found at ");
    has(&found, "ok git: ");
    has(&found, "ok data: repo, bundle ");
    has(&found, "ok targets: sandbox sandbox");
    assert!(!scratch.path().join("sandbox").exists(), "it reads only");
}

#[test]
fn a_cluster_that_cannot_be_reached_fails_the_check_in_one_sentence() {
    let scratch = repo("https://127.0.0.1:1");
    scratch.write(
        "config.toml",
        "[kubernetes.clusters.c2]\nrequests_per_second = 9\n[creds.c1]\ntoken = \"t0ken\"\n",
    );
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:?}");
    has(&found, "warning clusters: `[kubernetes.clusters.c2]`: the data has no cluster `c2`");
    let expect = "failed cluster c1: cannot reach cluster `c1`: `POST https://127.0.0.1:1/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`: connection refused";
    assert!(found.contains(&expect.to_owned()), "{found:#?}");
    // A missing secret.
    scratch.write("config.toml", "[kubernetes]\n[creds.other]\ntoken = \"t0ken\"\n");
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1);
    has(&found, "failed cluster c1: cannot log in to the cluster `c1`: secret `creds/c1` not found");
}

/// The answer to an access review.
fn review(is_allowed: bool, date: &str) -> Reply {
    let body =
        format!("{{\"kind\": \"SelfSubjectAccessReview\", \"status\": {{\"allowed\": {is_allowed}}}}}");
    Reply::Full("201 Created", format!("date: {date}\r\ncontent-type: application/json\r\n"), body)
}

#[test]
fn faults_of_a_cluster_are_named_and_nothing_is_written() {
    // A clock that is wrong, and an API that serves nothing else.
    let server = Loopback::start(|line| {
        if line.starts_with("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews ") {
            return review(true, "Sun, 06 Nov 1994 08:49:37 GMT");
        }
        Reply::Full("500 Internal Server Error", String::new(), String::new())
    });
    let scratch = repo(server.url());
    scratch.write("config.toml", "[kubernetes]\n[creds.c1]\ntoken = \"t0ken\"\n");
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:?}");
    has(&found, "ok cluster c1: http://127.0.0.1:");
    assert!(
        found.iter().any(|row| row.starts_with("failed cluster c1: its clock is ")
            && row.ends_with(" s behind the local clock")),
        "{found:#?}"
    );
    has(&found, "failed cluster c1, openshift-limitranges: ");
    let seen = server.seen();
    let is_read = |head: &String| {
        head.starts_with("GET ")
            || head.starts_with("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews ")
    };
    assert!(seen.iter().all(is_read), "{seen:#?}");
}

#[test]
fn kinds_that_a_cluster_does_not_serve_are_not_allowed() {
    let server = Loopback::start(|line| {
        if line.starts_with("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews ") {
            return review(true, "");
        }
        let body = match line.split(' ').nth(1).unwrap_or_default() {
            "/api/v1" => {
                r#"{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "configmaps", "singularName": "", "namespaced": true, "kind": "ConfigMap", "verbs": ["list", "get", "create", "patch", "delete"]}]}"#
            }
            "/apis" => r#"{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}"#,
            _ => return Reply::Full("404 Not Found", String::new(), String::new()),
        };
        Reply::Full("200 OK", "content-type: application/json\r\n".to_owned(), body.to_owned())
    });
    let scratch = repo(server.url());
    scratch.write("config.toml", "[kubernetes]\n[creds.c1]\ntoken = \"t0ken\"\n");
    let (_, found) = rows(scratch.path(), &WORDS);
    has(&found, "warning cluster c1, openshift-resources: not served: Deployment.apps");
    let allowed = "ok cluster c1, openshift-resources: allowed: ";
    assert!(found.iter().any(|row| row.starts_with(allowed) && row.ends_with(" ConfigMap")), "{found:#?}");
    has(&found, "warning cluster c1, openshift-limitranges: not served: LimitRange");
    let is_allowed = |row: &String| row.starts_with("ok cluster c1, openshift-limitranges");
    assert!(!found.iter().any(is_allowed), "{found:#?}");
}

#[test]
fn an_unresponsive_data_server_or_vault_fails_the_check() {
    let scratch = Scratch::new();
    scratch.write("config.toml", "[graphql]\nserver = \"http://127.0.0.1:1/graphql\"\n[vault]\nserver = \"http://127.0.0.1:1\"\ntoken = \"t0ken\"\n[creds.c1]\ntoken = \"x\"\n");
    let (code, found) = rows(scratch.path(), &["--config", "config.toml"]);
    assert_eq!(code, 1, "{found:?}");
    has(&found, "warning configuration: `[creds]` not used: secrets come from Vault");
    let row = |name: &str| {
        found
            .iter()
            .find(|row| row.starts_with(&format!("failed {name}: ")))
            .unwrap_or_else(|| panic!("{found:#?}"))
    };
    assert!(row("data server").ends_with("connection refused"), "{found:#?}");
    assert!(row("vault").ends_with("connection refused"), "{found:#?}");
}

#[test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn buckets_of_templates_are_listed() {
    let aws = qontract_testkit::aws::TestAws::start();
    aws.bucket("artifacts");
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let account = "shop-stage";
    let config = format!(
        "[sandbox]\ndirectory = \"sandbox\"\n[templates]\nallow_s3 = [\"{account}/artifacts\", \"{account}/nothing\", \"nobody/artifacts\"]\ns3_endpoint = {:?}\n[platform.aws.shop-stage]\naws_access_key_id = \"a\"\naws_secret_access_key = \"s3cret\"\n",
        aws.url()
    );
    scratch.write("config.toml", config);
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:#?}");
    has(&found, "ok bucket shop-stage/artifacts: can be listed");
    has(&found, "failed bucket shop-stage/nothing: bucket `nothing` not found");
    has(&found, "failed bucket nobody/artifacts: the data has no AWS account");
    assert!(!found.join("\n").contains("s3cret"));
}

#[test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn buckets_of_targets_are_listed() {
    let aws = qontract_testkit::aws::TestAws::start();
    aws.bucket("reports");
    let scratch = repo("https://127.0.0.1:1");
    let bucket = |key: &str, bucket: &str| {
        format!("[targets.{key}]\nbucket = {bucket:?}\nendpoint = {:?}\nsecret = \"creds/s3\"\n", aws.url())
    };
    let secret = "[creds.s3]\naws_access_key_id = \"a\"\naws_secret_access_key = \"s3cret\"\n";
    let tables =
        [bucket("blobs.good", "reports"), bucket("blobs.gone", "nothing"), bucket("state", "reports")];
    scratch.write("config.toml", format!("{}{secret}", tables.concat()));
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:#?}");
    has(&found, "ok blobs good: can be listed");
    has(&found, "failed blobs gone: bucket `nothing` not found");
    has(&found, "ok state store: can be listed");
    scratch.write("config.toml", tables.concat());
    let (_, found) = rows(scratch.path(), &WORDS);
    has(
        &found,
        "failed state store: reading the key of bucket `reports` (`targets.state.secret`) failed: secret `creds/s3` not found",
    );
    assert!(!found.join("\n").contains("s3cret"));
    // In a sandbox no bucket is contacted.
    scratch.write("config.toml", format!("[sandbox]\ndirectory = \"sandbox\"\n{}", tables.concat()));
    let (_, found) = rows(scratch.path(), &WORDS);
    assert!(!found.iter().any(|row| row.contains("blobs") || row.contains("state store")), "{found:#?}");
    scratch.write("config.toml", "[targets.blobs.reports]\nbuckets = \"x\"\n");
    let (_, found) = rows(scratch.path(), &WORDS);
    has(
        &found,
        "failed configuration: `config.toml`, line 2: unknown key `targets.blobs.reports.buckets`: did you mean `bucket`?",
    );
}

#[test]
#[ignore = "needs an SQS server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn the_messages_of_queues_are_counted() {
    let aws = qontract_testkit::aws::TestAws::start();
    aws.queue("orders.fifo");
    let scratch = repo("https://127.0.0.1:1");
    let queue = |key: &str, name: &str| {
        format!(
            "[targets.queue.{key}]\nname = {name:?}\nendpoint = {:?}\nsecret = \"creds/sqs\"\n",
            aws.url()
        )
    };
    let secret = "[creds.sqs]\naws_access_key_id = \"a\"\naws_secret_access_key = \"s3cret\"\n";
    let url = format!(
        "[targets.queue.url]\nurl = \"{}/123456789012/orders.fifo\"\nsecret = \"creds/sqs\"\n[targets.queue.neither]\n",
        aws.url()
    );
    let tables = [queue("good", "orders.fifo"), queue("gone", "nothing"), url];
    scratch.write("config.toml", format!("{}{secret}", tables.concat()));
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:#?}");
    has(&found, "ok queue good: has about 0 messages");
    has(&found, "ok queue url: has about 0 messages");
    has(&found, "failed queue gone: queue `nothing` not found");
    has(&found, "failed queue neither: `targets.queue.neither` must have either `url` or `name`");
    assert!(!found.join("\n").contains("s3cret"));
    // In a sandbox no queue is contacted.
    scratch.write("config.toml", format!("[sandbox]\ndirectory = \"sandbox\"\n{}", tables.concat()));
    let (_, found) = rows(scratch.path(), &WORDS);
    assert!(!found.iter().any(|row| row.contains("queue")), "{found:#?}");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn on_a_real_cluster_a_good_token_passes_and_a_bad_one_fails_real_cluster() {
    let api = shared();
    let scratch = repo(&api.url);
    let config = |token: &str| {
        format!(
            "[kubernetes]\nca = \"{}\"\nrequests_per_second = 400\n[creds.c1]\ntoken = {token:?}\n",
            api.ca.display()
        )
    };
    scratch.write("config.toml", config(&api.token));
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 0, "{found:#?}");
    has(&found, &format!("ok cluster c1: {} reachable, credentials accepted", api.url));
    has(&found, "ok cluster c1, openshift-namespaces: allowed: list/get/create/patch/delete Namespace");
    has(
        &found,
        "ok cluster c1, openshift-resources: allowed: list/get/create/patch/delete ConfigMap, Deployment.apps",
    );
    scratch.write("config.toml", config("wr0ng"));
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1);
    has(&found, "failed cluster c1: cannot log in to the cluster `c1`: the credentials are not accepted");
    assert!(!found.join("\n").contains("wr0ng"));
    // Without the CA of the cluster.
    scratch.write("config.toml", format!("[kubernetes]\n[creds.c1]\ntoken = {:?}\n", api.token));
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1);
    assert!(
        found.iter().any(|row| row.starts_with("failed cluster c1: ")
            && row.ends_with("certificate signed by unknown authority")),
        "{found:#?}"
    );
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn on_a_real_cluster_missing_permissions_are_named_real_cluster() {
    let api = shared();
    let scratch = repo(&api.url);
    scratch.write(
        "config.toml",
        format!(
            "[kubernetes]\nca = \"{}\"\nrequests_per_second = 400\n[creds.c1]\ntoken = {:?}\n",
            api.ca.display(),
            api.plain_token
        ),
    );
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1, "{found:#?}");
    has(
        &found,
        "failed cluster c1, openshift-namespaces: not allowed: list/get/create/patch/delete namespaces",
    );
    has(
        &found,
        "failed cluster c1, openshift-resources: not allowed: list/get/create/patch/delete configmaps, list/get/create/patch/delete deployments",
    );
    // The same with a kubeconfig.
    let ca = api.ca.display();
    scratch.write("kube/config", format!("apiVersion: v1\nkind: Config\ncurrent-context: other\nclusters: [{{name: k, cluster: {{server: '{}', certificate-authority: '{ca}'}}}}]\nusers: [{{name: u, user: {{tokenFile: token}}}}, {{name: e, user: {{exec: {{command: evil}}}}}}]\ncontexts: [{{name: mine, context: {{cluster: k, user: u}}}}, {{name: other, context: {{cluster: k, user: e}}}}]\n", api.url));
    scratch.write("kube/token", format!("{}\n", api.token));
    scratch.write("config.toml", "[kubernetes.clusters.c1]\nkubeconfig = \"kube/config\"\ncontext = \"mine\"\nrequests_per_second = 400\n");
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 0, "{found:#?}");
    has(&found, "ok cluster c1, openshift-namespaces: allowed");
    scratch.write("config.toml", "[kubernetes.clusters.c1]\nkubeconfig = \"kube/config\"\n");
    let (code, found) = rows(scratch.path(), &WORDS);
    assert_eq!(code, 1);
    has(
        &found,
        "failed clusters: `kubernetes.clusters.c1.kubeconfig`: `kube/config`: user `e` has `exec`, which is not supported: use a token, a token file or a client certificate",
    );
}

const DRY: [&str; 6] = ["reconcile", "openshift-namespaces", "--dry-run", "--data", "repo", "--config"];

/// A dry run with this configuration: its exit code and its output.
fn dry_run_with(scratch: &Scratch, config: &str) -> (Option<i32>, String) {
    scratch.write("conf/config.toml", config);
    let output = run_with(scratch.path(), &[], &[&DRY[..], &["conf/config.toml", "--runs", "runs"]].concat());
    (output.status.code(), stderr(&output))
}

#[test]
fn unknown_tables_and_keys_are_refused_with_the_nearest_name() {
    let scratch = operator_fixture();
    for (config, expect) in [
        ("[kubernets]\n", "line 1: unknown table `[kubernets]`: did you mean `[kubernetes]`?"),
        (
            "\n[kubernets.clusters.a]\nca = \"x\"\n",
            "line 2: unknown table `[kubernets]`: did you mean `[kubernetes]`?",
        ),
        (
            "[guards]\nshard_removal = 5\n",
            "line 2: unknown key `guards.shard_removal`: did you mean `shard_removals`?",
        ),
        (
            "[graphql]\nserver = \"x\"\ntokne = \"s3cret\"\n",
            "line 3: unknown key `graphql.tokne`: did you mean `token`?",
        ),
        ("[vault]\nserver = \"x\"\ntoken = 5318008\n", "line 3: `vault.token` must be a string (secret)"),
        ("vault = \"s3cret\"\n", "line 1: `vault` must be a table"),
        ("[templates]\ngithub_token = \"s3cret\"\n", "line 2: `templates.github_token` must be a table"),
    ] {
        let (code, printed) = dry_run_with(&scratch, config);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(&format!("error: `conf/config.toml`, {expect}")), "{printed}");
        assert!(!printed.contains("s3cret") && !printed.contains("5318008"), "{printed}");
    }
}

#[test]
fn a_configuration_of_the_peer_is_accepted() {
    let scratch = operator_fixture();
    let config = "debug = true\n[sandbox]\ndirectory = \"sandbox\"\n[smtp]\nserver = \"x\"\nport = 25\n[qontract-api]\nserver = \"x\"\ntoken = \"y\"\n[app-sre.creds.forge]\ntoken = \"z\"\n[vault-dev]\nserver = \"x\"\n[integration.forge]\ntoken = \"t\"\n";
    let (code, printed) = dry_run_with(&scratch, config);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_missing_configuration_is_a_usage_error() {
    let scratch = operator_fixture();
    let output = run_with(scratch.path(), &[], &[&DRY[..], &["nope.toml"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: cannot read `nope.toml`: No such file"), "{}", stderr(&output));
    scratch.write("broken.toml", "[guards\n");
    let output = run_with(scratch.path(), &[], &["integrations", "--config", "broken.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("`broken.toml`, line 1: "), "{}", stderr(&output));
}

#[test]
fn paths_are_relative_to_the_configuration_file_and_errors_name_the_key() {
    let scratch = operator_fixture();
    let (code, printed) = dry_run_with(&scratch, "[sandbox]\ndirectory = \"own\"\n");
    assert_eq!(code, Some(0), "{printed}");
    let words = [
        "reconcile",
        "openshift-namespaces",
        "--data",
        "repo",
        "--runs",
        "runs",
        "--config",
        "conf/config.toml",
    ];
    let real = run_with(scratch.path(), &[], &words);
    assert!(real.status.success(), "{}", stderr(&real));
    assert!(scratch.path().join("conf/own/clusters").is_dir() && !scratch.path().join("own").exists());
    for (config, expect) in [
        (
            "[kubernetes]\nca = \"ca.pem\"\n",
            "is not configured correctly: `kubernetes.ca`: cannot read `conf/ca.pem`: No such file",
        ),
        (
            "[kubernetes.clusters.cliffs-stage]\nca = \"config.toml\"\n",
            "is not configured correctly: `kubernetes.clusters.cliffs-stage.ca`: `conf/config.toml` has no PEM certificate",
        ),
        (
            "[kubernetes.clusters.cliffs-stage]\nkubeconfig = \"kc\"\n",
            "is not configured correctly: `kubernetes.clusters.cliffs-stage.kubeconfig`: cannot read `conf/kc`: No such file",
        ),
        (
            "[kubernetes.clusters.cliffs-stage]\ncontext = \"a\"\n",
            "is not configured correctly: `kubernetes.clusters.cliffs-stage.context` is set, but",
        ),
    ] {
        scratch.write("conf/config.toml", config);
        let words = [&DRY[..], &["conf/config.toml", "--runs", "runs"]].concat();
        let output = run_with(scratch.path(), &[], &words);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert_eq!(output.status.code(), Some(1), "an error of the cluster: {printed}");
        assert!(printed.contains(expect), "{printed}");
    }
}

#[test]
fn a_cluster_that_the_data_does_not_have_is_a_warning_with_the_nearest() {
    let scratch = operator_fixture();
    let (code, printed) =
        dry_run_with(&scratch, "[kubernetes.clusters.clifs-stage]\nrequests_per_second = 5\n");
    let expect = "warning: `[kubernetes.clusters.clifs-stage]`: the data has no cluster `clifs-stage`; did you mean `cliffs-stage`?";
    assert!(printed.contains(expect), "{code:?} {printed}");
}

#[test]
fn every_wrong_key_has_a_row() {
    let scratch = operator_fixture();
    scratch.write("config.toml", "[guards]\nkeyz = 1\nwindow_hour = 2\n[promtool]\npth = \"x\"\n");
    let (code, rows) = rows(scratch.path(), &["--config", "config.toml"]);
    assert_eq!(code, 1);
    let wrong = |line: usize, rest: &str| format!("failed configuration: `config.toml`, line {line}: {rest}");
    assert_eq!(
        rows,
        [
            wrong(2, "unknown key `guards.keyz`: did you mean `keys`?"),
            wrong(3, "unknown key `guards.window_hour`: did you mean `window_hours`?"),
            wrong(5, "unknown key `promtool.pth`: did you mean `path`?"),
        ]
    );
}

#[test]
fn the_removal_ledger_is_checked() {
    let scratch = operator_fixture();
    let ledger = || {
        let arguments = ["--data", "repo", "--runs", "fresh"];
        let (_, rows) = rows(scratch.path(), &arguments);
        rows.into_iter().find(|row| row.contains("removal ledger: ")).unwrap()
    };
    assert!(ledger().starts_with("warning removal ledger: "), "{}", ledger());
    assert!(ledger().ends_with("nothing is removed without approval"), "{}", ledger());
    let init = run_with(scratch.path(), &[], &["journal", "init", "--runs", "fresh"]);
    assert!(init.status.success(), "{}", stderr(&init));
    assert_eq!(ledger(), "ok removal ledger: fresh/journal, 0 integrations");
    scratch.write("fresh/journal/format.blob", "{\"truncated");
    assert!(ledger().starts_with("failed removal ledger: "), "{}", ledger());
    // A sandbox has a ledger of its own, and a new one needs no initialisation.
    scratch.write("config.toml", "[sandbox]\ndirectory = \"sandbox\"\n");
    let (_, rows) = rows(scratch.path(), &["--data", "repo", "--config", "config.toml"]);
    has(&rows, "ok removal ledger: sandbox/journal, created with the first write");
}
