//! `qontract validate`: every mistake at once.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use qontract_bundle::{Layout, Pool, load_from};
use qontract_diagnostics::{Diagnostic, NoSources, Report, Severity, Sources, Styled, record};
use qontract_telemetry::activity::Activities;
use qontract_validate::schema::Formats;
use qontract_validate::{Options, validate};
use serde_json::json;

use crate::check;
use crate::cli::{FindingsFormat, Validate};
use crate::exit::{Exit, UsageError};
use crate::input;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::remembered::Remembered;

pub fn run(arguments: Validate, printer: &Printer) -> anyhow::Result<Exit> {
    let Validate { what, repo, only_errors, strict, max, formats, output, layout } = arguments;
    let formats = if formats { Formats::Enforced } else { Formats::Ignored };
    let progress = Progress::start(format!("validating {what}"), Activities::default());
    let found = find(&what, &repo, Layout::from(layout), formats);
    drop(progress);
    let (findings, sources) = found?;
    let has_lines = PathBuf::from(&what).is_dir() || !PathBuf::from(&what).is_file();
    let findings = findings.into_iter().filter(|finding| !only_errors || finding.is_error());
    let report = Report::new(findings.collect());
    match output {
        FindingsFormat::Text => {
            let shown = max.unwrap_or(usize::MAX).min(report.findings().len());
            printer.findings(&Styled::first(&report, shown, &*sources))?;
            printer.text(&summary(&report, shown))?;
            if !has_lines && !report.is_empty() {
                printer.note("a bundle has no lines: findings tell the place in the value instead");
            }
        }
        FindingsFormat::Json => printer.json(json(&report, &*sources, max)?.as_bytes())?,
    }
    let warned = strict && report.count(Severity::Warning) > 0;
    Ok(if report.has_errors() || warned { Exit::Failure } else { Exit::Ok })
}

/// The findings, and where the lines come from.
fn find(
    what: &str,
    folder: &Path,
    layout: Layout,
    formats: Formats,
) -> anyhow::Result<(Vec<Diagnostic>, Box<dyn Sources>)> {
    let path = PathBuf::from(what);
    let pool = Pool::default();
    if path.is_file() {
        let mut file = std::fs::File::open(&path).with_context(|| format!("cannot read `{what}`"))?;
        let bundle = load_from(&mut file, &pool).map_err(|error| {
            let error = anyhow::Error::new(error);
            UsageError(format!("`{what}` is not a bundle: {error:#}"))
        })?;
        let options = Options { layout, formats, ..Options::default() };
        let mut findings = validate(&bundle, &options);
        findings.extend(check::types(&bundle, &options, &findings));
        findings.extend(check::approvals(&bundle, &options.layout));
        return Ok((findings, Box::new(NoSources)));
    }
    let (repo, stamp) = if path.is_dir() {
        input::directory(&path, layout)?
    } else {
        input::word_as_revision(folder, what, &layout)?
    };
    let mut remembered = Remembered::to_check(&repo, &pool);
    let mut outcome = input::make(&repo, stamp, &pool, remembered.aids())?;
    let found = check::everything(&repo, &outcome, formats, remembered.right.known())?;
    if outcome.built.is_some() {
        remembered.keep(None);
    }
    outcome.findings.extend(found);
    Ok((outcome.findings, Box::new(repo)))
}

/// A line that counts all findings, of which so many are shown.
fn summary(report: &Report, shown: usize) -> String {
    let mut out = report.summary();
    if shown < report.len() {
        out.push_str(&format!(", the first {shown} shown"));
    }
    out.push('\n');
    out
}

fn json(report: &Report, sources: &dyn Sources, max: Option<usize>) -> anyhow::Result<String> {
    let mut answer = json!({
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "findings": record::records(report, max.unwrap_or(usize::MAX), sources),
    });
    // Only where there is something to tell: most reports hold every finding.
    if !report.omitted().is_empty() {
        answer["omitted"] = json!(record::omitted(report));
    }
    Ok(serde_json::to_string_pretty(&answer)? + "\n")
}
