//! Runs Jinja2 as a process, and returns our own results in the same form.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use qontract_template::{
    Address, Answer, Data, Dialect, Kind, Lookups, Outcome, Request, Source, Whitespace, render,
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
pub enum Answered {
    Text(String),
    Failed(String),
    Refused(String),
}

/// The results of Jinja2 for all templates, in order.
pub fn ask(cases: &[Case]) -> Vec<Answered> {
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
    let answers: Vec<Answered> = output
        .lines()
        .map(|line| {
            let answer: Json = serde_json::from_str(&line.expect("a line")).expect("an answer");
            match answer["text"].as_str() {
                Some(text) => Answered::Text(text.to_owned()),
                None => Answered::Failed(answer["error"].as_str().unwrap_or_default().to_owned()),
            }
        })
        .collect();
    writer.join().expect("all templates were sent");
    assert!(child.wait().expect("Python ends").success(), "the oracle failed");
    assert_eq!(answers.len(), cases.len(), "an answer for each template");
    answers
}

/// Returns the same look-up results as the functions of the oracle.
pub struct Stub;

impl Lookups for Stub {
    fn answer(&self, address: &Address) -> Answer {
        let at =
            |region: &Option<String>| region.as_ref().map_or(String::new(), |region| format!("@{region}"));
        Answer::Known(match address {
            Address::Secret { path, allow_not_found, .. } if path.contains("missing") => {
                if !allow_not_found {
                    return Answer::Failed("not found".to_owned());
                }
                Data::Null
            }
            Address::Secret { path, key, version: Some(version), .. } => {
                Data::text(format!("<{path}#{key}@{version}>"))
            }
            Address::Secret { path, key, version: None, .. } => Data::text(format!("<{path}#{key}>")),
            Address::GithubFile { repo, path, reference } => {
                Data::text(format!("file {repo} {path} {reference}\n"))
            }
            Address::Query { path, variables } => {
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
            Address::Url { url } => Data::Bool(url.contains("https")),
            Address::S3Object { account, bucket, path, region } => {
                Data::text(format!("{account}/{bucket}/{path}{}", at(region)))
            }
            Address::S3List { path, region, .. } => Data::List(vec![
                Data::text(format!("{path}/1")),
                Data::text(format!("{path}/2{}", at(region))),
            ]),
            Address::Yesterday => Data::text("2024-02-28"),
        })
    }
}

/// Our own rendering.
pub fn ours(case: &Case) -> Answered {
    let Data::Map(variables) = Data::from(&case.variables) else { panic!("variables are a map") };
    let source =
        Source { whitespace: case.whitespace, ..Source::new("t.j2", &case.template).dialect(case.dialect) };
    match render(&Request::new(source, &variables), &Stub) {
        Ok(Outcome::Rendered(rendered)) => Answered::Text(rendered.expose().to_owned()),
        Ok(Outcome::Needs(needs)) => panic!("all look-ups have results, but {needs:?}"),
        Err(fault) if matches!(fault.kind, Kind::Refused | Kind::Limit) => {
            Answered::Refused(fault.to_string())
        }
        Err(fault) => Answered::Failed(fault.to_string()),
    }
}
