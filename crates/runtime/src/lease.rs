//! Leases: each determines which process may apply the steps of a shard.
//!
//! The runner acquires the lease of a shard just before it applies the shard's plan, and releases the lease
//! afterwards. A shard without steps and a dry run need no lease. Before each step, the runner checks the *fence* of
//! the lease, a local deadline that renewals move. After the fence is lost, no further step starts.
//!
//! A lease coordinates processes but does not make their writes safe, because a process may be paused after the check
//! and before the write. Writes are safe because of their preconditions.

use std::convert::Infallible;
use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

use crate::fault::Fault;
use crate::key::ShardKey;

/// The lease that a run needs.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRequest<'a> {
    /// The integration that needs the lease.
    pub integration: &'a str,
    /// The shard whose lease is needed.
    pub shard: &'a ShardKey,
    /// The name of the run, for messages of other processes.
    pub run: &'a str,
    /// Permits reading the lease.
    pub read: &'a ReadPermit,
    /// Permits writing the lease.
    pub write: &'a WritePermit,
}

/// The leases of all shards, shared by all processes of an installation.
pub trait Leases: fmt::Debug + Send + Sync {
    /// Acquires the lease of a shard, without waiting for another process.
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition>;

    /// Waits until the lease of a shard seems to be free because it was released or has expired. Returns the holder
    /// as soon as a renewal of the lease is observed.
    fn wait<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>>;
}

/// The result of [`Leases::acquire`].
#[derive(Debug)]
pub enum LeaseAcquisition {
    /// This run holds the lease.
    Acquired(Box<dyn Lease>),
    /// Another run holds the lease.
    Held(LeaseHolder),
    /// The leases cannot be read or written, for this reason.
    Unavailable(String),
}

/// The run that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The host, process and run of the holder, and the time of the last renewal.
    pub text: String,
    /// The state of the holder, as this process has observed it.
    pub liveness: HolderLiveness,
}

/// Whether the holder of a lease is still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderLiveness {
    /// The holder has renewed the lease since this process first observed it.
    Alive,
    /// The lease may expire, because no renewal has been observed so far.
    Unknown,
}

impl LeaseHolder {
    /// The fault of a shard whose steps were not applied because of this holder.
    pub(crate) fn fault(&self, shard: &ShardKey) -> Fault {
        let text = format!(
            "the steps of `{shard}` were not applied: another run holds its lease ({}); the next run plans it again",
            self.text
        );
        Fault::remote(text).caused_by(format!("another run holds the lease ({})", self.text))
    }
}

/// A lease that a run holds.
pub trait Lease: fmt::Debug + Send + Sync {
    /// Checks the fence: whether another step may start. Once the lease is lost, every further check fails.
    fn check(&self) -> Result<(), LeaseLoss>;

    /// Renews the lease until the future is dropped.
    fn maintain<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, Infallible>;

    /// Releases the lease, so that other processes need not wait until it expires.
    fn release<'a>(&'a self, read: &'a ReadPermit, write: &'a WritePermit) -> BoxFuture<'a, ()>;
}

/// The reason why a lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLoss(pub String);

impl LeaseLoss {
    /// The fault of a shard whose remaining steps were not started.
    pub(crate) fn fault(&self, shard: &ShardKey) -> Fault {
        let Self(reason) = self;
        Fault::remote(format!("the lease of `{shard}` was lost: {reason}; the next run plans it again"))
            .caused_by(format!("the lease was lost: {reason}"))
    }
}

/// The beginning of the warning about a run that applied steps without a lease.
const UNAVAILABLE: &str = "steps were applied without a lease, because the journal cannot be used";

/// Adds the warning about steps that were applied without a lease. A run has this warning only once, with the reason
/// of the first occurrence.
pub(crate) fn warn_unavailable(warnings: &mut Vec<String>, reason: &str) {
    if !warnings.iter().any(|warning| warning.starts_with(UNAVAILABLE)) {
        warnings.push(format!("{UNAVAILABLE}: {reason}"));
    }
}

/// Leases without coordination between processes: every acquisition succeeds. Used in tests, and in a process that is
/// the only one that writes to its targets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLeases;

impl Leases for NoLeases {
    fn acquire<'a>(&'a self, _: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition> {
        async { LeaseAcquisition::Acquired(Box::new(UnfencedLease)) }.boxed()
    }

    fn wait<'a>(&'a self, _: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>> {
        async { Ok(()) }.boxed()
    }
}

/// A lease that is never lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfencedLease;

impl Lease for UnfencedLease {
    fn check(&self) -> Result<(), LeaseLoss> {
        Ok(())
    }

    fn maintain<'a>(&'a self, _: &'a ReadPermit, _: &'a WritePermit) -> BoxFuture<'a, Infallible> {
        std::future::pending().boxed()
    }

    fn release<'a>(&'a self, _: &'a ReadPermit, _: &'a WritePermit) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }
}
