//! `qontract query`: a GraphQL request, answered from a data repo, a revision or a bundle.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use qontract_bundle::json::Reader;
use qontract_bundle::{Layout, Pool, Value};
use qontract_diagnostics::Sources;
use qontract_graphql::{Engine, Origin, OriginKind, Request};

use crate::cli::{DataOptions, Query};
use crate::exit::{Exit, UsageError};
use crate::input::{self, Input};
use crate::lines::Lines;
use crate::printer::Printer;

pub fn run(arguments: Query, printer: &Printer) -> anyhow::Result<Exit> {
    let Query { request, variables, operation, provenance, timeout, data } = arguments;
    let query = if request == "-" { stdin()? } else { request };
    let variables = variables.as_deref().map(read_variables).transpose()?;
    let asked = Asked::open(data, printer)?;
    let (started, timeout) = (Instant::now(), Duration::from_secs(timeout));
    let answer = asked.engine.answer(Request {
        cancelled: Some(&|| started.elapsed() >= timeout),
        query: &query,
        operation: operation.as_deref(),
        variables: variables.as_ref().and_then(Value::as_map),
        provenance,
        ..Request::default()
    });
    let lines = Lines::new(asked.sources());
    printer.data(&answer.with_provenance(&|origin| asked.place(origin, &lines)))?;
    Ok(if answer.has_errors { Exit::Failure } else { Exit::Ok })
}

/// Data that can be asked.
pub struct Asked {
    /// The engine.
    pub engine: Engine,
    input: Input,
    layout: Layout,
}

impl Asked {
    /// Opens what the options name.
    pub fn open(options: DataOptions, printer: &Printer) -> anyhow::Result<Self> {
        let DataOptions { data, repo, layout } = options;
        let layout = Layout::from(layout);
        let input = input::open(&data, &repo, &layout, &Pool::default(), printer)?;
        let engine = Engine::new(Arc::new(input.bundle.clone()))
            .with_context(|| format!("the types of `{data}` cannot be used"))?;
        Ok(Self { engine, input, layout })
    }

    /// The texts of its files.
    pub fn sources(&self) -> &dyn Sources {
        self.input.sources()
    }

    /// `file:line` of something in the data; nothing if only a bundle is at hand.
    pub fn place(&self, origin: &Origin, lines: &Lines<'_>) -> Option<String> {
        self.input.repo.as_ref()?;
        Some(match origin.kind {
            OriginKind::Datafile => lines.place(&self.file(&origin.path), &origin.pointer),
            OriginKind::Resource => self.origin_file(origin),
        })
    }

    /// The file of something, as it is in the data repo.
    pub fn origin_file(&self, origin: &Origin) -> String {
        match origin.kind {
            OriginKind::Datafile => self.file(&origin.path),
            OriginKind::Resource => format!("{}{}", self.layout.resources, origin.path),
        }
    }

    /// The path that the bundle has for a file as it is called in the data repo; other words stay as they are.
    pub fn bundle_path<'w>(&self, word: &'w str) -> &'w str {
        let folders = [&self.layout.data, &self.layout.resources];
        let inside = folders.into_iter().find_map(|folder| word.strip_prefix(folder.as_str()));
        inside.filter(|path| path.starts_with('/')).unwrap_or(word)
    }

    /// A datafile's path as it is in the data repo.
    fn file(&self, path: &str) -> String {
        format!("{}{path}", self.layout.data)
    }
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the request from stdin")?;
    Ok(text)
}

fn read_variables(text: &str) -> anyhow::Result<Value> {
    let usage = |why: String| UsageError(format!("`--variables` is not a JSON object: {why}"));
    let value = Reader::new(text).whole().map_err(|fault| usage(fault.to_string()))?;
    match value {
        Value::Map(_) => Ok(value),
        _ => Err(usage("it is something else".to_owned()).into()),
    }
}
