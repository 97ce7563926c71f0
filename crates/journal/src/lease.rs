//! The leases of shards, as blobs of the journal.
//!
//! The state machine is pure: [`holding`](HeldLease) decides for the holder, and [`observation`](Observer) for other
//! processes. This module reads and writes the blobs. A lease is never deleted, because some stores cannot delete a
//! blob on the condition that it is unchanged. A release is therefore also a write.
//!
//! The blobs of leases need not survive a crash of the machine that stores them: a damaged lease counts as free after
//! it was observed unchanged for the time of a takeover.
//!
//! Leases do not depend on the index of the journal: a journal that was not initialised also has leases. If a journal
//! is lost while runs hold leases, the leases are lost, and the runs stop when they try to renew them.

mod holding;
mod observation;
mod record;
mod timing;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Etag, Precondition};
use qontract_runtime::lease::{
    HolderLiveness, Lease, LeaseAcquisition, LeaseHolder, LeaseLoss, LeaseRequest, Leases,
};
use tokio::time::{sleep, timeout};

use holding::{HeldLease, WriteAttempt};
use observation::{Availability, LeaseObservation, Observer};
use record::{LeaseRecord, LeaseState, StoredLease, lease_key, lease_prefix};

pub use record::LeaseProcess;
pub use timing::LeaseTiming;

/// Maximum number of attempts to acquire a lease that other processes change concurrently.
const MAX_ATTEMPTS: usize = 5;

/// First pause between two reads of a lease that another process holds.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Minimum pause between two reads of a lease that another process holds.
const MIN_PAUSE: Duration = Duration::from_millis(50);

/// Maximum duration of a request that releases a lease. It is short because a release may delay a shutdown.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The clocks and processes of the machine.
pub trait LeaseHost: Send + Sync {
    /// The time since a fixed point, from a clock that is never set and that continues while the machine is
    /// suspended.
    fn elapsed(&self) -> Duration;

    /// The wall-clock time, for people.
    fn wall_time(&self) -> Timestamp;

    /// Whether a process certainly no longer exists.
    fn is_gone(&self, process: &LeaseProcess) -> bool;
}

/// The leases of all shards, as one process observes them. All clones share one state.
#[derive(Clone)]
pub struct LeaseTable(Arc<TableState>);

struct TableState {
    blobs: Arc<dyn Blobs>,
    host: Arc<dyn LeaseHost>,
    process: LeaseProcess,
    timing: LeaseTiming,
    /// The number of the last write.
    sequence: AtomicU64,
    outage: Mutex<Option<Outage>>,
    entries: Arc<Mutex<BTreeMap<BlobKey, TableEntry>>>,
}

/// An outage of the store. Until it is assumed to have ended, leases are not requested, so that an outage does not
/// delay each of many shards.
#[derive(Clone)]
struct Outage {
    until: Duration,
    reason: String,
}

/// The state of one lease, as far as this process knows it.
#[derive(Default)]
struct TableEntry {
    /// The observation of a lease that another process holds. The observation is kept after a run for the next run.
    observation: Option<LeaseObservation>,
    /// The run of this process that acquires or holds the lease.
    local: Option<LocalHolder>,
}

/// A run of this process that acquires or holds a lease.
struct LocalHolder {
    /// Identifies this use of the lease.
    number: u64,
    run: String,
    /// The lease; `None` while it is being acquired.
    lease: Option<Arc<Mutex<HeldLease>>>,
}

/// Marks the lease as used by a run of this process until it is dropped.
struct LocalClaim {
    entries: Arc<Mutex<BTreeMap<BlobKey, TableEntry>>>,
    key: BlobKey,
    number: u64,
}

impl Drop for LocalClaim {
    fn drop(&mut self) {
        if let Some(entry) = self.entries.lock().get_mut(&self.key)
            && entry.local.as_ref().is_some_and(|local| local.number == self.number)
        {
            entry.local = None;
        }
    }
}

/// The subject of a lease, for the record of the lease.
#[derive(Clone)]
struct LeaseSubject {
    key: BlobKey,
    run: String,
    shard: String,
}

/// A write of a lease.
struct LeaseWrite<'a> {
    subject: &'a LeaseSubject,
    state: LeaseState,
    counter: u64,
    precondition: Precondition,
}

impl fmt::Debug for LeaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTable").field("process", &self.0.process).finish_non_exhaustive()
    }
}

impl LeaseTable {
    /// Creates the leases in a store for this process.
    pub fn new(
        blobs: Arc<dyn Blobs>,
        host: Arc<dyn LeaseHost>,
        process: LeaseProcess,
        timing: LeaseTiming,
    ) -> Self {
        let (sequence, outage, entries) = (AtomicU64::new(0), Mutex::default(), Arc::default());
        Self(Arc::new(TableState { blobs, host, process, timing, sequence, outage, entries }))
    }

    /// The leases of an integration, or of all integrations, that other processes hold: the shard and the holder of
    /// each lease.
    pub async fn in_use(
        &self,
        read: &ReadPermit,
        integration: Option<&str>,
    ) -> Result<Vec<String>, BlobsError> {
        let Self(table) = self;
        let mut in_use = Vec::new();
        for key in table.blobs.keys(read, &lease_prefix(integration)).await? {
            let key = BlobKey::new(key)?;
            let stored = table.read(read, &key).await?;
            let shard = stored.as_ref().and_then(|stored| Some(stored.record.as_ref()?.shard.clone()));
            if let Availability::Held { holder, .. } = table.judge(&key, stored.as_ref()) {
                in_use.push(format!("{}: {}", shard.as_deref().unwrap_or("a damaged lease"), holder.text));
            }
        }
        Ok(in_use)
    }

    /// Whether a process has ever acquired a lease of an integration, or of any.
    pub async fn is_used(&self, read: &ReadPermit, integration: Option<&str>) -> Result<bool, BlobsError> {
        let Self(table) = self;
        Ok(!table.blobs.keys(read, &lease_prefix(integration)).await?.is_empty())
    }

    async fn acquire_lease(&self, request: LeaseRequest<'_>) -> Result<LeaseAcquisition, BlobsError> {
        let Self(table) = self;
        let subject = LeaseSubject {
            key: lease_key(request.integration, request.shard)?,
            run: request.run.to_owned(),
            shard: request.shard.to_string(),
        };
        let claim = match table.claim(&subject) {
            Ok(claim) => claim,
            Err(holder) => return Ok(LeaseAcquisition::Held(holder)),
        };
        let held = subject.clone();
        let acquired = |attempt, etag, counter| {
            let lease = HeldLease::new(table.timing, &table.process.id, attempt, etag, counter);
            let (subject, lease) = (held, claim.hold(lease));
            LeaseAcquisition::Acquired(Box::new(JournalLease {
                table: Arc::clone(table),
                subject,
                lease,
                claim,
            }))
        };
        let mut stored = table.read(request.read, &subject.key).await?;
        for _ in 0..MAX_ATTEMPTS {
            let (precondition, counter) = match table.judge(&subject.key, stored.as_ref()) {
                Availability::Free { precondition, counter } => (precondition, counter),
                Availability::Held { holder, .. } => return Ok(LeaseAcquisition::Held(holder)),
            };
            let attempt = table.next_attempt();
            let write = LeaseWrite { subject: &subject, state: LeaseState::Held, counter, precondition };
            let error = match table.put(request.write, write, attempt).await {
                Ok(etag) => return Ok(acquired(attempt, etag, counter)),
                Err(error) => error,
            };
            // The write may have succeeded although its response was lost, so the lease is read again.
            stored = table.read(request.read, &subject.key).await?;
            let is_own = |stored: &&StoredLease| stored.is_write_of(&table.process.id, attempt.sequence);
            if let Some(own) = stored.as_ref().filter(is_own) {
                return Ok(acquired(attempt, own.etag.clone(), counter));
            }
            if !matches!(error, BlobsError::Stale { .. }) {
                return Err(error);
            }
        }
        let text = format!("other runs changed it during each of {MAX_ATTEMPTS} attempts");
        Ok(LeaseAcquisition::Held(LeaseHolder { text, liveness: HolderLiveness::Alive }))
    }

    /// Reads the lease repeatedly until it can be acquired or is renewed.
    async fn await_lease(&self, request: LeaseRequest<'_>) -> Result<(), LeaseHolder> {
        let Self(table) = self;
        // The acquisition reports the error.
        let Ok(key) = lease_key(request.integration, request.shard) else { return Ok(()) };
        let mut pause = FIRST_PAUSE;
        while let Ok(stored) = table.read(request.read, &key).await {
            let (holder, expires) = match table.judge(&key, stored.as_ref()) {
                Availability::Free { .. } => return Ok(()),
                Availability::Held { holder, expires } => (holder, expires),
            };
            if holder.liveness == HolderLiveness::Alive {
                return Err(holder);
            }
            let left = expires.saturating_sub(table.host.elapsed());
            sleep(pause.min(left).max(MIN_PAUSE)).await;
            pause = (pause * 2).min(table.timing.renewal().max(FIRST_PAUSE));
        }
        Ok(())
    }
}

impl TableState {
    /// Marks the lease as used by this run, unless another run of this process holds it.
    fn claim(&self, subject: &LeaseSubject) -> Result<LocalClaim, LeaseHolder> {
        let number = self.next_attempt().sequence;
        let mut entries = self.entries.lock();
        let local = &mut entries.entry(subject.key.clone()).or_default().local;
        let is_in_use = |local: &&LocalHolder| match &local.lease {
            // The lease of an abandoned run counts as unused after its fence is lost, because the run does not renew
            // it.
            Some(lease) => lease.lock().check(self.host.elapsed()).is_ok(),
            None => true,
        };
        if let Some(local) = local.as_ref().filter(is_in_use) {
            let text = format!("run `{}` of this process", local.run);
            return Err(LeaseHolder { text, liveness: HolderLiveness::Alive });
        }
        *local = Some(LocalHolder { number, run: subject.run.clone(), lease: None });
        Ok(LocalClaim { entries: Arc::clone(&self.entries), key: subject.key.clone(), number })
    }

    fn judge(&self, key: &BlobKey, stored: Option<&StoredLease>) -> Availability {
        let observer = Observer {
            process: &self.process.id,
            timing: self.timing,
            now: self.host.elapsed(),
            is_gone: &|process| self.host.is_gone(process),
        };
        let mut entries = self.entries.lock();
        observer.judge(&mut entries.entry(key.clone()).or_default().observation, stored)
    }

    /// Creates the number and the time of a write that is sent now.
    fn next_attempt(&self) -> WriteAttempt {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        WriteAttempt { sequence, sent: self.host.elapsed() }
    }

    async fn read(&self, permit: &ReadPermit, key: &BlobKey) -> Result<Option<StoredLease>, BlobsError> {
        let read = self.limited(format!("reading blob `{key}`"), self.blobs.get(permit, key)).await?;
        Ok(read.map(|blob| StoredLease::decode(blob.head.etag, &blob.bytes)))
    }

    async fn put(
        &self,
        permit: &WritePermit,
        write: LeaseWrite<'_>,
        attempt: WriteAttempt,
    ) -> Result<Etag, BlobsError> {
        let LeaseWrite { subject: LeaseSubject { key, run, shard }, state, counter, precondition } = write;
        let record = LeaseRecord {
            state,
            process: self.process.clone(),
            sequence: attempt.sequence,
            counter,
            run: run.clone(),
            shard: shard.clone(),
            milliseconds: u64::try_from(self.timing.duration().as_millis()).unwrap_or(u64::MAX),
            renewed: self.host.wall_time(),
        };
        let content = BlobContent::new(record.encode());
        self.limited(format!("writing blob `{key}`"), self.blobs.put(permit, key, &content, &precondition))
            .await
    }

    /// Limits the duration of a request: a request that takes longer than the interval between two renewals is
    /// cancelled.
    async fn limited<T>(
        &self,
        what: String,
        request: BoxFuture<'_, Result<T, BlobsError>>,
    ) -> Result<T, BlobsError> {
        timeout(self.timing.renewal(), request).await.unwrap_or_else(|_| {
            Err(BlobsError::Unreachable { what, reason: "timed out".to_owned(), transient: true })
        })
    }
}

impl LocalClaim {
    /// Records the lease that was acquired.
    fn hold(&self, lease: HeldLease) -> Arc<Mutex<HeldLease>> {
        let lease = Arc::new(Mutex::new(lease));
        if let Some(local) = self.entries.lock().get_mut(&self.key).and_then(|entry| entry.local.as_mut())
            && local.number == self.number
        {
            local.lease = Some(Arc::clone(&lease));
        }
        lease
    }
}

impl Leases for LeaseTable {
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition> {
        async move {
            let Self(table) = self;
            let outage = table.outage.lock().clone();
            if let Some(outage) = outage.filter(|outage| table.host.elapsed() < outage.until) {
                return LeaseAcquisition::Unavailable(outage.reason);
            }
            let error = match self.acquire_lease(request).await {
                Ok(acquired) => return acquired,
                Err(error) => error,
            };
            let reason = text_of(&error);
            if error.is_transient() {
                let until = table.host.elapsed() + table.timing.renewal();
                *table.outage.lock() = Some(Outage { until, reason: reason.clone() });
            }
            LeaseAcquisition::Unavailable(reason)
        }
        .boxed()
    }

    fn wait<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>> {
        self.await_lease(request).boxed()
    }
}

/// A lease that a run of this process holds.
struct JournalLease {
    table: Arc<TableState>,
    subject: LeaseSubject,
    lease: Arc<Mutex<HeldLease>>,
    #[expect(dead_code, reason = "its destructor ends the use of the lease in this process")]
    claim: LocalClaim,
}

impl fmt::Debug for JournalLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalLease").field("key", &self.subject.key).finish_non_exhaustive()
    }
}

impl JournalLease {
    /// Writes the lease on the condition that it is unchanged. Returns whether the write certainly succeeded.
    async fn write(&self, state: LeaseState, read: &ReadPermit, write: &WritePermit) -> bool {
        let Self { table, subject, lease, .. } = self;
        let (precondition, counter) = {
            let lease = lease.lock();
            (Precondition::IfMatch(lease.etag().clone()), lease.next_counter())
        };
        let attempt = table.next_attempt();
        let put = table.put(write, LeaseWrite { subject, state, counter, precondition }, attempt).await;
        if let Ok(etag) = put {
            lease.lock().confirm(attempt, etag);
            return true;
        }
        // The write may have succeeded although its response was lost, so the lease is read.
        if let Ok(stored) = table.read(read, &subject.key).await {
            let sequence = attempt.sequence;
            let is_own =
                stored.as_ref().is_some_and(|stored| stored.is_write_of(&table.process.id, sequence));
            lease.lock().read_back(attempt, stored, table.host.elapsed());
            is_own
        } else {
            lease.lock().retry_later(table.host.elapsed());
            false
        }
    }

    async fn renew_forever(&self, read: &ReadPermit, write: &WritePermit) -> Infallible {
        let host = &self.table.host;
        loop {
            let Some(next) = self.lease.lock().next_attempt() else { return std::future::pending().await };
            sleep(next.saturating_sub(host.elapsed())).await;
            // If the process was paused, the lease may be lost.
            if self.check().is_ok() {
                self.write(LeaseState::Held, read, write).await;
            }
        }
    }
}

impl Lease for JournalLease {
    fn check(&self) -> Result<(), LeaseLoss> {
        self.lease.lock().check(self.table.host.elapsed()).map_err(|reason| LeaseLoss(reason.to_owned()))
    }

    fn maintain<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, Infallible> {
        self.renew_forever(read, write).boxed()
    }

    fn release<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, ()> {
        self.lease.lock().end();
        let releasing = async {
            // A renewal that was cancelled may have changed the tag. The first attempt then fails and reads the new
            // tag. If the second attempt also fails, the lease expires.
            if !self.write(LeaseState::Released, read, write).await {
                self.write(LeaseState::Released, read, write).await;
            }
        };
        timeout(RELEASE_TIMEOUT, releasing).map(drop).boxed()
    }
}

/// The text of an error with its cause.
fn text_of(error: &BlobsError) -> String {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
