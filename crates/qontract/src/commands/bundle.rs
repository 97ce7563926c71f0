//! `qontract bundle`: builds a bundle from a data repo.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use qontract_bundle::store::Draft;
use qontract_bundle::{Aids, Layout, Pool, Repo, Stamp};
use qontract_cli::Bundle;
use qontract_cli::printer::{Printer, written};
use qontract_cli::progress::Progress;
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::Exit;
use qontract_daemon::input;
use qontract_daemon::repo_cache::RepoCache;
use qontract_daemon::validation::{self, Depth};
use qontract_diagnostics::{Report, Severity, counted};
use qontract_telemetry::activity::Activities;
use qontract_validate::schema::Formats;

pub fn run(arguments: Bundle, printer: &Printer) -> anyhow::Result<Exit> {
    let Bundle { repo: folder, output, rev, commit, commit_timestamp, strict, no_validate, layout } =
        arguments;
    let layout = Layout::from(layout);
    let given = commit.zip(commit_timestamp).map(|(commit, timestamp)| Stamp { commit, timestamp });
    let (repo, stamp) = match (&rev, given) {
        (Some(rev), given) => {
            let (repo, known) = input::revision(&folder, rev, &layout)?;
            (repo, given.unwrap_or(known))
        }
        (None, Some(given)) => {
            (input::folder(&discovery::root(&folder, &layout, PassedAs::Argument)?, layout)?, given)
        }
        (None, None) => input::directory(&discovery::root(&folder, &layout, PassedAs::Argument)?, layout)?,
    };
    if stamp.commit.is_empty() {
        printer.note("note: not a Git work tree, so the bundle names no commit; `--commit` sets one");
    }
    let output = output.filter(|path| path.as_os_str() != "-");
    make(&repo, stamp, &Order { strict, validate: !no_validate, output: output.as_deref() }, printer)
}

/// Options of a build.
pub struct Order<'a> {
    /// Whether warnings fail the build.
    pub strict: bool,
    /// Whether the data is validated.
    pub validate: bool,
    /// The file to write; stdout without one.
    pub output: Option<&'a Path>,
}

/// Bundles `repo` and writes the bundle to a file or to stdout. Nothing is written if there are errors.
pub fn make(repo: &Repo, stamp: Stamp, order: &Order<'_>, printer: &Printer) -> anyhow::Result<Exit> {
    let Order { strict, validate, output } = *order;
    let pool = Pool::default();
    let mut remembered = if validate { RepoCache::to_check(repo, &pool) } else { RepoCache::of(repo, &pool) };
    let cannot_write = |path: &Path| format!("cannot write `{}`", path.display());
    // Written to a temporary file during the build, and renamed once it is valid.
    let mut draft = match output {
        Some(path) => Some(Draft::beside(path).with_context(|| cannot_write(path))?),
        None => None,
    };
    let aids = Aids { draft: draft.as_mut(), ..remembered.aids() };
    let progress = Progress::start("bundling", Activities::default());
    let mut outcome = input::make(repo, stamp, &pool, aids)?;
    let report = if validate {
        // Warnings are left to `validate`, unless they fail the build: here they would hide the errors.
        let depth = if strict { Depth::All(Formats::Ignored) } else { Depth::Errors };
        let found = validation::validate_outcome(repo, &outcome, depth, remembered.right.known())?;
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
    if let (Some(path), Some(draft)) = (output, draft) {
        draft.finish(&built).with_context(|| cannot_write(path))?;
        tell(&built, path, printer)?;
    } else {
        let mut out = printer.bundle_out();
        written(built.write_to(&mut out).and_then(|()| out.flush()))?;
    }
    remembered.keep(output.filter(|path| path.is_file()));
    // The process ends: freeing everything piece by piece would take longer than parts of the build.
    std::mem::forget((built, remembered, pool));
    Ok(Exit::Ok)
}

/// Prints a summary of the bundle to stderr, and its sha to stdout.
fn tell(bundle: &qontract_bundle::Bundle, path: &Path, printer: &Printer) -> anyhow::Result<()> {
    printer.note(&format!(
        "{}, {}, {} in {}",
        counted(bundle.datafiles().len(), "datafile"),
        counted(bundle.resources().len(), "resource"),
        counted(bundle.schemas().len(), "schema"),
        path.display()
    ));
    printer.text(&format!("{}\n", bundle.sha()))
}
