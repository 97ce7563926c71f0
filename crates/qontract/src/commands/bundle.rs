//! `qontract bundle`: builds a bundle from a data repo.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use qontract_bundle::store::BundleFile;
use qontract_bundle::{BuildOptions, CommitStamp, Layout, Pool};
use qontract_cli::BundleArgs;
use qontract_cli::printer::{Printer, ignore_broken_pipe};
use qontract_cli::progress::Progress;
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::Exit;
use qontract_daemon::opened_repo::OpenedRepo;
use qontract_daemon::repo_cache::RepoCache;
use qontract_daemon::validation::{self, Checks, ValidationLevel};
use qontract_diagnostics::{Report, Severity, pluralize};
use qontract_graphql::SchemaCache;
use qontract_telemetry::activity::Activities;

pub fn run(arguments: BundleArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let BundleArgs { repo: folder, output, rev, commit, commit_timestamp, strict, no_validate, layout } =
        arguments;
    let layout = Layout::from(layout);
    let given = commit.zip(commit_timestamp).map(|(commit, timestamp)| CommitStamp { commit, timestamp });
    let root = || discovery::root(&folder, &layout, PassedAs::Argument);
    let opened = match (&rev, given) {
        (Some(rev), given) => {
            let OpenedRepo { repo, stamp } = OpenedRepo::at_revision(&folder, rev, &layout)?;
            OpenedRepo { repo, stamp: given.unwrap_or(stamp) }
        }
        (None, Some(given)) => OpenedRepo::with_stamp(&root()?, layout, given)?,
        (None, None) => OpenedRepo::in_folder(&root()?, layout)?,
    };
    if opened.stamp.commit.is_empty() {
        printer.note("note: not a Git work tree, so the bundle has no commit; set one with `--commit`");
    }
    let output = output.filter(|path| path.as_os_str() != "-");
    build_and_write(
        &opened,
        &BundleOptions { strict, validate: !no_validate, output: output.as_deref() },
        printer,
    )
}

/// Options of a build.
pub struct BundleOptions<'a> {
    /// Whether warnings fail the build.
    pub strict: bool,
    /// Whether the data is validated.
    pub validate: bool,
    /// The file to write; `None` for stdout.
    pub output: Option<&'a Path>,
}

/// Bundles a data repo and writes the bundle to a file or to stdout. Nothing is written if there are errors.
pub fn build_and_write(
    opened: &OpenedRepo,
    options: &BundleOptions<'_>,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let BundleOptions { strict, validate, output } = *options;
    let repo = &opened.repo;
    let pool = Pool::default();
    let mut cache =
        if validate { RepoCache::with_validation(repo, &pool) } else { RepoCache::load(repo, &pool) };
    let cannot_write = |path: &Path| format!("cannot write `{}`", path.display());
    // The bundle is written to a temporary file during the build, and the file is renamed once the bundle is
    // valid.
    let mut file = match output {
        Some(path) => Some(BundleFile::create(path).with_context(|| cannot_write(path))?),
        None => None,
    };
    let options = BuildOptions { output: file.as_mut(), ..cache.build_options() };
    let progress = Progress::start("bundling", Activities::default());
    let mut outcome = opened.bundle(&pool, options)?;
    let report = if validate {
        // Warnings are shown only if they fail the build, because they would hide the errors; `validate`
        // reports all of them.
        let level = if strict { ValidationLevel::Warnings } else { ValidationLevel::Errors };
        let checks = Checks::of(level);
        let (known, schemas) = (cache.validation.results(), SchemaCache::default());
        let found = validation::validate_outcome(repo, &outcome, checks, known, &schemas)?;
        Report::new(outcome.findings.drain(..).chain(found).collect())
    } else {
        Report::new(outcome.findings)
    };
    drop(progress);
    printer.report(&report, repo);
    if report.has_errors() {
        return Ok(Exit::Failure);
    }
    let Some(built) = outcome.built.filter(|_| !strict || report.count(Severity::Warning) == 0) else {
        return Ok(Exit::Failure);
    };
    if let (Some(path), Some(file)) = (output, file) {
        file.finish(&built).with_context(|| cannot_write(path))?;
        print_summary(&built, path, printer)?;
    } else {
        let mut out = printer.bundle_out();
        ignore_broken_pipe(built.write_to(&mut out).and_then(|()| out.flush()))?;
    }
    cache.save(output.filter(|path| path.is_file()));
    // Memory is not freed, because the process ends here and freeing each value would take longer than parts
    // of the build.
    std::mem::forget((built, cache, pool));
    Ok(Exit::Ok)
}

/// Prints a summary of the bundle to stderr, and its sha to stdout.
fn print_summary(bundle: &qontract_bundle::Bundle, path: &Path, printer: &Printer) -> anyhow::Result<()> {
    printer.note(&format!(
        "{}, {}, {} in {}",
        pluralize(bundle.datafiles().len(), "datafile"),
        pluralize(bundle.resources().len(), "resource"),
        pluralize(bundle.schemas().len(), "schema"),
        path.display()
    ));
    printer.text(&format!("{}\n", bundle.sha()))
}
