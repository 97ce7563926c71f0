//! Hostile data through every command, in every format: no output controls a terminal or is displayed in
//! another order, and files are readable only by their owner.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::records::run_ids;
use qontract_testkit::{Scratch, example};
use serde_json::json;

/// A style that qontract never uses, a bell, a one-byte CSI, a deletion, and characters that reverse or hide
/// text.
const HOSTILE: &str = "e\u{1b}[35;7mv\u{7}i\u{9b}1ml\u{7f}\u{202e}x\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}";
/// The hostile text as a quoted YAML scalar.
const QUOTED: &str = r#""e\e[35;7mv\ai\x9b1ml\x7f\u202Ex\u2066\u200B\u2028\uFEFF\U000E0041""#;

/// Whether a character must not be printed, except for newlines. The list is independent of the
/// implementation.
fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(code, 0xad | 0x61c | 0x180e | 0x200b | 0x200e | 0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f)
}

/// A hostile valid data repo, a hostile one with errors, the example, and a program with hostile responses.
fn fixture() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "base");
    for repo in ["repo", "broken"] {
        scratch.copy(&example(), repo);
        let edit = |file: &str, from: &str, to: &str| {
            let (file, text) = (format!("{repo}/{file}"), scratch.read(&format!("{repo}/{file}")));
            assert!(text.contains(from), "{file} has no {from}");
            scratch.write(&file, text.replacen(from, to, 1));
        };
        let namespace = "data/services/catalog/namespaces/catalog-stage.yml";
        edit("data/services/catalog/app.yml", "name: Catalog team", &format!("name: {QUOTED}"));
        edit("data/services/billing/app.yml", "invoices, refunds and the ledger", QUOTED);
        edit(namespace, "catalog before it meets customers", QUOTED);
        edit(namespace, "tier: edge", &format!("tier: {QUOTED}"));
        edit(namespace, "    service: catalog\n", &format!("    service: {QUOTED}\n"));
        edit(
            "resources/shop/catalog/search-index.service.yaml",
            "name: search-index",
            &format!("name: {QUOTED}"),
        );
        edit("resources/platform/ca-bundle.configmap.yaml", "data:", &format!("data:\n  {QUOTED}: {QUOTED}"));
        let app = scratch.read(&format!("{repo}/data/services/observability/app.yml"));
        let app = app.replace("name: observability", "name: hostile").replace("appCode: ", "appCode: X");
        scratch.write(&format!("{repo}/data/services/{HOSTILE}/app.yml"), app);
        scratch.write(&format!("{repo}/resources/{HOSTILE}.txt"), HOSTILE);
    }
    scratch.write(&format!("broken/data/{HOSTILE}.yml"), format!("---\nname: {HOSTILE}\nb: [\n"));
    let app = scratch.read("broken/data/services/billing/app.yml");
    scratch.write(
        "broken/data/services/billing/app.yml",
        format!("{app}{QUOTED}: {QUOTED}\nproduct: {QUOTED}\n"),
    );
    scratch.write("object.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {QUOTED}}}\n"));
    program(&scratch);
    held(&scratch);
    scratch
}

/// The record of a run that held a removal with a hostile name.
fn held(scratch: &Scratch) {
    let approval = format!(
        "integration: x\nexpiration: \"2099-01-31\"\nremovals:\n- target: {QUOTED}\n  kind: {QUOTED}\n  name: {QUOTED}\n"
    );
    let record = json!({
        "run": "20270115T080000Z-x-aaaaa", "began": 1_800_000_000, "milliseconds": 1, "integration": "x", "mode": "real run",
        "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1", "decisions": [],
        "shards": {}, "faults": [], "warnings": [], "approval": approval, "ended": "held", "exit": 1,
    });
    scratch.write("removals/20270115T080000Z-x-aaaaa.json", record.to_string());
}

/// A process integration with hostile text in every field.
fn program(scratch: &Scratch) {
    let scope = json!([["app", HOSTILE]]);
    let thing = json!({"scope": scope, "kind": HOSTILE, "name": HOSTILE});
    let change = json!({"kind": "add", "thing": thing, "what": HOSTILE, "diff": [HOSTILE]});
    let answers = [
        (
            "describe",
            json!({"name": "service-dependencies", "description": HOSTILE, "flags": [{"name": "app", "help": HOSTILE}]}),
        ),
        (
            "declare",
            json!({"shards": [{"key": scope, "state": 1}], "faults": [{"key": [["a", HOSTILE]], "text": HOSTILE, "hint": HOSTILE}]}),
        ),
        (
            "plan",
            json!({
                "scopes": [{"scope": scope, "count": 1}, {"scope": [["x", HOSTILE]], "unknown": HOSTILE}],
                "wants": [{"thing": thing, "unresolved": HOSTILE}],
                "groups": [{"name": HOSTILE, "steps": [{"changes": [change], "action": {}}]}],
                "waits": [HOSTILE],
                "faults": [{"text": HOSTILE, "hint": HOSTILE}],
            }),
        ),
    ];
    for (phase, answer) in answers {
        scratch.write(&format!("program/{phase}.json"), answer.to_string());
    }
    scratch.write("program/apply.err", HOSTILE);
    let run = scratch.write(
        "program/run.sh",
        "cd \"$(dirname \"$0\")\"\nif [ $1 = apply ]; then cat apply.err >&2; exit 1; fi\ncat $1.json\n",
    );
    let config = format!("[integrations.service-dependencies]\ncommand = [\"sh\", \"{}\"]\n", run.display());
    scratch.write("config.toml", config);
}

/// Command lines, and whether their output contains hostile text (`+`) or not (`-`). `HOSTILE` and `RUN` are
/// placeholders for the text and for a run.
const ROWS: &str = "
    - bundle repo -o bundle.json
    + bundle repo
    + bundle broken
    + bundle HOSTILE
    + bundle repo -o /nowhere/HOSTILE
    + up repo --once --sandbox sandbox --runs runs --log-level DEBUG
    + up repo --once --dry-run --sandbox empty --runs runs --log-format json
    + up broken --once --sandbox empty --runs runs
    + reconcile openshift-namespace-labels --data repo --sandbox empty --runs runs --dry-run --log-level DEBUG
    + reconcile openshift-namespace-labels --data repo --sandbox empty --runs runs --dry-run -o json
    + reconcile openshift-resources --data repo --sandbox sandbox --runs runs --dry-run
    + reconcile openshift-namespaces --data broken --sandbox empty --runs runs --dry-run
    + reconcile service-dependencies --data repo --config config.toml --runs runs --dry-run -o json
    + reconcile service-dependencies --data repo --config config.toml --runs runs
    + reconcile service-dependencies --config config.toml --help
    + reconcile HOSTILE
    + reconcile service-dependencies --data repo --config config.toml --runs runs --dry-run -o md
    + up repo --once --dry-run --sandbox empty --runs runs -o md
    + plan base repo --sandbox empty --runs plans --config config.toml
    + plan base repo --sandbox empty --runs plans --config config.toml -o md --full
    + plan base repo --sandbox empty --runs plans --config config.toml -o json
    + plan base repo --sandbox empty --runs plans -i HOSTILE
    + plan HOSTILE repo --sandbox empty
    + plan base broken --sandbox empty -o md
    + plan base broken --sandbox empty -o json
    + diff base repo -o text
    + diff base repo -o md
    + diff base repo -o json
    + diff repo broken
    + validate repo
    + validate bundle.json
    + validate broken
    + validate broken -o json
    + validate HOSTILE
    - schema export schemas --from repo
    + schema export HOSTILE --from repo
    - journal init --runs runs
    - journal check --runs runs
    - journal export backup --runs runs
    - journal import backup --runs runs
    - journal prune --runs runs --dry-run
    - loop pause --all --sandbox empty --reason HOSTILE
    + loop resume HOSTILE --sandbox empty
    - loop list --sandbox empty
    + loop drain HOSTILE --sandbox empty --reason x
    + loop run HOSTILE --sandbox empty
    - state ls HOSTILE --sandbox sandbox
    + state get x HOSTILE --sandbox sandbox
    + state set x HOSTILE 1 --sandbox sandbox --runs runs
    + state rm x HOSTILE --sandbox sandbox --runs runs
    - get --data repo
    + get apps --data repo -o table
    + get apps --data repo -o wide
    + get apps --data repo -o json
    + get apps --data repo -o yaml
    + get resources --data repo -o yaml
    + get namespaces --data repo -o wide
    + get apps HOSTILE --data repo
    + get HOSTILE --data repo
    + query {apps_v1{name,path,serviceOwners{name}}} --data repo
    + query {apps_v1{name,path,serviceOwners{name}}} --data repo --provenance
    - query {HOSTILE} --data repo
    + query {apps_v1(path:\"HOSTILE\"){name}} --data HOSTILE
    + serve broken --listen 127.0.0.1:0
    + serve --bundle HOSTILE --listen 127.0.0.1:0
    + affected base repo --config config.toml
    + affected base repo --config config.toml -o json
    + affected base repo --config config.toml -o md
    + affected HOSTILE repo
    + integrations --config config.toml
    + integrations list --config config.toml
    + integrations list --config config.toml -o json
    - integrations list --config config.toml -o name
    - integrations schemas openshift-namespaces --data repo
    + integrations schemas HOSTILE --data repo
    + fleet plan --data HOSTILE --sandbox empty
    - fleet status --data repo --sandbox sandbox
    + fleet explain HOSTILE --data repo --sandbox sandbox
    - shards of HOSTILE --shards 3
    + shards of a --shards HOSTILE
    + inventory hash --file object.yaml
    + inventory hash --file HOSTILE
    - explain
    - explain Q1007
    + explain HOSTILE
    + explain run RUN --runs runs
    - runs --runs runs
    - runs list --runs runs
    + runs list --runs runs --last HOSTILE
    + runs show RUN --runs runs
    + runs show HOSTILE --runs runs
    - runs replay RUN --runs runs
    + runs replay HOSTILE --runs runs
    - runs list --runs runs -o json
    + runs list --runs runs --since HOSTILE
    + runs show RUN --runs runs -o json
    + approve last --runs removals
    + approve HOSTILE --runs runs
    - config check --config config.toml --data repo
    + config check --config HOSTILE
    + config check --config HOSTILE -o json
    - config init new.toml
    + config init HOSTILE
    - config reference
    + peer bundler repo/schemas repo/graphql-schemas/schema.yml repo/data repo/resources c 1
    + peer bundler broken/schemas broken/graphql-schemas/schema.yml broken/data broken/resources c 1
    + peer reconcile --config config.toml --dry-run service-dependencies --data repo --runs runs
    + INTEGRATION_NAME=HOSTILE CONFIG=config.toml RUN_ONCE=true peer run-integration
    + LOAD_METHOD=fs DATAFILES_FILE=HOSTILE peer server --listen 127.0.0.1:0
    + peer validator bundle.json
    + peer validator nowhere/HOSTILE
    - completions bash
    - man pages
    + man HOSTILE
    - help reconcile
    + help HOSTILE
    - version
    + validate broken/data/HOSTILE broken/data
";

/// A command line and the expectation about its output.
struct OutputRow {
    environment: Vec<(String, String)>,
    line: Vec<String>,
    shows: bool,
}

impl OutputRow {
    fn all() -> Vec<Self> {
        ROWS.lines().map(str::trim).filter(|line| !line.is_empty()).map(Self::of).collect()
    }

    fn of(line: &str) -> Self {
        let (sign, line) = line.split_once(' ').unwrap();
        let words = line.split(' ').map(|word| word.replace("HOSTILE", HOSTILE));
        let is_variable =
            |word: &String| word.starts_with(|first: char| first.is_ascii_uppercase()) && word.contains('=');
        let (variables, line): (Vec<String>, _) = words.partition(is_variable);
        let pair =
            |word: String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { environment: variables.into_iter().filter_map(pair).collect(), line, shows: sign == "+" }
    }

    /// The output.
    fn output(&self, scratch: &Scratch, colour: (&str, &str)) -> String {
        let words = self.line.iter().map(|word| if word == "RUN" { last_run(scratch) } else { word.clone() });
        let output = Command::new(env!("CARGO_BIN_EXE_qontract"))
            .current_dir(scratch.path())
            .args(words)
            .envs(self.environment.iter().cloned())
            .env(colour.0, colour.1)
            .env("QONTRACT_CACHE", "off")
            .env("HOME", scratch.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// The problem in its output, if there is one.
    fn problem(&self, scratch: &Scratch) -> Option<String> {
        let (text, name) =
            (self.output(scratch, ("NO_COLOR", "1")), self.line.join(" ").escape_default().to_string());
        if let Some(at) = text.find(is_unsafe) {
            let before: String =
                text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
            return Some(format!("`{name}` prints {:?} behind {before:?}", text[at..].chars().next()));
        }
        if text.to_lowercase().contains("202e") != self.shows {
            let text: String = text.chars().take(500).collect();
            return Some(format!("`{name}` was to show hostile text: {}\n{text:?}", self.shows));
        }
        None
    }
}

/// The subcommands that `--help` lists; those of integrations count as one.
fn commands(above: &[&str], found: &mut BTreeSet<String>) {
    let output = Command::new(env!("CARGO_BIN_EXE_qontract")).args(above).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let name = above.join(" ");
    let is_command = help.contains("Usage: qontract") && !help.contains("<COMMAND>");
    if is_command {
        found.insert(name);
    }
    // Top-level commands are listed in groups, subcommands in one list.
    let groups = ["Commands:", "Start here:", "Data:", "Reconciliation:", "Inspection:", "Setup and other:"];
    let is_list = |section: &&str| section.lines().next().is_some_and(|line| groups.contains(&line));
    for line in help.split("\n\n").filter(is_list).flat_map(|section| section.lines().skip(1)) {
        if let Some(word) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            commands(&[above, &[word.split(' ').next().unwrap()]].concat(), found);
        }
    }
}

#[test]
fn every_command_has_a_row() {
    let mut found = BTreeSet::new();
    commands(&[], &mut found);
    assert!(found.len() > 20, "{found:?}");
    let rows: Vec<String> = OutputRow::all().iter().map(|row| row.line.join(" ") + " ").collect();
    let has_row = |name: &String| rows.iter().any(|row| row.starts_with(&format!("{name} ")));
    let without: Vec<&String> = found.iter().filter(|name| !has_row(name)).collect();
    assert!(without.is_empty(), "commands that are not run over hostile data: {without:?}");
}

#[test]
fn every_command_prints_hostile_data_as_escapes() {
    let scratch = fixture();
    let wrong: Vec<String> = OutputRow::all().iter().filter_map(|row| row.problem(&scratch)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The last run of the program.
fn last_run(scratch: &Scratch) -> String {
    let runs = run_ids(&scratch.path().join("runs"));
    runs.into_iter().filter(|name| name.contains("service-dependencies")).max().unwrap()
}

#[test]
fn all_colours_come_from_our_styles() {
    let scratch = fixture();
    for line in [
        "validate broken",
        "bundle broken",
        "diff base repo",
        "affected base repo --config config.toml",
        "plan base repo --sandbox empty --runs plans --config config.toml --full",
        "reconcile service-dependencies --data repo --config config.toml --runs runs --dry-run",
    ] {
        let text = OutputRow::of(&format!("+ {line}")).output(&scratch, ("CLICOLOR_FORCE", "1"));
        assert!(text.contains("\u{1b}["), "`{line}` is coloured: {text}");
        assert!(!text.contains("\u{1b}[35;7m"), "`{line}` shows the colours of the data");
        let rest = text.replace('\u{1b}', "");
        assert_eq!(rest.chars().find(|character| is_unsafe(*character)), None, "`{line}`");
    }
}

/// Asserts that only the owner has permissions below a directory, and returns the number of files.
fn check_modes(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, about) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        let (mode, expected) =
            (about.permissions().mode() & 0o777, if about.is_dir() { 0o700 } else { 0o600 });
        assert_eq!(format!("{mode:o}"), format!("{expected:o}"), "{}", path.display());
        files += if about.is_dir() { check_modes(&path) } else { 1 };
    }
    files
}

#[test]
fn only_its_owner_may_read_a_sandbox() {
    let scratch = Scratch::copy_of(&example());
    let binary = env!("CARGO_BIN_EXE_qontract");
    let up = || {
        let line = format!("umask 022; exec {binary} up . --once --sandbox box --runs records");
        let output = Command::new("sh").current_dir(scratch.path()).args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mode =
        |path: &str| std::fs::metadata(scratch.path().join(path)).unwrap().permissions().mode() & 0o777;
    let open = |path: &str, mode: u32| {
        std::fs::set_permissions(scratch.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    up();
    assert_eq!((mode("box"), mode("records")), (0o700, 0o700));
    assert!(check_modes(&scratch.path().join("box")) > 50);
    assert!(check_modes(&scratch.path().join("records")) > 5);
    // Files of a sandbox of an older version become private when they are written.
    let secret = "box/clusters/cliffs-stage/catalog-stage/Secret";
    let file = format!("{secret}/catalog-search.yaml");
    for folder in
        ["box/clusters", "box/clusters/cliffs-stage", "box/clusters/cliffs-stage/catalog-stage", secret]
    {
        open(folder, 0o755);
    }
    let text = scratch.read(&file);
    scratch.write(&file, text.replace("bWFkZS11cA==", "eA=="));
    open(&file, 0o644);
    up();
    assert!(scratch.read(&file).contains("bWFkZS11cA=="), "it was written again");
    check_modes(&scratch.path().join("box"));
}

/// The peak memory of a process in KiB, and its output.
fn highest_memory(command: &mut Command) -> (u64, Output) {
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (status, mut highest) = (format!("/proc/{}/status", child.id()), 0);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_mins(1), "it takes too long");
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        highest = highest.max(now.unwrap_or_default());
        std::thread::yield_now();
    }
    (highest, child.wait_with_output().unwrap())
}

#[test]
fn many_small_values_of_a_program_stay_within_the_stated_memory() {
    // 44 MB of small scopes in each of three shards; and as many as are accepted.
    for (scopes, is_taken) in [(1_300_000, false), (40_000, true)] {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        program(&scratch);
        scratch.write(
            "program/describe.json",
            json!({"name": "service-dependencies", "description": ""}).to_string(),
        );
        let shard = |name: &str| json!({"key": [["app", name]], "state": 1});
        let declared = json!({"shards": [shard("a"), shard("b"), shard("c")]});
        scratch.write("program/declare.json", declared.to_string());
        let mut plan = String::from("{\"scopes\": [");
        for number in 0..scopes {
            let comma = if number == 0 { "" } else { "," };
            plan.push_str(&format!("{comma}{{\"scope\":[[\"s\",\"{number}\"]]}}"));
        }
        scratch.write("program/plan.json", plan + "]}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        let line = "reconcile service-dependencies --data repo --config config.toml --runs runs --dry-run";
        let (highest, output) = highest_memory(command.current_dir(scratch.path()).args(line.split(' ')));
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.contains("it has more than 500000 JSON values"), !is_taken, "{text}");
        assert_eq!(output.status.success(), is_taken, "{text}");
        assert!(highest < 768 << 10, "{highest} KiB for {scopes} scopes");
    }
}
