//! Tests of the first hour of a new user: checks of programs, lists for scripts, server messages, pages,
//! colours.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::loopback::{Loopback, Reply};
use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::Scratch;
use serde_json::Value;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The rows of `config check`, each as `STATUS CHECK: DETAIL`, and the exit code.
fn check(folder: &Path, more: &[&str]) -> (i32, Vec<String>) {
    let words = [&["config", "check", "--config", "config.toml", "-o", "json"], more].concat();
    let output = run_with(folder, &[("SET", "1")], &words);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
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

/// A configuration with one program.
fn program(name: &str, command: &str, more: &str) -> Scratch {
    let scratch = operator_fixture();
    scratch.write(
        "config.toml",
        format!("[sandbox]\ndirectory = \"box\"\n[integrations.{name}]\ncommand = {command}\n{more}"),
    );
    scratch
}

const DESCRIBE: &str = r#"echo '{"name": "cards", "description": "keeps cards", "sandbox": true}'"#;

#[test]
fn a_path_in_a_command_is_relative_to_the_configuration_file_if_it_exists_there() {
    let scratch = operator_fixture();
    scratch.write("conf/config.toml", "[integrations.cards]\ncommand = [\"sh\", \"programs/cards.sh\"]\n");
    let has_program = || {
        let words = ["config", "check", "--config", "conf/config.toml", "--data", "repo"];
        let output = run_with(scratch.path(), &[], &words);
        (stdout(&output) + &stderr(&output)).contains("responds to `describe`")
    };
    assert!(!has_program());
    for folder in ["programs", "conf/programs"] {
        let file = format!("{folder}/cards.sh");
        scratch.write(&file, format!("{DESCRIBE}\n"));
        assert!(has_program(), "{folder}");
        std::fs::remove_file(scratch.path().join(&file)).unwrap();
    }
}

#[test]
fn a_program_without_a_path_is_found_on_path_or_beside_the_configuration_file() {
    let scratch = operator_fixture();
    let check = |command: &str| {
        let config = format!("[foreign.fk]\ncommand = [\"{command}\"]\n");
        scratch.write("conf/config.toml", config);
        let words = ["config", "check", "--config", "conf/config.toml", "--data", "repo"];
        let output = run_with(scratch.path(), &[], &words);
        stdout(&output) + &stderr(&output)
    };
    let text = check("fk.sh");
    assert!(text.contains("`fk.sh`: found neither on PATH nor beside the configuration file"), "{text}");
    for name in ["fk.sh", "true"] {
        let file = scratch.write(&format!("conf/{name}"), "#!/bin/sh\n");
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let text = check("fk.sh");
    assert!(text.contains("conf/fk.sh` exists"), "{text}");
    assert!(check("true").contains("`true` exists"), "a program on PATH has priority");
}

#[test]
fn config_check_runs_describe_of_every_program() {
    let scratch = program("cards", "[\"sh\", \"cards.sh\"]", "environment = [\"SET\", \"UNSET\"]\n");
    scratch.write("cards.sh", format!("[ \"$1\" = describe ] || echo $1 >> other-phases\n{DESCRIBE}\n"));
    let (code, rows) = check(scratch.path(), &["--data", "repo"]);
    assert_eq!(code, 0, "{rows:#?}");
    has(&rows, "ok integration cards: `sh cards.sh` responds to `describe`");
    has(
        &rows,
        "warning integration cards: `$UNSET` is not set, but `integrations.cards.environment` lists it",
    );
    has(&rows, "warning integration cards: the data does not define it: runs end with exit code 4");
    assert!(!rows.iter().any(|row| row.contains("`$SET`")), "{rows:#?}");
    assert!(!scratch.path().join("other-phases").exists(), "no other phase is run");
    let (_, rows) = check(scratch.path(), &[]);
    assert!(!rows.iter().any(|row| row.contains("does not define it")), "without data it is not known");
}

#[test]
fn config_check_reports_errors_of_a_program() {
    for (command, script, expect) in [
        ("[]", "", "failed integration cards: `integrations.cards.command` is empty"),
        (
            "[\"no-such-program\"]",
            "",
            "failed integration cards: `no-such-program`: found neither on PATH nor beside the configuration file",
        ),
        ("[\"./nowhere.sh\"]", "", "failed integration cards: `./nowhere.sh`: no such file"),
        ("[\"./cards.sh\"]", "", "failed integration cards: `./cards.sh`: not an executable file"),
        (
            "[\"sh\", \"cards.sh\"]",
            "echo 'no module named yaml' >&2; exit 3",
            "failed integration cards: `describe` of `cards` (`sh cards.sh`) failed (exit status: 3): no module named yaml",
        ),
        (
            "[\"sh\", \"cards.sh\"]",
            "echo hello",
            "failed integration cards: the response to `describe` of `cards` (`sh cards.sh`) is not JSON",
        ),
        (
            "[\"sh\", \"cards.sh\"]",
            "echo '{\"name\": \"other\", \"description\": \"\"}'",
            "failed integration cards: the program registered as `cards` describes itself as `other`",
        ),
        (
            "[\"sh\", \"cards.sh\"]",
            "echo '{\"name\": \"cards\", \"description\": \"\"}'",
            "failed integration cards: its program does not support a sandbox, and `[sandbox]` is set",
        ),
    ] {
        let scratch = program("cards", command, "");
        scratch.write("cards.sh", format!("{script}\n"));
        let (code, rows) = check(scratch.path(), &[]);
        assert_eq!(code, 1, "{rows:#?}");
        has(&rows, expect);
    }
    let scratch = program("cards", "[\"true\"]", "enviroment = []\n");
    let (code, rows) = check(scratch.path(), &[]);
    assert_eq!(code, 1);
    has(
        &rows,
        "failed configuration: `config.toml`, line 5: unknown key `integrations.cards.enviroment`: did you mean `environment`?",
    );
}

/// The content of a documentation page.
fn page(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    std::fs::read_to_string(Path::new(root).join(name)).unwrap()
}

#[test]
fn the_smallest_program_of_the_page_works_as_written() {
    let page = page("specs/process-integration.md");
    let (_, start) = page.split_once("## Start here").unwrap();
    let (start, _) = start.split_once("\n## ").unwrap();
    let blocks: Vec<(&str, &str)> =
        start.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    let [("sh", program), ("toml", config), ("console", command)] = blocks[..] else { panic!("{blocks:?}") };
    assert_eq!(program.lines().count(), 1);
    let scratch = Scratch::new();
    scratch.write("hello.sh", format!("{program}\n"));
    scratch.write("config.toml", format!("{config}\n"));
    let words: Vec<&str> = command.strip_prefix("qontract ").unwrap().split(' ').collect();
    let output = run_with(scratch.path(), &[], &words);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("ok       integration hello"), "{text}");
    let output =
        run_with(scratch.path(), &[], &["integrations", "list", "--config", "config.toml", "-o", "name"]);
    assert!(stdout(&output).lines().any(|line| line == "hello"), "{}", stdout(&output));
}

#[test]
fn integrations_are_listed_for_scripts() {
    let scratch = program("cards", "[\"sh\", \"cards.sh\"]", "");
    scratch.write("cards.sh", format!("{DESCRIBE}\n"));
    let run = |words: &[&str]| {
        let words = [&["integrations"], words, &["--config", "config.toml"]].concat();
        let output = run_with(scratch.path(), &[], &words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let text = run(&[]);
    assert_eq!(run(&["list"]), text);
    let names: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(names.contains(&"cards") && names.contains(&"openshift-namespaces"), "{text}");
    assert_eq!(run(&["list", "-o", "name"]).lines().collect::<Vec<_>>(), names);
    assert_eq!(run(&["-o", "name"]), run(&["list", "-o", "name"]));
    let list: Value = serde_json::from_str(&run(&["list", "-o", "json"])).unwrap();
    let of = |name: &str| list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!(list.as_array().unwrap().len(), names.len());
    assert_eq!(
        (of("cards")["form"].as_str(), of("cards")["description"].as_str()),
        (Some("process"), Some("keeps cards"))
    );
    assert_eq!(of("openshift-namespaces")["form"], "built-in");
    let flags = of("openshift-namespaces")["flags"].clone();
    let cluster =
        flags.as_array().unwrap().iter().find(|flag| flag["name"] == "cluster-name").unwrap().clone();
    assert_eq!(cluster["selects"], "cluster");
    let output =
        run_with(scratch.path(), &[], &["integrations", "-o", "json", "schemas", "openshift-namespaces"]);
    assert_eq!(output.status.code(), Some(2), "a format of the list is none of the schemas");
}

#[test]
fn help_lists_every_location_of_the_configuration() {
    let scratch = Scratch::new();
    let help = |words: &[&str]| {
        let text = stdout(&run_with(scratch.path(), &[], words));
        let (_, text) = text.split_once("--config <FILE>").unwrap_or_else(|| panic!("{words:?}: {text}"));
        // The text of the option, up to the next one, in one line.
        let lines = text.lines().take_while(|line| !line.trim_start().starts_with('-'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    };
    let places = ["`./qontract.toml`", "`$XDG_CONFIG_HOME/qontract/config.toml`", "`$QONTRACT_CONFIG`"];
    for (words, are_read) in [
        (&["reconcile", "--help"][..], true),
        (&["plan", "--help"], true),
        (&["affected", "--help"], true),
        (&["integrations", "--help"], true),
        (&["config", "check", "--help"], true),
        (&["up", "--help"], false),
        (&["peer", "reconcile", "--help"], false),
    ] {
        let text = help(words);
        assert!(places.iter().all(|place| text.contains(place)), "{words:?}: {text}");
        assert_eq!(text.contains("are not read"), !are_read, "{words:?}: {text}");
    }
}

#[test]
fn unusable_serve_arguments_are_a_usage_error_of_one_line() {
    let scratch = Scratch::new();
    for (words, expect) in [
        (&["serve", "/nonexistent"][..], "error: `/nonexistent` is not a directory\n"),
        (&["serve", "--bundle", "nowhere.json"], "error: `nowhere.json` is not a file\n"),
        (&["serve", "--bundle", "fs://nowhere.json"], "error: `fs://nowhere.json` is not a file\n"),
    ] {
        let output = run_with(scratch.path(), &[], words);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), expect));
    }
}

#[test]
fn a_browser_gets_the_query_page() {
    let scratch = operator_fixture();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let words = ["serve", "repo", "--listen", "127.0.0.1:0"];
    let mut running = crate::support::running::Running::of(command.current_dir(scratch.path()).args(words));
    let line = running.until("http://127.0.0.1:");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    let get = |path: &str, accept: &str| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for accept in [browser, "text/html"] {
        let answer = get("/graphql", accept);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<title>"), "{accept}: {answer}");
        let answer = get("/", accept);
        let location = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("location:"));
        assert!(answer.starts_with("HTTP/1.1 302") && location.unwrap().ends_with("/graphql"), "{answer}");
    }
    assert!(get("/graphql", "application/json").starts_with("HTTP/1.1 400"), "a program gets JSON");
}

#[test]
fn colours_of_explain_and_get_follow_the_common_rules() {
    let scratch = operator_fixture();
    for (words, styled) in [
        (&["explain", "Q2041"][..], "\u{1b}[1;31merror[Q2041]\u{1b}[0m\u{1b}[1m: "),
        (&["explain"], "\u{1b}[1;31merror  \u{1b}[0m"),
        (&["get", "apps", "--data", "repo"], "\u{1b}[1mNAME "),
        (&["get", "--data", "repo"], "\u{1b}[1mKIND "),
    ] {
        let run = |variables: &[(&str, &str)], more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
            command.current_dir(scratch.path()).args(words).args(more);
            command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
            stdout(&command.output().unwrap())
        };
        let plain = run(&[], &[]);
        assert!(!plain.contains('\u{1b}'), "a pipe has no colours: {plain}");
        let coloured = run(&[], &["--color", "always"]);
        assert!(coloured.contains(styled), "{words:?}: {coloured:?}");
        assert_eq!(run(&[("CLICOLOR_FORCE", "1")], &[]), coloured);
        for colourless in [
            run(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], &["--color", "never"]),
            run(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]),
            run(&[("NO_COLOR", "1")], &[]),
        ] {
            assert_eq!(colourless, plain);
        }
    }
}

/// A data repo whose cluster is at this address, and a configuration with a token for it.
fn with_cluster(server: &str, more: &str) -> Scratch {
    let scratch = operator_fixture();
    let file = "repo/data/clusters/cliffs-stage.yml";
    let text = scratch.read(file);
    let line = text.lines().find(|line| line.starts_with("serverUrl:")).unwrap().to_owned();
    scratch.write(file, text.replace(&line, &format!("serverUrl: {server}")));
    let token = "[platform.clusters.cliffs-stage]\ntoken = \"t0ken\"\n";
    scratch.write("config.toml", format!("[kubernetes]\n{more}{token}"));
    scratch
}

#[test]
fn a_server_that_is_not_available_is_reported_with_cause_and_remedy() {
    let cause = "the API server is starting or overloaded, or its load balancer has no healthy server: retry, and check the API server if the error persists";
    for (status, body, expect) in [
        ("503 Service Unavailable", "", format!("responded with HTTP 503: {cause}")),
        (
            "503 Service Unavailable",
            "no upstream",
            format!("responded with HTTP 503: {cause} (the response begins with `no upstream`)"),
        ),
        (
            "502 Bad Gateway",
            "",
            "responded with HTTP 502: its load balancer gets no response from the API server: check the API server"
                .to_owned(),
        ),
    ] {
        let server = Loopback::start(move |_| Reply::Full(status, String::new(), body.to_owned()));
        let scratch = with_cluster(server.url(), "");
        let (code, rows) = check(scratch.path(), &["--data", "repo", "--cluster", "cliffs-stage"]);
        assert_eq!(code, 1, "{rows:#?}");
        let expect = format!("failed cluster cliffs-stage: cluster `cliffs-stage` {expect}");
        assert!(rows.contains(&expect), "no `{expect}` in {rows:#?}");
    }
}

#[test]
#[ignore = "needs openssl; run by `cargo xtask test`"]
fn a_server_with_a_ca_certificate_is_reported_with_cause_and_remedy() {
    use std::io::{BufRead as _, BufReader};
    let scratch = Scratch::new();
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(scratch.path());
        command
    };
    let made = openssl(
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out ca.pem",
    );
    let made = { made }.output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let mut server = openssl("s_server -accept 127.0.0.1:0 -cert ca.pem -key key.pem")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = { lines }.find(|line| line.starts_with("ACCEPT ")).expect("it tells its port");
    let port = line.rsplit(':').next().unwrap().trim().to_owned();
    let ca = scratch.path().join("ca.pem");
    for trusted in [String::new(), format!("ca = {:?}\n", ca.display().to_string())] {
        let repo = with_cluster(&format!("https://127.0.0.1:{port}"), &trusted);
        let (code, rows) = check(repo.path(), &["--data", "repo", "--cluster", "cliffs-stage"]);
        assert_eq!(code, 1, "{rows:#?}");
        let row = rows.iter().find(|row| row.starts_with("failed cluster cliffs-stage: ")).unwrap();
        let expect = "`: the server uses a CA certificate (`CA:TRUE`) as its own: give it a certificate with `CA:FALSE` that the CA signed";
        assert!(row.ends_with(expect), "{row}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn validate_renders_templates_and_reports_failures() {
    let scratch = operator_fixture();
    let validate = |more: &[&str]| {
        let output = run_with(scratch.path(), &[], &[&["validate", "repo"], more].concat());
        (output.status.code().unwrap(), stdout(&output))
    };
    assert_eq!(validate(&[]), (0, "no findings\n".to_owned()));
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    let good = scratch.read(template);
    // A variable that no entry defines.
    scratch.write(template, format!("# one\n# two\n  {{{{ no_such_variable }}}}\n{good}"));
    let (code, text) = validate(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("error[Q2061]: the template cannot be rendered: `no_such_variable` is undefined"),
        "{text}"
    );
    assert!(text.contains("resources/shop/app-config.configmap.yaml.j2:3:3\n"), "{text}");
    assert!(text.contains("used by this entry and ") && text.contains("data/services/"), "{text}");
    assert_eq!(text.matches("error[Q").count(), 1, "one template is one finding: {text}");
    // Output that is not YAML, which depends on the entries.
    scratch.write(template, format!("a: [{{{{ service }}}}\n{good}"));
    let (code, text) = validate(&[]);
    assert_eq!(code, 1, "{text}");
    let message = "error[Q2062]: the output of the template is not a Kubernetes object: line ";
    assert!(text.contains(message) && text.contains("resources/shop/app-config.configmap.yaml.j2"), "{text}");
    // Output that is YAML, but not an object.
    scratch.write(template, "- {{ service }}\n");
    let (_, text) = validate(&[]);
    assert!(text.contains("is not a Kubernetes object, but a list or a value"), "{text}");
    scratch.write(template, &good);
    // A file that is not YAML, with its line.
    let file = "repo/resources/shop/billing/month-end.cronjob.yaml";
    let object = scratch.read(file);
    scratch.write(file, format!("{object}\n: {{\n"));
    let (code, text) = validate(&["-o", "json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let finding = &report["findings"][0];
    assert_eq!((code, finding["code"].as_str()), (1, Some("Q2062")), "{text}");
    assert!(finding["file"].as_str().unwrap().ends_with("month-end.cronjob.yaml"), "{text}");
    scratch.write(file, &object);
    assert_eq!(validate(&[]).0, 0);
}

#[test]
fn a_template_that_needs_a_secret_is_left_to_the_plan() {
    let scratch = operator_fixture();
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    let good = scratch.read(template);
    // Its output may depend on the secret, so nothing is reported.
    for more in ["", "  nothing: {{ vault('shop/none', 'field').nothing }}\n"] {
        scratch.write(template, format!("{good}  secret: {{{{ vault('shop/none', 'field') }}}}\n{more}"));
        let output = run_with(scratch.path(), &[], &["validate", "repo"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "no findings\n"));
    }
}

#[test]
fn a_template_that_fails_does_not_stop_runs_of_other_objects() {
    let scratch = operator_fixture();
    scratch.write("repo/resources/shop/app-config.configmap.yaml.j2", "{{ no_such_variable }}\n");
    let words = "reconcile openshift-namespaces --data repo --sandbox box --runs runs";
    let output = run_with(scratch.path(), &[], &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn config_init_writes_a_file_that_config_check_accepts() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = operator_fixture();
    let output = run_with(scratch.path(), &[], &["config", "init"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "wrote qontract.toml\n"));
    assert_eq!(stderr(&output), "", "it is in a default location");
    let file = scratch.path().join("qontract.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "it may hold credentials");
    let output = run_with(scratch.path(), &[], &["config", "check", "--data", "repo"]);
    let text = stdout(&output);
    assert!(
        output.status.success() && text.contains("ok       configuration   qontract.toml (default location)"),
        "{text}"
    );
    // An existing file is not replaced.
    scratch.write("qontract.toml", "[kubernetes]\n");
    let output = run_with(scratch.path(), &[], &["config", "init"]);
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(2), "error: `qontract.toml` already exists\n")
    );
    assert_eq!(scratch.read("qontract.toml"), "[kubernetes]\n");
    // Inside a data repo it is not read unless it is named.
    let output = run_with(&scratch.path().join("repo"), &[], &["config", "init"]);
    assert!(stderr(&output).contains("pass `--config qontract.toml`"), "{}", stderr(&output));
}

#[test]
fn credentials_for_another_server_are_named_with_both_servers() {
    let scratch = with_cluster("https://127.0.0.1:1", "");
    scratch.write("config.toml", "[kubernetes.clusters.cliffs-stage]\nkubeconfig = \"kube\"\n");
    scratch.write(
        "kube",
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: k, cluster: {server: 'https://127.0.0.1:2'}}]\nusers: [{name: u, user: {token: abc}}]\ncontexts: [{name: a, context: {cluster: k, user: u}}]\n",
    );
    let (code, rows) = check(scratch.path(), &["--data", "repo", "--cluster", "cliffs-stage"]);
    assert_eq!(code, 1);
    has(
        &rows,
        "failed cluster cliffs-stage: cannot log in to the cluster `cliffs-stage`: its credentials are for the server `https://127.0.0.1:2`, not for `https://127.0.0.1:1`",
    );
}

#[test]
#[ignore = "needs openssl; run by `cargo xtask test`"]
fn a_client_certificate_that_cannot_be_used_is_reported_with_its_cause() {
    let scratch = with_cluster("https://127.0.0.1:1", "");
    let openssl = |words: &str| {
        let made =
            Command::new("openssl").args(words.split(' ')).current_dir(scratch.path()).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
    };
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=old -keyout old.key -out old.csr",
    );
    openssl("x509 -req -in old.csr -signkey old.key -days 2 -out old.crt");
    scratch.write("config.toml", "[kubernetes.clusters.cliffs-stage]\nkubeconfig = \"kube\"\n");
    scratch.write(
        "kube",
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {client-certificate: old.crt, client-key: old.key}}]\ncontexts: [{name: a, context: {cluster: k, user: u}}]\n",
    );
    let (code, rows) = check(scratch.path(), &["--data", "repo", "--cluster", "cliffs-stage"]);
    assert_eq!(code, 1);
    has(
        &rows,
        "failed cluster cliffs-stage: cannot reach cluster `cliffs-stage`: the HTTP client cannot be set up: X.509 version 1 and 2 certificates are not supported",
    );
}
