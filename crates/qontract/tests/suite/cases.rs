//! Harness for the cases of all integrations: `integrations/*/cases/*.md`.
//!
//! A case is run three times with the binary: a dry run shows the plan and changes no byte of the sandbox; a
//! real run changes the sandbox as expected; a second dry run has nothing to change. A case with steps continues
//! with a dry run and a real run for each step, at the time of the step, and with its faults.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use qontract_bundle::Sha256;
use qontract_inventory::{Owner, OwnerMark, canonical, stamp};
use qontract_testkit::{Case, CaseFault, CaseStep, Scratch, example};
use serde_json::Value;

fn integrations() -> Vec<PathBuf> {
    let mut integrations = folders(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations")));
    integrations.retain(|path| path.is_dir());
    integrations
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn name(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// Number of tests over which the cases that need no tool are distributed. Each has its own time limit.
const PART_COUNT: usize = 8;

/// A tool that the cases of an integration need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeededTool {
    Promtool,
    Python,
}

impl NeededTool {
    fn of(integration: &Path) -> Option<Self> {
        match name(integration) {
            "prometheus-rules-tester" => Some(Self::Promtool),
            _ if program(integration).is_file() => Some(Self::Python),
            _ => None,
        }
    }
}

/// The program of an integration that is written in Python.
fn program(integration: &Path) -> PathBuf {
    integration.join(format!("{}.py", name(integration).replace('-', "_")))
}

/// The cases of the integrations that need this tool, or no tool.
fn cases(tool: Option<NeededTool>) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let chosen = integrations().into_iter().filter(move |integration| NeededTool::of(integration) == tool);
    chosen.flat_map(|integration| {
        let files = folders(&integration.join("cases"));
        files.into_iter().map(move |file| (integration.clone(), file))
    })
}

/// Runs cases, each an integration and a file.
fn run_cases(cases: impl Iterator<Item = (PathBuf, PathBuf)>) {
    let mut problems = Vec::new();
    let mut count = 0;
    for (integration, file) in cases {
        let text = fs::read_to_string(&file).unwrap();
        let result =
            Case::parse(&text).and_then(|case| CaseFixture::new(&integration, &case).run_case(&case));
        if let Err(problem) = result {
            problems.push(format!("{}/{}: {problem}", name(&integration), name(&file)));
        }
        count += 1;
    }
    assert!(count > 0);
    assert!(problems.is_empty(), "{} of {count} cases fail\n\n{}", problems.len(), problems.join("\n\n"));
}

macro_rules! parts {
    ($($test:ident: $part:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            run_cases(cases(None).skip($part).step_by(PART_COUNT));
        })*

        #[test]
        fn every_part_is_tested() {
            assert_eq!([$($part),*], std::array::from_fn::<usize, PART_COUNT, _>(|part| part));
        }
    };
}

parts! {
    cases_of_all_integrations_pass_1: 0,
    cases_of_all_integrations_pass_2: 1,
    cases_of_all_integrations_pass_3: 2,
    cases_of_all_integrations_pass_4: 3,
    cases_of_all_integrations_pass_5: 4,
    cases_of_all_integrations_pass_6: 5,
    cases_of_all_integrations_pass_7: 6,
    cases_of_all_integrations_pass_8: 7,
}

#[test]
#[ignore = "needs QONTRACT_PROMTOOL; run by `cargo xtask test`"]
fn cases_that_need_promtool_pass() {
    run_cases(cases(Some(NeededTool::Promtool)));
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn cases_that_need_python_pass() {
    run_cases(cases(Some(NeededTool::Python)));
}

/// The directory in which a case runs.
struct CaseFixture {
    scratch: Scratch,
    integration: String,
}

impl CaseFixture {
    fn new(integration: &Path, case: &Case) -> Self {
        let (scratch, integration_name) = (Scratch::new(), name(integration).to_owned());
        let own = format!("data/integrations/{integration_name}.yml");
        let listed = fs::read_to_string(example().join(&own)).unwrap_or_default();
        let sides: &[&str] = if case.has_base() { &["head", "base"] } else { &["head"] };
        for side in sides {
            for part in ["schemas", "graphql-schemas"] {
                scratch.copy(&example().join(part), &format!("{side}/{part}"));
            }
            scratch.write(&format!("{side}/{own}"), &listed);
            for (path, text) in &case.files {
                scratch.write(&format!("{side}/{path}"), text);
            }
        }
        for (path, text) in &case.base {
            scratch.write(&format!("base/{path}"), text);
        }
        for path in &case.base_without {
            scratch.remove(&format!("base/{path}"));
        }
        let script = program(integration);
        let mut config = String::new();
        if script.is_file() {
            let python = std::env::var("QONTRACT_PYTHON").expect("`cargo xtask test` sets QONTRACT_PYTHON");
            let script = script.to_str().unwrap();
            config = format!("[integrations.{integration_name}]\ncommand = [{python:?}, {script:?}]\n");
        }
        if let Ok(promtool) = std::env::var("QONTRACT_PROMTOOL") {
            config.push_str(&format!("[promtool]\npath = {promtool:?}\n"));
        }
        scratch.write("config.toml", case.config.as_ref().unwrap_or(&config));
        scratch.init_journal("sandbox");
        let stage = Self { scratch, integration: integration_name };
        stage.write_world(&case.world);
        stage
    }

    /// Writes files of the sandbox; `null` removes one. An object of a cluster is written with its marks, and a
    /// text as it is.
    fn write_world(&self, text: &str) {
        for (path, content) in world(text) {
            let file = format!("sandbox/{path}");
            match content {
                Value::Null => self.scratch.remove(&file),
                Value::String(text) => drop(self.scratch.write(&file, text)),
                content => drop(self.scratch.write(&file, qontract_yaml::json::print(&to_sandbox(content)))),
            }
        }
    }

    fn run_case(&self, case: &Case) -> Result<(), String> {
        let (before, bytes) = (self.world(), self.bytes());
        let level = if case.notes.is_some() { "DEBUG" } else { "WARNING" };
        let base: &[&str] = if case.has_base() { &["--base", "../base"] } else { &[] };
        let start = Moment::start(case);
        let dry = self.run(case, &[&["--dry-run", "--log-level", level], base].concat(), start);
        let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
        if shown != case.plan {
            return Err(format!("expected plan:\n{}actual plan:\n{shown}{}", case.plan, output_text(&dry)));
        }
        exit("dry run", &dry, case.exit.0)?;
        if let Some(notes) = &case.notes {
            let said = String::from_utf8_lossy(&dry.stderr).into_owned();
            let said: Vec<&str> = said
                .lines()
                .filter(|line| !line.ends_with("shows more") && !line.starts_with("debug: "))
                .collect();
            let said = said.join("\n") + "\n";
            if said != *notes {
                return Err(format!("expected notes:\n{notes}actual notes:\n{said}"));
            }
        }
        self.expect_bytes(&bytes)?;
        let real = self.run(case, &["--log-level", "WARNING"], start);
        exit("real run", &real, case.exit.1)?;
        let after = case.after.as_deref().map_or_else(|| before.clone(), expected_world);
        self.expect_world(&after)?;
        let mut last = start;
        for (time, step) in &case.steps {
            let at = Moment { since_start: Some(*time), ..start };
            self.age_sandbox(time.saturating_sub(last.since_start.unwrap_or_default()));
            self.run_step(case, step, at).map_err(|problem| format!("at {} s: {problem}", time.as_secs()))?;
            last = at;
        }
        let bytes = self.bytes();
        let again = self.run(case, &["--dry-run", "-o", "json", "--log-level", "WARNING"], last);
        self.expect_bytes(&bytes)?;
        let record: Value = serde_json::from_slice(&again.stdout).map_err(|error| error.to_string())?;
        let shards = record["shards"].as_object().into_iter().flatten();
        let left: Vec<&Value> =
            shards.flat_map(|(_, shard)| shard["changes"].as_array().into_iter().flatten()).collect();
        if !left.is_empty() {
            return Err(format!("the second plan is not empty: {left:?}"));
        }
        Ok(())
    }

    fn expect_world(&self, expected: &BTreeMap<String, Value>) -> Result<(), String> {
        let now = self.world();
        if now == *expected {
            return Ok(());
        }
        Err(format!("expected world:\n{}actual world:\n{}", json(expected), json(&now)))
    }

    /// The bytes of every file of the sandbox, with the journal and locks.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let all = files(&self.scratch.path().join("sandbox")).into_iter();
        all.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Checks that a dry run has left every byte of the sandbox as it was.
    fn expect_bytes(&self, before: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
        let now = self.bytes();
        let paths: BTreeSet<&PathBuf> = before.keys().chain(now.keys()).collect();
        let changed: Vec<&PathBuf> =
            paths.into_iter().filter(|path| before.get(*path) != now.get(*path)).collect();
        match changed.as_slice() {
            [] => Ok(()),
            changed => Err(format!("the dry run changed files of the sandbox: {changed:?}")),
        }
    }

    /// Makes every file of the sandbox older, as if time had passed.
    fn age_sandbox(&self, time: Duration) {
        for path in files(&self.scratch.path().join("sandbox")) {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - time).unwrap();
        }
    }

    fn run_step(&self, case: &Case, step: &CaseStep, at: Moment) -> Result<(), String> {
        for (path, text) in &step.files {
            self.scratch.write(&format!("head/{path}"), text);
        }
        for path in &step.removed {
            self.scratch.remove(&format!("head/{path}"));
        }
        self.write_world(&step.world);
        let mut at = at;
        for fault in &step.faults {
            let file = |path: &str| self.scratch.path().join("sandbox").join(path);
            match fault {
                CaseFault::Truncate(path) => {
                    let bytes = fs::read(file(path)).unwrap();
                    fs::write(file(path), &bytes[..bytes.len() / 2]).unwrap();
                }
                CaseFault::Garble(path) => fs::write(file(path), b"\xff\xfe: [").unwrap(),
                CaseFault::Remove(path) => fs::remove_file(file(path)).unwrap(),
                CaseFault::KillAfterWrite(count) => at.kill_after = Some(*count),
            }
        }
        let bytes = self.bytes();
        let dry = self.run(case, &["--dry-run", "--log-level", "WARNING"], at);
        let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
        if let Some(plan) = step.plan.as_ref().filter(|plan| **plan != shown) {
            return Err(format!("expected plan:\n{plan}actual plan:\n{shown}{}", output_text(&dry)));
        }
        exit("dry run", &dry, step.exit.0)?;
        self.expect_bytes(&bytes)?;
        let flags: Vec<&str> = step.flags.iter().map(String::as_str).collect();
        let real = self.run(case, &[&["--log-level", "WARNING"], &flags[..]].concat(), at);
        match at.kill_after {
            Some(_) if real.status.code().is_none() => {}
            Some(_) => return Err(format!("the real run was not killed\n{}", output_text(&real))),
            None => exit("real run", &real, step.exit.1)?,
        }
        step.after.as_deref().map_or(Ok(()), |after| self.expect_world(&expected_world(after)))
    }

    fn run(&self, case: &Case, more: &[&str], at: Moment) -> Output {
        let mut words = vec![
            "reconcile",
            &self.integration,
            "--data",
            ".",
            "--sandbox",
            "../sandbox",
            "--runs",
            "../runs",
        ];
        // The data of a case contains only what the case needs.
        words.extend(["--config", "../config.toml", "--no-validate"]);
        words.extend(more);
        words.extend(case.flags.iter().map(String::as_str));
        // Inside the data repo, so that files are named as in the case.
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.current_dir(self.scratch.path().join("head")).args(words).env("NO_COLOR", "1");
        command.env("GIT_CEILING_DIRECTORIES", self.scratch.path());
        if let Some(time) = at.since_start {
            command.env("QONTRACT_SANDBOX_CLOCK", (EPOCH + time).to_string());
        }
        if let Some(count) = at.kill_after {
            command.env("QONTRACT_SANDBOX_KILL_AFTER", count.to_string());
        }
        command.output().unwrap()
    }

    /// Every file of the sandbox but the journal and locks.
    fn world(&self) -> BTreeMap<String, Value> {
        let root = self.scratch.path().join("sandbox");
        let relative = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let all = files(&root).into_iter().map(|path| (relative(&path), fs::read(&path).unwrap()));
        let seen = all.filter(|(path, _)| !path.starts_with("journal/") && !is_lock(path));
        seen.map(|(path, bytes)| {
            let value = content(&path, &bytes);
            (path, value)
        })
        .collect()
    }
}

/// The start of a case with steps.
const EPOCH: jiff::Timestamp = jiff::Timestamp::constant(1_767_225_600, 0);

/// The circumstances of a run.
#[derive(Clone, Copy)]
struct Moment {
    /// The time since the start of the case; `None` for the system clock.
    since_start: Option<Duration>,
    /// The number of writes after which the run is killed.
    kill_after: Option<u32>,
}

impl Moment {
    /// The start of a case. Without steps, its runs have the system clock.
    fn start(case: &Case) -> Self {
        Self { since_start: (!case.steps.is_empty()).then_some(Duration::ZERO), kill_after: None }
    }
}

/// Whether a file of the sandbox is a lock.
fn is_lock(path: &str) -> bool {
    let path = Path::new(path);
    path.file_name().is_some_and(|name| name == ".lock")
        || path.extension().is_some_and(|name| name == "lock")
}

/// Every file below a directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// The content of a file of the sandbox, as in cases: objects of clusters with their owner instead of marks,
/// documents parsed, other files as text, and bytes that are not text as their digest.
fn content(path: &str, bytes: &[u8]) -> Value {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    let text = || match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(format!("sha256:{}", Sha256::of(bytes))),
    };
    match extension {
        Some("yaml") => qontract_yaml::json::read(bytes).map_or_else(|_| text(), from_sandbox),
        Some("json") => serde_json::from_slice(bytes).unwrap_or_else(|_| text()),
        _ => text(),
    }
}

/// The files of a sandbox: path ↦ content.
fn world(text: &str) -> BTreeMap<String, Value> {
    match qontract_yaml::json::read(text.as_bytes()).unwrap() {
        Value::Object(files) => files.into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// The expected files of a sandbox: a text is the content of its file.
fn expected_world(text: &str) -> BTreeMap<String, Value> {
    let parse = |path: &String, value: Value| match value {
        Value::String(text) => content(path, text.as_bytes()),
        value => value,
    };
    world(text).into_iter().map(|(path, value)| (path.clone(), parse(&path, value))).collect()
}

/// Converts a file of a case to its form in the sandbox: `owner: INTEGRATION VERSION` becomes marks. Field
/// owners do not change.
fn to_sandbox(mut content: Value) -> Value {
    let Some(owner) = content.as_object_mut().and_then(|map| map.remove("owner")) else { return content };
    let (integration, version) = owner.as_str().and_then(|owner| owner.split_once(' ')).unwrap();
    let owner = Owner::new(integration, version, None).unwrap();
    let managed = content["metadata"].get("managedFields").cloned();
    let mut stamped = stamp(&content, &owner, &canonical(&content).unwrap().sha256, "2026-01-01T00:00:00");
    if let Some(managed) = managed {
        stamped["metadata"]["managedFields"] = managed;
    }
    stamped
}

/// Converts a file of the sandbox to its form in cases: with its owner instead of marks, and without field
/// managers.
fn from_sandbox(mut content: Value) -> Value {
    let Some(mark) = OwnerMark::of(&content) else { return content };
    content["owner"] = format!("{} {}", mark.integration, mark.version.unwrap_or_default()).into();
    let metadata = content["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    let annotations = metadata["annotations"].as_object_mut().unwrap();
    annotations.retain(|name, _| !name.starts_with("qontract."));
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    content
}

fn json(world: &BTreeMap<String, Value>) -> String {
    let lines: Vec<String> = world.iter().map(|(path, content)| format!("{path}: {content}\n")).collect();
    lines.concat()
}

fn exit(what: &str, output: &Output, expected: i32) -> Result<(), String> {
    match output.status.code() {
        Some(code) if code == expected => Ok(()),
        code => Err(format!("the {what} ended with {code:?} instead of {expected}\n{}", output_text(output))),
    }
}

fn output_text(output: &Output) -> String {
    format!(
        "stdout:\n{}stderr:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
