//! `qontract query`: runs a GraphQL query against a data repo, a revision or a bundle.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use qontract_bundle::Value;
use qontract_bundle::json::JsonParser;
use qontract_cli::printer::Printer;
use qontract_cli::{DataOptions, QueryArgs};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::input::{InputCheck, InputResolver, invalid_types_message};
use qontract_daemon::pinned_data::PinnedData;
use qontract_graphql::{Engine, ObjectOrigin, QueryLimits, Request};
use qontract_runtime::SourceLocation;

pub fn run(arguments: QueryArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let QueryArgs { request, variables, operation, provenance, timeout, data } = arguments;
    let query = if request == "-" { stdin()? } else { request };
    let variables = variables.as_deref().map(read_variables).transpose()?;
    let queryable = QueryableData::open(data, QueryLimits::default(), printer)?;
    let (started, timeout) = (Instant::now(), Duration::from_secs(timeout));
    let answer = queryable.engine.answer(Request {
        cancelled: Some(&|| started.elapsed() >= timeout),
        query: &query,
        operation: operation.as_deref(),
        variables: variables.as_ref().and_then(Value::as_map),
        provenance,
        ..Request::default()
    });
    let body = queryable.data.with_lines(|line| {
        // The lines of a bundle that was read from a file are not known.
        let place =
            |origin: &ObjectOrigin| queryable.data.has_lines().then(|| line(&SourceLocation::from(origin)));
        answer.with_provenance(&place)
    });
    printer.print_json(&body)?;
    Ok(if answer.has_errors { Exit::Failure } else { Exit::Ok })
}

/// Data with its GraphQL engine.
pub struct QueryableData {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The data, with the lines of its files.
    pub data: PinnedData,
}

impl QueryableData {
    /// Opens the data that the options name, with query limits.
    pub fn open(options: DataOptions, limits: QueryLimits, printer: &Printer) -> anyhow::Result<Self> {
        let DataOptions { data, repo, layout } = options;
        let data = data.unwrap_or_else(|| repo.display().to_string());
        let resolver = InputResolver::new(&repo, layout.into(), printer);
        // The data is not validated, because queries help to examine invalid data.
        let input = resolver.open(&data, InputCheck::Nothing)?;
        let engine = input.engine(None, &resolver.schemas).with_context(|| invalid_types_message(&data))?;
        let engine = Arc::new(engine.with_limits(limits));
        let side = PinnedData::with_engine(input, Arc::clone(&engine), &resolver.layout);
        Ok(Self { engine, data: side })
    }
}

fn stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the request from stdin")?;
    Ok(text)
}

fn read_variables(text: &str) -> anyhow::Result<Value> {
    let usage = |why: String| UsageError(format!("`--variables` is not a JSON object: {why}"));
    let value = JsonParser::new(text).parse().map_err(|fault| usage(fault.to_string()))?;
    match value {
        Value::Map(_) => Ok(value),
        _ => Err(usage("it is a JSON value of another type".to_owned()).into()),
    }
}
