//! The lease of a function or of a foreign command, which is acquired before the first write.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_access::{Permits, WritePermit};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::lease::{HolderLiveness, Lease, LeaseAcquisition, LeaseRequest, UnfencedLease, warn_unavailable};
use crate::run_request::RunRequest;

/// Maximum number of attempts to acquire a lease that seemed to be free.
const MAX_ATTEMPTS: u32 = 3;

/// The lease of an integration that is not staged. The lease is acquired once per run and renewed until the run ends.
pub struct LazyLease<'r> {
    integration: &'r str,
    shard: ShardKey,
    request: &'r RunRequest,
    permits: &'r Permits,
    /// The lease, once it is acquired. The lock is held during the acquisition.
    lease: AsyncMutex<Option<Arc<dyn Lease>>>,
    acquired: Notify,
    /// The reason why the leases are not available.
    unavailable: Mutex<Option<String>>,
}

impl<'r> LazyLease<'r> {
    pub fn new(integration: &'r str, shard: ShardKey, request: &'r RunRequest, permits: &'r Permits) -> Self {
        let (lease, acquired, unavailable) = (AsyncMutex::default(), Notify::new(), Mutex::default());
        Self { integration, shard, request, permits, lease, acquired, unavailable }
    }

    /// Checks the fence before a write; the first call acquires the lease. If another process holds the lease, the
    /// call waits until the lease expires or the other process renews it.
    pub async fn check(&self) -> Result<(), Fault> {
        let Some(write) = &self.permits.write else { return Ok(()) };
        let lease = tokio::select! {
            biased;
            lease = self.acquire_once(write) => lease?,
            () = self.request.shutdown.requested() => {
                return Err(Fault::interrupted("interrupted while waiting for a lease"));
            }
        };
        lease.check().map_err(|loss| loss.fault(&self.shard))
    }

    async fn acquire_once(&self, write: &WritePermit) -> Result<Arc<dyn Lease>, Fault> {
        let mut lease = self.lease.lock().await;
        if let Some(lease) = &*lease {
            return Ok(Arc::clone(lease));
        }
        let acquired = Arc::from(self.acquire(write).await?);
        *lease = Some(Arc::clone(&acquired));
        self.acquired.notify_one();
        Ok(acquired)
    }

    async fn acquire(&self, write: &WritePermit) -> Result<Box<dyn Lease>, Fault> {
        let leases = &self.request.leases;
        let request = LeaseRequest {
            integration: self.integration,
            shard: &self.shard,
            run: &self.request.run,
            read: &self.permits.read,
            write,
        };
        let mut attempt = 1;
        loop {
            match leases.acquire(request).await {
                LeaseAcquisition::Acquired(lease) => return Ok(lease),
                LeaseAcquisition::Held(holder)
                    if holder.liveness == HolderLiveness::Unknown && attempt < MAX_ATTEMPTS =>
                {
                    attempt += 1;
                    leases.wait(request).await.map_err(|holder| holder.fault(&self.shard))?;
                }
                LeaseAcquisition::Held(holder) => return Err(holder.fault(&self.shard)),
                LeaseAcquisition::Unavailable(reason) => {
                    *self.unavailable.lock() = Some(reason);
                    return Ok(Box::new(UnfencedLease));
                }
            }
        }
    }

    /// Renews the lease from its acquisition until the future is dropped.
    pub async fn maintain(&self) -> Infallible {
        self.acquired.notified().await;
        let lease = self.lease.lock().await.clone();
        let (Some(lease), Some(write)) = (lease, &self.permits.write) else {
            return std::future::pending().await;
        };
        lease.maintain(&self.permits.read, write).await
    }

    /// Releases the lease, if it was acquired. Adds a warning if writes were made without a lease.
    pub async fn release(&self, warnings: &mut Vec<String>) {
        let lease = self.lease.lock().await.clone();
        if let (Some(lease), Some(write)) = (lease, &self.permits.write) {
            lease.release(&self.permits.read, write).await;
        }
        if let Some(reason) = self.unavailable.lock().take() {
            warn_unavailable(warnings, &reason);
        }
    }
}
