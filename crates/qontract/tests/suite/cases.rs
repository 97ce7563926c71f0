//! Harness for the cases of all integrations: `integrations/*/cases/*.md`.
//!
//! A case is run three times with the binary: a dry run shows the plan and leaves the sandbox unchanged; a
//! real run changes the sandbox as expected; a second dry run has nothing to change.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::command;
use qontract_inventory::{Owner, OwnerMark, canonical, stamp};
use qontract_testkit::{Case, Scratch, example};
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
        for (path, content) in world(&case.world) {
            stage.scratch.write(&format!("sandbox/{path}"), qontract_yaml::json::print(&to_sandbox(content)));
        }
        stage
    }

    fn run_case(&self, case: &Case) -> Result<(), String> {
        let before = self.world();
        let level = if case.notes.is_some() { "DEBUG" } else { "WARNING" };
        let base: &[&str] = if case.has_base() { &["--base", "../base"] } else { &[] };
        let dry = self.run(case, &[&["--dry-run", "--log-level", level], base].concat());
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
        if self.world() != before {
            return Err("the dry run changed the world".to_owned());
        }
        let real = self.run(case, &["--log-level", "WARNING"]);
        exit("real run", &real, case.exit.1)?;
        let after = case.after.as_deref().map_or_else(|| before.clone(), world);
        let now = self.world();
        if now != after {
            return Err(format!("expected world:\n{}actual world:\n{}", json(&after), json(&now)));
        }
        let again = self.run(case, &["--dry-run", "-o", "json", "--log-level", "WARNING"]);
        let record: Value = serde_json::from_slice(&again.stdout).map_err(|error| error.to_string())?;
        let shards = record["shards"].as_object().into_iter().flatten();
        let left: Vec<&Value> =
            shards.flat_map(|(_, shard)| shard["changes"].as_array().into_iter().flatten()).collect();
        if !left.is_empty() {
            return Err(format!("the second plan is not empty: {left:?}"));
        }
        Ok(())
    }

    fn run(&self, case: &Case, more: &[&str]) -> Output {
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
        command::qontract(&self.scratch.path().join("head"), &words)
    }

    fn world(&self) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        let root = self.scratch.path().join("sandbox");
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                if path.extension().is_none_or(|extension| extension != "yaml") {
                    continue;
                }
                let content = qontract_yaml::json::read(&fs::read(&path).unwrap()).unwrap();
                found.insert(
                    path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(),
                    from_sandbox(content),
                );
            }
        }
        found
    }
}

/// The files of a sandbox: path ↦ content.
fn world(text: &str) -> BTreeMap<String, Value> {
    match qontract_yaml::json::read(text.as_bytes()).unwrap() {
        Value::Object(files) => files.into_iter().collect(),
        _ => BTreeMap::new(),
    }
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
