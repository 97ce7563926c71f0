//! `qontract bundle`: a data repo → a bundle.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use qontract_bundle::{Built, Layout, Pool, Repo, Stamp, store};
use qontract_diagnostics::{Report, Severity};

use crate::cli::Bundle;
use crate::exit::{Exit, UsageError};
use crate::input;
use crate::printer::Printer;

pub fn run(arguments: Bundle, printer: &Printer) -> anyhow::Result<Exit> {
    let Bundle { repo: folder, output, rev, commit, commit_timestamp, strict, layout } = arguments;
    if !folder.is_dir() {
        return Err(UsageError(format!("`{}` is not a folder", folder.display())).into());
    }
    let layout = Layout::from(layout);
    let (repo, known) = match &rev {
        Some(rev) => input::revision(&folder, rev, &layout)?,
        None => input::directory(&folder, layout),
    };
    let stamp = match (commit, commit_timestamp) {
        (Some(commit), Some(timestamp)) => Stamp { commit, timestamp },
        _ => known,
    };
    make(&repo, stamp, strict, output.filter(|path| path.as_os_str() != "-").as_deref(), printer)
}

/// Bundles `repo` and writes the bundle to `output`, or to stdout. Nothing is written unless all of it is good.
pub fn make(
    repo: &Repo,
    stamp: Stamp,
    strict: bool,
    output: Option<&Path>,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let outcome = input::make(repo, stamp, &Pool::default())?;
    let report = Report::new(outcome.findings);
    printer.report(&report, repo);
    let Some(built) = outcome.built.filter(|_| !strict || report.count(Severity::Warning) == 0) else {
        return Ok(Exit::Failure);
    };
    write(&built, output, printer)?;
    Ok(Exit::Ok)
}

fn write(built: &Built, output: Option<&Path>, printer: &Printer) -> anyhow::Result<()> {
    let Built { bundle, encoded } = built;
    let Some(path) = output.map(PathBuf::from) else {
        for part in encoded.parts() {
            printer.data(part)?;
        }
        return Ok(());
    };
    store::write(encoded, &path).with_context(|| format!("cannot write `{}`", path.display()))?;
    printer.note(&format!(
        "{} datafiles, {} resources, {} schemas in {}",
        bundle.datafiles().len(),
        bundle.resources().len(),
        bundle.schemas().len(),
        path.display()
    ));
    printer.data(format!("{}\n", bundle.sha()).as_bytes())
}
