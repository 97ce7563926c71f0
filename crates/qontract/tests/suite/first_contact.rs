//! Tests of the first minutes of a new user: in a data repo, in a directory below it, and with typos.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;

use crate::support::command::qontract;
use crate::support::terminal::Terminal;
use qontract_testkit::{Scratch, example};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch
}

/// Exit code, stdout and stderr of a command in a directory.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = qontract(folder, arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn every_command_finds_the_data_repo_from_a_directory_of_it() {
    let scratch = stage();
    let below = scratch.path().join("repo/data/services");
    let sandbox = scratch.path().join("sandbox").display().to_string();
    let runs = scratch.path().join("runs").display().to_string();
    for words in [
        &["validate"][..],
        &["bundle", "-o", "-"],
        &["get", "apps"],
        &["query", "{ apps_v1 { name } }"],
        &["integrations", "schemas", "openshift-namespaces"],
        &["reconcile", "openshift-namespaces", "--dry-run", "--sandbox", &sandbox, "--runs", &runs],
        &["up", "--once", "--sandbox", &sandbox, "--runs", &runs],
    ] {
        let (code, out, err) = run(&below, words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
    }
    let (_, out, _) = run(&below, &["up", "--once", "--sandbox", &sandbox, "--runs", &runs]);
    assert!(out.contains("up: real run of ../.. on "), "{out}");
}

#[test]
fn outside_of_a_data_repo_the_error_has_a_hint() {
    let scratch = Scratch::new();
    let missing = "error: not a data repo: `./graphql-schemas/schema.yml` not found here or above";
    for (words, pass) in [
        (&["validate"][..], "pass DIR"),
        (&["bundle"], "pass DIR"),
        (&["up"], "pass DIR"),
        (&["serve"], "pass DIR"),
        (&["get", "apps"], "pass --data DIR"),
        (&["query", "{ apps_v1 { name } }"], "pass --data DIR"),
        (&["reconcile", "openshift-namespaces", "--sandbox", "s", "--runs", "r"], "pass --data DIR"),
    ] {
        let (code, out, err) = run(scratch.path(), words);
        assert!(
            code == 2 && err.ends_with(&format!("{missing} (run inside one, or {pass})\n")),
            "{out}{err}"
        );
    }
    let (code, _, err) = run(scratch.path(), &["validate", "--graphql-file", "types.yml"]);
    assert!(code == 2 && err.contains("`./types.yml` not found here or above"), "{err}");
}

#[test]
fn up_falls_back_to_the_example_only_outside_of_a_data_repo() {
    let scratch = stage();
    scratch.copy(&example(), "clone/examples/app-interface");
    scratch.copy(&example(), "repo/examples/app-interface");
    let up = |folder: &str| {
        run(&scratch.path().join(folder), &["up", "--once", "--dry-run", "--sandbox", "s", "--runs", "r"]).2
    };
    assert!(up("clone").contains("up: dry run of examples/app-interface on "), "the example");
    assert!(up("repo").contains("up: dry run of . on "), "one's own");
}

#[test]
fn findings_name_files_from_the_working_directory_if_the_repo_is_above() {
    let scratch = stage();
    scratch.write(NAMESPACE, "name: [\n");
    let (code, out, _) = run(&scratch.path().join("repo/data/services"), &["validate"]);
    assert!(code == 1 && out.contains("--> catalog/namespaces/catalog-stage.yml:"), "{out}");
    let (code, out, _) = run(&scratch.path().join("repo/schemas"), &["validate"]);
    assert!(code == 1 && out.contains("--> ../data/services/catalog/namespaces/catalog-stage.yml:"), "{out}");
    let (code, out, _) = run(&scratch.path().join("repo/schemas"), &["validate", "-o", "json"]);
    assert!(
        code == 1 && out.contains("\"file\": \"data/services/catalog/namespaces/catalog-stage.yml\""),
        "{out}"
    );
    let (code, _, err) = run(&scratch.path().join("repo/schemas"), &["bundle"]);
    assert!(code == 1 && err.contains("--> ../data/services/catalog/namespaces/catalog-stage.yml:"), "{err}");
}

#[test]
fn validate_of_files_shows_only_their_findings() {
    let scratch = stage();
    scratch.write("repo/data/teams/bad.yml", "name: [\n");
    scratch.write("repo/data/teams/worse.yml", "name: {\n");
    scratch.write("repo/README.md", "# mine\n");
    let repo = scratch.path().join("repo");
    let good = "data/services/catalog/namespaces/catalog-stage.yml";
    let (code, out, err) = run(&repo, &["validate", good]);
    assert!(code == 0 && out == "no findings\n", "{out}");
    assert_eq!(err, "note: other files have 2 errors (not shown)\n");
    let (code, out, err) = run(&repo, &["validate", good, "data/teams/bad.yml", "README.md"]);
    assert!(code == 1 && out.contains("data/teams/bad.yml:") && !out.contains("worse"), "{out}");
    assert!(out.ends_with("1 error in 1 file\n"), "{out}");
    assert!(err.contains("`README.md` is not part of the data repo"), "{err}");
    assert!(err.contains("other files have 1 error "), "{err}");
    // From another directory, as an editor does; and a directory as the argument.
    let (code, out, _) = run(&repo.join("data/teams"), &["validate", "bad.yml"]);
    assert!(code == 1 && out.contains("--> bad.yml:"), "{out}");
    let (code, out, _) = run(scratch.path(), &["validate", "repo/data/teams"]);
    assert!(code == 1 && out.contains("--> repo/data/teams/bad.yml:") && out.contains("worse.yml"), "{out}");
    let (code, out, _) = run(&repo, &["validate", "-o", "json", good]);
    let printed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &printed["errors"], &printed["other_files"]["errors"]), (0, &0.into(), &2.into()));
}

#[test]
fn a_template_that_cannot_be_read_is_one_finding_with_its_place() {
    let scratch = stage();
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    let text = scratch.read(template);
    let broken = text.replacen("}}", "}", 1);
    assert_ne!(text, broken);
    scratch.write(template, broken);
    // No entry renders it, so any content is accepted.
    scratch.write("repo/resources/other.txt", "{{ not a template }");
    let repo = scratch.path().join("repo");
    let (code, out, _) = run(&repo, &["validate", "--only-errors"]);
    assert!(code == 1 && out.contains("error[Q2060]: template syntax: unexpected `}`"), "{out}");
    assert!(out.contains("--> resources/shop/app-config.configmap.yaml.j2:"), "{out}");
    assert!(out.ends_with("1 error in 1 file\n"), "once, however many namespaces render it: {out}");
    let (code, _, err) = run(&repo, &["bundle", "-o", "bundle.json"]);
    assert!(code == 1 && err.contains("error[Q2060]"), "{err}");
    let (code, out, _) = run(&repo, &["validate", "resources/shop/app-config.configmap.yaml.j2"]);
    assert!(code == 1 && out.contains("error[Q2060]"), "{out}");
}

#[test]
fn syntax_errors_have_hints() {
    let scratch = stage();
    let repo = scratch.path().join("repo");
    for (text, message, hint) in [
        ("a: 1\nb: {c: d\ne: f\n", "`{` opened at 2:4 is not closed", "close it with `}`"),
        (
            "a: 1\n<<<<<<< HEAD\nb: c\n=======\nb: d\n>>>>>>> x\n",
            "unresolved merge conflict",
            "resolve it, and remove the lines",
        ),
        ("a: b: c\n", "an unquoted value cannot contain `: `", "quote the value: \"b: c\""),
        ("a: @b\n", "an unquoted value cannot begin with `@`", "quote the value: \"@b\""),
        ("a: b\n c: d\n", "the line is indented deeper than its siblings on line 1", "remove 1 space"),
        ("a:\n\tb: c\n", "a tab is used for indentation", "indent with spaces"),
    ] {
        scratch.write("repo/data/teams/bad.yml", text);
        let (code, out, _) = run(&repo, &["validate", "data/teams/bad.yml"]);
        assert!(code == 1 && out.contains(&format!("error[Q1001]: {message}\n")), "{text}: {out}");
        assert!(out.contains(&format!("\nhint: {hint}")), "{text}: {out}");
    }
}

#[test]
fn a_value_that_is_a_comment_is_to_be_quoted() {
    let scratch = stage();
    let file = "repo/data/services/billing/app.yml";
    let text = scratch.read(file);
    let line = text.lines().find(|line| line.starts_with("description:")).unwrap();
    scratch.write(file, text.replace(line, "description: #billing"));
    let (code, out, _) = run(&scratch.path().join("repo"), &["validate", "--only-errors"]);
    assert!(code == 1 && out.contains("hint: `#` begins a comment; quote the value: \"#billing\""), "{out}");
}

#[test]
fn a_list_that_lacks_a_value_is_an_error_that_names_it() {
    let scratch = stage();
    let file = "repo/data/integrations/openshift-namespaces.yml";
    let text = scratch.read(file);
    let kept: Vec<&str> = text.lines().filter(|line| *line != "- /app-sre/integration-1.yml").collect();
    scratch.write(file, kept.join("\n"));
    let (code, out, _) = run(&scratch.path().join("repo"), &["validate", "--only-errors"]);
    let expect = "error[Q3010]: the list must contain `/app-sre/integration-1.yml`";
    assert!(code == 1 && out.contains(expect), "{out}");
}

#[test]
fn a_mistyped_name_gets_the_nearest_one() {
    let scratch = stage();
    let repo = scratch.path().join("repo");
    let dry = ["--dry-run", "--sandbox", "s", "--runs", "r"];
    let reconcile = |words: &[&str]| {
        [&["reconcile"], words, &dry[..]].concat().iter().map(|word| (*word).to_owned()).collect()
    };
    let line = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (words, code, expect) in [
        (line("get nmespaces"), 2, "no such kind: `nmespaces`; did you mean `namespaces`?"),
        (line("get xy"), 2, "no such kind: `xy`; `qontract get` lists all kinds"),
        (line("get apps biling"), 1, "no `biling` in `apps_v1`; did you mean `billing`?"),
        (line("get apps /services/billing/app"), 1, "did you mean `/services/billing/app.yml`?"),
        (line("integrations schemas openshift-namespace"), 2, "did you mean `openshift-namespaces`?"),
        (line("affected . . --integration openshift-namespce"), 2, "did you mean `openshift-namespaces`?"),
        (line("explain Q104"), 2, "no such code: `Q104`; did you mean `Q1004`?"),
        (line("validat"), 2, "'validate'"),
        (line("validate --strct"), 2, "'--strict'"),
        (reconcile(&["openshift-namespces"]), 2, "did you mean `openshift-namespaces`?"),
        (
            reconcile(&["openshift-namespaces", "--cluster-name", "clifs-stage"]),
            2,
            "`--cluster-name clifs-stage` matches nothing in the data; did you mean `cliffs-stage`?",
        ),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (found, out, err) = run(&repo, &words);
        let messages = format!("{out}{err}");
        assert!(found == code && messages.contains(expect), "{words:?}: {found} {messages}");
    }
    let (code, out, _) = run(&repo, &["get", "ns"]);
    assert!(code == 0 && out.contains("catalog-stage"), "{out}");
    // The peer does not report this error, so it remains a warning.
    let peer = [&["peer", "reconcile", "--data", "."][..], &dry];
    let peer = [&peer.concat()[..], &["openshift-namespaces", "--cluster-name", "clifs-stage"]].concat();
    let (code, _, err) = run(&repo, &peer);
    assert!(
        code == 0 && err.contains("warning: `--cluster-name clifs-stage` matches nothing"),
        "{code} {err}"
    );
    // A reference without the file extension.
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, text.replace("cliffs-stage.yml", "cliffs-stage"));
    let (code, out, _) = run(&repo, &["validate", "--only-errors"]);
    assert!(code == 1 && out.contains("cliffs-stage.yml`?"), "{out}");
}

#[test]
fn help_version_quiet_and_verbose_work_as_people_expect() {
    let scratch = stage();
    let repo = scratch.path().join("repo");
    let (code, help, _) = run(&repo, &["help"]);
    assert!(code == 0 && help == run(&repo, &["--help"]).1, "{help}");
    for heading in ["Start here:", "Data:", "Reconciliation:", "Inspection:", "Setup and other:", "Options:"]
    {
        assert!(help.contains(heading), "{heading}: {help}");
    }
    let (code, out, _) = run(&repo, &["help", "validate"]);
    assert!(code == 0 && out.contains("Examples:\n  qontract validate\n"), "{out}");
    assert_eq!(run(&repo, &["help", "nonsense"]).0, 2);
    assert_eq!(run(&repo, &["version"]).1, run(&repo, &["--version"]).1);
    let (_, _, err) = run(&repo, &["bundle", "-o", "b.json"]);
    assert!(err.contains("datafiles"), "{err}");
    let (code, out, err) = run(&repo, &["bundle", "-q", "-o", "b.json"]);
    assert!(code == 0 && out.len() == 65 && err.is_empty(), "{out}{err}");
    let (_, out, _) = run(&repo, &["--color", "always", "validate", "--help"]);
    assert!(out.contains("\x1b["), "{out}");
    scratch.write("repo/data/teams/bad.yml", "a: [\n");
    assert!(run(&repo, &["validate", "--color=always"]).1.contains("\x1b["));
    assert!(!run(&repo, &["validate", "--color=never"]).1.contains("\x1b["));
    let (code, _, err) = run(&repo, &["serve", "--listen", ":0"]);
    assert!(code == 1 && err.matches("the data has errors").count() == 1, "{err}");
}

#[test]
fn a_peer_is_called_by_its_own_name_in_its_help() {
    let scratch = Scratch::new();
    let own = scratch.path().join("qontract-bundler");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_qontract"), &own).unwrap();
    let output = std::process::Command::new(own).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: qontract-bundler [OPTIONS] ") && !text.contains("peer bundler"), "{text}");
}

#[test]
fn on_a_terminal_a_response_is_indented() {
    let scratch = stage();
    let mut terminal = Terminal::run(
        &scratch.path().join("repo"),
        &["query", "{ apps_v1(path: \"/services/billing/app.yml\") { name } }"],
    );
    terminal.until("{\r\n  \"data\": {\r\n    \"apps_v1\": [\r\n");
}

#[test]
fn validate_reports_a_namespace_that_is_declared_twice_with_both_files_and_lines() {
    let scratch = stage();
    let text = std::fs::read_to_string(scratch.path().join(NAMESPACE)).unwrap();
    let copy = "repo/data/services/catalog/namespaces/dup.yml";
    scratch.write(copy, format!("# a copy\n{text}"));
    let (code, out, err) = run(&scratch.path().join("repo"), &["validate"]);
    assert_eq!(code, 1, "{out}{err}");
    for expect in [
        "error[Q2047]: namespace `catalog-stage` of cluster `cliffs-stage` is declared more than once\n",
        "data/services/catalog/namespaces/dup.yml:9:",
        "data/services/catalog/namespaces/catalog-stage.yml:8:",
        "keep one of the files",
        "\n1 error in 1 file\n",
    ] {
        assert!(out.contains(expect), "no `{expect}` in {out}");
    }
    // The same name in another cluster is another namespace.
    scratch.write(copy, text.replace("cliffs-stage.yml", "dunes-int.yml"));
    let (_, out, err) = run(&scratch.path().join("repo"), &["validate"]);
    assert!(!out.contains("Q2047"), "{out}{err}");
    // Another error does not hide it, and a bundle has it as well.
    scratch.write(copy, &text);
    let (code, _, err) = run(&scratch.path().join("repo"), &["bundle", "-o", "../bundle.json"]);
    assert_eq!(code, 0, "bundles are built anyway: {err}");
    let (code, out, _) = run(scratch.path(), &["validate", "bundle.json"]);
    assert!(code == 1 && out.contains("error[Q2047]"), "{out}");
    scratch.write("repo/data/broken.yml", "a: [\n");
    let (_, out, _) = run(&scratch.path().join("repo"), &["validate"]);
    assert!(out.contains("error[Q2047]") && out.contains("broken.yml"), "{out}");
}

#[test]
fn validate_reports_two_clusters_with_the_same_server() {
    let scratch = stage();
    let cluster = |server: &str| {
        scratch.write(
            "repo/data/clusters/zz.yml",
            format!("$schema: /openshift/cluster-1.yml\nlabels: {{}}\nname: zz\ndescription: z\nserverUrl: {server}\nconsoleUrl: https://c.example.com\nprometheusUrl: https://p.example.com\nelbFQDN: e.example.com\ninternal: false\nauth: []\n"),
        );
        run(&scratch.path().join("repo"), &["validate"])
    };
    let (code, out, err) = cluster("https://API.cliffs-stage.example.com.:6443/");
    assert_eq!(code, 1, "{out}{err}");
    for expect in [
        "error[Q2048]: clusters `cliffs-stage` and `zz` have the same server\n",
        "data/clusters/zz.yml:5:",
        "data/clusters/cliffs-stage.yml:15:",
    ] {
        assert!(out.contains(expect), "no `{expect}` in {out}");
    }
    let (code, out, err) = cluster("https://api.cliffs-stage.example.com:6444");
    assert_eq!(code, 0, "{out}{err}");
}
