//! Counts the events of the leases of this process.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_runtime::lease::{Lease, LeaseAcquisition, LeaseHolder, LeaseLoss, LeaseRequest, Leases};
use qontract_telemetry::journal_metrics::{JournalMetrics, LeaseEvent};

/// Leases whose events are counted.
#[derive(Debug)]
pub(super) struct MeasuredLeases {
    pub(super) leases: Arc<dyn Leases>,
    pub(super) metrics: JournalMetrics,
}

impl Leases for MeasuredLeases {
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition> {
        async move {
            let Self { leases, metrics } = self;
            match leases.acquire(request).await {
                LeaseAcquisition::Acquired(lease) => {
                    metrics.count_lease(LeaseEvent::Acquired);
                    metrics.hold_lease();
                    let (metrics, is_lost) = (metrics.clone(), AtomicBool::new(false));
                    LeaseAcquisition::Acquired(Box::new(MeasuredLease { lease, metrics, is_lost }))
                }
                LeaseAcquisition::Held(holder) => {
                    metrics.count_lease(LeaseEvent::HeldByAnother);
                    LeaseAcquisition::Held(holder)
                }
                LeaseAcquisition::Unavailable(reason) => {
                    metrics.count_lease(LeaseEvent::Unavailable);
                    LeaseAcquisition::Unavailable(reason)
                }
            }
        }
        .boxed()
    }

    fn wait<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>> {
        self.leases.wait(request)
    }
}

#[derive(Debug)]
struct MeasuredLease {
    lease: Box<dyn Lease>,
    metrics: JournalMetrics,
    is_lost: AtomicBool,
}

impl Lease for MeasuredLease {
    fn check(&self) -> Result<(), LeaseLoss> {
        let checked = self.lease.check();
        if checked.is_err() && !self.is_lost.swap(true, Ordering::Relaxed) {
            self.metrics.count_lease(LeaseEvent::Lost);
        }
        checked
    }

    fn maintain<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, Infallible> {
        self.lease.maintain(read, write)
    }

    fn release<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, ()> {
        self.lease.release(read, write)
    }
}

impl Drop for MeasuredLease {
    fn drop(&mut self) {
        self.metrics.release_lease();
    }
}
