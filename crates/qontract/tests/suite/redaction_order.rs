//! Values are redacted before they are shortened or compared line by line: no part of a secret is shown
//! because the rest of it was cut off. The secret is in a live object that no type marks as sensitive, so
//! only redaction keeps it out of reports.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::command::qontract;
use crate::support::records::run_ids;
use crate::support::secrets_repo::{OBJECTS, SELECTED, SecretsRepo, files};

const LIVE: &str = "ConfigMap/plain";

/// A run on a sandbox, in which no removal passes the guards without approval.
const CONFIG: &str = "[sandbox]\ndirectory = \"sandbox\"\n[guards]\nshard_removals = 0\nshard_percent = 0\n";

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A data repo whose namespace reads `secret`, and whose object `plain` declares `declared` and has `live` in
/// the cluster.
fn drifted(secret: &str, declared: &str, live: &str) -> SecretsRepo {
    let repo = SecretsRepo::new();
    repo.scratch.write("config.toml", CONFIG);
    repo.secrets(&format!("[shop.own]\npassword = {}\n", quoted(secret)));
    let plain = |value: &str| {
        for side in ["base", "head"] {
            let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
            repo.resource(side, "plain.yaml", &format!("{object}data: {{a: {value}}}\n"));
        }
    };
    for side in ["base", "head"] {
        repo.template(side, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {p: \"{{ vault('shop/own', 'password')|length }}\"}\n");
    }
    plain("PLACEHOLDER");
    assert_eq!(repo.reconcile("openshift-resources", &[]).code, Some(0));
    let made = repo.scratch.read(&format!("{OBJECTS}/{LIVE}.yaml"));
    assert!(made.contains("a: PLACEHOLDER"), "{made}");
    repo.write_object(LIVE, &made.replace("a: PLACEHOLDER", &format!("a: {}", quoted(live))));
    plain(&quoted(declared));
    repo
}

/// The commands that report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commands {
    /// A plan and a real run, with their records.
    Few,
    /// Also plans in all formats, dry runs and the commands that print records.
    All,
}

/// The printed output and the stored files.
fn reports(repo: &SecretsRepo, commands: Commands) -> String {
    let mut text = String::new();
    let mut run = |words: &[&str]| {
        let output = qontract(repo.scratch.path(), words);
        text += &format!("$ {words:?} {:?}\n", output.status.code());
        text += &String::from_utf8_lossy(&output.stdout);
        text += &String::from_utf8_lossy(&output.stderr);
    };
    let is_all = commands == Commands::All;
    let here = ["--config", "config.toml", "--runs", "runs"];
    let plan = ["plan", "base", "head", "--all", "-i", "openshift-resources", "-v"];
    let formats: [&[&str]; 5] = [&["--full"], &["-o", "json"], &["-o", "md"], &[], &["--full", "-o", "md"]];
    for more in &formats[..if is_all { 5 } else { 1 }] {
        run(&[&plan[..], more, &here].concat());
    }
    let reconcile = ["reconcile", "openshift-resources", "--data", "head", "--log-level", "DEBUG"];
    let modes: [&[&str]; 3] = [&[], &["--dry-run"], &["--dry-run", "-o", "json"]];
    for more in modes[..if is_all { 3 } else { 1 }].iter().rev() {
        run(&[&reconcile[..], &SELECTED, more, &here].concat());
    }
    if is_all {
        run(&["runs", "list", "--runs", "runs"]);
        run(&["approve", "last", "--runs", "runs"]);
        for id in &run_ids(&repo.scratch.path().join("runs")) {
            run(&["runs", "show", id, "--runs", "runs"]);
            run(&["runs", "show", id, "--runs", "runs", "-o", "json"]);
            run(&["explain", "run", id, "--runs", "runs"]);
        }
    }
    for (name, file) in files(repo.scratch.path()) {
        let is_input = ["/base/", "/head/", "/secrets.toml", OBJECTS].iter().any(|part| name.contains(part));
        if !is_input {
            text += &format!("{name}\n{}\n", String::from_utf8_lossy(&file));
        }
    }
    text
}

/// No eight characters of the secret in a row are in any report, and the change itself is.
fn check(secret: &str, declared: &str, live: &str) {
    check_in(Commands::Few, secret, declared, live);
}

fn check_in(commands: Commands, secret: &str, declared: &str, live: &str) {
    let repo = drifted(secret, declared, live);
    let text = reports(&repo, commands);
    assert!(text.matches("~ change ConfigMap `plain`").count() >= 2, "the test means something: {text}");
    assert!(text.contains("[redacted]"), "the test means something: {text}");
    let letters: Vec<char> = secret.chars().filter(|one| !one.is_control()).collect();
    for part in letters.windows(8).map(|part| part.iter().collect::<String>()) {
        let line = text.lines().find(|line| line.contains(&part));
        assert!(line.is_none(), "`{part}` of the secret is in {}", line.unwrap());
    }
}

const SECRET: &str = "canary-0123456789abcdefghijklmnopqrstuvwxyz-ZYXWVUTSRQPONMLKJIHGFEDCBA";

#[test]
fn a_secret_in_which_a_value_is_cut_is_not_shown() {
    check_in(Commands::All, SECRET, "other", &format!("{}{SECRET}", "x".repeat(185)));
    check(SECRET, "other", &format!("{}{SECRET}", "x".repeat(150)));
    let long = SECRET.repeat(5);
    check(&long, "other", &long);
}

#[test]
fn a_secret_in_which_the_context_of_a_difference_begins_is_not_shown() {
    // The values are equal up to the middle of the secret, before which the shown context would begin.
    let both = format!("{}{}", "x".repeat(200), &SECRET[..50]);
    let repo = drifted(SECRET, &format!("{both} else"), &format!("{both}{} end", &SECRET[50..]));
    let text = reports(&repo, Commands::Few);
    assert!(text.contains("[redacted]") && text.contains("~ change ConfigMap `plain`"), "{text}");
    assert!(!text.contains(&SECRET[50..60]) && !text.contains("DCBA end"), "{text}");
}

#[test]
fn a_secret_in_a_string_that_is_compared_line_by_line_is_not_shown() {
    // A line is longer than the part that is shown.
    let line = format!("{}{SECRET}", "x".repeat(185));
    check(SECRET, "first\nother\nlast\n", &format!("first\n{line}\nlast\n"));
    // Lines of a secret that are too short to be recognised one by one.
    let lines: Vec<String> = (0..6).map(|number| format!("canary-{number}-{}", &SECRET[10..24])).collect();
    let secret = lines.join("\n");
    check(&secret, "first\nlast\n", &format!("first\n{secret}\nlast\n"));
    // More lines than are shown.
    let many = "line\n".repeat(40);
    check(&secret, "none\n", &format!("{many}{secret}\n"));
}

#[test]
fn a_secret_in_a_block_scalar_or_wrapped_base64_is_not_shown() {
    let lines: Vec<String> = (0..6).map(|number| format!("canary-{number}-{}", &SECRET[10..24])).collect();
    let secret = lines.join("\n");
    let indented = lines.iter().map(|line| format!("    {line}\n")).collect::<Vec<_>>().concat();
    check(&secret, "key: none\n", &format!("key: |\n{indented}"));
    let encoded: Vec<char> = base64(SECRET).chars().collect();
    let wrapped: Vec<String> = encoded.chunks(16).map(|part| part.iter().collect()).collect();
    let repo = drifted(SECRET, "none\n", &format!("{}\n", wrapped.join("\n")));
    let text = reports(&repo, Commands::Few);
    assert!(text.contains("[redacted]"), "{text}");
    for part in &wrapped[1..wrapped.len() - 1] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_secret_in_escapes_of_several_kinds_is_not_shown() {
    let secret = "canary \u{1} \"quoted\" \\ back\tslash ümläut-\u{7}-end";
    let json = serde_json::to_string(secret).unwrap();
    for live in [
        secret.to_owned(),
        json.clone(),
        serde_json::to_string(&json).unwrap(),
        format!("{secret:?}"),
        secret.replace('ü', "u\u{308}").replace('ä', "a\u{308}"),
        secret.to_uppercase(),
        secret.to_lowercase(),
    ] {
        let repo = drifted(secret, "other", &live);
        let text = reports(&repo, Commands::Few);
        assert!(text.contains("[redacted]"), "{live}: {text}");
        for part in ["canary", "CANARY", "back\\", "quoted"] {
            assert!(!text.contains(part), "{part} of {live}: {text}");
        }
    }
}

#[test]
fn a_secret_that_is_the_name_of_a_removed_field_is_neither_shown_nor_stored() {
    let secret = "canary-0123456789abcdef";
    let repo = drifted(secret, "other", "other");
    let path = format!("{OBJECTS}/{LIVE}.yaml");
    let made = repo.scratch.read(&path);
    // Removed fields of ours: more than the guard allows without approval, so that the reason is stored in
    // the ledger.
    let extra = (0..6).map(|number| format!("  {secret}.{number}: v\n")).collect::<Vec<_>>().concat();
    assert!(made.contains("data:\n"), "{made}");
    let owned = (0..6).map(|number| format!(",\"f:{secret}.{number}\":{{}}")).collect::<Vec<_>>().concat();
    assert!(made.contains("\"f:a\":{}"), "{made}");
    let made = made
        .replace("data:\n", &format!("data:\n{extra}"))
        .replace("\"f:a\":{}", &format!("\"f:a\":{{}}{owned}"));
    repo.scratch.write(&path, made);
    let text = reports(&repo, Commands::All);
    assert!(text.contains("it loses 6 of"), "the test means something: {text}");
    assert!(!text.contains("canary-"), "{text}");
}
