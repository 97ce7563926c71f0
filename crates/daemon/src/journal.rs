//! Opens the journal of this process and the leases in it. The journal is in the sandbox if one is used, otherwise in
//! the bucket of the configuration, and without a bucket next to the run records.

mod measured_leases;
mod measured_ledger;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::{Mode, Permits, ReadPermit};
use qontract_client_blobs::{Blobs, Directory};
use qontract_config::{Config, UsageError};
use qontract_journal::{
    Journal, JournalLocation, LeaseTable, LeaseTiming, MissingJournal, RunRecords, TransferEnd,
};
use qontract_runtime::guard::Ledger;
use qontract_runtime::lease::Leases;
use qontract_telemetry::journal_metrics::JournalMetrics;

use crate::lease_host::{LocalHost, this_process};
use crate::run_store::RunStore;
use crate::targets::{self, BlobStores};
use measured_leases::MeasuredLeases;
use measured_ledger::MeasuredLedger;
use store::JournalBlobs;

/// The directory of a journal, in a sandbox or next to the run records.
const FOLDER: &str = "journal";

/// The prefix of the keys of a journal in a bucket.
const PREFIX: &str = "journal/";

/// The directory that exists in a sandbox after the first write to the sandbox.
const SANDBOX_CONTENT: &str = "clusters";

/// The journal of this process and the run records.
pub struct OpenJournal {
    /// The journal that all processes share.
    pub journal: Arc<Journal>,
    /// The directory of the journal; `None` if it is in a bucket.
    pub folder: Option<PathBuf>,
    /// The run records.
    pub runs: Arc<RunStore>,
    metrics: JournalMetrics,
}

impl OpenJournal {
    /// Opens the journal for runs in this mode. `runs` is the directory of run records, by default below the user's
    /// state directory.
    pub fn new(
        config: &Config,
        sandbox: Option<&Path>,
        runs: Option<PathBuf>,
        mode: Mode,
    ) -> anyhow::Result<Self> {
        Self::with_metrics(config, sandbox, runs, mode, JournalMetrics::default())
    }

    /// Opens the journal for runs in this mode. `metrics` counts the requests to the journal and the leases in it.
    pub fn with_metrics(
        config: &Config,
        sandbox: Option<&Path>,
        runs: Option<PathBuf>,
        mode: Mode,
        metrics: JournalMetrics,
    ) -> anyhow::Result<Self> {
        if let Some(sandbox) = sandbox {
            let runs = Arc::new(RunStore::new(runs)?);
            let journal = Arc::new(journal_of_sandbox(sandbox, &metrics));
            return Ok(Self { journal, folder: Some(folder_in(sandbox)), runs, metrics });
        }
        if let Some(bucket) = JournalBucket::with_metrics(config, mode, &metrics)? {
            let records = RunRecords::new(Arc::clone(&bucket.blobs), bucket.place());
            let runs = Arc::new(RunStore::in_bucket(records, runs));
            return Ok(Self { journal: Arc::new(bucket.journal()), folder: None, runs, metrics });
        }
        let runs = Arc::new(RunStore::new(runs)?);
        let folder = runs.folder().map(folder_in);
        Ok(Self { journal: Arc::new(journal_of_runs(&runs, &metrics)), folder, runs, metrics })
    }

    /// The removal ledgers in the journal, for all runs of this process.
    pub fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::new(MeasuredLedger { journal: Arc::clone(&self.journal), metrics: self.metrics.clone() })
    }

    /// Opens the leases in the journal, for all runs of this process.
    pub fn leases(&self) -> Result<Arc<dyn Leases>, UsageError> {
        let leases = Arc::new(lease_table(&self.journal)?);
        Ok(Arc::new(MeasuredLeases { leases, metrics: self.metrics.clone() }))
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
        Self::with_metrics(config, mode, &JournalMetrics::default())
    }

    fn with_metrics(config: &Config, mode: Mode, metrics: &JournalMetrics) -> anyhow::Result<Option<Self>> {
        let Some(table) = &config.targets.journal else { return Ok(None) };
        let secrets = targets::journal_secrets(config);
        let stores = BlobStores::in_buckets(&ReadPermit::for_targets(mode), config.targets.clone(), secrets);
        let blobs = Arc::new(JournalBlobs::new(stores.journal()?, PREFIX, permits(), metrics.clone()));
        Ok(Some(Self { blobs, name: table.bucket.clone() }))
    }

    /// The location of the bucket, for messages.
    fn place(&self) -> String {
        format!("s3://{}/{}", self.name, PREFIX.trim_end_matches('/'))
    }

    /// Opens the journal in the bucket.
    pub fn journal(&self) -> Journal {
        let location = JournalLocation { place: self.place(), init: "qontract journal init".to_owned() };
        Journal::new(Arc::clone(&self.blobs), location, MissingJournal::Lost)
    }
}

/// Opens the journal of a sandbox. In an empty sandbox, a missing journal counts as new, not as lost.
pub fn of_sandbox(sandbox: &Path) -> Journal {
    journal_of_sandbox(sandbox, &JournalMetrics::default())
}

fn journal_of_sandbox(sandbox: &Path, metrics: &JournalMetrics) -> Journal {
    // The content is checked before the journal is opened, because opening the journal creates its directory.
    let absence =
        if sandbox.join(SANDBOX_CONTENT).exists() { MissingJournal::Lost } else { MissingJournal::New };
    in_folder(sandbox, "--sandbox", absence, metrics)
}

/// Opens the journal next to the run records, for real targets.
pub fn of_runs(runs: &RunStore) -> Journal {
    journal_of_runs(runs, &JournalMetrics::default())
}

fn journal_of_runs(runs: &RunStore, metrics: &JournalMetrics) -> Journal {
    in_folder(runs.folder().unwrap_or(Path::new(".")), "--runs", MissingJournal::Lost, metrics)
}

/// The directory of the journal in a sandbox, or next to run records.
pub fn folder_in(folder: &Path) -> PathBuf {
    folder.join(FOLDER)
}

/// The permits for writing to the journal. They are independent of the permits of a run: the journal describes runs,
/// so it is also written in a dry run, and the bounds of a run's writes do not apply to it.
#[expect(clippy::disallowed_methods, reason = "the journal is not a target")]
pub fn permits() -> Permits {
    qontract_access::mint(Mode::Real)
}

/// Opens the leases in a journal for this process.
pub fn lease_table(journal: &Journal) -> Result<LeaseTable, UsageError> {
    let timing = LeaseTiming::new(qontract_config::environment::lease_duration()?);
    Ok(journal.leases(Arc::new(LocalHost), this_process(), timing))
}

/// Copies a journal into an empty directory. Returns the number of copied files.
pub async fn export(journal: &Journal, directory: &Path) -> anyhow::Result<usize> {
    let (copy, place) = (Directory::new(directory), directory.display().to_string());
    transfer(end_of(journal), TransferEnd { blobs: &copy, place: &place }).await
}

/// Copies an exported journal into an empty journal. Returns the number of copied files.
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

fn in_folder(folder: &Path, option: &str, absence: MissingJournal, metrics: &JournalMetrics) -> Journal {
    let location = JournalLocation {
        place: folder_in(folder).display().to_string(),
        init: format!("qontract journal init {option} {}", folder.display()),
    };
    let directory = Directory::new(folder_in(folder));
    let measured =
        |blobs: Directory| Arc::new(JournalBlobs::new(Arc::new(blobs), "", permits(), metrics.clone()));
    let leases = measured(directory.volatile());
    Journal::new(measured(directory), location, absence).with_leases_in(leases)
}
