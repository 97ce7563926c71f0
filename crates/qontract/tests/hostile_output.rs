//! Hostile data through every command, in every format: nothing that it prints commands a terminal, or is seen in another order; and what it writes is its owner's alone.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use qontract_testkit::{Scratch, example};
use serde_json::json;

/// A style that we never use, a bell, a CSI of one byte, a deletion, and characters that turn or hide text.
const HOSTILE: &str = "e\u{1b}[35;7mv\u{7}i\u{9b}1ml\u{7f}\u{202e}x\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}";
/// The same, as YAML lets it be written.
const QUOTED: &str = r#""e\e[35;7mv\ai\x9b1ml\x7f\u202Ex\u2066\u200B\u2028\uFEFF\U000E0041""#;

/// Whether a character must not be printed, ends of lines aside. This list is the test's own.
fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(code, 0xad | 0x61c | 0x180e | 0x200b | 0x200e | 0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f)
}

/// A data repo, hostile and valid; another that has errors as well; the example beside them; and a program whose answers are hostile.
fn world() -> Scratch {
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
    scratch
}

/// An integration of the process form that says hostile things wherever it can.
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

/// What a command line of a row is, and whether hostile text is seen in it.
struct Row {
    line: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
    shows: bool,
}

impl Row {
    fn run(&self, scratch: &Scratch, colour: (&str, &str)) -> Output {
        Command::new(env!("CARGO_BIN_EXE_qontract"))
            .current_dir(scratch.path())
            .args(&self.line)
            .envs(self.environment.iter().copied())
            .env(colour.0, colour.1)
            .env("QONTRACT_CACHE", "off")
            .env("HOME", scratch.path())
            .output()
            .unwrap()
    }
}

/// A command line whose output shows hostile text.
fn shows(line: &str) -> Row {
    Row {
        line: line.split(' ').map(|word| word.replace("HOSTILE", HOSTILE)).collect(),
        environment: Vec::new(),
        shows: true,
    }
}

/// A command line whose output has none to show.
fn quiet(line: &str) -> Row {
    Row { shows: false, ..shows(line) }
}

/// A row with the environment that the command is set up by.
fn with(row: Row, environment: &[(&'static str, &'static str)]) -> Row {
    Row { environment: environment.to_vec(), ..row }
}

/// Every command, and what is run of it.
fn rows() -> BTreeMap<&'static str, Vec<Row>> {
    let reconcile = |options: &str| {
        let run = |name: &str| {
            shows(&format!("reconcile {name} --data repo --sandbox sandbox --runs runs {options}"))
        };
        ["openshift-namespace-labels", "openshift-resources"].map(run).into_iter()
    };
    let program = |options: &str| {
        shows(&format!(
            "reconcile service-dependencies --data repo --config config.toml --runs runs {options}"
        ))
    };
    let formats = ["", " -o json"];
    let mut reconciled: Vec<Row> = Vec::new();
    for format in formats {
        reconciled.extend(reconcile(&format!("--dry-run --log-level DEBUG{format}")));
        reconciled.push(program(&format!("--dry-run --base base{format}")));
        reconciled.push(program(format.trim_start()));
        reconciled.push(shows(&format!(
            "reconcile openshift-namespaces --data broken --dry-run --sandbox sandbox{format}"
        )));
    }
    for row in &mut reconciled {
        row.line.retain(|word| !word.is_empty());
    }
    reconciled.push(shows("reconcile --config config.toml --help"));
    reconciled.push(shows("reconcile HOSTILE"));
    let get = |kind: &'static str| {
        ["table", "wide", "json", "yaml"].map(move |format| format!("get {kind} --data repo -o {format}"))
    };
    let mut got: Vec<Row> = get("apps")
        .iter()
        .chain(&get("namespaces"))
        .chain(&get("resources"))
        .map(|line| shows(line))
        .collect();
    got.extend([
        quiet("get --data repo"),
        shows("get apps HOSTILE --data repo"),
        shows("get HOSTILE --data repo"),
        shows("get apps --data broken"),
    ]);
    got.retain(|row| !row.line.contains(&"table".to_owned()) || row.line[1] != "namespaces");
    let query = "{apps_v1{name,description,path,serviceOwners{name}}}";
    BTreeMap::from([
        (
            "up",
            vec![
                shows("up repo --once --sandbox sandbox --runs runs --log-level DEBUG"),
                shows("up repo --once --dry-run --sandbox empty --runs runs --log-format json"),
                shows("up broken --once --sandbox empty --runs runs"),
            ],
        ),
        (
            "bundle",
            vec![
                quiet("bundle repo"),
                quiet("bundle repo -o bundle.json"),
                shows("bundle broken"),
                shows("bundle HOSTILE"),
                shows("bundle repo -o /nowhere/HOSTILE"),
            ],
        ),
        (
            "diff",
            ["text", "md", "json"]
                .iter()
                .flat_map(|format| {
                    [
                        shows(&format!("diff base repo -o {format}")),
                        shows(&format!("diff repo broken -o {format}")),
                    ]
                })
                .collect(),
        ),
        (
            "validate",
            vec![
                quiet("validate repo"),
                shows("validate broken"),
                shows("validate broken -o json"),
                shows("validate HOSTILE"),
                quiet("validate bundle.json"),
            ],
        ),
        (
            "schema export",
            vec![quiet("schema export schemas --from repo"), shows("schema export HOSTILE --from repo")],
        ),
        ("get", got),
        (
            "query",
            vec![
                shows(&format!("query {query} --data repo")),
                shows(&format!("query {query} --data repo --provenance")),
                shows("query {HOSTILE} --data repo"),
                shows("query {apps_v1{name}} --data broken"),
            ],
        ),
        (
            "serve",
            vec![
                shows("serve broken --listen 127.0.0.1:0"),
                shows("serve --bundle HOSTILE --listen 127.0.0.1:0"),
            ],
        ),
        ("reconcile", reconciled),
        (
            "affected",
            formats
                .iter()
                .map(|format| format!("affected base repo --config config.toml{format}"))
                .map(|line| shows(&line))
                .chain([shows("affected HOSTILE repo")])
                .collect(),
        ),
        ("integrations", vec![shows("integrations --config config.toml")]),
        (
            "integrations schemas",
            vec![
                quiet("integrations schemas openshift-namespaces --data repo"),
                shows("integrations schemas HOSTILE --data repo"),
            ],
        ),
        ("shards of", vec![quiet("shards of HOSTILE --shards 3"), shows("shards of a --shards HOSTILE")]),
        ("inventory hash", vec![shows("inventory hash object.yaml"), shows("inventory hash HOSTILE")]),
        (
            "explain",
            vec![
                quiet("explain"),
                quiet("explain Q1007"),
                shows("explain HOSTILE"),
                shows("explain run RUN --runs runs"),
            ],
        ),
        ("runs list", vec![quiet("runs list --runs runs"), shows("runs list --runs runs --last HOSTILE")]),
        ("runs show", vec![shows("runs show RUN --runs runs"), shows("runs show HOSTILE --runs runs")]),
        (
            "peer bundler",
            vec![
                quiet(
                    "peer bundler repo/schemas repo/graphql-schemas/schema.yml repo/data repo/resources c 1",
                ),
                shows(
                    "peer bundler broken/schemas broken/graphql-schemas/schema.yml broken/data broken/resources c 1",
                ),
            ],
        ),
        (
            "peer reconcile",
            vec![shows(
                "peer reconcile --config config.toml --dry-run service-dependencies --data repo --runs runs",
            )],
        ),
        (
            "peer run-integration",
            vec![
                with(
                    shows("peer run-integration"),
                    &[("INTEGRATION_NAME", HOSTILE), ("CONFIG", "config.toml"), ("RUN_ONCE", "true")],
                ),
                with(
                    shows("peer run-integration"),
                    &[
                        ("INTEGRATION_NAME", "service-dependencies"),
                        ("CONFIG", "config.toml"),
                        ("INTEGRATION_EXTRA_ARGS", "--data repo --runs runs"),
                        ("RUN_ONCE", "true"),
                        ("PROMETHEUS_PORT", "0"),
                    ],
                ),
            ],
        ),
        (
            "peer server",
            vec![with(
                shows("peer server --listen 127.0.0.1:0"),
                &[("LOAD_METHOD", "fs"), ("DATAFILES_FILE", HOSTILE)],
            )],
        ),
        ("peer validator", vec![quiet("peer validator bundle.json"), shows("peer validator HOSTILE")]),
        ("completions", vec![quiet("completions bash")]),
        ("man", vec![quiet("man pages"), shows("man HOSTILE")]),
    ])
}

/// The commands below this one, by what `--help` lists; those of integrations are one.
fn commands(above: &[&str], found: &mut BTreeSet<String>) {
    let output = Command::new(env!("CARGO_BIN_EXE_qontract")).args(above).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let name = above.join(" ");
    let is_command = help.contains("Usage: qontract") && !help.contains("<COMMAND>");
    if is_command {
        found.insert(name);
    }
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return };
    for line in list.lines().take_while(|line| !line.is_empty()) {
        if let Some(word) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            commands(&[above, &[word.split(' ').next().unwrap()]].concat(), found);
        }
    }
}

#[test]
fn every_command_has_a_row() {
    let mut found = BTreeSet::new();
    commands(&[], &mut found);
    let known: BTreeSet<String> = rows().into_keys().map(str::to_owned).collect();
    assert_eq!(found, known, "each command is run over hostile data");
}

#[test]
fn every_command_prints_hostile_data_as_escapes() {
    let scratch = world();
    let rows = rows();
    // Bundles and records first: others look at them.
    let order = ["bundle", "up", "reconcile"];
    let rest = rows.keys().copied().filter(|name| !order.contains(name));
    let mut wrong = Vec::new();
    for name in order.into_iter().chain(rest) {
        for row in &rows[name] {
            wrong.extend(problem(&scratch, row));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the output of a row.
fn problem(scratch: &Scratch, row: &Row) -> Option<String> {
    let line =
        row.line.iter().map(|word| if word == "RUN" { last_run(scratch) } else { word.clone() }).collect();
    let row = Row { line, environment: row.environment.clone(), ..*row };
    let output = row.run(scratch, ("NO_COLOR", "1"));
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let name = row.line.join(" ").escape_default().to_string();
    if let Some(found) = text.chars().find(|character| is_unsafe(*character)) {
        let at = text.find(found).unwrap();
        let about: String = text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        return Some(format!("`{name}` prints U+{:04X} behind {about:?}", u32::from(found)));
    }
    if text.to_lowercase().contains("202e") != row.shows {
        return Some(format!(
            "`{name}` was to show hostile text: {}\n{:?}",
            row.shows,
            text.chars().take(600).collect::<String>()
        ));
    }
    None
}

/// The run of the program that found something.
fn last_run(scratch: &Scratch) -> String {
    let runs = std::fs::read_dir(scratch.path().join("runs")).unwrap();
    let names = runs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let run = names.filter(|name| name.contains("service-dependencies")).max().unwrap();
    run.trim_end_matches(".json").to_owned()
}

#[test]
fn colours_are_ours_alone() {
    let scratch = world();
    for line in ["validate broken", "bundle broken"] {
        let output = shows(line).run(&scratch, ("CLICOLOR_FORCE", "1"));
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("\u{1b}["), "`{line}` is coloured: {text}");
        assert!(!text.contains("\u{1b}[35;7m"), "`{line}` shows the colours of the data");
        let rest = text.replace('\u{1b}', "");
        assert_eq!(rest.chars().find(|character| is_unsafe(*character)), None, "`{line}`");
    }
}

/// Asserts that only its owner may use what is below a folder; how many files there are.
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
fn what_a_sandbox_holds_is_its_owners_alone() {
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
    // A sandbox of an older version is closed where it is written.
    let secret = "box/clusters/cliffs-stage/catalog-stage/Secret";
    let file = format!("{secret}/catalog-search.yaml");
    for folder in
        ["box/clusters", "box/clusters/cliffs-stage", "box/clusters/cliffs-stage/catalog-stage", secret]
    {
        open(folder, 0o755);
    }
    let text = scratch.read(&file);
    scratch.write(&file, text.replace("data:", "data:\n  other: eA=="));
    open(&file, 0o644);
    up();
    assert_eq!(scratch.read(&file), text);
    check_modes(&scratch.path().join("box"));
}

/// The highest memory that a process had until it ended, in KiB, and its output.
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
    // 44 MB of small scopes in each of three shards; and as many as are taken.
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
