//! Canary secrets: a thousand tokens in the configuration, and ten thousand secrets in templates and Secrets,
//! at the most verbose log level. None of them is printed, stored, or passed to child processes.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fmt::Write as _;
use std::process::Command;

use crate::support::command::qontract;
use crate::support::records::{all_text, run_ids};
use crate::support::running::{Running, get};
use crate::support::secrets_repo::{OBJECTS, SELECTED, SecretsRepo, files};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use qontract_testkit::eventually;
use qontract_testkit::vault::{ROOT, TestVault};
use qontract_testkit::{Scratch, SeededRng, example};
use serde_json::json;

const COUNT: usize = 1000;

#[test]
fn no_token_is_printed_or_stored() {
    let scratch = Scratch::new();
    for part in ["schemas", "graphql-schemas"] {
        scratch.copy(&example().join(part), &format!("repo/{part}"));
    }
    let own = "data/integrations/openshift-namespaces.yml";
    scratch.write(&format!("repo/{own}"), std::fs::read_to_string(example().join(own)).unwrap());
    let mut config = "[kubernetes]\nrequests_per_second = 50\n".to_owned();
    for number in 0..COUNT {
        let cluster = format!(
            "$schema: /openshift/cluster-1.yml\nname: c{number}\nserverUrl: https://127.0.0.1:{}\nautomationToken: {{path: creds/c{number}, field: token}}\n",
            1000 + number
        );
        scratch.write(&format!("repo/data/clusters/c{number}.yml"), cluster);
        let namespace = format!(
            "$schema: /openshift/namespace-1.yml\nname: n\ncluster: {{$ref: /clusters/c{number}.yml}}\n"
        );
        scratch.write(&format!("repo/data/n{number}.yml"), namespace);
        // Some tokens are for another server, some cannot be sent, some are not strings.
        let token = match number % 3 {
            0 => format!("\"canary-{number}\"\nserver = \"https://other.example.com\""),
            1 => format!("\"canary-{number}\\nsecond line\""),
            _ => format!("[\"canary-{number}\"]"),
        };
        config.push_str(&format!("[creds.c{number}]\ntoken = {token}\n"));
    }
    scratch.write("config.toml", config);
    let words = [
        "reconcile",
        "openshift-namespaces",
        "--data",
        "repo",
        "--no-validate",
        "--config",
        "config.toml",
        "--runs",
        "runs",
    ];
    let mut captured = String::new();
    for more in [&["--dry-run", "--log-level", "DEBUG"][..], &["--log-level", "DEBUG", "-o", "json"][..]] {
        let output = qontract(scratch.path(), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        captured += &String::from_utf8_lossy(&output.stdout);
        captured += &String::from_utf8_lossy(&output.stderr);
    }
    captured += &all_text(&scratch.path().join("runs"));
    assert!(
        captured.matches("cannot log in to the cluster").count() > COUNT,
        "the test means something: {}",
        &captured[..500]
    );
    assert_eq!(captured.matches("canary-").count(), 0);
}

/// A loop at the most verbose log level, with tokens in Vault: its log, metrics, records and audit log.
#[test]
fn no_vault_token_is_in_the_output_of_a_loop() {
    let (scratch, vault) = (Scratch::new(), TestVault::start());
    scratch.copy(&example(), "repo");
    let cluster = scratch.read("repo/data/clusters/cliffs-stage.yml");
    let namespace = scratch.read("repo/data/services/catalog/namespaces/catalog-stage.yml");
    for number in 0..COUNT {
        let cluster = cluster
            .replace("name: cliffs-stage\n", &format!("name: c{number}\n"))
            .replace("https://api.cliffs-stage.example.com:6443", "https://127.0.0.1:1")
            .replace("platform/clusters/cliffs-stage", &format!("secret/c{number}"));
        scratch.write(&format!("repo/data/clusters/c{number}.yml"), cluster);
        let namespace = namespace.replace("/cliffs-stage.yml", &format!("/c{number}.yml"));
        scratch.write(&format!("repo/data/n{number}.yml"), namespace);
        // A few tokens are sent to a server that does not exist, some are for another one, some cannot be
        // sent.
        let fields = match number % 2 {
            _ if number < 5 => json!({"token": format!("canary-{number}")}),
            0 => json!({"token": format!("canary-{number}"), "server": "https://other.example.com"}),
            _ => json!({"token": format!("canary-{number}\n")}),
        };
        vault.put(&format!("c{number}"), &fields);
    }
    let vault = format!("[kubernetes]\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n", vault.url());
    scratch.write("config.toml", vault);
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command
        .current_dir(scratch.path())
        .args(["reconcile", "openshift-namespaces", "--every", "1h", "--data", "repo", "--runs", "runs"])
        .args(["--config", "config.toml", "--log-level", "DEBUG", "--listen", "127.0.0.1:0"]);
    let mut running = Running::of(&mut command);
    let mut captured = running.until("listening on http://");
    let address = captured.split_once("http://").unwrap().1.trim().trim_end_matches('/').to_owned();
    let lines = running.drain();
    captured += &eventually("the run has ended", || {
        let metrics = get(&address, "/metrics");
        metrics.contains("qontract_reconcile_last_run_status{").then_some(metrics)
    });
    drop(running);
    captured += &lines.join().unwrap();
    assert!(captured.matches(" ERROR ").count() >= COUNT, "the test means something");
    captured += &all_text(&scratch.path().join("runs"));
    assert_eq!(captured.matches("canary-").count(), 0);
}

/// Number of secrets for templates and for entries, and of fields of each.
const TEMPLATES: usize = 20;
const ENTRIES: usize = 80;
const FIELDS: usize = 100;

/// A value that does not occur anywhere by accident.
fn canary(chance: &mut SeededRng) -> String {
    format!("canary-{:08x}{:08x}", chance.below(1 << 32), chance.below(1 << 32))
}

/// Ten thousand secrets, each with a field whose change is visible.
fn ten_thousand(seed: u64) -> String {
    let (chance, mut toml) = (&mut SeededRng::new(seed), String::new());
    for (kind, secrets) in [("t", TEMPLATES), ("e", ENTRIES)] {
        for secret in 0..secrets {
            writeln!(toml, "[{kind}.s{secret}]").unwrap();
            for field in 0..FIELDS {
                writeln!(toml, "f{field} = \"{}\"", canary(chance)).unwrap();
            }
        }
    }
    toml
}

/// Templates that use some of them in several ways, and entries with the others.
fn uses_of_ten_thousand(repo: &SecretsRepo, side: &str) {
    let mut entries = String::new();
    for secret in 0..TEMPLATES {
        let mut text = String::new();
        for field in 0..FIELDS {
            write!(text, "{{% set v{field} = vault('t/s{secret}', 'f{field}') %}}").unwrap();
        }
        write!(text, "\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: t{secret}}}\ndata:\n").unwrap();
        for field in 0..FIELDS {
            let call = format!("v{field}");
            let value = match field % 5 {
                0 => format!("{{{{ {call} }}}}"),
                1 => format!("https://a:{{{{ {call}|urlencode }}}}@b"),
                2 => format!("{{{{ {call}|upper }}}}{{{{ {call}|length }}}}"),
                3 => format!("{{% b64encode %}}user:{{{{ {call} }}}}{{% endb64encode %}}"),
                _ => format!("{{{{ {{'a': {call}}}|tojson|replace('\"', '') }}}}"),
            };
            writeln!(text, "  k{field}: \"{value}\"").unwrap();
        }
        // Some cannot be rendered, some are not objects, some are rejected by the cluster, some use it in a
        // name.
        match secret % 10 {
            6 => text += "  x: \"{% raise_error v0 %}\"\n",
            7 => text += "  {{ v0 }}: {}\n  - x\n",
            8 => text = text.replace("kind: ConfigMap", "kind: Nonsense"),
            9 => text = text.replace("name: t", "name: n{{ v0|length }}t"),
            _ => {}
        }
        repo.resource(side, &format!("t{secret}.yaml.j2"), &text);
        writeln!(entries, "- {{provider: resource-template, path: /t{secret}.yaml.j2}}").unwrap();
    }
    for secret in 0..ENTRIES {
        writeln!(entries, "- {{provider: vault-secret, name: e{secret}, path: e/s{secret}, version: 1}}")
            .unwrap();
    }
    repo.entries(side, &entries);
}

/// A wrapper of a program that records its arguments and environment.
fn spy(repo: &SecretsRepo, name: &str) -> String {
    let seen = repo.scratch.path().join("seen");
    std::fs::create_dir_all(&seen).unwrap();
    let script = format!(
        "#!/bin/sh\n{{ echo \"$0 $*\"; env; cat /proc/$PPID/environ | tr '\\0' '\\n'; }} >> {}/{name}.$$\n\
         PATH=${{PATH#*:}} exec {name} \"$@\"\n",
        seen.display()
    );
    let file = repo.scratch.write(&format!("bin/{name}"), script);
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:{}", file.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

/// The output of a command.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A plan of the integrations that use secrets, in a format.
fn plan(repo: &SecretsRepo, path: &str, format: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(repo.scratch.path()).env("PATH", path).args(["plan", "base", "head", "--all", "-v"]);
    command.args(["-i", "openshift-resources", "-i", "openshift-vault-secrets"]);
    command.args(["--sandbox", "sandbox", "--runs", "runs"]).args(format);
    command
}

/// The output of the commands that read run records.
fn stored_records(repo: &SecretsRepo) -> String {
    let run = |words: &[&str]| {
        let output = qontract(repo.scratch.path(), &[words, &["--runs", "runs"]].concat());
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let mut captured = run(&["runs", "list"]) + &run(&["approve", "last"]);
    for id in &run_ids(&repo.scratch.path().join("runs")) {
        for words in [&["runs", "show", id][..], &["runs", "show", id, "-o", "json"], &["explain", "run", id]]
        {
            captured += &run(words);
        }
    }
    captured
}

/// Plans, diffs, logs, metrics, records, audit log, errors, caches, and arguments and environments of
/// children.
#[test]
fn none_of_ten_thousand_secrets_is_printed_stored_or_passed_on() {
    let repo = SecretsRepo::new();
    for side in ["base", "head"] {
        uses_of_ten_thousand(&repo, side);
    }
    // A change of the data.
    repo.resource("base", "t0.yaml.j2", "{{ vault('t/s0', 'f0') }}");
    repo.scratch.git(&["init", "--quiet"]);
    let path = spy(&repo, "git");
    let folder = |name: &str| repo.scratch.path().join(name);
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(repo.scratch.path()).args(words).args(SELECTED).env("PATH", &path);
        command.args(["--data", "head", "--sandbox", "sandbox", "--runs", "runs", "--log-level", "DEBUG"]);
        command.env("XDG_CACHE_HOME", folder("cache")).env("XDG_STATE_HOME", folder("state"));
        command
    };
    let mut captured = String::new();
    for (seed, integration, options) in [
        (1, "openshift-resources", &["--dry-run", "--base", "base"][..]),
        (1, "openshift-resources", &["-o", "json"][..]),
        (1, "openshift-vault-secrets", &["--dry-run"][..]),
        (1, "openshift-vault-secrets", &[][..]),
        // Every value differs, so that everything is changed.
        (2, "openshift-resources", &["--dry-run", "--base", "base"][..]),
        (2, "openshift-vault-secrets", &["--dry-run", "-o", "json"][..]),
        (2, "openshift-resources", &[][..]),
    ] {
        repo.secrets(&ten_thousand(seed));
        if (seed, options.is_empty()) == (2, true) {
            // While everything would still be changed.
            for (format, expect) in [
                (&["-o", "json", "--full"][..], "\"name\": \"e0\""),
                (&["-o", "md"], "**change** `ConfigMap`"),
            ] {
                let text = output(&mut plan(&repo, &path, format));
                let start: String = text.chars().take(2000).collect();
                assert!(text.contains(expect), "{format:?}: the test means something: {start}");
                captured += &text;
            }
        }
        captured += &output(&mut command(&[&["reconcile", integration], options].concat()));
    }
    captured += &stored_records(&repo);
    let mut words =
        command(&["reconcile", "openshift-vault-secrets", "--every", "1h", "--listen", "127.0.0.1:0"]);
    let mut running = Running::of(&mut words);
    captured += &running.until("listening on http://");
    let address = captured.rsplit_once("http://").unwrap().1.trim().trim_end_matches('/').to_owned();
    let lines = running.drain();
    captured += &eventually("the run has ended", || {
        let metrics = get(&address, "/metrics");
        metrics.contains("qontract_reconcile_last_run_status{").then_some(metrics)
    });
    drop(running);
    captured += &lines.join().unwrap();
    for (what, count) in [
        ("run 20", 7),
        ("+ create ConfigMap", 12),
        ("~ change ConfigMap", 12),
        ("object: content that depends on a secret differs", 12),
        ("fields that come from a secret differ", ENTRIES),
        ("neither the reason nor the line is shown", 2),
        ("the kind is not managed in this namespace", 2),
        ("which is not allowed", 2),
    ] {
        assert!(
            captured.matches(what).count() >= count,
            "{what}: the test means something: {}",
            &captured[..2000]
        );
    }
    // All remaining files but the secrets themselves and the objects in the cluster.
    let (cluster, secrets) = (folder(OBJECTS), folder("sandbox/secrets.toml"));
    let left = files(repo.scratch.path()).into_iter().filter(|(name, _)| {
        !name.starts_with(cluster.to_str().unwrap()) && *name != secrets.to_str().unwrap()
    });
    let left: Vec<(String, Vec<u8>)> = left.collect();
    for part in ["/runs/trail.jsonl", "/seen/git."] {
        assert!(left.iter().any(|(name, _)| name.contains(part)), "{part}: the test means something");
    }
    for (name, bytes) in left.into_iter().chain([("the output".to_owned(), captured.into_bytes())]) {
        let text = String::from_utf8_lossy(&bytes);
        for form in forms("canary-") {
            assert_eq!(text.matches(&form).count(), 0, "`{form}` in {name}");
        }
    }
}

/// Another tool does not mark objects that contain secrets: no value of an object that it wrote is shown when
/// fields change or are removed.
#[test]
fn no_value_of_an_adopted_object_is_shown() {
    let fields = r#"{"f:data": {"f:a": {}, "f:gone": {}, "f:lines": {}}}"#;
    let managed = format!(
        "  managedFields:\n  - {{manager: qontract-reconcile, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {fields}}}\n"
    );
    let marks = "  annotations: {qontract.integration: openshift_resources, qontract.integration_version: 0.1.0, qontract.sha256sum: x}\n";
    for (metadata, is_ours) in [(String::new(), false), (managed.clone(), false), (managed + marks, true)] {
        let repo = SecretsRepo::new();
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n";
        let declared = "data: {a: declared, lines: \"one\\ntwo\\n\"}\n";
        repo.resource("head", "plain.yaml", &format!("{object}{declared}"));
        let live = "data: {a: canary-1, lines: \"one\\ncanary-2\\n\", gone: canary-3}\n";
        repo.write_object("ConfigMap/plain", &format!("{object}{metadata}{live}"));
        for options in [&["--dry-run", "--log-level", "DEBUG"][..], &["-o", "json"][..]] {
            let messages = repo.reconcile("openshift-resources", options);
            assert_eq!(messages.code, Some(0), "{}", messages.text);
            let is_check = options[0] == "--dry-run";
            assert!(!is_check || messages.text.contains("~ data.a: \"declared\""), "{}", messages.text);
            assert_eq!(messages.text.contains("data.gone"), is_ours, "{}", messages.text);
            assert_eq!(messages.text.matches("canary-").count(), 0, "{}", messages.text);
        }
    }
}

/// A string, its upper-case form, and the base64 digits that do not depend on its offset.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), text.to_uppercase()];
    for before in ["", "x", "xy"] {
        let (encoded, skip) =
            (STANDARD_NO_PAD.encode(format!("{before}{text}")), (before.len() * 8).div_ceil(6));
        let end = (before.len() + text.len()) * 8 / 6;
        forms.push(encoded[skip..end].to_owned());
    }
    forms
}
