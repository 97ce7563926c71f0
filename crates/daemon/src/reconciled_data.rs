//! The data that the targets were last fully reconciled with, kept in the [journal](qontract_journal::ReconciledBundles)
//! across restarts.
//!
//! If the data changes, the next run compares with this data: a shard that is no longer declared is cleaned up,
//! subject to the guards. The data is kept until a run on newer data succeeds and has no held changes, failures or
//! skipped shards. A loop is an integration with a slot and flags; all processes that run the same loop share its
//! data.
//!
//! **Invariants:**
//! - The data of another source is never used: shards of another data repo are not "no longer declared"
//!   (`data_of_another_directory_is_not_used`).
//! - A pointer is replaced only by a process that has read that very pointer (`a_pointer_that_could_not_be_read_is_not_replaced`).

mod legacy;

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_access::Permits;
use qontract_bundle::{Bundle, Layout, Pool, Sha256};
use qontract_client_blobs::Etag;
use qontract_graphql::SchemaCache;
use qontract_journal::{Journal, PointerUpdate, ReconciledBundles, ReconciledError, ReconciledPointer};
use qontract_runtime::RunEnd;
use qontract_runtime::slot::Slot;
use tokio::sync::Mutex;

use crate::input::Input;
use crate::journal;
use crate::lease_host::this_process;
use crate::pinned_data::PinnedData;
use crate::run_settings::RunSettings;
use crate::source::DataSource;
use legacy::LegacyPointers;

/// The compression level of bundles.
const LEVEL: i32 = 1;

/// Maximum size of a bundle when it is decompressed, in bytes.
pub const MAX_BUNDLE_BYTES: u64 = 2 << 30;

/// Maximum number of slots in which older data is looked up after the number of slots changed.
const MAX_LOOKED_UP_SLOTS: u32 = 64;

/// Interval at which a process removes old bundles from a bucket.
const PRUNE_INTERVAL: Duration = Duration::from_hours(24);

/// The data that the targets were last fully reconciled with, by the runs of one loop.
#[derive(Clone, Default)]
pub struct ReconciledData {
    latest: Arc<Mutex<LatestData>>,
    store: Option<Arc<LoopStore>>,
}

/// The last reconciled data of a loop, as this process knows it.
#[derive(Default)]
struct LatestData {
    data: Option<Arc<PinnedData>>,
    /// The sha of the pointer that this process last read or stored.
    pointer: Option<String>,
    /// The tag of that pointer.
    etag: Option<Etag>,
    /// The sha of the bundle for which the pointer was last read. Until the data changes, the pointer of this loop is
    /// not read again, so that an idle loop sends no requests.
    looked_up: Option<String>,
}

/// The name of one loop.
struct LoopName {
    integration: String,
    slot: Slot,
    /// The flags of the loop, as part of the name.
    flags: String,
}

impl LoopName {
    fn new(integration: &str, settings: &RunSettings) -> Self {
        let flags = settings.options.iter().flat_map(|(flag, values)| {
            std::iter::once(flag).chain(values.iter().map(String::as_str)).chain(["\0"])
        });
        let flags = flags.collect::<Vec<_>>().join("\0");
        Self { integration: integration.to_owned(), slot: settings.slot, flags }
    }

    /// The name of the loop in this slot.
    fn of_slot(&self, slot: Slot) -> String {
        let digest = Sha256::of(format!("{slot:?}\0{}", self.flags).as_bytes()).to_string();
        format!("{}.{}", self.integration, &digest[..12])
    }

    /// The names of the loop in the slots of every other number of slots.
    fn of_other_counts(&self) -> impl Iterator<Item = (Slot, String)> {
        let counts = (1..=MAX_LOOKED_UP_SLOTS).filter(|count| *count != self.slot.count());
        let slots = counts.flat_map(|count| (0..count).filter_map(move |index| Slot::new(index, count).ok()));
        slots.map(|slot| (slot, self.of_slot(slot)))
    }
}

/// Accesses the pointer of one loop in the journal.
struct LoopStore {
    bundles: ReconciledBundles,
    /// Pointers of earlier versions, if the journal is a directory.
    legacy: Option<LegacyPointers>,
    name: LoopName,
    /// The identity of the loop's data source.
    data: String,
    place: String,
    permits: Permits,
    /// The identity of this process.
    process: String,
    /// The time at which this process last removed old bundles.
    pruned: parking_lot::Mutex<Option<Instant>>,
}

impl ReconciledData {
    /// Creates the data of a loop whose pointer is in the journal. `folder` is the directory of the journal, unless
    /// the journal is in a bucket. `data` identifies the data source.
    pub fn stored(
        journal: &Journal,
        folder: Option<&Path>,
        data: String,
        integration: &str,
        settings: &RunSettings,
    ) -> Self {
        let store = LoopStore {
            bundles: journal.reconciled(),
            legacy: folder.map(LegacyPointers::new),
            name: LoopName::new(integration, settings),
            data,
            place: journal.location().place.clone(),
            permits: journal::permits(),
            process: this_process().id,
            pruned: parking_lot::Mutex::default(),
        };
        Self { latest: Arc::default(), store: Some(Arc::new(store)) }
    }

    /// The data to compare `head` with; `None` if `head` is that data.
    ///
    /// If the data of an earlier process is lost or damaged, the error is returned once, and the next call returns
    /// the data of this process. While the journal is not available, each call returns an error.
    pub async fn base_of(
        &self,
        head: &Arc<PinnedData>,
        source: &dyn DataSource,
    ) -> anyhow::Result<Option<Arc<PinnedData>>> {
        let mut latest = self.latest.lock().await;
        if let Some(store) = &self.store {
            store.look_up(&mut latest, head, source).await?;
        }
        Ok(latest.data.clone().filter(|base| base.source.sha() != head.source.sha()))
    }

    /// Records the end of a run on `head` and stores `head` if the targets are now fully reconciled with it.
    pub async fn ran(&self, head: &Arc<PinnedData>, ended: RunEnd) -> anyhow::Result<()> {
        let mut latest = self.latest.lock().await;
        let sha = head.source.sha();
        let is_unread = self.store.is_some() && latest.looked_up.as_deref() != Some(sha);
        let is_reconciled = matches!(ended, RunEnd::Ok | RunEnd::Degraded) || latest.data.is_none();
        if is_unread || !is_reconciled {
            return Ok(());
        }
        latest.data = Some(Arc::clone(head));
        if let Some(store) = self.store.as_ref().filter(|_| latest.pointer.as_deref() != Some(sha)) {
            match store.store(head, latest.etag.as_ref()).await {
                Ok(etag) => (latest.pointer, latest.etag) = (Some(sha.to_owned()), Some(etag)),
                Err(error) => {
                    // The next run reads the pointer again: another process may have replaced it.
                    latest.looked_up = None;
                    let is_replaced = matches!(error.downcast_ref(), Some(ReconciledError::Replaced));
                    return if is_replaced { Ok(()) } else { Err(error) };
                }
            }
        }
        Ok(())
    }
}

impl LoopStore {
    /// Reads the pointer once for each bundle and opens the data that it names, unless this process already has that
    /// data.
    async fn look_up(
        &self,
        latest: &mut LatestData,
        head: &Arc<PinnedData>,
        source: &dyn DataSource,
    ) -> anyhow::Result<()> {
        let sha = head.source.sha();
        if latest.looked_up.as_deref() == Some(sha) {
            return Ok(());
        }
        let name = self.name.of_slot(self.name.slot);
        // After an error, the pointer is read again before the next run.
        let stored = self.bundles.read_pointer(&name).await.with_context(|| self.unreadable())?;
        let pointer = match stored.pointer.transpose() {
            Ok(pointer) => self.newest(&name, pointer),
            Err(error) => Err(error.into()),
        };
        (latest.looked_up, latest.etag) = (Some(sha.to_owned()), stored.etag);
        let pointer = pointer.with_context(|| self.unreadable())?;
        match pointer.filter(|pointer| pointer.data == self.data) {
            Some(pointer) if latest.pointer.as_ref() != Some(&pointer.sha) => {
                latest.pointer = Some(pointer.sha.clone());
                // Another process has fully reconciled this bundle, including the removals.
                if pointer.sha == sha {
                    latest.data = Some(Arc::clone(head));
                    return Ok(());
                }
                let opened = self.open(&pointer, head, source).await;
                match opened {
                    Ok(data) => latest.data = Some(Arc::new(data)),
                    Err(OpenError::Unavailable(error)) => {
                        (latest.looked_up, latest.pointer) = (None, None);
                        return Err(error.context(self.unreadable()));
                    }
                    Err(OpenError::Lost(error)) => return Err(error.context(self.unreadable())),
                }
                Ok(())
            }
            None if latest.data.is_none() => self.check_other_slots(sha).await,
            Some(_) | None => Ok(()),
        }
    }

    fn unreadable(&self) -> String {
        format!(
            "cannot read the data of the last run in `{}`: shards that were removed from the data since then are \
             not cleaned up; run once with `--base REV`",
            self.place
        )
    }

    /// The newer of two pointers: that of this version and that of an earlier version. During an upgrade, both
    /// versions may run.
    fn newest(
        &self,
        name: &str,
        pointer: Option<ReconciledPointer>,
    ) -> anyhow::Result<Option<ReconciledPointer>> {
        let Some(legacy) = &self.legacy else { return Ok(pointer) };
        let after = pointer.as_ref().map(|pointer| pointer.at);
        Ok(legacy.pointer(name, after)?.or(pointer))
    }

    /// Opens the data that a pointer names.
    async fn open(
        &self,
        pointer: &ReconciledPointer,
        head: &PinnedData,
        source: &dyn DataSource,
    ) -> Result<PinnedData, OpenError> {
        if let Some(reopened) = source.reopen(&pointer.sha) {
            return reopened;
        }
        let stored = self.bundles.bundle(&pointer.sha).await;
        let stored = stored.map_err(|error| OpenError::Unavailable(error.into()))?;
        let bundle = match (stored, &self.legacy) {
            (Some(bytes), _) => decode(&bytes),
            (None, Some(legacy)) => legacy.bundle(&pointer.sha),
            (None, None) => Err(anyhow::anyhow!("the bundle {} is missing", pointer.sha)),
        };
        let bundle = bundle.map_err(OpenError::Lost)?;
        if bundle.sha().to_string() != pointer.sha {
            return Err(OpenError::Lost(anyhow::anyhow!("the bundle is damaged")));
        }
        let input = Input { bundle, repo: None };
        let engine = input.engine(head.source.engine().map(|engine| &**engine), &SchemaCache::default());
        let engine = engine.map_err(|error| OpenError::Lost(error.into()))?;
        Ok(PinnedData::with_engine(input, Arc::new(engine), &Layout::default()))
    }

    /// Fails if data was stored for another number of slots: no process cleans up the shards that were removed from
    /// the data since then. The other slots of the current number belong to other processes.
    async fn check_other_slots(&self, head: &str) -> anyhow::Result<()> {
        let mut loops = self.bundles.loops(&format!("{}.", self.name.integration)).await.unwrap_or_default();
        loops.extend(self.legacy.iter().flat_map(LegacyPointers::loops));
        for (slot, name) in self.name.of_other_counts().filter(|(_, name)| loops.contains(name)) {
            let pointer = self.bundles.pointer(&name).await.ok().flatten();
            let Ok(Some(ReconciledPointer { data, sha, .. })) = self.newest(&name, pointer) else { continue };
            if data == self.data && sha != head {
                anyhow::bail!(
                    "the number of slots changed, and the older data of slot {slot} is not compared: shards that were \
                     removed from the data since then are not cleaned up; run once without slots, with `--base {}`",
                    self.bundle_place(&sha)
                );
            }
        }
        Ok(())
    }

    /// The location of a stored bundle, which `--base` accepts as a file.
    fn bundle_place(&self, sha: &str) -> String {
        let legacy = self.legacy.as_ref().map(|legacy| legacy.bundle_file(sha)).filter(|file| file.exists());
        let ending = if self.legacy.is_some() { ".blob" } else { "" };
        legacy.map_or_else(
            || format!("{}/reconciled/bundles/{sha}{ending}", self.place),
            |file| file.display().to_string(),
        )
    }

    /// Stores a copy of the bundle and then the pointer to this data. A bundle on a server is not copied, because it
    /// can be requested again.
    async fn store(&self, data: &PinnedData, over: Option<&Etag>) -> anyhow::Result<Etag> {
        let write = self.permits.write.as_ref().context("the journal is written in every run")?;
        let storing = || format!("cannot store the reconciled data in `{}`", self.place);
        let sha = data.source.sha().to_owned();
        let pointer = ReconciledPointer::new(self.data.clone(), sha, Timestamp::now());
        let bytes = data.bundle().map(|bundle| || encode(bundle));
        let name = self.name.of_slot(self.name.slot);
        let update = PointerUpdate { of_loop: &name, pointer: &pointer, over };
        let etag = self.bundles.store(write, update, bytes).await.with_context(storing)?;
        if self.is_prune_due() {
            self.bundles.prune(write, &self.process, Timestamp::now()).await.with_context(storing)?;
        }
        Ok(etag)
    }

    /// Whether old bundles are removed now: always in a directory, and once a day in a bucket.
    fn is_prune_due(&self) -> bool {
        let mut pruned = self.pruned.lock();
        let is_due = self.legacy.is_some() || pruned.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL);
        if is_due {
            *pruned = Some(Instant::now());
        }
        is_due
    }
}

/// The reason why earlier data cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The data may be available later.
    Unavailable(anyhow::Error),
    /// The data is lost or damaged.
    Lost(anyhow::Error),
}

/// Encodes a bundle as compressed JSON.
fn encode(bundle: &Bundle) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    bundle.write_to(&mut encoder)?;
    encoder.finish()
}

/// Decodes a bundle from compressed JSON.
fn decode(bytes: &[u8]) -> anyhow::Result<Bundle> {
    let decoder = zstd::Decoder::new(bytes)?.take(MAX_BUNDLE_BYTES);
    Ok(qontract_bundle::load_from(&mut io::BufReader::new(decoder), &Pool::default())?)
}

#[cfg(test)]
mod tests;
