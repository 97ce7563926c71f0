//! Where the journal of this process is: with the sandbox, if there is one, else with the records of runs.

use std::path::Path;
use std::sync::Arc;

use qontract_client_blobs::Directory;
use qontract_journal::{Absence, Journal, JournalLocation};

use crate::run_store::RunStore;

/// The folder of a journal, in a sandbox or beside the records of runs.
const FOLDER: &str = "journal";

/// What a sandbox has as soon as anything was written to it.
const SANDBOX_CONTENT: &str = "clusters";

/// The journal of a sandbox. A sandbox that does not hold anything yet has nothing to remember.
pub fn of_sandbox(sandbox: &Path) -> Journal {
    // Before the journal is opened: it is created before anything else is written.
    let absence = if sandbox.join(SANDBOX_CONTENT).exists() { Absence::Lost } else { Absence::New };
    open(sandbox, "--sandbox", absence)
}

/// The journal beside the records of runs, for real targets.
pub fn of_runs(runs: &RunStore) -> Journal {
    open(runs.folder(), "--runs", Absence::Lost)
}

/// The journal of runs on the sandbox, or on real targets if there is none.
pub fn of(sandbox: Option<&Path>, runs: &RunStore) -> Arc<Journal> {
    Arc::new(sandbox.map_or_else(|| of_runs(runs), of_sandbox))
}

fn open(folder: &Path, option: &str, absence: Absence) -> Journal {
    let location = JournalLocation {
        place: folder.join(FOLDER).display().to_string(),
        init: format!("qontract journal init {option} {}", folder.display()),
    };
    Journal::new(Arc::new(Directory::new(folder.join(FOLDER))), location, absence)
}
