//! Everything that can be found wrong with a data repo besides what bundling finds itself.

mod approvals;

use std::collections::BTreeSet;

use qontract_bundle::build::Outcome;
use qontract_bundle::repo::{Bytes, File, Names};
use qontract_bundle::{Bundle, Layout, Repo};
use qontract_diagnostics::{Diagnostic, code};
use qontract_graphql::Schema;
pub use qontract_validate::Known;
pub use qontract_validate::schema::Formats;
use qontract_validate::{Options, locate, validate_again};
use rayon::prelude::*;

/// What checking a data repo finds, after `outcome` came of bundling it: files that could not be read are not missed.
fn rules(repo: &Repo, outcome: &Outcome, options: &Options, known: &mut Known) -> Vec<Diagnostic> {
    let errors = outcome.findings.iter().filter(|finding| finding.is_error());
    let unread: BTreeSet<String> = errors.map(|finding| finding.place.file.clone()).collect();
    let built = outcome.built.as_ref();
    let mut findings = match built.or(outcome.partial.as_ref()) {
        Some(bundle) => {
            let options = Options { layout: repo.layout().clone(), unread, ..options.clone() };
            let mut findings = validate_again(bundle, &options, known);
            findings.extend(types(bundle, &options, &findings));
            if !options.only_errors {
                findings.extend(approvals(bundle, repo.layout()));
            }
            findings
        }
        None => Vec::new(),
    };
    locate(&mut findings, repo);
    findings
}

/// Warnings about approvals of removals that cannot hold.
pub fn approvals(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    approvals::check(bundle, layout, today)
}

/// An error if no GraphQL schema can be made of the types, which `query` and `serve` would then refuse. Where another error of the same
/// file is known, that one is the reason.
pub fn types(bundle: &Bundle, options: &Options, found: &[Diagnostic]) -> Option<Diagnostic> {
    let file = &options.layout.graphql;
    let is_known = options.unread.contains(file)
        || found.iter().any(|finding| finding.is_error() && finding.place.file == *file);
    if is_known {
        return None;
    }
    let error = Schema::build(&bundle.graphql().value).err()?;
    Some(Diagnostic::new(code::GRAPHQL_SCHEMA_FORM, error.to_string()).in_file(file))
}

/// The errors that checking a data repo finds, for who knows what was right the last time.
pub fn errors(repo: &Repo, outcome: &Outcome, known: &mut Known) -> Vec<Diagnostic> {
    let options = Options { only_errors: true, ..Options::default() };
    let mut findings = rules(repo, outcome, &options, known);
    findings.retain(Diagnostic::is_error);
    findings
}

/// Everything that checking it finds, and what only the texts of the files tell.
pub fn everything(
    repo: &Repo,
    outcome: &Outcome,
    formats: Formats,
    known: &mut Known,
) -> anyhow::Result<Vec<Diagnostic>> {
    let mut findings = rules(repo, outcome, &Options { formats, ..Options::default() }, known);
    findings.extend(scalars(repo)?);
    Ok(findings)
}

/// The bundle, if nothing is wrong with it; else everything that is. What only warns is looked for in the second case only.
pub fn good(
    repo: &Repo,
    outcome: Outcome,
    known: &mut Known,
) -> anyhow::Result<Result<Bundle, Vec<Diagnostic>>> {
    let has_errors = !errors(repo, &outcome, known).is_empty();
    match outcome {
        Outcome { built: Some(built), .. } if !has_errors => Ok(Ok(built)),
        outcome => {
            let mut findings = everything(repo, &outcome, Formats::default(), known)?;
            findings.extend(outcome.findings);
            Ok(Err(findings))
        }
    }
}

/// Scalars that readers of YAML take differently, in all files that are YAML.
fn scalars(repo: &Repo) -> anyhow::Result<Vec<Diagnostic>> {
    let Layout { data, schemas, graphql, .. } = repo.layout();
    let mut files: Vec<File> = repo.list(data, Names::Documents)?.files;
    files.extend(repo.list(schemas, Names::Documents)?.files);
    files.extend(repo.file(graphql)?);
    let is_yaml = |file: &&File| matches!(file.path.rsplit_once('.'), Some((_, "yml" | "yaml")));
    let found = files.par_iter().filter(is_yaml).flat_map_iter(|file| {
        let Ok(Bytes::Whole(bytes)) = file.read() else { return Vec::new() };
        let Ok(text) = str::from_utf8(&bytes) else { return Vec::new() };
        let found = qontract_yaml::lint::dialect(text).into_iter();
        found.map(|finding| finding.in_file(&file.name)).collect::<Vec<_>>()
    });
    Ok(found.collect())
}
