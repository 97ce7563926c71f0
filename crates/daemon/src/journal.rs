//! Opens the journal of this process, and its leases: in the sandbox, if there is one, else next to the run records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qontract_client_blobs::Directory;
use qontract_config::UsageError;
use qontract_journal::{Journal, JournalLocation, LeaseTiming, MissingJournal};
use qontract_runtime::lease::Leases;

use crate::lease_host::{LocalHost, this_process};
use crate::run_store::RunStore;

/// The directory of a journal, in a sandbox or next to the run records.
const FOLDER: &str = "journal";

/// The directory that exists in a sandbox once anything was written to it.
const SANDBOX_CONTENT: &str = "clusters";

/// The journal of a sandbox. In an empty sandbox, a missing journal is new and not lost.
pub fn of_sandbox(sandbox: &Path) -> Journal {
    // Checked before the journal is opened, which creates it.
    let absence =
        if sandbox.join(SANDBOX_CONTENT).exists() { MissingJournal::Lost } else { MissingJournal::New };
    open(sandbox, "--sandbox", absence)
}

/// The journal next to the run records, for real targets.
pub fn of_runs(runs: &RunStore) -> Journal {
    open(runs.folder(), "--runs", MissingJournal::Lost)
}

/// The journal of the sandbox, or of real targets if there is no sandbox.
pub fn of(sandbox: Option<&Path>, runs: &RunStore) -> Arc<Journal> {
    Arc::new(sandbox.map_or_else(|| of_runs(runs), of_sandbox))
}

/// The directory of the journal of the sandbox, or of real targets if there is no sandbox.
pub fn folder(sandbox: Option<&Path>, runs: &RunStore) -> PathBuf {
    sandbox.unwrap_or(runs.folder()).join(FOLDER)
}

/// The leases in a journal, for all runs of this process.
pub fn leases(journal: &Journal) -> Result<Arc<dyn Leases>, UsageError> {
    let timing = LeaseTiming::new(qontract_config::environment::lease_duration()?);
    Ok(Arc::new(journal.leases(Arc::new(LocalHost), this_process(), timing)))
}

fn open(folder: &Path, option: &str, absence: MissingJournal) -> Journal {
    let location = JournalLocation {
        place: folder.join(FOLDER).display().to_string(),
        init: format!("qontract journal init {option} {}", folder.display()),
    };
    let blobs = Directory::new(folder.join(FOLDER));
    let leases = Arc::new(blobs.volatile());
    Journal::new(Arc::new(blobs), location, absence).with_leases_in(leases)
}
