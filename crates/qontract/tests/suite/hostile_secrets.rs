//! Attacks on secrets by an unmerged change: addresses that occur only in the head, identities and faults
//! that depend on a secret, and guesses.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::command::qontract;
use crate::support::loopback::{Loopback, Reply};
use crate::support::running::{Running, get};
use crate::support::secrets_repo::{CommandResult, OBJECTS, SELECTED, SecretsRepo};
use qontract_testkit::eventually;
use qontract_testkit::vault::{ROOT, TestVault};
use serde_json::json;

const RESOURCES: &str = "openshift-resources";
const VAULT_SECRETS: &str = "openshift-vault-secrets";

/// A template of a ConfigMap with these lines.
fn config_map(name: &str, lines: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{lines}")
}

/// The secret of another team, and one that base names.
fn secrets(own: &str, other: &str) -> String {
    format!("[shop.own]\npassword = {own:?}\nuser = \"somebody\"\n[shop.other]\nclient_secret = {other:?}\n")
}

/// Asserts that the output does not depend on the values of these secrets.
fn assert_same_output(
    repo: &SecretsRepo,
    secrets: [&str; 2],
    run: impl Fn() -> CommandResult,
) -> CommandResult {
    let [one, other] = secrets.map(|secrets| {
        repo.secrets(secrets);
        run()
    });
    assert_eq!(one, other, "the output depends on a secret");
    one
}

const LEAKING_NAME: &str = "leak{% for c in vault('shop/other', 'client_secret') %}.{{ c }}{% endfor %}";

#[test]
fn a_secret_that_only_head_names_is_not_read_in_a_check() {
    let repo = SecretsRepo::new();
    let own = config_map("own", "data: {a: \"{{ vault('shop/own', 'password') }}\"}\n");
    repo.template("base", &own);
    let note = "which is new in this change and is not read before it is merged";
    let both = [secrets("canary-own", "madeup"), secrets("canary-own", "hiddenaway")];
    let both = [both[0].as_str(), both[1].as_str()];
    for (template, address) in [
        (config_map(LEAKING_NAME, ""), "the field `client_secret` of the secret `shop/other`"),
        (own.replace("'password'", "'user'"), "the field `user` of the secret `shop/own`"),
        (
            own.replace("'password'", "'password', 2"),
            "the field `password` of the secret `shop/own` in version 2",
        ),
        // One bit at a time: whether it fails, whether there is an object.
        (
            config_map(
                "x",
                "data: {a: \"{% if vault('shop/other', 'client_secret') == 'madeup' %}{{ nope }}{% endif %}\"}\n",
            ),
            "the field `client_secret` of the secret `shop/other`",
        ),
        // The base names the path, but not depending on another secret.
        (
            own.replace("'password'", "vault('shop/own', 'password')"),
            "needs a secret whose address depends on another secret, and it could not be read",
        ),
    ] {
        repo.template("head", &template);
        let messages = assert_same_output(&repo, both, || repo.check(RESOURCES));
        assert_eq!(messages.code, Some(0), "{}", messages.text);
        assert!(messages.text.contains(" 1 not planned"), "{}", messages.text);
        assert!(messages.text.contains(address), "{address}: {}", messages.text);
        assert!(!messages.text.contains("canary") && !messages.text.contains("madeup`"), "{}", messages.text);
        assert!(
            messages.text.contains("+ create ConfigMap `plain`"),
            "the rest is planned: {}",
            messages.text
        );
        if !address.starts_with("needs") {
            assert!(messages.text.contains(note.trim_start_matches("which ")), "{}", messages.text);
        }
        let plan = assert_same_output(&repo, both, || repo.plan(RESOURCES));
        assert!(plan.text.contains(address), "{address}: {}", plan.text);
        assert!(!plan.text.contains("canary") && !plan.text.contains("madeup`"), "{}", plan.text);
    }
    // Secrets that the base names are read, and the operator may trust the head.
    repo.template("head", &own.replace("name: own", "name: renamed"));
    let messages = repo.check(RESOURCES);
    assert!(messages.text.contains("+ create ConfigMap `renamed`"), "{}", messages.text);
    repo.template("head", &own.replace("'password'", "'user'"));
    let messages = repo.reconcile(RESOURCES, &["--dry-run", "--base", "base", "--trust-head"]);
    assert!(messages.text.contains("+ create ConfigMap `own`"), "{}", messages.text);
}

#[test]
fn an_entry_whose_secret_is_new_is_not_read_and_nothing_of_its_kind_is_removed() {
    let repo = SecretsRepo::new();
    repo.secrets(&secrets("canary-own", "canary-other"));
    let entry = |path: &str, version: u32| {
        format!("- {{provider: vault-secret, name: s, path: {path}, version: {version}}}\n")
    };
    repo.entries("base", &entry("shop/own", 1));
    repo.entries("head", &entry("shop/own", 1));
    // The cluster has the object that the base declares, and one that is no longer declared.
    assert_eq!(repo.reconcile(VAULT_SECRETS, &[]).code, Some(0));
    let made = repo.scratch.read(&format!("{OBJECTS}/Secret/s.yaml"));
    repo.write_object("Secret/old", &made.replace("name: s\n", "name: old\n"));
    for (path, version) in [("shop/other", 1), ("shop/own", 2)] {
        repo.entries("head", &entry(path, version));
        let messages = repo.check(VAULT_SECRETS);
        let address = format!("the secret `{path}` in version {version} is new in this change");
        assert!(messages.text.contains(&address), "{}", messages.text);
        assert!(messages.text.contains("left unchanged: Secret `old`"), "{}", messages.text);
        assert!(!messages.text.contains("canary"), "{}", messages.text);
    }
    // Merged, it is read.
    assert_eq!(repo.reconcile(VAULT_SECRETS, &[]).code, Some(0));
    assert!(!repo.scratch.path().join(OBJECTS).join("Secret/old.yaml").exists());
}

#[test]
fn the_store_is_not_queried_for_secrets_that_only_head_names() {
    let (repo, vault) = (SecretsRepo::new(), TestVault::start());
    vault.put("own", &json!({"password": "canary-own"}));
    vault.put("other", &json!({"client_secret": "canary-other"}));
    let config = format!(
        "[sandbox]\ndirectory = \"sandbox\"\n[vault]\nserver = {:?}\ntoken = {ROOT:?}\n",
        vault.url()
    );
    repo.scratch.write("config.toml", config);
    repo.template("base", &config_map("own", "data: {a: \"{{ vault('secret/own', 'password') }}\"}\n"));
    let head = "data: {a: \"{{ vault('secret/own', 'password') }}\", b: \"{{ vault('secret/other', 'client_secret') }}\"}\n";
    repo.template("head", &config_map("own", head));
    let words =
        ["reconcile", RESOURCES, "--data", "head", "--base", "base", "--dry-run", "--config", "config.toml"];
    let run = |more: &[&str]| {
        let output =
            qontract(repo.scratch.path(), &[&words[..], &SELECTED, &["--runs", "runs"], more].concat());
        let printed =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), printed)
    };
    let (code, printed) = run(&[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("the field `client_secret` of the secret `secret/other` is new"), "{printed}");
    assert_eq!(vault.requests("GET /v1/secret/data/other"), 0);
    let (code, printed) = run(&["--trust-head"]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(vault.requests("GET /v1/secret/data/other"), 1, "the test means something");
}

#[test]
fn a_template_may_not_take_an_identity_from_a_secret() {
    let repo = SecretsRepo::new();
    let letters = "{% for c in vault('shop/other', 'client_secret') %}.{{ c }}{% endfor %}";
    let refused = "takes its `apiVersion`, `kind`, name or namespace from a secret, which is not allowed";
    let no_object = "is not an object when secrets are replaced by their addresses";
    for (template, expect) in [
        (config_map(LEAKING_NAME, ""), no_object),
        (config_map("x{{ vault('shop/other', 'client_secret')|length }}", ""), refused),
        (config_map("x", "").replace("ConfigMap", "{{ vault('shop/other', 'client_secret') }}"), refused),
        (config_map("x", "").replace("v1", "{{ vault('shop/other', 'client_secret') }}"), refused),
        (config_map("x", &format!("  namespace: catalog-stage{letters}\n")), refused),
        (
            config_map("x", "").replace(
                "ConfigMap",
                "{{ 'Service' if vault('shop/other', 'client_secret')[0] == 'm' else 'ConfigMap' }}",
            ),
            "",
        ),
        // Whether there is an object, and how many.
        (
            format!(
                "{{% if vault('shop/other', 'client_secret')[0] != 'x' %}}{}{{% endif %}}",
                config_map("x", "")
            ),
            "",
        ),
        (
            format!(
                "{}{{% for c in vault('shop/other', 'client_secret') %}}\n---\n{{% endfor %}}",
                config_map("x", "")
            ),
            no_object,
        ),
        (
            config_map("x", "").replace(
                "name: x",
                "name: x{% if vault('shop/other', 'client_secret')|length > 6 %}y{% endif %}",
            ),
            "",
        ),
    ] {
        repo.template("head", &template);
        for options in [&["--dry-run", "--log-level", "DEBUG"][..], &["--log-level", "DEBUG"][..]] {
            let mut all = Vec::new();
            for secret in ["madeup", "hidden"] {
                repo.secrets(&secrets("x", secret));
                repo.write_object("ConfigMap/any", "");
                std::fs::remove_dir_all(repo.scratch.path().join(OBJECTS)).unwrap();
                let messages = repo.reconcile(RESOURCES, options);
                assert!(!messages.text.contains("m.a.d.e"), "{template}: {}", messages.text);
                assert!(
                    !messages.text.contains("madeup") && !messages.text.contains("hidden"),
                    "{template}: {}",
                    messages.text
                );
                all.push(messages);
            }
            if expect.is_empty() {
                // One bit remains where the base names the secret: whether it is refused.
                assert!(all.iter().all(|messages| matches!(messages.code, Some(0 | 1))));
                continue;
            }
            assert_eq!(all[0], all[1], "{template}");
            assert_eq!(all[0].code, Some(1), "{template}: {}", all[0].text);
            assert!(all[0].text.contains(expect), "{template}: {}", all[0].text);
        }
    }
}

#[test]
fn after_a_secret_was_read_a_fault_shows_neither_line_nor_value() {
    let repo = SecretsRepo::new();
    let mut lines = "data:\n  a: \"{% set c = vault('shop/own', 'password')[0] %}{% if false %}\n".to_owned();
    for letter in 'a'..='z' {
        lines += &format!("    {{% elif c == '{letter}' %}}{{{{ nope_{letter} }}}}\n");
    }
    lines += "    {% endif %}\"\n";
    for template in [
        config_map("x", &lines),
        config_map("x", "data: {a: \"{% raise_error vault('shop/own', 'password') %}\"}\n"),
        config_map("x", "data: {a: \"{{ {}[vault('shop/own', 'password')] }}\"}\n"),
        config_map("x", "data: {a: \"{{ vault('shop/own', vault('shop/own', 'password')) }}\"}\n"),
        config_map("x", "data: {a: {{ vault('shop/own', 'password') }}: {b}}}\n"),
    ] {
        repo.template("base", &template.replace("name: x", "name: y"));
        repo.template("head", &template);
        let both = [secrets("madeupmadeup", ""), secrets("hiddenhidden", "")];
        let both = [both[0].as_str(), both[1].as_str()];
        for options in [&["--dry-run", "--base", "base"][..], &["--log-level", "DEBUG"][..]] {
            let messages = assert_same_output(&repo, both, || {
                repo.write_object("ConfigMap/any", "");
                std::fs::remove_dir_all(repo.scratch.path().join(OBJECTS)).unwrap();
                repo.reconcile(RESOURCES, options)
            });
            // The changed line of the template is public. The fault must not name a line, which could depend on the
            // secret.
            let mut lines = messages.text.lines();
            while lines.by_ref().any(|line| line.starts_with("error: ")) {
                let places = lines.by_ref().take_while(|line| line.starts_with("    -->"));
                let of_template: Vec<&str> = places.filter(|line| line.contains("x.yaml.j2")).collect();
                assert!(
                    of_template.iter().all(|line| line.ends_with("x.yaml.j2")),
                    "no line: {}",
                    messages.text
                );
            }
            assert!(!messages.text.contains("nope_"), "{}", messages.text);
        }
    }
}

#[test]
fn the_names_of_fields_of_a_secret_are_counted_in_a_check_and_recorded_in_a_real_run() {
    let repo = SecretsRepo::new();
    let entry = "- {provider: vault-secret, name: s, path: shop/own, version: 1}\n";
    repo.entries("base", &entry.replace("name: s", "name: r"));
    repo.entries("head", entry);
    repo.secrets("[shop.own]\nfirst = \"1\"\n");
    assert_eq!(repo.reconcile(VAULT_SECRETS, &[]).code, Some(0));
    repo.secrets("[shop.own]\nfirst = \"2\"\ncanarykey = \"1\"\n");
    for messages in [repo.check(VAULT_SECRETS), repo.plan(VAULT_SECRETS)] {
        assert!(messages.text.contains("data: 2 fields that come from a secret differ"), "{}", messages.text);
        assert!(
            !messages.text.contains("canarykey") && !messages.text.contains("first"),
            "{}",
            messages.text
        );
    }
    let messages = repo.reconcile(VAULT_SECRETS, &[]);
    assert!(
        messages.text.contains("+ data.canarykey") && messages.text.contains("~ data.first"),
        "{}",
        messages.text
    );
    // Not even a name that cannot be a key.
    repo.secrets("[shop.own]\n\"canary key\" = \"1\"\n");
    let messages = repo.check(VAULT_SECRETS);
    assert!(
        messages.text.contains("`shop/own` has a field whose name is not a valid Secret key"),
        "{}",
        messages.text
    );
    assert!(!messages.text.contains("canary"), "{}", messages.text);
}

#[test]
fn a_key_that_a_template_takes_from_a_secret_is_never_named() {
    let repo = SecretsRepo::new();
    let text = |key: &str| config_map("x", &format!("data:\n  plain: a\n  {key}: b\n"));
    repo.template("head", &text("old"));
    assert_eq!(repo.reconcile(RESOURCES, &[]).code, Some(0));
    repo.template("head", &text("{{ vault('shop/own', 'password') }}"));
    let both = [secrets("madeup", ""), secrets("hidden", "")];
    let both = [both[0].as_str(), both[1].as_str()];
    let messages = assert_same_output(&repo, both, || repo.reconcile(RESOURCES, &["--dry-run"]));
    assert!(messages.text.contains("object: content that depends on a secret differs"), "{}", messages.text);
    repo.template("base", &text("{{ vault('shop/own', 'password') }}").replace("plain: a", "plain: b"));
    let messages = assert_same_output(&repo, both, || repo.plan(RESOURCES));
    assert!(messages.text.contains("object: content that depends on a secret differs"), "{}", messages.text);
    let messages = repo.reconcile(RESOURCES, &[]);
    assert!(messages.text.contains("object: content that depends on a secret differs"), "{}", messages.text);
    assert!(!messages.text.contains("hidden"), "{}", messages.text);
}

const GUESSES: usize = 1000;

/// Objects with ten guesses each, in labels that differ from those in the cluster. A condition by which a
/// template detects that a value is the address of a secret and not the secret: only addresses have a slash.
const IS_ADDRESS: &str = "'shop/' in s";

/// A loop over all letters that a secret may have, with a body for those that it has.
fn letters(body: &str) -> String {
    format!(
        "{{% set s = vault('shop/own', 'password') %}}\n{{% for i in range(8) %}}{{% for c in 'abcdefghijklmnop' %}}{{% if {IS_ADDRESS} or s[i] == c %}}\n{body}\n{{% endif %}}{{% endfor %}}{{% endfor %}}\n"
    )
}

#[test]
fn a_template_that_detects_placeholders_shows_neither_fields_nor_their_number() {
    let repo = SecretsRepo::new();
    let own = |lines: &str| {
        config_map("own", &format!("data:\n  pw: \"{{{{ vault('shop/own', 'password') }}}}\"\n{lines}"))
    };
    repo.template("base", &own(""));
    repo.template("head", &own(""));
    let [one, other] = [secrets("abcdefgh", "x"), secrets("ponmlkji", "x")];
    repo.secrets(&one);
    assert_eq!(repo.reconcile(RESOURCES, &[]).code, Some(0));
    let count = format!(
        "{{% set s = vault('shop/own', 'password') %}}\n{{% if not ({IS_ADDRESS}) %}}{{% for i in range('abcdefghijklmnop'.find(s[0]) + 1) %}}\n  k{{{{ i }}}}: x\n{{% endfor %}}{{% endif %}}\n"
    );
    for lines in [letters("  p{{ i }}_{{ c }}: x"), count] {
        repo.template("head", &own(&lines));
        let messages = assert_same_output(&repo, [&one, &other], || repo.check(RESOURCES));
        assert!(
            messages.text.contains("object: content that depends on a secret differs"),
            "{}",
            messages.text
        );
    }
    repo.secrets(&one);
    let messages = repo.reconcile(RESOURCES, &[]);
    assert!(
        messages.code == Some(0) && !messages.text.contains("p0_a") && !messages.text.contains("k0"),
        "{}",
        messages.text
    );
}

#[test]
fn no_external_request_depends_on_a_secret() {
    let repo = SecretsRepo::new();
    let server = Loopback::start(|_| Reply::Full("200 OK", String::new(), "x".to_owned()));
    let body = format!("  p{{{{ i }}}}: \"{{{{ url('{}/ok/' ~ i ~ c) }}}}\"", server.url());
    let own = config_map(
        "own",
        &format!("data:\n  pw: \"{{{{ vault('shop/own', 'password') }}}}\"\n{}", letters(&body)),
    );
    repo.template("base", &own);
    repo.template("head", &own);
    let config = |word: &str| {
        format!(
            "[templates]\nallow_urls = [\"{}/ok/\"]\n[sandbox]\ndirectory = \"sandbox\"\n[shop.own]\npassword = \"{word}\"\n",
            server.url()
        )
    };
    let requests = ["abcdefgh", "ponmlkji"].map(|word| {
        repo.scratch.write("config.toml", config(word));
        let before = server.seen().len();
        let messages = repo.reconcile(RESOURCES, &["--dry-run", "--config", "config.toml"]);
        let mut seen = server.seen().split_off(before);
        seen.sort();
        (seen, messages.code)
    });
    assert_eq!(requests[0], requests[1]);
}

fn guess(repo: &SecretsRepo) {
    let own = "- {provider: resource-template, path: /own.yaml.j2}\n";
    let text = config_map("own", "data: {a: \"{{ vault('shop/own', 'password') }}\"}\n");
    repo.resource("base", "own.yaml.j2", &text);
    repo.entries("base", own);
    // Also in a key of an object that holds the secret, composed by the template.
    let keys = "data: {a: \"{{ vault('shop/own', 'password') }}\", {{ 'guess-' ~ '0500-abcdef' }}: x}\n";
    repo.resource("head", "own.yaml.j2", &config_map("own", keys));
    let mut entries = own.to_owned();
    for object in 0..GUESSES / 10 {
        let label = |number: usize| format!("    l{number}: guess-{:04}-abcdef\n", object * 10 + number);
        let labels: String = (0..10).map(label).collect();
        let name = format!("g{object}");
        repo.resource("head", &format!("{name}.yaml"), &config_map(&name, &format!("  labels:\n{labels}")));
        entries += &format!("- {{provider: resource, path: /{name}.yaml}}\n");
        let labels = labels.replace("guess-", "other-");
        repo.write_object(&format!("ConfigMap/{name}"), &config_map(&name, &format!("  labels:\n{labels}")));
    }
    repo.entries("head", &entries);
    repo.write_object("ConfigMap/own", &config_map("own", "data: {a: x}\n"));
}

#[test]
fn a_right_guess_looks_like_a_wrong_one() {
    let repo = SecretsRepo::new();
    guess(&repo);
    let both = [secrets("guess-0500-abcdef", ""), secrets("nobody-guesses-this", "")];
    let both = [both[0].as_str(), both[1].as_str()];
    let messages = assert_same_output(&repo, both, || repo.check(RESOURCES));
    assert_eq!(messages.code, Some(0), "{}", messages.text);
    let shown = (0..GUESSES)
        .filter(|number| messages.text.contains(&format!(": \"guess-{number:04}-abcdef\"")))
        .count();
    assert_eq!(shown, GUESSES, "every guess is shown: {}", &messages.text[..3000]);
    assert!(!messages.text.contains("redacted"), "{}", messages.text);
    // A loop counts redactions: there are none, right or wrong.
    let metrics = both.map(|secrets| {
        repo.secrets(secrets);
        loop_metrics(&repo)
    });
    assert_eq!(metrics, [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn values_in_no_file_of_head_are_redacted_and_counted() {
    let repo = SecretsRepo::new();
    repo.secrets(&secrets("in-the-cluster-only", ""));
    let own = config_map("own", "data: {a: \"{{ vault('shop/own', 'password') }}\"}\n");
    repo.template("base", &own);
    let labels = |c: &str| config_map("l", &format!("  labels: {{a: b, c: {c}}}\n"));
    repo.resource("head", "l.yaml", &labels("e"));
    repo.template("head", &own);
    let template =
        "- {provider: resource-template, path: /x.yaml.j2}\n- {provider: resource, path: /l.yaml}\n";
    repo.entries("head", template);
    assert_eq!(repo.reconcile(RESOURCES, &[]).code, Some(0));
    let made = repo.scratch.read(&format!("{OBJECTS}/ConfigMap/l.yaml"));
    assert!(made.contains("a: b\n"), "{made}");
    repo.write_object("ConfigMap/l", &made.replace("a: b\n", "a: in-the-cluster-only\n"));
    repo.resource("head", "l.yaml", &labels("d"));
    let messages = repo.check(RESOURCES);
    assert!(!messages.text.contains("in-the-cluster-only"), "{}", messages.text);
    assert!(
        messages.text.contains("[redacted]") && messages.text.contains("metadata.labels.c: \"e\" → \"d\""),
        "{}",
        messages.text
    );
    assert_eq!(
        loop_metrics(&repo),
        [r#"qontract_reconcile_redactions_total{integration="openshift-resources"} 1"#]
    );
}

/// The redaction metrics of a loop of dry runs after its first run.
fn loop_metrics(repo: &SecretsRepo) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command
        .current_dir(repo.scratch.path())
        .args([
            "reconcile",
            RESOURCES,
            "--dry-run",
            "--every",
            "1h",
            "--data",
            "head",
            "--sandbox",
            "sandbox",
        ])
        .args(["--runs", "loop", "--listen", "127.0.0.1:0"])
        .args(SELECTED);
    let mut running = Running::of(&mut command);
    let printed = running.until("listening on http://");
    let address = printed.split_once("http://").unwrap().1.trim().trim_end_matches('/').to_owned();
    let lines = running.drain();
    let metrics = eventually("the run has ended", || {
        let metrics = get(&address, "/metrics");
        metrics.contains("qontract_reconcile_last_run_status{").then_some(metrics)
    });
    drop(running);
    drop(lines.join());
    metrics
        .lines()
        .filter(|line| line.starts_with("qontract_reconcile_redactions_total"))
        .map(str::to_owned)
        .collect()
}
