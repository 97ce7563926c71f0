//! Tests through the binary of what an integration declares for its command line: arguments, short options,
//! environment variables, slots by a dimension, optional queries; and of runs that are restricted to some shards.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::{BodyFraming, Loopback, Reply, Scratch, eventually};
use qontract_testserver::DataServer;
use rustix::process::Signal;
use serde_json::Value;

/// A program whose shards are the files in `declare.json`, and whose target is the directory `world`. Applying the step
/// of `x` runs the file `x.sh`.
const PROGRAM: &str = r#"
mkdir -p world
case $1 in
describe) cat describe.json ;;
declare) cat > declare-request.json; cat declare.json ;;
plan)
    app=$(sed 's/.*\["app","\([a-z]*\)"\].*/\1/')
    echo "$app" >> planned
    if [ -e "world/$app" ]; then echo "{\"scopes\": [{\"scope\": [[\"app\", \"$app\"]], \"count\": 1}]}"; exit; fi
    echo "{\"scopes\": [{\"scope\": [[\"app\", \"$app\"]]}], \"groups\": [{\"steps\": [{\"action\": \"$app\", \"changes\": [
        {\"kind\": \"add\", \"thing\": {\"scope\": [[\"app\", \"$app\"]], \"kind\": \"card\", \"name\": \"$app\"}, \"what\": \"write card\"}]}]}]}" ;;
apply)
    app=$(sed 's/.*"action":"\([a-z]*\)".*/\1/')
    if [ -e "$app.sh" ]; then . "./$app.sh"; fi
    echo done > "world/$app"; echo '{}' ;;
esac
"#;

const DESCRIBE: &str = r#"{"name": "service-dependencies", "description": "writes cards", "sandbox": true, "slots_by": "team",
    "queries": [{"name": "Apps", "text": "query Apps { apps_v1 { name } }"},
        {"name": "Windows", "text": "query Windows { windows_v1 { name } }", "if_known": true}],
    "flags": [
        {"name": "ref", "short": "r", "help": "A ref of an environment"},
        {"name": "app-name", "dimension": "app", "variable": "APP_NAME"},
        {"name": "project", "argument": "required", "variable": "PROJECT", "help": "The project"},
        {"name": "merge-request", "argument": "optional"}]}"#;

const DECLARE: &str = r#"{"shards": [
    {"key": [["team", "red"], ["app", "one"]], "state": 1},
    {"key": [["team", "red"], ["app", "two"]], "state": 2},
    {"key": [["team", "blue"], ["app", "three"]], "state": 3}]}"#;

fn fixture() -> Scratch {
    let scratch = operator_fixture();
    scratch.write("program.sh", PROGRAM);
    scratch.write("describe.json", DESCRIBE);
    scratch.write("declare.json", DECLARE);
    scratch.write(
        "config.toml",
        "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\nenvironment = [\"APP_NAME\", \"PROJECT\"]\n",
    );
    scratch
}

const RUN: [&str; 8] =
    ["reconcile", "service-dependencies", "--data", "repo", "--config", "config.toml", "--runs", "runs"];

fn reconcile(scratch: &Scratch, variables: &[(&str, &str)], more: &[&str]) -> (i32, String) {
    shown(&run_with(scratch.path(), variables, &[&RUN[..], more].concat()))
}

fn shown(output: &Output) -> (i32, String) {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output));
    (output.status.code().unwrap_or(-1), text)
}

/// The options that the program got.
fn options(scratch: &Scratch) -> Value {
    let request: Value = serde_json::from_str(&scratch.read("declare-request.json")).unwrap();
    request["options"].clone()
}

fn world(scratch: &Scratch) -> Vec<String> {
    let folder = std::fs::read_dir(scratch.path().join("world")).unwrap();
    let mut names: Vec<String> =
        folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn record(scratch: &Scratch) -> Value {
    let output = run_with(scratch.path(), &[], &["runs", "show", "last", "--runs", "runs", "-o", "json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn arguments_short_options_and_variables_reach_the_program_in_this_order() {
    let scratch = fixture();
    let line = ["-r", "stage=abc", "shop", "17", "-rprod=def", "--dry-run"];
    let (code, text) = reconcile(&scratch, &[("PROJECT", "ignored")], &line);
    assert_eq!(code, 0, "{text}");
    let expect =
        serde_json::json!({"ref": ["stage=abc", "prod=def"], "project": ["shop"], "merge-request": ["17"]});
    assert_eq!(options(&scratch), expect);

    let variables = [("PROJECT", "forge"), ("APP_NAME", "one two")];
    let (code, text) = reconcile(&scratch, &variables, &["--dry-run"]);
    assert_eq!((code, text.contains("`project` comes from `$PROJECT`")), (0, true), "{text}");
    assert_eq!(options(&scratch), serde_json::json!({"app-name": ["one", "two"], "project": ["forge"]}));
    assert!(text.contains("2 to add"), "{text}");

    // The words of `run-integration` are parsed in the same way.
    let variables = [
        ("INTEGRATION_NAME", "service-dependencies"),
        ("INTEGRATION_EXTRA_ARGS", "-r 'a=b c' --data repo --runs runs shop"),
        ("CONFIG", "config.toml"),
        ("DRY_RUN", "--dry-run"),
        ("RUN_ONCE", "true"),
        ("PROMETHEUS_PORT", "0"),
        ("APP_NAME", "three"),
    ];
    let (code, text) = shown(&run_with(scratch.path(), &variables, &["peer", "run-integration"]));
    assert_eq!(code, 0, "{text}");
    let expect = serde_json::json!({"ref": ["a=b c"], "project": ["shop"], "app-name": ["three"]});
    assert_eq!(options(&scratch), expect);
}

#[test]
fn mistakes_on_the_command_line_and_in_variables_are_named() {
    let scratch = fixture();
    let check = |variables: &[(&str, &str)], more: &[&str], expect: &str| {
        let (code, text) = reconcile(&scratch, variables, more);
        assert_eq!((code, text.contains(expect)), (2, true), "{expect}: {text}");
    };
    check(&[], &[], "the argument `PROJECT` is missing and `$PROJECT` is not set");
    check(&[], &["shop", "--app-nam", "one"], "a similar argument exists: '--app-name'");
    check(&[], &["shop", "17", "18"], "unexpected argument '18'");
    check(
        &[("APP_NAME", "thre")],
        &["shop"],
        "`--app-name thre` from `$APP_NAME` matches nothing in the data; did you mean `three`?",
    );
    let (_, help) = reconcile(&scratch, &[("PROJECT", "private")], &["--help"]);
    for line in ["[PROJECT] [MERGE_REQUEST]", "-r, --ref <VALUE>", "[env: APP_NAME]"] {
        assert!(help.contains(line) && !help.contains("private"), "{line}: {help}");
    }
    // A program does not choose what it sees of the environment.
    scratch.write("describe.json", DESCRIBE.replace("\"PROJECT\"", "\"HOME\""));
    let (code, text) = reconcile(&scratch, &[], &["shop"]);
    assert_eq!(code, 2, "{text}");
    let expect = "the flag `project` takes its value from `HOME`, which is not in its `environment`";
    let output = run_with(scratch.path(), &[], &["integrations", "--config", "config.toml"]);
    assert!(stderr(&output).contains(expect), "{}", stderr(&output));
}

#[test]
fn an_integration_that_needs_an_argument_is_not_planned() {
    let scratch = fixture();
    let words = [
        "plan",
        "repo",
        "repo",
        "--all",
        "--config",
        "config.toml",
        "--sandbox",
        "sandbox",
        "--runs",
        "runs",
    ];
    let (_, text) = shown(&run_with(scratch.path(), &[], &words));
    assert!(text.contains("`service-dependencies` needs the argument `PROJECT`"), "{text}");
    let (_, text) = shown(&run_with(scratch.path(), &[("PROJECT", "shop")], &words));
    assert!(!text.contains("needs the argument"), "{text}");
}

#[test]
fn shards_of_one_team_run_in_one_process() {
    let scratch = fixture();
    let slot = |key: &str| {
        let words = ["shards", "of", key, "--shards", "2", "--integration", "service-dependencies"];
        let output = run_with(scratch.path(), &[], &[&words[..], &["--config", "config.toml"]].concat());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let red = slot("team=red,app=one");
    assert_eq!((slot("team=red,app=two"), red.len()), (red.clone(), 1));
    let plain = run_with(scratch.path(), &[], &["shards", "of", "red", "--shards", "2"]);
    assert_eq!(String::from_utf8_lossy(&plain.stdout).trim(), red);
    let (code, text) = reconcile(&scratch, &[], &["shop", "--shards", "2", "--shard-id", &red]);
    assert_eq!(code, 0, "{text}");
    let there = world(&scratch);
    assert!(there.contains(&"one".to_owned()) && there.contains(&"two".to_owned()), "{there:?}");
    // The rest, and then nothing is left to do.
    assert_eq!(reconcile(&scratch, &[], &["shop"]).0, 0);
    assert_eq!(world(&scratch), ["one", "three", "two"]);
    assert!(reconcile(&scratch, &[], &["shop"]).1.contains("nothing to change"));
}

#[test]
fn a_restricted_run_that_is_killed_is_completed_by_the_next_one() {
    let scratch = fixture();
    let only = ["shop", "--shard", "team=red,app=one", "--shard", "team=blue, app=three"];
    let (code, text) = reconcile(&scratch, &[], &["shop", "--shard", "team=red,app=onne"]);
    let expect = "no shard `team=red, app=onne` in the data; did you mean `team=red, app=one`?";
    assert_eq!((code, text.contains(expect)), (2, true), "{text}");

    // The process is killed while it applies a step of the restricted run.
    scratch.write("one.sh", "echo > started; sleep 600");
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).args([&RUN[..], &only].concat()).env("HOME", scratch.path());
    command.env("GIT_CEILING_DIRECTORIES", scratch.path().parent().unwrap());
    let running = Running::of(&mut command);
    eventually("the step starts", || scratch.path().join("started").exists().then_some(()));
    running.signal(Signal::KILL);
    drop(running);
    std::fs::remove_file(scratch.path().join("one.sh")).unwrap();

    // What the killed run did not reach is not known, so its failed shards are not either.
    scratch.write("planned", "");
    let (code, text) = reconcile(&scratch, &[], &only);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("did not finish"), "{text}");
    assert_eq!(world(&scratch), ["one", "three"]);
    assert!(!scratch.read("planned").contains("two"), "the other shard is not observed");
    let keys = serde_json::json!(["team=blue, app=three", "team=red, app=one"]);
    assert_eq!(record(&scratch)["only_shards"], keys);

    // The full run does the rest, and the next one has nothing to do.
    assert_eq!(reconcile(&scratch, &[], &["shop"]).0, 0);
    assert_eq!(world(&scratch), ["one", "three", "two"]);
    let (code, text) = reconcile(&scratch, &[], &["shop"]);
    assert_eq!((code, text.contains("nothing to change")), (0, true), "{text}");
    // A loop always runs all shards.
    let (code, text) = reconcile(&scratch, &[], &["shop", "--shard", "all", "--every", "1m"]);
    assert_eq!((code, text.contains("cannot be used with")), (2, true), "{text}");
}

#[test]
fn only_the_shards_that_failed_run_again() {
    let scratch = fixture();
    scratch.write("two.sh", "exit 1");
    assert_eq!(reconcile(&scratch, &[], &["shop"]).0, 1);
    assert_eq!(world(&scratch), ["one", "three"]);
    std::fs::remove_file(scratch.path().join("two.sh")).unwrap();
    scratch.write("planned", "");
    let (code, text) = reconcile(&scratch, &[], &["shop", "--failed-of", "last"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!((scratch.read("planned").as_str(), world(&scratch).len()), ("two\n", 3), "{text}");
    let (code, text) = reconcile(&scratch, &[], &["shop", "--failed-of", "last"]);
    assert_eq!((code, text.contains("has no failed shards")), (2, true), "{text}");
    assert!(reconcile(&scratch, &[], &["shop"]).1.contains("nothing to change"));
}

#[test]
fn a_query_that_the_data_does_not_know_has_no_result_also_on_a_server() {
    let scratch = fixture();
    let answers = |scratch: &Scratch| {
        let request: Value = serde_json::from_str(&scratch.read("declare-request.json")).unwrap();
        (request["answers"]["Apps"].is_object(), request["answers"]["Windows"].clone())
    };
    assert_eq!(reconcile(&scratch, &[], &["shop", "--dry-run"]).0, 0);
    assert_eq!(answers(&scratch), (true, Value::Null));

    let server = DataServer::with_token("Basic abc");
    server.load(
        &run_with(&scratch.path().join("repo"), &[], &["bundle", ".", "--no-validate", "-o", "-"]).stdout,
    );
    let config = scratch.read("config.toml");
    scratch.write(
        "remote.toml",
        format!("{config}[graphql]\nserver = {:?}\ntoken = \"Basic abc\"\n", server.url()),
    );
    std::fs::remove_file(scratch.path().join("declare-request.json")).unwrap();
    let words = [
        "reconcile",
        "service-dependencies",
        "shop",
        "--dry-run",
        "--config",
        "remote.toml",
        "--runs",
        "runs",
    ];
    let (code, text) = shown(&run_with(scratch.path(), &[], &words));
    assert_eq!(code, 0, "{text}");
    assert_eq!(answers(&scratch), (true, Value::Null));

    // A field that is misspelt in a query that is not optional stays an error.
    scratch.write("describe.json", DESCRIBE.replace("apps_v1 { name }", "apps_v1 { nam }"));
    let (code, text) = shown(&run_with(scratch.path(), &[], &words));
    assert_eq!((code, text.contains("Cannot query field")), (1, true), "{text}");
}

/// The reply to some requests, while there is one.
type InjectedReply = Arc<Mutex<Option<fn() -> Reply>>>;

/// Forwards requests to a data server, except those that contain `windows_v1`, which have this reply.
fn faulty_proxy(server: &DataServer, fault: InjectedReply) -> Loopback {
    let target = server.url().trim_start_matches("http://").trim_end_matches("/graphql").to_owned();
    Loopback::with_bodies(move |request| {
        let is_optional = String::from_utf8_lossy(&request.body).contains("windows_v1");
        if let Some(reply) = fault.lock().unwrap().filter(|_| is_optional) {
            return reply();
        }
        let (line, length) = (&request.line, request.body.len());
        let mut stream = TcpStream::connect(&target).unwrap();
        write!(stream, "{line}\r\nhost: {target}\r\ncontent-type: application/json\r\n").unwrap();
        write!(stream, "content-length: {length}\r\nconnection: close\r\n\r\n").unwrap();
        stream.write_all(&request.body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = match head.split(' ').nth(1) {
            Some("200") => "200 OK",
            Some("400") => "400 Bad Request",
            _ => "404 Not Found",
        };
        Reply::Full(status, "content-type: application/json\r\n".to_owned(), body.to_owned())
    })
}

/// A run on a server that does not answer an optional query, and the runs after it has recovered.
fn check_unanswered_query(reply: fn() -> Reply) {
    let scratch = fixture();
    let server = DataServer::start();
    server.load(
        &run_with(&scratch.path().join("repo"), &[], &["bundle", ".", "--no-validate", "-o", "-"]).stdout,
    );
    let fault = Arc::new(Mutex::new(Some(reply)));
    let proxy = faulty_proxy(&server, Arc::clone(&fault));
    let config = scratch.read("config.toml");
    scratch.write("remote.toml", format!("{config}[graphql]\nserver = \"{}/graphql\"\n", proxy.url()));
    let run = || {
        let words =
            ["reconcile", "service-dependencies", "shop", "--config", "remote.toml", "--runs", "runs"];
        shown(&run_with(scratch.path(), &[], &words))
    };
    let (code, text) = run();
    assert_eq!(code, 75, "{text}");
    assert!(!scratch.path().join("declare-request.json").exists(), "the program is not started: {text}");
    *fault.lock().unwrap() = None;
    let (code, text) = run();
    assert_eq!(code, 0, "{text}");
    let request: Value = serde_json::from_str(&scratch.read("declare-request.json")).unwrap();
    assert_eq!(request["answers"]["Windows"], Value::Null, "{request}");
    let (code, text) = run();
    assert_eq!((code, text.contains("nothing to change")), (0, true), "{text}");
}

#[test]
fn an_optional_query_that_the_server_does_not_answer_is_not_taken_for_an_unknown_one() {
    let faults: [fn() -> Reply; 2] = [
        || Reply::Full("503 Service Unavailable", String::new(), String::new()),
        || Reply::Half("200 OK", r#"{"data": {"windows_v1": []}}"#.to_owned(), BodyFraming::Length),
    ];
    // Concurrently, because each run repeats the request for some seconds.
    std::thread::scope(|scope| {
        for reply in faults {
            scope.spawn(move || check_unanswered_query(reply));
        }
    });
}
