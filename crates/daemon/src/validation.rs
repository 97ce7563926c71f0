//! Validation of data: a list of checks. Each caller runs the checks up to a [`ValidationLevel`].
//!
//! Bundling has separate checks; their findings are not repeated by the validation.

mod approvals;
mod duplicates;
mod quotas;
pub mod subject;
mod templates;
mod values;

use std::collections::BTreeSet;

use qontract_bundle::build::BuildOutcome;
use qontract_bundle::repo::{NameFilter, RepoFile};
use qontract_bundle::{Bundle, Layout, Repo, Sha256};
use qontract_diagnostics::{Diagnostic, Severity, code};
use qontract_graphql::SchemaCache;
pub use qontract_validate::ValidationCache;
pub use qontract_validate::schema::Formats;
use qontract_validate::{Options, locate, validate_incremental};
use rayon::prelude::*;

use crate::repo_cache::LazyValidationCache;

/// The level of a validation, which determines the checks that it runs. Each level includes the checks of the levels
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValidationLevel {
    /// Checks for errors that make data unusable: no bundle is written, and no integration runs on the data. Used by
    /// `bundle`, and for data that is opened for `reconcile`, `up`, `plan` and `serve`.
    Errors,
    /// Also checks for warnings. Used by `bundle --strict`, and for data that is not used because it has errors.
    Warnings,
    /// Also checks for errors that concern single objects. Despite such errors, bundles are written, and integrations
    /// run and report the errors for their shards. Used by `validate`.
    Objects,
}

/// The checks that a validation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The level of the checks.
    pub level: ValidationLevel,
    /// Whether strings are checked against the `format` of their schema.
    pub formats: Formats,
}

impl Checks {
    /// Creates the checks of a level, without formats.
    pub fn of(level: ValidationLevel) -> Self {
        Self { level, formats: Formats::Ignored }
    }
}

/// Data to validate.
pub struct ValidatedData<'a> {
    /// The bundle, or the part of it that could be built.
    pub bundle: &'a Bundle,
    /// The data repo; `None` for a bundle file, whose findings have no lines.
    pub repo: Option<&'a Repo>,
    /// The layout of the data repo.
    pub layout: &'a Layout,
    /// The findings of bundling.
    pub bundling: &'a [Diagnostic],
    /// The cache from which the schema of the GraphQL types is taken.
    pub schemas: &'a SchemaCache,
}

/// One of the checks.
struct Check {
    /// The first level that includes the check.
    level: ValidationLevel,
    /// Whether the check also runs on an incomplete bundle, for the part that could be built.
    accepts_parts: bool,
    run: CheckFn,
}

/// The function of a check.
enum CheckFn {
    /// Checks the bundle.
    Bundle(fn(&mut Validation<'_>) -> Vec<Diagnostic>),
    /// Checks the source files. It does not run on a bundle file, which has no source files.
    Texts(fn(&Repo) -> anyhow::Result<Vec<Diagnostic>>),
}

/// All checks, in the order of their levels. A check can rely on the findings of the checks before it.
const CHECKS: [Check; 7] = [
    Check { level: ValidationLevel::Errors, accepts_parts: true, run: CheckFn::Bundle(check_schemas) },
    Check { level: ValidationLevel::Errors, accepts_parts: true, run: CheckFn::Bundle(check_graphql_types) },
    Check { level: ValidationLevel::Warnings, accepts_parts: true, run: CheckFn::Bundle(check_approvals) },
    Check { level: ValidationLevel::Warnings, accepts_parts: true, run: CheckFn::Texts(ambiguous_scalars) },
    Check { level: ValidationLevel::Objects, accepts_parts: true, run: CheckFn::Bundle(check_duplicates) },
    Check { level: ValidationLevel::Objects, accepts_parts: true, run: CheckFn::Bundle(check_values) },
    Check { level: ValidationLevel::Objects, accepts_parts: false, run: CheckFn::Bundle(check_templates) },
];

/// A validation in progress.
struct Validation<'a> {
    data: &'a ValidatedData<'a>,
    options: Options,
    /// The files whose validity is cached.
    known: &'a mut ValidationCache,
    /// The findings so far.
    findings: Vec<Diagnostic>,
}

/// Checks the schemas, and the files against their schemas.
fn check_schemas(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    let Validation { data, options, known, .. } = validation;
    validate_incremental(data.bundle, options, known)
}

/// An error if the GraphQL types do not form a schema, because `query` and `serve` would refuse them. If the file of
/// the types has another error, that error is assumed to be the reason, and this error is omitted.
fn check_graphql_types(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    let Validation { data, options, findings, .. } = validation;
    let file = &options.layout.graphql;
    let is_known = options.unread.contains(file)
        || findings.iter().any(|finding| finding.is_error() && finding.location.file == *file);
    if is_known {
        return Vec::new();
    }
    let error = data.schemas.schema_of(data.bundle).err();
    let finding = |error: String| Diagnostic::new(code::GRAPHQL_SCHEMA_FORM, error).in_file(file);
    error.map(|error| finding(error.to_string())).into_iter().collect()
}

/// Warnings about removal approvals without effect.
fn check_approvals(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    approvals::check(validation.data.bundle, validation.data.layout, today)
}

/// Errors about namespaces and clusters that are declared more than once.
fn check_duplicates(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    duplicates::check(validation.data.bundle, validation.data.layout)
}

/// Errors in values that no cluster and no run accepts.
fn check_values(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    values::check(validation.data.bundle, validation.data.layout)
}

/// Errors of templates and files of namespaces.
fn check_templates(validation: &mut Validation<'_>) -> Vec<Diagnostic> {
    let ValidatedData { bundling, .. } = validation.data;
    templates::check(validation.data, bundling.iter().chain(&validation.findings))
}

/// Validates data. `known` is the cache of valid files.
pub fn validate(
    data: &ValidatedData<'_>,
    checks: Checks,
    known: &mut ValidationCache,
) -> anyhow::Result<Vec<Diagnostic>> {
    // References to files that could not be read are not reported as errors.
    let errors = data.bundling.iter().filter(|finding| finding.is_error());
    let unread: BTreeSet<String> = errors.map(|finding| finding.location.file.clone()).collect();
    let is_part = !unread.is_empty();
    let only_errors = checks.level == ValidationLevel::Errors;
    let options = Options { layout: data.layout.clone(), unread, only_errors, formats: checks.formats };
    let mut validation = Validation { data, options, known, findings: Vec::new() };
    for check in CHECKS.iter().filter(|check| check.level <= checks.level) {
        if check.accepts_parts || !is_part {
            let found = match check.run {
                CheckFn::Bundle(check) => check(&mut validation),
                CheckFn::Texts(check) => data.repo.map_or(Ok(Vec::new()), check)?,
            };
            validation.findings.extend(found);
        }
    }
    let mut findings = validation.findings;
    if only_errors {
        findings.retain(Diagnostic::is_error);
    }
    if let Some(repo) = data.repo {
        locate(&mut findings, repo);
    }
    Ok(findings)
}

/// Reports empty files as errors, so that there is no bundle. Bundling alone omits empty files with a warning, as the
/// peer does. A plan or a run on such a bundle would remove all objects that the files declared.
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

/// Validates the bundle of a data repo, or the part of the bundle that could be built.
pub fn validate_outcome(
    repo: &Repo,
    outcome: &BuildOutcome,
    checks: Checks,
    known: &mut ValidationCache,
    schemas: &SchemaCache,
) -> anyhow::Result<Vec<Diagnostic>> {
    match outcome.built.as_ref().or(outcome.partial.as_ref()) {
        Some(bundle) => {
            let (layout, bundling) = (repo.layout(), &*outcome.findings);
            validate(&ValidatedData { bundle, repo: Some(repo), layout, bundling, schemas }, checks, known)
        }
        None if checks.level == ValidationLevel::Errors => Ok(Vec::new()),
        None => ambiguous_scalars(repo),
    }
}

/// The check of data that is opened, in addition to bundling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputCheck {
    /// The data must be valid, and no file may be empty.
    Valid,
    /// No file may be empty, because the objects that the file declared would be removed.
    Complete,
    /// No further checks, because nothing runs on the data. Commands that show data, such as `query`, `diff`
    /// and `affected`, also help to examine invalid data; the base of a change was checked when it was the
    /// head, and the change may correct it.
    Nothing,
}

/// The result of bundling and checking data.
pub enum CheckedBundle {
    /// The bundle, which passed its check.
    Passed(Bundle),
    /// The data could not be bundled, or the bundle did not pass its check.
    Failed(FailedCheck),
}

/// The findings of data that cannot be bundled or does not pass its check.
pub struct FailedCheck {
    /// All findings, of bundling and of validation.
    pub findings: Vec<Diagnostic>,
    /// The SHA-256 of the bundle, if the data could be bundled.
    pub sha: Option<Sha256>,
}

/// The bundle if it passes the check, and otherwise all findings.
pub fn checked_bundle(
    repo: &Repo,
    mut outcome: BuildOutcome,
    check: InputCheck,
    known: &mut LazyValidationCache,
    schemas: &SchemaCache,
) -> anyhow::Result<CheckedBundle> {
    if check != InputCheck::Nothing {
        reject_empty_files(&mut outcome);
    }
    if check != InputCheck::Valid
        && let Some(built) = outcome.built.take()
    {
        return Ok(CheckedBundle::Passed(built));
    }
    let errors = Checks::of(ValidationLevel::Errors);
    let mut findings = validate_outcome(repo, &outcome, errors, known.results(), schemas)?;
    let sha = outcome.built.as_ref().map(Bundle::sha);
    if let Some(built) = outcome.built.take_if(|_| findings.is_empty()) {
        return Ok(CheckedBundle::Passed(built));
    }
    if sha.is_some() {
        // Warnings are computed only for unusable data.
        let all = Checks::of(ValidationLevel::Warnings);
        findings = validate_outcome(repo, &outcome, all, known.results(), schemas)?;
    }
    findings.extend(outcome.findings);
    Ok(CheckedBundle::Failed(FailedCheck { findings, sha }))
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

#[cfg(test)]
mod tests {
    use qontract_bundle::{CommitStamp, Pool, build};
    use qontract_diagnostics::Code;
    use qontract_testkit::{Scratch, example};

    use super::*;
    use crate::input::Input;

    const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";

    /// The codes of the findings of the example with some files replaced.
    fn codes(files: &[(&str, &str)], level: ValidationLevel) -> Vec<Code> {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        for (path, text) in files {
            scratch.write(path, text);
        }
        let repo = Repo::directory(scratch.path().join("repo"), Layout::default());
        let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
        let known = &mut ValidationCache::default();
        let schemas = SchemaCache::default();
        let findings =
            validate_outcome(&repo, &outcome, Checks::of(level), known, &schemas).expect("readable files");
        findings.iter().map(|finding| finding.code).collect()
    }

    fn namespace() -> String {
        let file = example().join(NAMESPACE.strip_prefix("repo/").expect("a path of the repo"));
        std::fs::read_to_string(file).expect("a namespace")
    }

    #[test]
    fn each_level_includes_the_checks_of_those_before_it() {
        assert!(CHECKS.is_sorted_by_key(|check| check.level));
        let wrong = format!("{}nonsense: NO\n", namespace());
        let twice = namespace();
        let files = [(NAMESPACE, &*wrong), ("repo/data/services/catalog/namespaces/twice.yml", &*twice)];
        let expect = [(code::UNKNOWN_FIELD, 1), (code::SCALAR_DIALECT, 2), (code::DUPLICATE_NAMESPACE, 3)];
        let levels = [ValidationLevel::Errors, ValidationLevel::Warnings, ValidationLevel::Objects];
        for (index, level) in levels.into_iter().enumerate() {
            let codes = codes(&files, level);
            for (code, first) in expect {
                assert_eq!(codes.contains(&code), index + 1 >= first, "{level:?}: {codes:?}");
            }
        }
    }

    #[test]
    fn the_schema_is_built_once_for_all_checks_and_for_the_engine() {
        let repo = Repo::directory(example(), Layout::default());
        let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
        let (schemas, known) = (SchemaCache::default(), &mut ValidationCache::default());
        // This level runs the check of the types, and a check that queries the data.
        let checks = Checks::of(ValidationLevel::Objects);
        assert_eq!(validate_outcome(&repo, &outcome, checks, known, &schemas).expect("readable files"), []);
        let input = Input { bundle: outcome.built.expect("no errors"), repo: None };
        let engine = input.engine(None, &schemas).expect("valid types");
        assert_eq!(schemas.builds(), 1);
        // Other types replace the cached schema.
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        let types = "repo/graphql-schemas/schema.yml";
        let text = std::fs::read_to_string(scratch.path().join(types)).expect("types");
        scratch
            .write(types, format!("{text}\n- name: Unused_v1\n  fields:\n  - {{ name: a, type: string }}\n"));
        let repo = Repo::directory(scratch.path().join("repo"), Layout::default());
        let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
        assert_eq!(validate_outcome(&repo, &outcome, checks, known, &schemas).expect("readable files"), []);
        let input = Input { bundle: outcome.built.expect("no errors"), repo: None };
        let other = input.engine(Some(&engine), &schemas).expect("valid types");
        assert_eq!((schemas.builds(), other.schema().type_id("Unused_v1").is_some()), (2, true));
    }

    #[test]
    fn data_with_errors_of_single_objects_is_usable() {
        let twice = namespace();
        let files = [("repo/data/services/catalog/namespaces/twice.yml", &*twice)];
        assert_eq!(codes(&files, ValidationLevel::Errors), []);
        assert!(codes(&files, ValidationLevel::Objects).contains(&code::DUPLICATE_NAMESPACE));
    }
}
