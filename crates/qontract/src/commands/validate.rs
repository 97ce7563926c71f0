//! `qontract validate`: reports all errors of a data repo, or of some of its files, at once.

use anyhow::Context as _;
use qontract_bundle::{Layout, Pool, load_from};
use qontract_cli::printer::Printer;
use qontract_cli::progress::Progress;
use qontract_cli::{FindingsFormat, ValidateArgs};
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::opened_repo::OpenedRepo;
use qontract_daemon::repo_cache::RepoCache;
use qontract_daemon::validation::subject::ValidationSubject;
use qontract_daemon::validation::{self, Checks, Formats, ValidatedData, ValidationCache, ValidationLevel};
use qontract_diagnostics::{Diagnostic, NoSources, Report, Severity, Sources, StyledText, pluralize, record};
use qontract_graphql::SchemaCache;
use qontract_telemetry::activity::Activities;
use serde_json::json;

pub fn run(arguments: ValidateArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let ValidateArgs { mut what, repo, only_errors, strict, max, formats, output, layout } = arguments;
    if what.is_empty() {
        what.push(repo.display().to_string());
    }
    let formats = if formats { Formats::Enforced } else { Formats::Ignored };
    let layout = Layout::from(layout);
    let subject = ValidationSubject::of(&what, repo, &layout)?;
    let has_lines = !matches!(subject, ValidationSubject::BundleFile(_));
    let progress = Progress::start("validating", Activities::default());
    let found = find(&subject, layout, formats);
    drop(progress);
    let (findings, sources) = found?;
    let findings = findings.into_iter().filter(|finding| !only_errors || finding.is_error());
    let selection = subject.selection();
    let (chosen, others): (Vec<_>, Vec<_>) =
        findings.partition(|finding| selection.is_none_or(|all| all.contains(&finding.location.file)));
    let (report, others) = (Report::new(chosen), Report::new(others));
    if let Some(selection) = selection {
        for path in &selection.outside {
            printer.note(&format!("note: `{path}` is not part of the data repo, and is not checked"));
        }
    }
    match output {
        FindingsFormat::Text => {
            let shown = max.unwrap_or(usize::MAX).min(report.findings().len());
            printer.findings(&StyledText::first(&report, shown, &*sources))?;
            printer.text(&summary(&report, shown))?;
            if !others.is_empty() {
                printer.note(&format!("note: {} (not shown)", elsewhere(&others)));
            }
            if !has_lines && !report.is_empty() {
                printer.note("note: a bundle has no lines; findings contain JSON pointers instead");
            }
        }
        FindingsFormat::Json => {
            let others = selection.map(|_| &others);
            printer.json(json(&report, others, &*sources, max)?.as_bytes())?;
        }
    }
    let warned = strict && report.count(Severity::Warning) > 0;
    Ok(if report.has_errors() || warned { Exit::Failure } else { Exit::Ok })
}

/// The findings, and the sources of their lines.
fn find(
    subject: &ValidationSubject,
    layout: Layout,
    formats: Formats,
) -> anyhow::Result<(Vec<Diagnostic>, Box<dyn Sources>)> {
    let (pool, schemas) = (Pool::default(), SchemaCache::default());
    let checks = Checks { level: ValidationLevel::Objects, formats };
    let opened = match subject {
        ValidationSubject::BundleFile(path) => {
            let what = path.display();
            let mut file = std::fs::File::open(path).with_context(|| format!("cannot read `{what}`"))?;
            let bundle = load_from(&mut file, &pool).map_err(|error| {
                let error = anyhow::Error::new(error);
                UsageError(format!("`{what}` is neither a bundle nor a file of a data repo: {error:#}"))
            })?;
            let data = ValidatedData {
                bundle: &bundle,
                repo: None,
                layout: &layout,
                bundling: &[],
                schemas: &schemas,
            };
            let findings = validation::validate(&data, checks, &mut ValidationCache::default())?;
            return Ok((findings, Box::new(NoSources)));
        }
        ValidationSubject::Folder(path) => {
            OpenedRepo::in_folder(&discovery::root(path, &layout, PassedAs::Argument)?, layout)?
        }
        ValidationSubject::Files(selection) => {
            let OpenedRepo { repo, stamp } = OpenedRepo::in_folder(&selection.root, layout)?;
            OpenedRepo { repo: repo.displayed_from(std::path::Path::new(".")), stamp }
        }
        ValidationSubject::Revision { word, repo } => OpenedRepo::resolve_revision(repo, word, &layout)?,
    };
    let mut remembered = RepoCache::with_validation(&opened.repo, &pool);
    let mut outcome = opened.bundle(&pool, remembered.build_options())?;
    let repo = opened.repo;
    validation::reject_empty_files(&mut outcome);
    // Memory is freed before the checks, which need only the bundle and use the most memory.
    if outcome.built.is_some() {
        remembered.release_files();
    }
    let known = remembered.validation.results();
    let found = validation::validate_outcome(&repo, &outcome, checks, known, &schemas)?;
    outcome.findings.extend(found);
    if outcome.built.is_some() {
        remembered.validation.save();
    }
    // The process ends with this command: freeing the bundle, document by document, would take a tenth of its
    // time.
    std::mem::forget((outcome.built, outcome.partial));
    Ok((outcome.findings, Box::new(repo)))
}

/// The summary line; `shown` is the number of printed findings.
fn summary(report: &Report, shown: usize) -> String {
    let mut out = report.summary();
    if shown < report.len() {
        out.push_str(&format!(", the first {shown} shown"));
    }
    out.push('\n');
    out
}

/// The number of findings in other files.
fn elsewhere(others: &Report) -> String {
    let counts = [Severity::Error, Severity::Warning].map(|severity| (others.count(severity), severity));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, severity)| pluralize(count, severity.as_str())).collect();
    format!("other files have {}", counts.join(", "))
}

fn json(
    report: &Report,
    others: Option<&Report>,
    sources: &dyn Sources,
    max: Option<usize>,
) -> anyhow::Result<String> {
    let mut answer = json!({
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "findings": record::records(report, max.unwrap_or(usize::MAX), sources),
    });
    // The field is added only if findings were omitted.
    if !report.omitted().is_empty() {
        answer["omitted"] = json!(record::omitted(report));
    }
    if let Some(others) = others {
        answer["other_files"] = json!({
            "errors": others.count(Severity::Error),
            "warnings": others.count(Severity::Warning),
        });
    }
    Ok(serde_json::to_string_pretty(&answer)? + "\n")
}
