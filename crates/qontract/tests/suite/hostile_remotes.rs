//! Hostile remote systems (S3, Vault, API servers), and hostile clients of the health listener. Their input
//! is limited, escaped and never mistaken for a valid response; the exit code shows whether a retry may help.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::bounded_output::{BoundedOutput, run};
use crate::support::loopback::{Loopback, Reply};
use crate::support::running::Running;
use qontract_testkit::{Scratch, example};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

/// Maximum number of bytes that clients may read of an endless body, with socket buffers.
const MAX_SENT: usize = 24 << 20;

/// The example with one namespace, which has these entries, in a sandbox.
fn stage(entries: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let own = "repo/data/integrations/openshift-resources.yml";
    scratch.write(own, scratch.read(own).replace("schemas:\n", "schemas:\n- /aws/account-1.yml\n"));
    let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    let text = scratch.read(namespace);
    let (text, _) = text.split_once("sharedResources:").unwrap();
    scratch.write(namespace, format!("{text}{entries}"));
    scratch.init_journal("sandbox");
    scratch.write(
        "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-stage}\n",
    );
    scratch
}

const TEMPLATE: &str = "managedResourceTypes: [ConfigMap]\nopenshiftResources:\n- {provider: resource-template, path: /x.yaml.j2}\n";

/// A template that calls a function, with these settings of `[templates]`.
fn template(scratch: &Scratch, call: &str, settings: &str) -> BoundedOutput {
    let text =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  x: \"{{{{ {call} }}}}\"\n");
    scratch.write("repo/resources/x.yaml.j2", text);
    let keys = "aws_access_key_id = \"AKIATEST\"\naws_secret_access_key = \"hush-key\"\n";
    let config = format!(
        "[templates]\nallow_s3 = [\"shop-stage/images\"]\ndeadline_seconds = 5\n{settings}\n\
         [sandbox]\ndirectory = \"sandbox\"\n[platform.aws.shop-stage]\n{keys}"
    );
    scratch.write("config.toml", config);
    run(
        scratch,
        "reconcile openshift-resources --data repo --config config.toml --runs runs --namespace-name catalog-stage",
    )
}

#[test]
fn endless_s3_responses_are_read_up_to_a_limit() {
    let scratch = stage(TEMPLATE);
    let (listing, object) = ("s3_ls('shop-stage', 'images', 'a')", "s3('shop-stage', 'images', 'a')");
    for (status, call, code, expect) in [
        ("200 OK", listing, 1, "200, with a body of more than 4194304 bytes"),
        ("200 OK", object, 1, "blob `a` has more than 4194304 bytes"),
        ("404 Not Found", listing, 1, "404, with a body of more than 65536 bytes"),
        ("404 Not Found", object, 1, "404, with a body of more than 65536 bytes"),
        ("500 Internal Server Error", listing, 75, "500, with a body of more than 65536 bytes"),
    ] {
        let server = Loopback::start(move |_| {
            let start = "<?xml version=\"1.0\"?><ListBucketResult>".to_owned();
            Reply::Endless(
                status,
                String::new(),
                start,
                "<Contents><Key>\u{202e}</Key></Contents>".to_owned(),
            )
        });
        let output = template(&scratch, call, &format!("s3_endpoint = \"{}\"\n", server.url()));
        assert_eq!(output.code, Some(code), "{status} {call}: {}", output.text);
        assert!(output.text.contains(expect), "{status} {call}: {}", output.text);
        assert!(server.sent() < MAX_SENT, "{status} {call}: {} bytes", server.sent());
    }
}

#[test]
fn an_endless_s3_listing_is_aborted() {
    let scratch = stage(TEMPLATE);
    let page = "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated>\
                <NextContinuationToken>again</NextContinuationToken></ListBucketResult>";
    let server = Loopback::start(move |_| Reply::Full("200 OK", String::new(), page.to_owned()));
    let settings = format!("s3_endpoint = \"{}\"\n", server.url());
    let output = template(&scratch, "s3_ls('shop-stage', 'images', 'a')", &settings);
    assert_eq!(output.code, Some(1), "{}", output.text);
    assert!(output.text.contains("there are too many keys"), "{}", output.text);
    assert!(server.seen().len() <= 10);
}

#[test]
fn an_s3_endpoint_has_a_scheme_a_host_and_a_port() {
    let scratch = stage(TEMPLATE);
    for (endpoint, why) in [
        ("http://127.0.0.1:1/minio", "a path is not allowed"),
        ("http://127.0.0.1:1/?a=b", "a query is not allowed"),
        ("http://127.0.0.1:1/#a", "a fragment is not allowed"),
        ("http://ann:hush@127.0.0.1:1/", "a user name or password is not allowed"),
        ("ftp://127.0.0.1:1", "the scheme must be http or https"),
        ("127.0.0.1:1", "not a URL such as `https://s3.example.com`"),
    ] {
        let settings = format!("s3_endpoint = \"{endpoint}\"\n");
        let output = template(&scratch, "s3('shop-stage', 'images', 'a')", &settings);
        assert_eq!(output.code, Some(1), "{endpoint}: {}", output.text);
        let expect = format!("`templates.s3_endpoint`: {why}");
        assert!(output.text.contains(&expect), "{endpoint}: {}", output.text);
    }
    // `serve` takes it from the environment.
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.args(["serve", "--bundle", "s3://bucket/key", "--listen", "127.0.0.1:0"]);
    let output = command.env("AWS_ENDPOINT_URL_S3", "http://ann:hush@127.0.0.1:1").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("`AWS_ENDPOINT_URL_S3`: a user name or password is not allowed"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

const SECRET: &str = "openshiftResources:\n- {provider: vault-secret, path: secret/search, version: 1}\n";

/// A run that reads a secret from this Vault, by this login.
fn vault_secret(scratch: &Scratch, server: &Loopback, login: &str) -> BoundedOutput {
    let config = format!("[sandbox]\ndirectory = \"sandbox\"\n[vault]\nserver = {:?}\n{login}", server.url());
    scratch.write("config.toml", config);
    run(
        scratch,
        "reconcile openshift-vault-secrets --data repo --config config.toml --runs runs --namespace-name catalog-stage",
    )
}

const LOGINS: [&str; 2] =
    ["token = \"hush-token\"\n", "role_id = \"hush-role\"\nsecret_id = \"hush-pass\"\n"];

#[test]
fn a_vault_that_fails_is_transient_and_one_that_is_not_vault_is_not() {
    let scratch = stage(SECRET);
    let full = |status: &'static str, body: &'static str| {
        Loopback::start(move |_| {
            let location = "location: http://127.0.0.1:1/v1/\r\n".to_owned();
            Reply::Full(status, location, body.to_owned())
        })
    };
    for login in LOGINS {
        for (server, code) in [
            (full("500 Internal Server Error", "hush-token \u{1b}[2J"), 75),
            (full("501 Not Implemented", ""), 75),
            (full("505 HTTP Version Not Supported", "<html>"), 75),
            (full("200 OK", "<html>\u{1b}]0;title\u{7}</html>"), 1),
            (full("200 OK", r#"{"auth": {"client_token": "hush\r\nx: y"}, "data": 7}"#), 1),
            (full("307 Temporary Redirect", ""), 1),
            (full("403 Forbidden", r#"{"errors": ["hush-token"]}"#), 1),
            (
                Loopback::start(|_| {
                    Reply::Endless("200 OK", String::new(), "{".to_owned(), "\"a\":1,".to_owned())
                }),
                1,
            ),
        ] {
            let output = vault_secret(&scratch, &server, login);
            assert_eq!(output.code, Some(code), "{login}: {}", output.text);
            assert!(server.sent() < MAX_SENT, "{login}: {} bytes", server.sent());
        }
    }
}

#[test]
fn a_mount_of_an_unknown_version_is_not_read() {
    let scratch = stage(SECRET);
    let server = Loopback::start(|line| {
        let body = match line {
            line if line.contains("/mounts/") => {
                json!({"data": {"path": "secret/", "type": "kv", "options": {"version": "3"}}})
            }
            line if line.contains("lookup-self") => json!({"data": {}}),
            _ => json!({"data": {"x": "hush"}}),
        };
        Reply::Full("200 OK", String::new(), body.to_string())
    });
    let output = vault_secret(&scratch, &server, LOGINS[0]);
    assert_eq!(output.code, Some(1), "{}", output.text);
    assert!(output.text.contains("its version is unknown"), "{}", output.text);
    assert!(!server.seen().concat().contains("/v1/secret"), "{:?}", server.seen());
}

/// The example, with one cluster at this address.
fn cluster_stage(url: &str, secrets: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let file = "repo/data/clusters/cliffs-stage.yml";
    let is_address = |line: &&str| line.starts_with("serverUrl:");
    let text = scratch.read(file);
    let old = text.lines().find(is_address).unwrap();
    scratch.write(file, text.replace(old, &format!("serverUrl: {url}")));
    scratch.init_journal("runs");
    scratch.write("config.toml", format!("[kubernetes]\nrequests_per_second = 400\n{secrets}"));
    scratch
}

const NAMESPACES: &str =
    "reconcile openshift-namespaces --data repo --config config.toml --runs runs --cluster-name cliffs-stage";

/// An API server that responds to lists of namespaces with `script`.
fn api_server(script: impl Fn() -> Reply + Send + Sync + 'static) -> Loopback {
    let resource = json!({"kind": "Namespace", "name": "namespaces", "namespaced": false, "verbs": ["get"]});
    let discovery = json!({"resources": [resource]});
    Loopback::start(move |line| match line.split(' ').nth(1).unwrap_or_default() {
        "/api/v1" => Reply::Full("200 OK", String::new(), discovery.to_string()),
        "/apis" => Reply::Full("200 OK", String::new(), json!({"groups": []}).to_string()),
        _ => script(),
    })
}

fn list(names: &[&str], next: &str) -> Value {
    let item = |name: &&str| {
        let annotations = json!({"qontract.integration": "openshift-namespaces"});
        json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1", "annotations": annotations}})
    };
    json!({"metadata": {"continue": next}, "items": names.iter().map(item).collect::<Vec<_>>()})
}

#[test]
fn hostile_responses_of_a_cluster_are_limited_and_escaped() {
    let huge = "\u{1b}[2J\u{202e}hello ".repeat(700_000);
    let status =
        |reason: &str, message: &str| json!({"kind": "Status", "reason": reason, "message": message});
    let cases: Vec<(&'static str, Value, i32)> = vec![
        ("200 OK", list(&["a"], "again"), 1),
        ("200 OK", list(&["a\u{1b}[2J"], ""), 1),
        ("200 OK", list(&["a\u{202e}b"], ""), 1),
        ("200 OK", list(&[&"a".repeat(1 << 20)], ""), 1),
        ("200 OK", json!({"items": "\u{1b}[2J"}), 1),
        ("200 OK", json!({"items": [{"metadata": huge}]}), 1),
        ("403 Forbidden", status("Forbidden", &huge), 1),
        ("403 Forbidden", status(&huge, ""), 1),
        ("400 Bad Request", status("BadRequest", &huge), 1),
        ("500 Internal Server Error", status("InternalError", &huge), 75),
    ];
    for (status, body, code) in cases {
        let text = body.to_string();
        let shown: String = text.chars().take(100).collect();
        let server = api_server(move || Reply::Full(status, String::new(), text.clone()));
        let scratch =
            cluster_stage(server.url(), "[platform.clusters.cliffs-stage]\ntoken = \"hush-token\"\n");
        let output = run(&scratch, NAMESPACES);
        assert_eq!(output.code, Some(code), "{status} {shown}: {}", output.text);
        assert!(server.seen().len() < 20, "{status} {shown}: {} requests", server.seen().len());
    }
}

#[test]
fn a_cluster_whose_token_is_in_a_vault_that_fails_is_transient() {
    let cluster = api_server(|| Reply::Full("200 OK", String::new(), list(&[], "").to_string()));
    let vault = Loopback::start(|_| Reply::Full("500 Internal Server Error", String::new(), String::new()));
    let secrets = format!("[vault]\nserver = {:?}\ntoken = \"hush-token\"\n", vault.url());
    let output = run(&cluster_stage(cluster.url(), &secrets), NAMESPACES);
    assert_eq!(output.code, Some(75), "{}", output.text);
    assert_eq!(cluster.seen(), [""; 0], "without a token nothing is asked");
}

/// The status of the response to a request, or 0 without a response.
fn status(address: &str, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) => std::str::from_utf8(&head[9..]).unwrap().parse().unwrap(),
        Err(_) => 0,
    }
}

#[test]
fn the_health_listener_accepts_the_same_hosts_as_a_server() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let scratch = stage("openshiftResources: []\n");
    for words in [
        "reconcile openshift-namespaces --every 1h --data repo --sandbox sandbox --runs runs --listen 127.0.0.1:0 --log-format json",
        "up repo --every 1h --sandbox other --runs up --listen 127.0.0.1:0 --log-format json",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(scratch.path()).args(words.split(' '));
        let mut running = if words.starts_with("up") {
            Running::with_log_on_stdout(&mut command)
        } else {
            Running::of(&mut command)
        };
        let line = running.until("listening on");
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        let reading = running.drain();
        let get = |host: &str| format!("GET /healthz HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        for (host, expect) in [
            ("host: localhost\r\n", 200),
            ("host: 127.0.0.1:1\r\n", 200),
            ("host: evil.example\r\n", 421),
            ("host: localhost\r\nhost: localhost\r\n", 400),
            ("", 400),
            ("host: localhost\r\nexpect: 200-ok\r\n", 417),
        ] {
            assert_eq!(status(&address, &get(host)), expect, "{words}: {host:?}");
        }
        // One flood is enough: both commands use the same listener.
        let flood = if words.starts_with("up") { 0 } else { 1024 };
        // An incomplete head, and an incomplete body.
        let halves = [
            "GET /healthz HTTP/1.1\r\nhost: ",
            "POST /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx",
        ];
        let begin = |number: usize| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(halves[number % 2].as_bytes()).unwrap();
            stream
        };
        let mut held: Vec<TcpStream> = (0..flood).map(begin).collect();
        for part in 0..4 {
            assert_eq!(status(&address, &get("host: localhost\r\n")), 200, "{words}");
            for (number, stream) in held.iter_mut().enumerate().skip(part * 64).take(64) {
                *stream = begin(number);
            }
        }
        let mut metrics = TcpStream::connect(&address).unwrap();
        metrics.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        metrics.read_to_string(&mut text).unwrap();
        assert!(text.contains("# EOF"), "{words}: {text}");
        drop((held, running));
        reading.join().unwrap();
    }
}
