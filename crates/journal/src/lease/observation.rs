//! The side of a process that wants a lease: decides whether the lease is free. Pure: the time is an argument, from
//! a clock that only this process uses.
//!
//! A lease counts as expired if this process has observed it unchanged for long enough. The times that the holder
//! wrote are never used.

use std::time::Duration;

use qontract_client_blobs::{Etag, Precondition};
use qontract_runtime::lease::{HolderLiveness, LeaseHolder};

use super::record::{LeaseProcess, LeaseRecord, LeaseState, StoredLease};
use super::timing::LeaseTiming;

/// A lease of another process, as this process has observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseObservation {
    etag: Etag,
    /// The id of the holder; `None` if the content of the lease is not readable.
    holder: Option<String>,
    /// The time at which this content was first read.
    since: Duration,
}

/// Whether a lease can be acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The lease can be acquired by a write.
    Free {
        /// The precondition of the write.
        precondition: Precondition,
        /// The counter of the write among all writes of the lease.
        counter: u64,
    },
    /// Another process holds the lease.
    Held {
        /// The run that holds the lease, as far as it is known.
        holder: LeaseHolder,
        /// The time at which the lease expires, unless it is renewed.
        expires: Duration,
    },
}

/// The information with which a process judges a lease.
pub struct Observer<'a> {
    /// The id of this process.
    pub process: &'a str,
    /// The timing of the leases of this process, which is used for a lease that is not readable.
    pub timing: LeaseTiming,
    /// The time, taken after the lease was read.
    pub now: Duration,
    /// Returns whether a process certainly no longer exists.
    pub is_gone: &'a dyn Fn(&LeaseProcess) -> bool,
}

impl Observer<'_> {
    /// Judges a lease that was just read and updates the observation of the lease. The caller must ensure that no
    /// other run of this process holds the lease.
    pub fn judge(
        &self,
        observation: &mut Option<LeaseObservation>,
        stored: Option<&StoredLease>,
    ) -> Availability {
        let Some(stored) = stored else {
            *observation = None;
            return Availability::Free { precondition: Precondition::IfAbsent, counter: 1 };
        };
        let record = stored.record.as_ref();
        let free = Availability::Free {
            precondition: Precondition::IfMatch(stored.etag.clone()),
            counter: record.map_or(1, |record| record.counter.saturating_add(1)),
        };
        if record.is_some_and(|record| self.is_unused(record)) {
            *observation = None;
            return free;
        }
        let holder = record.map(|record| record.process.id.clone());
        let previous = observation.take();
        let is_same_holder = previous.as_ref().is_some_and(|previous| previous.holder == holder);
        let previous = previous.filter(|previous| previous.etag == stored.etag);
        let liveness = match previous {
            None if is_same_holder => HolderLiveness::Alive,
            None | Some(_) => HolderLiveness::Unknown,
        };
        let since = previous.map_or(self.now, |previous| previous.since);
        *observation = Some(LeaseObservation { etag: stored.etag.clone(), holder, since });
        let expires = since + record.map_or(self.timing, LeaseRecord::timing).takeover();
        if self.now >= expires {
            return free;
        }
        let unchanged = self.now.saturating_sub(since);
        Availability::Held { holder: LeaseHolder { text: describe(record, unchanged), liveness }, expires }
    }

    /// Whether no steps are applied under the lease: it was released, its process has ended, or it is left over from
    /// an earlier run of this process.
    fn is_unused(&self, record: &LeaseRecord) -> bool {
        record.state == LeaseState::Released
            || record.process.id == self.process
            || (self.is_gone)(&record.process)
    }
}

/// Describes the holder of a lease.
fn describe(record: Option<&LeaseRecord>, unchanged: Duration) -> String {
    let seconds = unchanged.as_secs();
    match record {
        Some(LeaseRecord { process: LeaseProcess { host, pid, .. }, run, .. }) => {
            format!("run `{run}` on `{host}`, pid {pid}, observed without a renewal for {seconds} s")
        }
        None => format!("a process of another version, observed without a renewal for {seconds} s"),
    }
}
