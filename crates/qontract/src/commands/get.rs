//! `qontract get`: lists and shows objects of the data. The command follows the GraphQL schema and has no
//! code for individual kinds.

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_cli::{GetArgs, GetFormat};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_diagnostics::{sanitize, suggest};
use qontract_graphql::{Engine, QueryLimits, Request};
use qontract_report::listing::{self, Kind, ROWS_KEY, Rows, Selection, UnknownName};
use qontract_report::table;
use qontract_runtime::SourceLocation;
use serde_json::Value;

use super::query::QueryableData;

pub fn run(arguments: GetArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let GetArgs { kind, name, output, filter, sort, data } = arguments;
    // The query is generated from the types, so its size is not limited.
    let limits = QueryLimits {
        aliases: usize::MAX,
        query_bytes: usize::MAX,
        selections: usize::MAX,
        ..QueryLimits::default()
    };
    let queryable = QueryableData::open(data, limits, printer)?;
    let Some(kind) = kind else {
        printer.styled(&listing::list(&queryable.engine))?;
        return Ok(Exit::Ok);
    };
    let kind = Kind::find(queryable.engine.schema(), &kind).map_err(usage)?;
    let filters = filter.iter().map(|text| split(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut selection = match output {
        GetFormat::Table => Selection::short(&kind),
        GetFormat::Wide => Selection::wide(&kind),
        GetFormat::Json | GetFormat::Yaml => Selection::whole(&kind),
    };
    for field in filters.iter().map(|(field, _)| *field).chain(sort.as_deref()) {
        selection.require(&kind, field).map_err(usage)?;
    }
    let name = name.map(|name| queryable.data.path_of(&name).to_owned());
    let query = selection.query(&kind, name.as_deref());
    let answer = queryable.engine.answer(Request { query: &query, provenance: true, ..Request::default() });
    let body: Value = serde_json::from_slice(&answer.body).context("the response is not JSON")?;
    let found = body["data"][ROWS_KEY].as_array().cloned().unwrap_or_default();
    // An unknown path may cause an error in the response. The error is ignored, because a more specific
    // message is printed below.
    let is_unknown_path = found.is_empty() && name.as_ref().is_some_and(|name| name.starts_with('/'));
    for error in body["errors"].as_array().into_iter().flatten().filter(|_| !is_unknown_path) {
        printer.note(&format!("error: {}", sanitize(error["message"].as_str().unwrap_or_default())));
    }
    let file = |index: usize| {
        let origin = answer.provenance.as_ref()?.of(&format!("/{ROWS_KEY}/{index}"))?;
        Some(queryable.data.file(&SourceLocation::from(origin)))
    };
    let mut rows = Rows::read(found, &file);
    let near = name.as_deref().and_then(|name| suggestion(name, &rows, &kind, &queryable.engine));
    rows.retain_named(&kind, name.as_deref());
    for (field, value) in &filters {
        rows.retain_matching(field, value);
    }
    if let Some(field) = &sort {
        rows.sort(field);
    }
    if let Some(name) = &name
        && rows.is_empty()
        && (is_unknown_path || !answer.has_errors)
    {
        let near = near.map_or(String::new(), |near| format!("; {}", sanitize(&near)));
        printer.note(&format!("error: no `{}` in `{}`{near}", sanitize(name), kind.name()));
        return Ok(Exit::Failure);
    }
    match output {
        GetFormat::Table | GetFormat::Wide => {
            printer.styled(&table::styled(&Rows::header(&selection), &rows.cells(&selection)))?;
        }
        GetFormat::Json => printer.json(format!("{:#}\n", rows.values(name.is_some())).as_bytes())?,
        GetFormat::Yaml => printer.text(&qontract_yaml::json::print(&rows.values(name.is_some())))?,
    }
    Ok(if answer.has_errors { Exit::Failure } else { Exit::Ok })
}

fn usage(UnknownName(text): UnknownName) -> UsageError {
    UsageError(text)
}

/// A suggestion for a name or path that might not exist.
fn suggestion(name: &str, rows: &Rows, kind: &Kind<'_>, engine: &Engine) -> Option<String> {
    if name.starts_with('/') {
        let paths = engine.bundle().datafiles().iter().map(|file| &*file.path);
        return suggest::nearest_path(name, paths).map(|path| format!("did you mean `{path}`?"));
    }
    let names = rows.names(kind);
    suggest::did_you_mean(name, names.iter().map(String::as_str))
}

fn split(text: &str) -> anyhow::Result<(&str, &str)> {
    let usage = || UsageError(format!("`--filter {text}` does not have the form FIELD=VALUE")).into();
    text.split_once('=').ok_or_else(usage)
}
