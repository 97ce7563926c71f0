//! Metrics of the journal of a process.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counts the failed requests to the journal and the leases of this process. All clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct JournalMetrics {
    errors: Family<OperationLabel, Counter>,
    leases: Family<LeaseLabel, Counter>,
    held: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    operation: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabel {
    result: String,
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalOperation {
    /// A read or a listing.
    Read,
    /// A write or a removal.
    Write,
    /// The use of a removal ledger that was lost, is damaged or was never initialised.
    Ledger,
}

/// The result of acquiring a lease, or the loss of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// This process holds the lease.
    Acquired,
    /// Another run holds the lease.
    HeldByAnother,
    /// Leases are not available, so steps are applied without a lease.
    Unavailable,
    /// The lease was lost while steps were applied.
    Lost,
}

impl JournalMetrics {
    /// Counts a request that failed.
    pub fn count_error(&self, operation: JournalOperation) {
        let operation = match operation {
            JournalOperation::Read => "read",
            JournalOperation::Write => "write",
            JournalOperation::Ledger => "ledger",
        };
        self.errors.get_or_create(&OperationLabel { operation: operation.to_owned() }).inc();
    }

    /// Counts an event of a lease.
    pub fn count_lease(&self, event: LeaseEvent) {
        let result = match event {
            LeaseEvent::Acquired => "acquired",
            LeaseEvent::HeldByAnother => "held_by_another",
            LeaseEvent::Unavailable => "unavailable",
            LeaseEvent::Lost => "lost",
        };
        self.leases.get_or_create(&LeaseLabel { result: result.to_owned() }).inc();
    }

    /// Adds a lease to those that this process holds.
    pub fn hold_lease(&self) {
        self.held.inc();
    }

    /// Removes a lease from those that this process holds.
    pub fn release_lease(&self) {
        self.held.dec();
    }

    /// Registers the metrics. The counters for results that need attention start at 0, so that they exist before the
    /// first such result.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for operation in ["read", "write", "ledger"] {
            drop(self.errors.get_or_create(&OperationLabel { operation: operation.to_owned() }));
        }
        for result in ["unavailable", "lost"] {
            drop(self.leases.get_or_create(&LeaseLabel { result: result.to_owned() }));
        }
        registry.register("journal_errors", "Requests to the journal that failed", self.errors.clone());
        registry.register(
            "leases",
            "Leases, by result of the attempt to acquire them, and lost leases",
            self.leases.clone(),
        );
        registry.register("leases_held", "Leases that this process holds now", self.held.clone());
    }
}
