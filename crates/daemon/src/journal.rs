//! Opens the journal of this process: in the sandbox, if there is one, else next to the run records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qontract_client_blobs::Directory;
use qontract_journal::{Journal, JournalLocation, MissingJournal};

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

fn open(folder: &Path, option: &str, absence: MissingJournal) -> Journal {
    let location = JournalLocation {
        place: folder.join(FOLDER).display().to_string(),
        init: format!("qontract journal init {option} {}", folder.display()),
    };
    Journal::new(Arc::new(Directory::new(folder.join(FOLDER))), location, absence)
}
