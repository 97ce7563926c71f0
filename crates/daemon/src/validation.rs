//! Validation of a data repo: everything that can be wrong with it besides what bundling finds itself.

mod approvals;
pub mod duplicates;
pub mod subject;
pub mod templates;

use std::collections::BTreeSet;

use qontract_bundle::build::Outcome;
use qontract_bundle::repo::{Bytes, File, Names};
use qontract_bundle::{Bundle, Layout, Repo};
use qontract_diagnostics::{Diagnostic, Severity, code};
use qontract_graphql::Schema;
pub use qontract_validate::Known;
pub use qontract_validate::schema::Formats;
use qontract_validate::{Options, locate, validate_again};
use rayon::prelude::*;

/// How thorough validation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Errors only.
    Errors,
    /// Errors and warnings, also those that only the texts of files show.
    All(Formats),
}

/// Validates a bundle of a data repo, before anything is made of it. Files in `unread` could not be read, and references to them are not errors. `known` is what
/// was valid before.
pub fn validate(
    bundle: &Bundle,
    repo: &Repo,
    unread: BTreeSet<String>,
    depth: Depth,
    known: &mut Known,
) -> anyhow::Result<Vec<Diagnostic>> {
    let (only_errors, formats) = match depth {
        Depth::Errors => (true, Formats::default()),
        Depth::All(formats) => (false, formats),
    };
    let options = Options { layout: repo.layout().clone(), unread, only_errors, formats };
    let mut findings = validate_again(bundle, &options, known);
    findings.extend(types(bundle, &options, &findings));
    if depth == Depth::Errors {
        findings.retain(Diagnostic::is_error);
        locate(&mut findings, repo);
        return Ok(findings);
    }
    findings.extend(approvals(bundle, repo.layout()));
    locate(&mut findings, repo);
    findings.extend(scalars(repo)?);
    Ok(findings)
}

/// Makes empty files errors, so that there is no bundle without them. Bundling leaves them out with a warning, as the established bundler
/// does; a plan or a run would take that for the removal of everything that the file declares.
pub fn reject_empty_files(outcome: &mut Outcome) {
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

/// Validates what bundling a data repo made, or what could be read of it. What bundling found itself is not repeated.
pub fn validate_outcome(
    repo: &Repo,
    outcome: &Outcome,
    depth: Depth,
    known: &mut Known,
) -> anyhow::Result<Vec<Diagnostic>> {
    let errors = outcome.findings.iter().filter(|finding| finding.is_error());
    let unread: BTreeSet<String> = errors.map(|finding| finding.place.file.clone()).collect();
    match outcome.built.as_ref().or(outcome.partial.as_ref()) {
        Some(bundle) => validate(bundle, repo, unread, depth, known),
        None if depth == Depth::Errors => Ok(Vec::new()),
        None => scalars(repo),
    }
}

/// Validates a bundle of a data repo; if it has errors, every finding is returned. Warnings are looked for in that case only.
pub fn require_valid(
    bundle: &Bundle,
    repo: &Repo,
    known: &mut Known,
) -> anyhow::Result<Result<(), Vec<Diagnostic>>> {
    if validate(bundle, repo, BTreeSet::new(), Depth::Errors, known)?.is_empty() {
        return Ok(Ok(()));
    }
    validate(bundle, repo, BTreeSet::new(), Depth::All(Formats::default()), known).map(Err)
}

/// The bundle that bundling made, if it is valid and no file is empty; else every finding.
pub fn validated_bundle(
    repo: &Repo,
    mut outcome: Outcome,
    known: &mut Known,
) -> anyhow::Result<Result<Bundle, Vec<Diagnostic>>> {
    reject_empty_files(&mut outcome);
    let findings = match outcome.built.take() {
        Some(built) => match require_valid(&built, repo, known)? {
            Ok(()) => return Ok(Ok(built)),
            Err(findings) => findings,
        },
        None => validate_outcome(repo, &outcome, Depth::All(Formats::default()), known)?,
    };
    Ok(Err(findings.into_iter().chain(outcome.findings).collect()))
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
