//! Opens the journal of this process, and its leases: in the sandbox, if there is one, else in the bucket of the
//! configuration, else next to the run records.

mod bucket;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::{Mode, Permits, ReadPermit};
use qontract_client_blobs::{Blobs, Directory};
use qontract_config::{Config, UsageError};
use qontract_journal::{Journal, JournalLocation, LeaseTiming, MissingJournal, RunRecords, TransferEnd};
use qontract_runtime::lease::Leases;

use crate::lease_host::{LocalHost, this_process};
use crate::run_store::RunStore;
use crate::targets::{self, BlobStores};
use bucket::BucketBlobs;

/// The directory of a journal, in a sandbox or next to the run records.
const FOLDER: &str = "journal";

/// The prefix of the keys of a journal in a bucket.
const PREFIX: &str = "journal/";

/// The directory that exists in a sandbox once anything was written to it.
const SANDBOX_CONTENT: &str = "clusters";

/// The journal of this process, and its run records.
pub struct OpenJournal {
    /// The removal ledgers.
    pub journal: Arc<Journal>,
    /// The directory of the journal; `None` if it is in a bucket.
    pub folder: Option<PathBuf>,
    /// The run records.
    pub runs: Arc<RunStore>,
}

impl OpenJournal {
    /// The journal of runs in this mode. `runs` is the directory of run records, by default below the user's state
    /// directory.
    pub fn new(
        config: &Config,
        sandbox: Option<&Path>,
        runs: Option<PathBuf>,
        mode: Mode,
    ) -> anyhow::Result<Self> {
        if let Some(sandbox) = sandbox {
            let runs = Arc::new(RunStore::new(runs)?);
            return Ok(Self {
                journal: Arc::new(of_sandbox(sandbox)),
                folder: Some(folder_in(sandbox)),
                runs,
            });
        }
        if let Some(bucket) = JournalBucket::of_config(config, mode)? {
            let records = RunRecords::new(Arc::clone(&bucket.blobs), bucket.place());
            let runs = Arc::new(RunStore::in_bucket(records, runs));
            return Ok(Self { journal: Arc::new(bucket.journal()), folder: None, runs });
        }
        let runs = RunStore::new(runs)?;
        let folder = runs.folder().map(folder_in);
        Ok(Self { journal: Arc::new(of_runs(&runs)), folder, runs: Arc::new(runs) })
    }
}

/// The bucket of the journal.
pub struct JournalBucket {
    blobs: Arc<dyn Blobs>,
    name: String,
}

impl JournalBucket {
    /// The bucket of `[targets.journal]`, if the configuration has this table.
    pub fn of_config(config: &Config, mode: Mode) -> anyhow::Result<Option<Self>> {
        let Some(table) = &config.targets.journal else { return Ok(None) };
        let secrets = targets::journal_secrets(config);
        let stores = BlobStores::in_buckets(&ReadPermit::for_targets(mode), config.targets.clone(), secrets);
        let blobs = Arc::new(BucketBlobs::new(stores.journal()?, PREFIX, permits()));
        Ok(Some(Self { blobs, name: table.bucket.clone() }))
    }

    /// The location, for messages.
    fn place(&self) -> String {
        format!("s3://{}/{}", self.name, PREFIX.trim_end_matches('/'))
    }

    /// The journal in the bucket.
    pub fn journal(&self) -> Journal {
        let location = JournalLocation { place: self.place(), init: "qontract journal init".to_owned() };
        Journal::new(Arc::clone(&self.blobs), location, MissingJournal::Lost)
    }
}

/// The journal of a sandbox. In an empty sandbox, a missing journal is new and not lost.
pub fn of_sandbox(sandbox: &Path) -> Journal {
    // Checked before the journal is opened, which creates it.
    let absence =
        if sandbox.join(SANDBOX_CONTENT).exists() { MissingJournal::Lost } else { MissingJournal::New };
    in_folder(sandbox, "--sandbox", absence)
}

/// The journal next to the run records, for real targets.
pub fn of_runs(runs: &RunStore) -> Journal {
    in_folder(runs.folder().unwrap_or(Path::new(".")), "--runs", MissingJournal::Lost)
}

/// The directory of the journal in a sandbox, or next to run records.
pub fn folder_in(folder: &Path) -> PathBuf {
    folder.join(FOLDER)
}

/// The permits for writing to the journal. Its content describes runs: it is written in a dry run as well, and the
/// bounds of a run do not apply to it.
#[expect(clippy::disallowed_methods, reason = "the journal is not a target")]
pub fn permits() -> Permits {
    qontract_access::mint(Mode::Real)
}

/// The leases in a journal, for all runs of this process.
pub fn leases(journal: &Journal) -> Result<Arc<dyn Leases>, UsageError> {
    let timing = LeaseTiming::new(qontract_config::environment::lease_duration()?);
    Ok(Arc::new(journal.leases(Arc::new(LocalHost), this_process(), timing)))
}

/// Copies a journal into an empty directory. Returns the number of copied files.
pub async fn export(journal: &Journal, directory: &Path) -> anyhow::Result<usize> {
    let (copy, place) = (Directory::new(directory), directory.display().to_string());
    transfer(end_of(journal), TransferEnd { blobs: &copy, place: &place }).await
}

/// Copies an exported journal into an empty one. Returns the number of copied files.
pub async fn import(journal: &Journal, directory: &Path) -> anyhow::Result<usize> {
    let (copy, place) = (Directory::new(directory), directory.display().to_string());
    transfer(TransferEnd { blobs: &copy, place: &place }, end_of(journal)).await
}

fn end_of(journal: &Journal) -> TransferEnd<'_> {
    TransferEnd { blobs: &**journal.blobs(), place: &journal.location().place }
}

async fn transfer(source: TransferEnd<'_>, target: TransferEnd<'_>) -> anyhow::Result<usize> {
    let permits = permits();
    let write = permits.write.as_ref().context("the journal is written in every run")?;
    Ok(qontract_journal::copy(source, target, &permits.read, write).await?)
}

fn in_folder(folder: &Path, option: &str, absence: MissingJournal) -> Journal {
    let location = JournalLocation {
        place: folder_in(folder).display().to_string(),
        init: format!("qontract journal init {option} {}", folder.display()),
    };
    let blobs = Directory::new(folder_in(folder));
    let leases = Arc::new(blobs.volatile());
    Journal::new(Arc::new(blobs), location, absence).with_leases_in(leases)
}
