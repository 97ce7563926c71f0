//! Tests for operators: location and errors of the configuration, announced targets, network errors,
//! environment variables.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::loopback::{Loopback, Reply};
use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::Scratch;

#[test]
fn the_configuration_is_found_in_its_default_locations() {
    let scratch = operator_fixture();
    let refused = |printed: &str, file: &str| {
        assert!(printed.contains(&format!("`{file}`, line 1: unknown table")), "{printed}");
    };
    let listed = |folder: &str| {
        run_with(
            &scratch.path().join(folder),
            &[("HOME", scratch.path().to_str().unwrap())],
            &["integrations"],
        )
    };
    scratch.write("empty/here", "");
    assert!(listed("empty").status.success());
    // The user's own file is the last location.
    scratch.write(".config/qontract/config.toml", "[kubernets]\n");
    let user = listed("empty");
    assert_eq!(user.status.code(), Some(2), "{}", stderr(&user));
    refused(&stderr(&user), scratch.path().join(".config/qontract/config.toml").to_str().unwrap());
    // The file of the working directory precedes it, and a named one precedes both.
    scratch.write("empty/qontract.toml", "[guard]\n");
    refused(&stderr(&listed("empty")), "qontract.toml");
    scratch.write("empty/named.toml", "");
    let named = run_with(&scratch.path().join("empty"), &[], &["integrations", "--config", "named.toml"]);
    assert!(named.status.success(), "{}", stderr(&named));
    let variable =
        run_with(&scratch.path().join("empty"), &[("QONTRACT_CONFIG", "named.toml")], &["integrations"]);
    assert!(variable.status.success(), "{}", stderr(&variable));
    // The peer's tools read it only if it is named.
    let peer =
        ["peer", "reconcile", "--dry-run", "query-validator", "--data", "../repo", "--runs", "../runs"];
    let peer = run_with(&scratch.path().join("empty"), &[], &peer);
    assert!(!stderr(&peer).contains("unknown table"), "{}", stderr(&peer));
}

#[test]
fn a_data_repo_never_provides_the_configuration() {
    let scratch = operator_fixture();
    let program = scratch.path().join("ran");
    let config = format!("[integrations.evil]\ncommand = [\"touch\", {:?}]\n", program.display());
    scratch.write("repo/qontract.toml", &config);
    let output = run_with(&scratch.path().join("repo"), &[], &["integrations"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let note = "note: `qontract.toml` is not read, because it is inside a data repo or a Git work tree; pass `--config qontract.toml`";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("evil") && !program.exists());
    // It is not read from a directory in a Git work tree either.
    scratch.write("work/.git/HEAD", "");
    scratch.write("work/below/qontract.toml", &config);
    let above = scratch.path().parent().unwrap().to_str().unwrap();
    let output = run_with(
        &scratch.path().join("work/below"),
        &[("GIT_CEILING_DIRECTORIES", above)],
        &["integrations"],
    );
    assert!(stderr(&output).contains(note) && !program.exists(), "{}", stderr(&output));
}

#[test]
fn a_ceiling_does_not_make_a_configuration_trusted() {
    let scratch = operator_fixture();
    scratch.write("repo/qontract.toml", "[integrations.evil]\ncommand = [\"false\"]\n");
    scratch.write("work/.git/HEAD", "");
    for folder in ["repo/data", "work"] {
        scratch.write(&format!("{folder}/qontract.toml"), "[integrations.evil]\ncommand = [\"false\"]\n");
    }
    for (folder, ceiling) in
        [("repo", "repo"), ("repo/data", "repo/data"), ("repo/data", "repo"), ("work", "work")]
    {
        let (folder, ceiling) = (scratch.path().join(folder), scratch.path().join(ceiling));
        let variables = [("GIT_CEILING_DIRECTORIES", ceiling.to_str().unwrap())];
        let output = run_with(&folder, &variables, &["integrations"]);
        assert!(stderr(&output).contains("note: `qontract.toml` is not read"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("evil"), "{}", stderr(&output));
    }
}

#[test]
fn an_ignored_configuration_is_noted_even_if_the_users_is_read() {
    let scratch = operator_fixture();
    scratch.write("repo/qontract.toml", "[integrations.evil]\ncommand = [\"false\"]\n");
    scratch.write(".config/qontract/config.toml", "[integrations.own]\ncommand = [\"false\"]\n");
    let home = [("HOME", scratch.path().to_str().unwrap())];
    let output = run_with(&scratch.path().join("repo"), &home, &["integrations"]);
    let printed = stderr(&output);
    assert!(printed.contains("cannot start integration `own`") && !printed.contains("evil"), "{printed}");
    assert!(stderr(&output).contains("note: `qontract.toml` is not read"), "{}", stderr(&output));
    let output = run_with(&scratch.path().join("repo"), &home, &["config", "check"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("`qontract.toml` is not read: it is inside a data repo"), "{report}");
    assert!(report.contains(".config/qontract/config.toml (default location)"), "{report}");
}

/// A loopback cluster that refuses all requests, and a configuration for it.
fn cluster(scratch: &Scratch, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Loopback {
    let server = Loopback::start(move |_| reply());
    for name in ["cliffs-stage", "harbor-prod"] {
        let file = format!("repo/data/clusters/{name}.yml");
        let text = scratch.read(&file);
        let line = text.lines().find(|line| line.starts_with("serverUrl:")).unwrap().to_owned();
        scratch.write(&file, text.replace(&line, &format!("serverUrl: {}", server.url())));
    }
    server
}

#[test]
fn a_real_run_names_its_data_and_targets_first() {
    let scratch = operator_fixture();
    let words =
        ["reconcile", "openshift-namespaces", "--data", "repo", "--runs", "runs", "--sandbox", "sandbox"];
    let real = run_with(scratch.path(), &[], &words);
    assert_eq!(
        stderr(&real).lines().next(),
        Some("real run · data repo · sandbox sandbox"),
        "{}",
        stderr(&real)
    );
    let dry = run_with(scratch.path(), &[], &[&words[..], &["--dry-run"]].concat());
    assert!(!stderr(&dry).contains("real run"), "{}", stderr(&dry));
    scratch.write("config.toml", "[kubernetes]\n");
    cluster(&scratch, || Reply::Full("401 Unauthorized", String::new(), String::new()));
    let words = [
        "reconcile",
        "openshift-namespaces",
        "--data",
        "repo",
        "--runs",
        "runs",
        "--config",
        "config.toml",
        "--no-validate",
    ];
    let real = run_with(scratch.path(), &[], &words);
    let first = stderr(&real).lines().next().unwrap_or_default().to_owned();
    assert!(
        first.starts_with("real run · data repo · clusters ") && first.contains("cliffs-stage"),
        "{}",
        stderr(&real)
    );
}

/// Runs Git in a directory.
fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let output = Command::new("git").current_dir(folder).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_modified_work_tree_is_marked_in_the_announcement_the_audit_log_and_the_record() {
    let scratch = operator_fixture();
    let repo = scratch.path().join("repo");
    git(&repo, &["init", "--quiet"]);
    git(&repo, &["add", "--all"]);
    git(&repo, &["commit", "--quiet", "--message", "all"]);
    let words =
        ["reconcile", "openshift-namespaces", "--data", "repo", "--runs", "runs", "--sandbox", "sandbox"];
    let clean = run_with(scratch.path(), &[], &words);
    let first = stderr(&clean).lines().next().unwrap_or_default().to_owned();
    assert!(first.starts_with("real run · data repo @ ") && !first.contains("modified"), "{first}");
    assert!(!scratch.read("runs/trail.jsonl").contains("modified"));
    let file = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    scratch.write(file, scratch.read(file).replace("name: catalog-stage", "name: catalog-staging"));
    let words = [&words[..], &["--no-validate", "-o", "json"]].concat();
    let modified = run_with(scratch.path(), &[], &words);
    let first = stderr(&modified).lines().next().unwrap_or_default().to_owned();
    assert!(first.contains(" (modified) · sandbox sandbox"), "{first}");
    let record: serde_json::Value = serde_json::from_slice(&modified.stdout).unwrap();
    assert_eq!(record["head"]["modified"], true);
    let trail = scratch.read("runs/trail.jsonl");
    assert!(trail.lines().last().unwrap().contains("\"modified\":\"true\""), "{trail}");
}

#[test]
fn run_integration_reads_qontract_config_and_names_both_variables() {
    let scratch = operator_fixture();
    scratch.write("config.toml", "[kubernets]\n");
    let run = |variables: &[(&str, &str)]| {
        let own = [("INTEGRATION_NAME", "query-validator"), ("RUN_ONCE", "true"), ("PROMETHEUS_PORT", "0")];
        let output = run_with(scratch.path(), &[&own, variables].concat(), &["peer", "run-integration"]);
        (output.status.code(), stderr(&output))
    };
    let (code, printed) = run(&[("QONTRACT_CONFIG", "config.toml")]);
    assert!(
        code == Some(1) && printed.contains("cannot start: `config.toml`, line 1: unknown table"),
        "{printed}"
    );
    let (code, printed) = run(&[("QONTRACT_CONFIG", "config.toml"), ("CONFIG", "other.toml")]);
    assert!(code == Some(1) && printed.contains("cannot start: cannot read `other.toml`"), "{printed}");
    let (_, printed) = run(&[]);
    assert!(
        printed.contains("cannot read `/config/config.toml`")
            && printed.contains("(neither `CONFIG` nor `QONTRACT_CONFIG` names"),
        "{printed}"
    );
}

#[test]
fn the_peer_tools_list_their_variables() {
    let scratch = Scratch::new();
    for (tool, names) in [
        (
            "run-integration",
            &["INTEGRATION_NAME", "CONFIG", "DRY_RUN", "SLEEP_DURATION_SECS", "PROMETHEUS_PORT", "LOG_FILE"]
                [..],
        ),
        ("server", &["LOAD_METHOD", "DATAFILES_FILE", "INIT_BUNDLES", "BUNDLE_SHA_TTL"]),
    ] {
        let output = run_with(scratch.path(), &[], &["peer", tool, "--help"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(names.iter().all(|name| text.contains(&format!("\n  {name} "))), "{text}");
    }
}

#[test]
fn every_variable_in_the_sources_is_on_the_reference_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/reference/configuration.md")).unwrap();
    let sources = sources(&root);
    let all: String = sources.iter().map(|(_, code)| code.as_str()).collect();
    let missing: Vec<String> = sources
        .iter()
        .flat_map(|(path, code)| variables(code, &all).into_iter().map(move |name| (path, name)))
        .filter(|(_, name)| !page.contains(&format!("`{name}`")))
        .map(|(path, name)| format!("{}: {name}", path.display()))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The sources of the workspace without their tests.
fn sources(root: &Path) -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("clients"), root.join("integrations")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let is_test =
                ["tests", "tests.rs", "benches", "examples", "build.rs", "target"].contains(&name.as_str());
            if is_test || name.starts_with("test") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                sources.push((path, code));
            }
        }
    }
    sources
}

/// The names of variables that a source reads: upper-case strings, or constants with such strings, as the
/// first argument of a function that reads a variable.
fn variables(code: &str, all: &str) -> Vec<String> {
    let readers = [
        "var", "var_os", "variable", "word", "number", "path", "absolute", "folder", "seconds", "boolean",
        "get", "needed",
    ];
    // Other functions of these names take constants that are not variables.
    let is_environment = |reader: &str| ["var", "var_os", "variable"].contains(&reader);
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut names = Vec::new();
    for (at, _) in code.match_indices('(') {
        let reader = code[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if !readers.contains(&reader) {
            continue;
        }
        let argument =
            code[at + 1..].split([',', ')']).next().unwrap_or_default().trim().trim_start_matches('&');
        let literal = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let constant = argument.rsplit("::").next().unwrap_or_default();
        let value = || value_of(constant, code).or_else(|| value_of(constant, all));
        let name = literal.or_else(|| if is_environment(reader) { value() } else { None });
        names.extend(name.filter(|name| name.len() > 2 && name.chars().all(is_upper)).map(str::to_owned));
    }
    names
}

/// The value of a constant.
fn value_of<'c>(constant: &str, code: &'c str) -> Option<&'c str> {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if constant.is_empty() || !constant.chars().all(is_upper) {
        return None;
    }
    let (_, rest) = code.split_once(&format!("const {constant}: &str ="))?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

#[test]
fn variable_names_are_extracted_from_sources() {
    let check = |code: &str, expect: &[&str]| {
        assert_eq!(variables(code, "const FAR: &str = \"FAR_VARIABLE\";"), expect, "{code}");
    };
    check("let a = variable(\"QONTRACT_A\");", &["QONTRACT_A"]);
    check("std::env::var(\n    \"QONTRACT_A\",\n)", &["QONTRACT_A"]);
    check("const A: &str = \"QONTRACT_A\";\nlet a = variable(A).as_deref();", &["QONTRACT_A"]);
    check("const A: &str =\n    \"QONTRACT_A\";\nenv::var_os(A)", &["QONTRACT_A"]);
    check("variable(names::FAR)", &["FAR_VARIABLE"]);
    check("variable(name); get(\"name\"); print(\"QONTRACT_A\"); get(KIND)", &[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let signals = std::fs::read_to_string(root.join("../daemon/src/signals.rs")).unwrap();
    assert!(variables(&signals, "").contains(&"QONTRACT_SHUTDOWN_SECONDS".to_owned()));
}

#[test]
fn a_terminal_shows_the_progress_line() {
    let scratch = operator_fixture();
    scratch.write("config.toml", "[kubernetes]\n[platform.clusters.cliffs-stage]\ntoken = \"t0ken\"\n");
    let _server = cluster(&scratch, || Reply::Never);
    let words =
        ["reconcile", "openshift-namespaces", "--dry-run", "--no-validate", "--cluster-name", "cliffs-stage"];
    let words = [&words[..], &["--data", "repo", "--runs", "runs", "--config", "config.toml"]].concat();
    let mut terminal = crate::support::terminal::Terminal::run(scratch.path(), &words);
    terminal.until("waiting for GET http://127.0.0.1:");
    terminal.until("s)");
    terminal.interrupt();
}

#[test]
fn a_write_error_names_the_file_and_not_its_temporary_file() {
    let scratch = operator_fixture();
    let output = run_with(scratch.path(), &[], &["bundle", "repo", "-o", "nowhere/bundle.json"]);
    assert!(
        stderr(&output).contains("error: cannot write `nowhere/bundle.json`: No such file or directory"),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&output).contains("draft"), "{}", stderr(&output));
}

#[test]
fn network_errors_are_one_sentence_with_the_cause() {
    let scratch = operator_fixture();
    let run = |server: &str| {
        let file = "repo/data/clusters/cliffs-stage.yml";
        let text = scratch.read(file);
        let line = text.lines().find(|line| line.starts_with("serverUrl:")).unwrap().to_owned();
        scratch.write(file, text.replace(&line, &format!("serverUrl: {server}")));
        scratch.write("config.toml", "[kubernetes]\n[platform.clusters.cliffs-stage]\ntoken = \"t0ken\"\n");
        let words = [
            "reconcile",
            "openshift-namespaces",
            "--dry-run",
            "--no-validate",
            "--cluster-name",
            "cliffs-stage",
        ];
        let output = run_with(
            scratch.path(),
            &[],
            &[&words[..], &["--data", "repo", "--runs", "runs", "--config", "config.toml"]].concat(),
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let printed = run(&server);
    let sentence = "error: cannot read `cluster=cliffs-stage`: cannot reach cluster `cliffs-stage`: `GET https://127.0.0.1:";
    assert!(printed.contains(sentence) && printed.contains("`: the server does not use TLS\n"), "{printed}");
}

#[test]
fn the_root_of_a_listener_lists_what_is_served() {
    let scratch = operator_fixture();
    let words = "reconcile openshift-namespaces --every 1h --data repo --sandbox sandbox --runs runs --listen 127.0.0.1:0";
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let mut running =
        crate::support::running::Running::of(command.current_dir(scratch.path()).args(words.split(' ')));
    let line = running.until("http://127.0.0.1:");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().trim().to_owned();
    let answer = crate::support::running::get(&address, "/");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\n/metrics "), "{answer}");
}
