//! Runs Jinja2 as a process, and returns our own results in the same form.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use qontract_template::{
    Data, Dialect, Kind, LookupSource, LookupState, RenderOutcome, RenderRequest, Source, TemplateLookup,
    Whitespace, render,
};
use serde_json::{Value as Json, json};

/// A template with its variables.
#[derive(Debug, Clone)]
pub struct Case {
    pub template: String,
    pub dialect: Dialect,
    pub whitespace: Whitespace,
    pub variables: Json,
}

impl Case {
    pub fn new(template: &str, variables: &Json) -> Self {
        Self {
            template: template.to_owned(),
            dialect: Dialect::Jinja2,
            whitespace: Whitespace::default(),
            variables: variables.clone(),
        }
    }
}

/// The result of rendering a template.
#[derive(Debug, Clone, PartialEq)]
pub enum RenderResult {
    Text(String),
    Failed(String),
    Refused(String),
}

/// The results of Jinja2 for all templates, in order.
pub fn jinja2_results(cases: &[Case]) -> Vec<RenderResult> {
    let python = std::env::var("QONTRACT_PYTHON")
        .expect("QONTRACT_PYTHON names a Python with Jinja2: run `cargo xtask test`, or set it");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/jinja.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let dialect = match case.dialect {
                Dialect::Jinja2 => "plain",
                Dialect::ExtraCurly => "extra",
            };
            let whitespace = json!({
                "trim_blocks": case.whitespace.trim_blocks,
                "lstrip_blocks": case.whitespace.lstrip_blocks,
                "keep_trailing_newline": case.whitespace.keep_trailing_newline,
            });
            json!({"template": case.template, "dialect": dialect, "whitespace": whitespace, "variables": case.variables})
                .to_string()
        })
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("the oracle reads every template");
        }
    });
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let answers: Vec<RenderResult> = output
        .lines()
        .map(|line| {
            let answer: Json = serde_json::from_str(&line.expect("a line")).expect("an answer");
            match answer["text"].as_str() {
                Some(text) => RenderResult::Text(text.to_owned()),
                None => RenderResult::Failed(answer["error"].as_str().unwrap_or_default().to_owned()),
            }
        })
        .collect();
    writer.join().expect("all templates were sent");
    assert!(child.wait().expect("Python ends").success(), "the oracle failed");
    assert_eq!(answers.len(), cases.len(), "an answer for each template");
    answers
}

/// Returns the same lookup results as the functions of the oracle.
pub struct StubLookups;

impl LookupSource for StubLookups {
    fn answer(&self, address: &TemplateLookup) -> LookupState {
        let at =
            |region: &Option<String>| region.as_ref().map_or(String::new(), |region| format!("@{region}"));
        LookupState::Ready(match address {
            TemplateLookup::Secret { path, allow_not_found, .. } if path.contains("missing") => {
                if !allow_not_found {
                    return LookupState::Failed("not found".to_owned());
                }
                Data::Null
            }
            TemplateLookup::Secret { path, key, version: Some(version), .. } => {
                Data::text(format!("<{path}#{key}@{version}>"))
            }
            TemplateLookup::Secret { path, key, version: None, .. } => Data::text(format!("<{path}#{key}>")),
            TemplateLookup::GithubFile { repo, path, reference } => {
                Data::text(format!("file {repo} {path} {reference}\n"))
            }
            TemplateLookup::Query { path, variables } => {
                let given: Vec<String> =
                    variables.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
                let entry = |path: &str, given: String| {
                    Data::Map(vec![
                        ("path".to_owned(), Data::text(path)),
                        ("given".to_owned(), Data::Text(given)),
                    ])
                };
                Data::List(vec![entry(path, format!("{{{}}}", given.join(", "))), entry("b", String::new())])
            }
            TemplateLookup::Url { url } => Data::Bool(url.contains("https")),
            TemplateLookup::S3Object { account, bucket, path, region } => {
                Data::text(format!("{account}/{bucket}/{path}{}", at(region)))
            }
            TemplateLookup::S3List { path, region, .. } => Data::List(vec![
                Data::text(format!("{path}/1")),
                Data::text(format!("{path}/2{}", at(region))),
            ]),
            TemplateLookup::Yesterday => Data::text("2024-02-28"),
        })
    }
}

/// Our own rendering.
pub fn our_result(case: &Case) -> RenderResult {
    let Data::Map(variables) = Data::from(&case.variables) else { panic!("variables are a map") };
    let source =
        Source { whitespace: case.whitespace, ..Source::new("t.j2", &case.template).dialect(case.dialect) };
    match render(&RenderRequest::new(source, &variables), &StubLookups) {
        Ok(RenderOutcome::Rendered(rendered)) => RenderResult::Text(rendered.expose().to_owned()),
        Ok(RenderOutcome::Needs(needs)) => panic!("all lookups have results, but {needs:?}"),
        Err(fault) if matches!(fault.kind, Kind::Refused | Kind::Limit) => {
            RenderResult::Refused(fault.to_string())
        }
        Err(fault) => RenderResult::Failed(fault.to_string()),
    }
}
