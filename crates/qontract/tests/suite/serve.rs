//! Tests of `serve` and `qontract-server` as processes, with common clients.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::running::Running;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, example, tool, vectors};
use rustix::process::Signal;

const BINARY: &str = env!("CARGO_BIN_EXE_qontract");

/// A server on its own port, and its address.
fn serve(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (Running, String) {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(arguments).args(["--listen", "127.0.0.1:0"]);
    command.envs(environment.iter().copied());
    let mut server = if arguments[0] == "peer" {
        Running::with_log_on_stdout(&mut command)
    } else {
        Running::of(&mut command)
    };
    let line = server.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (server, address)
}

/// The status and the body of the response.
fn get(address: &str, path: &str) -> (u16, String) {
    let answer = crate::support::running::get(address, path);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn vector(name: &str) -> String {
    vectors().join(name).display().to_string()
}

fn sha(name: &str) -> String {
    qontract_bundle::Sha256::of(&std::fs::read(vectors().join(name)).unwrap()).to_string()
}

#[test]
fn bundles_are_served_by_their_shas() {
    let (server, address) = serve(
        &vectors(),
        &[
            "serve",
            "--bundle",
            &vector("bundle2.json"),
            "--bundle",
            &format!("fs://{}", vector("bundle.json")),
        ],
        &[],
    );
    assert_eq!(get(&address, "/sha256").1, sha("bundle.json"));
    assert_eq!(get(&address, &format!("/git-commit/{}", sha("bundle2.json"))).0, 200);
    assert_eq!(get(&address, "/healthz").0, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_changed_data_repo_is_served_unless_it_is_invalid() {
    let repo = Scratch::copy_of(&example());
    let (mut server, address) = serve(repo.path(), &["serve", "--watch"], &[]);
    let first = get(&address, "/sha256").1;
    let file = "data/products/shop/product.yml";
    let text = repo.read(file);
    repo.write(file, format!("{text}\n# a remark\n"));
    server.until("bundle loaded: ");
    let second = get(&address, "/sha256").1;
    assert_ne!(first, second);
    repo.write(file, "nonsense: [");
    server.until("; still serving bundle ");
    assert_eq!(get(&address, "/sha256").1, second);
    repo.write(file, &text);
    server.until("bundle loaded: ");
    assert_eq!(get(&address, "/sha256").1, first);
}

#[test]
fn a_data_repo_with_errors_is_not_served() {
    let repo = Scratch::copy_of(&example());
    repo.write("data/products/shop/product.yml", "nonsense: [");
    let output = Command::new(BINARY)
        .current_dir(repo.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("data/products/shop/product.yml"));
}

#[test]
fn the_peer_server_is_configured_by_environment_variables() {
    let peer = ["peer", "server"];
    let file = vector("bundle.json");
    let (_server, address) = serve(&vectors(), &peer, &[("LOAD_METHOD", "fs"), ("DATAFILES_FILE", &file)]);
    assert_eq!(get(&address, "/sha256").1, sha("bundle.json"));
    let both = format!("fs://{},fs://{file}", vector("bundle2.json"));
    let variables = [("INIT_BUNDLES", both.as_str()), ("BUNDLE_SHA_TTL", "20m")];
    let (_server, address) = serve(&vectors(), &peer, &variables);
    assert_eq!(get(&address, "/sha256").1, sha("bundle.json"));
    assert_eq!(get(&address, &format!("/git-commit/{}", sha("bundle2.json"))).0, 200);
    for (variables, printed) in [
        (vec![], "nothing to serve"),
        (vec![("LOAD_METHOD", "ftp")], "`fs` or `s3`"),
        (vec![("LOAD_METHOD", "fs")], "`DATAFILES_FILE` is not set"),
        (vec![("INIT_BUNDLES", "ftp://x")], "incorrect bundle ftp://x specified"),
    ] {
        let output = Command::new(BINARY)
            .args(peer)
            .args(["--listen", "127.0.0.1:0"])
            .envs(variables)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(printed), "{text}");
    }
}

#[test]
fn a_server_re_executes_by_the_name_that_it_was_started_with() {
    let scratch = Scratch::new();
    scratch.link("qontract-server", BINARY);
    let mut command = Command::new(scratch.path().join("qontract-server"));
    command
        .args(["--listen", "127.0.0.1:0"])
        .env("LOAD_METHOD", "fs")
        .env("DATAFILES_FILE", vector("bundle.json"));
    let mut server = Running::with_log_on_stdout(&mut command);
    server.until("Running at http://");
    let about = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", server.child.id())).unwrap();
    assert_eq!(about("comm").trim(), "qontract-server");
    assert!(about("environ").split('\0').any(|variable| variable == "MIMALLOC_PURGE_DELAY=100"));
}

#[test]
fn a_token_may_come_from_a_pipe() {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--bundle", &vector("bundle.json"), "--listen", "127.0.0.1:0"]);
    let mut server = Running::of(command.args(["--token-file", "/dev/stdin"]).stdin(Stdio::piped()));
    server.child.stdin.take().unwrap().write_all(b"secret").unwrap();
    let line = server.until("Running at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
    assert_eq!(get(address, "/sha256").0, 401);
}

fn python(script: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(tool("QONTRACT_PYTHON"))
        .arg("-")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
fn bundles_are_loaded_from_s3() {
    let aws = TestAws::start();
    aws.bucket("bundles");
    let upload = "import boto3, sys\n\
        s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', aws_access_key_id='a', aws_secret_access_key='b')\n\
        s3.upload_file(sys.argv[2], 'bundles', sys.argv[3])\n";
    let (new, old) = (vector("bundle.json"), vector("bundle2.json"));
    good(&python(upload, &[&aws.url(), &new, "latest.json"]));
    good(&python(upload, &[&aws.url(), &old, &format!("by-sha/{}.json", sha("bundle2.json"))]));
    let url = aws.url();
    let variables = [
        ("AWS_ENDPOINT_URL_S3", url.as_str()),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("LOAD_METHOD", "s3"),
        ("AWS_S3_BUCKET", "bundles"),
        ("AWS_S3_KEY", "latest.json"),
    ];
    let (_peer, address) = serve(&vectors(), &["peer", "server"], &variables);
    assert_eq!(get(&address, "/sha256").1, sha("bundle.json"));
    // A bundle that is not loaded is found in the store by its sha.
    let arguments = ["serve", "--bundle", "s3://bundles/latest.json", "--store", "s3://bundles/by-sha"];
    let (_own, address) = serve(&vectors(), &arguments, &variables);
    assert_eq!(get(&address, &format!("/git-commit/{}", sha("bundle2.json"))).0, 200);
    assert_eq!(get(&address, &format!("/git-commit/{}", sha("validate.json"))).0, 404);
    // A reload reads the bucket again; if the bucket is gone, the server keeps its bundles.
    good(&python(upload, &[&aws.url(), &old, "latest.json"]));
    let reload = |address: &str| {
        let curl = Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST"])
            .arg(format!("http://{address}/reload"))
            .output()
            .unwrap();
        good(&curl)
    };
    assert_eq!(reload(&address), "200");
    assert_eq!(get(&address, "/sha256").1, sha("bundle2.json"));
    drop(aws);
    assert_eq!(reload(&address), "503");
    assert_eq!(get(&address, "/sha256").1, sha("bundle2.json"));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn common_graphql_clients_are_served() {
    let (_server, address) = serve(&vectors(), &["serve", "--bundle", &vector("bundle.json")], &[]);
    let script = "import sys\n\
        from gql import Client, gql\n\
        from gql.transport.requests import RequestsHTTPTransport\n\
        client = Client(transport=RequestsHTTPTransport(url=sys.argv[1]), fetch_schema_from_transport=True)\n\
        query = gql('query Apps($name: String) { apps_v1(name: $name) { name } }')\n\
        query.variable_values = {'name': 'billing'}\n\
        print(client.execute(query))\n";
    let printed = good(&python(script, &[&format!("http://{address}/graphql")]));
    assert_eq!(printed.trim(), "{'apps_v1': [{'name': 'billing'}]}");
    let curl = Command::new("curl")
        .args([
            "-s",
            "--compressed",
            "-H",
            "content-type: application/json",
            "-d",
            r#"{"query": "{ apps_v1 { name } }"}"#,
        ])
        .arg(format!("http://{address}/graphqlsha/{}", sha("bundle.json")))
        .output()
        .unwrap();
    assert!(good(&curl).starts_with(r#"{"data":{"apps_v1":[{"name":"billing"},"#));
}

/// Drives a browser through the query page.
fn browse(url: &str, steps: &str) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/browser.py");
    let mut child = Command::new(tool("QONTRACT_PYTHON"))
        .arg("-B")
        .arg(script)
        .arg(tool("QONTRACT_CHROMIUM"))
        .arg(url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(steps.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
#[ignore = "needs QONTRACT_PYTHON and QONTRACT_CHROMIUM; run by `cargo xtask test`"]
fn a_browser_opens_the_page_and_runs_a_query() {
    let (_server, address) = serve(
        &vectors(),
        &["serve", "--bundle", &vector("bundle2.json"), "--bundle", &vector("bundle.json")],
        &[],
    );
    let steps = "[\"fill\", \"#query\", \"{ apps_v1 { name } }\"]\n[\"press\", \"Control+Enter\"]\n[\"wait\", \"#result\", \"billing\"]\n[\"print\", \"#status\"]\n";
    let printed = good(&browse(&format!("http://{address}/graphql"), steps));
    assert!(printed.contains("200"), "{printed}");
    // A link runs at once, at another bundle.
    let link = format!(
        "http://{address}/graphqlsha/{}#query=%7B%20teams_v1%20%7B%20name%20%7D%20%7D&run=1",
        sha("bundle2.json")
    );
    good(&browse(&link, "[\"wait\", \"#result\", \"new\"]\n"));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON and QONTRACT_CHROMIUM; run by `cargo xtask test`"]
fn the_page_prompts_for_a_token() {
    let token = [("QONTRACT_SERVER_TOKEN", "open sesame")];
    let (_server, address) = serve(&vectors(), &["serve", "--bundle", &vector("bundle.json")], &token);
    assert_eq!(get(&address, "/sha256").0, 401);
    let steps = "[\"expect\", \"401\"]\n[\"wait\", \"#status\", \"requires a token\"]\n[\"fill\", \"#token\", \"open sesame\"]\n[\"press\", \"Enter\"]\n[\"wait\", \"#result\", \"billing\"]\n";
    good(&browse(
        &format!("http://{address}/graphql#query=%7B%20apps_v1%20%7B%20name%20%7D%20%7D&run=1"),
        steps,
    ));
}
