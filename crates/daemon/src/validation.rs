//! Validation of a data repo: all checks other than those of bundling.

mod approvals;
pub mod duplicates;
pub mod subject;
pub mod templates;
pub mod values;

use std::collections::BTreeSet;

use qontract_bundle::build::BuildOutcome;
use qontract_bundle::repo::{NameFilter, RepoFile};
use qontract_bundle::{Bundle, Layout, Repo, Sha256};
use qontract_diagnostics::{Diagnostic, Severity, code};
use qontract_graphql::Schema;
pub use qontract_validate::ValidationCache;
pub use qontract_validate::schema::Formats;
use qontract_validate::{Options, locate, validate_incremental};
use rayon::prelude::*;

use crate::repo_cache::LazyValidationCache;

/// The depth of validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationDepth {
    /// Errors only.
    Errors,
    /// Errors and warnings, including those that need the texts of files.
    All(Formats),
}

/// Validates a bundle of a data repo. Files in `unread` could not be read, and references to them are not
/// errors. `known` is the cache of files that are known to be valid.
pub fn validate(
    bundle: &Bundle,
    repo: &Repo,
    unread: BTreeSet<String>,
    depth: ValidationDepth,
    known: &mut ValidationCache,
) -> anyhow::Result<Vec<Diagnostic>> {
    let (only_errors, formats) = match depth {
        ValidationDepth::Errors => (true, Formats::default()),
        ValidationDepth::All(formats) => (false, formats),
    };
    let options = Options { layout: repo.layout().clone(), unread, only_errors, formats };
    let mut findings = validate_incremental(bundle, &options, known);
    findings.extend(graphql_types(bundle, &options, &findings));
    if depth == ValidationDepth::Errors {
        findings.retain(Diagnostic::is_error);
        locate(&mut findings, repo);
        return Ok(findings);
    }
    findings.extend(approvals(bundle, repo.layout()));
    locate(&mut findings, repo);
    findings.extend(ambiguous_scalars(repo)?);
    Ok(findings)
}

/// Turns empty files into errors, so that there is no bundle. Bundling leaves them out with a warning, as the
/// peer does; a plan or a run would then remove everything that the file declared.
pub fn reject_empty_files(outcome: &mut BuildOutcome) {
    let mut is_complete = true;
    for finding in outcome.findings.iter_mut().filter(|finding| finding.code == code::EMPTY_FILE) {
        finding.severity = Severity::Error;
        "the file is empty".clone_into(&mut finding.message);
        finding.hint = Some("restore its content; to remove what it declares, delete the file".to_owned());
        is_complete = false;
    }
    if !is_complete && let Some(built) = outcome.built.take() {
        outcome.partial = Some(built);
    }
}

/// Validates the bundle of a data repo, or the part that could be read. Findings of bundling are not
/// repeated.
pub fn validate_outcome(
    repo: &Repo,
    outcome: &BuildOutcome,
    depth: ValidationDepth,
    known: &mut ValidationCache,
) -> anyhow::Result<Vec<Diagnostic>> {
    let errors = outcome.findings.iter().filter(|finding| finding.is_error());
    let unread: BTreeSet<String> = errors.map(|finding| finding.location.file.clone()).collect();
    match outcome.built.as_ref().or(outcome.partial.as_ref()) {
        Some(bundle) => validate(bundle, repo, unread, depth, known),
        None if depth == ValidationDepth::Errors => Ok(Vec::new()),
        None => ambiguous_scalars(repo),
    }
}

/// Validates a bundle of a data repo; returns all findings if it has errors. Warnings are computed only in
/// that case.
fn require_valid(
    bundle: &Bundle,
    repo: &Repo,
    known: &mut ValidationCache,
) -> anyhow::Result<Result<(), Vec<Diagnostic>>> {
    if validate(bundle, repo, BTreeSet::new(), ValidationDepth::Errors, known)?.is_empty() {
        return Ok(Ok(()));
    }
    validate(bundle, repo, BTreeSet::new(), ValidationDepth::All(Formats::default()), known).map(Err)
}

/// Checks of the data, other than bundling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputCheck {
    /// The data must be valid, and no file may be empty.
    Valid,
    /// No file may be empty: objects that the file declared would be removed.
    Complete,
    /// No further check.
    Nothing,
}

/// The findings of data that cannot be bundled or does not pass its check.
pub struct FailedCheck {
    /// All findings, of bundling and of validation.
    pub findings: Vec<Diagnostic>,
    /// The SHA-256 of the bundle, if it could be bundled.
    pub sha: Option<Sha256>,
}

/// The bundle, if it passes the check; else all findings.
pub fn checked_bundle(
    repo: &Repo,
    mut outcome: BuildOutcome,
    check: InputCheck,
    known: &mut LazyValidationCache,
) -> anyhow::Result<Result<Bundle, FailedCheck>> {
    if check != InputCheck::Nothing {
        reject_empty_files(&mut outcome);
    }
    let (mut findings, sha) = match outcome.built.take() {
        Some(built) if check != InputCheck::Valid => return Ok(Ok(built)),
        Some(built) => match require_valid(&built, repo, known.results())? {
            Ok(()) => return Ok(Ok(built)),
            Err(findings) => (findings, Some(built.sha())),
        },
        None => {
            let depth = ValidationDepth::Errors;
            (validate_outcome(repo, &outcome, depth, known.results())?, None)
        }
    };
    findings.extend(outcome.findings);
    Ok(Err(FailedCheck { findings, sha }))
}

/// Warnings about removal approvals without effect.
pub fn approvals(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    approvals::check(bundle, layout, today)
}

/// An error if the GraphQL types do not form a schema, which `query` and `serve` would refuse. Another error
/// in the same file is taken for the reason, and replaces it.
pub fn graphql_types(bundle: &Bundle, options: &Options, found: &[Diagnostic]) -> Option<Diagnostic> {
    let file = &options.layout.graphql;
    let is_known = options.unread.contains(file)
        || found.iter().any(|finding| finding.is_error() && finding.location.file == *file);
    if is_known {
        return None;
    }
    let error = Schema::build(&bundle.graphql().value).err()?;
    Some(Diagnostic::new(code::GRAPHQL_SCHEMA_FORM, error.to_string()).in_file(file))
}

/// Warnings about scalars that YAML parsers read differently, in all YAML files.
fn ambiguous_scalars(repo: &Repo) -> anyhow::Result<Vec<Diagnostic>> {
    let Layout { data, schemas, graphql, .. } = repo.layout();
    let mut files: Vec<RepoFile> = repo.list(data, NameFilter::Documents)?.files;
    files.extend(repo.list(schemas, NameFilter::Documents)?.files);
    files.extend(repo.file(graphql)?);
    let is_yaml = |file: &&RepoFile| matches!(file.path.rsplit_once('.'), Some((_, "yml" | "yaml")));
    let found = files.par_iter().filter(is_yaml).flat_map_iter(|file| {
        let Ok(bytes) = file.read() else { return Vec::new() };
        let Ok(text) = str::from_utf8(&bytes) else { return Vec::new() };
        let found = qontract_yaml::lint::dialect(text).into_iter();
        found.map(|finding| finding.in_file(&file.name)).collect::<Vec<_>>()
    });
    Ok(found.collect())
}
