//! `qontract bundle`: a data repo → a bundle.

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

/// What is asked of a bundle that is made.
pub struct Order<'a> {
    /// Warnings fail too.
    pub strict: bool,
    /// What the files say is checked.
    pub validate: bool,
    /// The file to write; stdout without one.
    pub output: Option<&'a Path>,
}

/// Bundles `repo` and writes the bundle, to a file or to stdout. Nothing is written unless all of it is good.
pub fn make(repo: &Repo, stamp: Stamp, order: &Order<'_>, printer: &Printer) -> anyhow::Result<Exit> {
    let Order { strict, validate, output } = *order;
    let pool = Pool::default();
    let mut remembered = if validate { RepoCache::to_check(repo, &pool) } else { RepoCache::of(repo, &pool) };
    let cannot_write = |path: &Path| format!("cannot write `{}`", path.display());
    // Written while it is made, and put into its place once it is good.
    let mut draft = match output {
        Some(path) => Some(Draft::beside(path).with_context(|| cannot_write(path))?),
        None => None,
    };
    let aids = Aids { draft: draft.as_mut(), ..remembered.aids() };
    let progress = Progress::start("bundling", Activities::default());
    let mut outcome = input::make(repo, stamp, &pool, aids)?;
    let report = if validate {
        // What is allowed and probably not meant is told by `validate`; here it would bury the rest.
        let depth = if strict { Depth::All(Formats::Ignored) } else { Depth::Errors };
        let told = validation::validate_outcome(repo, &outcome, depth, remembered.right.known())?;
        Report::new(outcome.findings.drain(..).chain(told).collect())
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
    // The process ends: to give everything back piece by piece would take longer than some of what was done.
    std::mem::forget((built, remembered, pool));
    Ok(Exit::Ok)
}

/// Tells what was written, and its name.
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
