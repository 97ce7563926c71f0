//! The holder's side of a lease: decides when to renew the lease and whether the fence holds. Pure: the time is an
//! argument, from a clock that only this process uses.

use std::time::Duration;

use qontract_client_blobs::Etag;

use super::record::{LeaseState, StoredLease};
use super::timing::LeaseTiming;

/// A conditional write of a lease whose result may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAttempt {
    /// The number of the write.
    pub sequence: u64,
    /// The time before the request was sent.
    pub sent: Duration,
}

/// A lease that this process holds or has lost.
#[derive(Clone, Debug)]
pub struct HeldLease {
    timing: LeaseTiming,
    /// The id of this process.
    process: String,
    /// The number of the write that acquired the lease. All later writes of this lease have larger numbers.
    acquired: u64,
    etag: Etag,
    counter: u64,
    /// The time before the last successful write was sent.
    renewed: Duration,
    next_attempt: Duration,
    loss: Option<String>,
}

impl HeldLease {
    /// Creates the lease that an attempt acquired, with the tag and the counter that the attempt wrote.
    pub fn new(timing: LeaseTiming, process: &str, attempt: WriteAttempt, etag: Etag, counter: u64) -> Self {
        let WriteAttempt { sequence, sent } = attempt;
        let (process, next_attempt) = (process.to_owned(), sent + timing.renewal());
        Self { timing, process, acquired: sequence, etag, counter, renewed: sent, next_attempt, loss: None }
    }

    /// The tag that the next write must match.
    pub fn etag(&self) -> &Etag {
        &self.etag
    }

    /// The counter of the next write.
    pub fn next_counter(&self) -> u64 {
        self.counter + 1
    }

    /// The time until which the fence holds.
    pub fn deadline(&self) -> Duration {
        self.renewed + self.timing.fence()
    }

    /// Checks the fence. Once the lease is lost, every further check fails.
    pub fn check(&mut self, now: Duration) -> Result<(), &str> {
        if self.loss.is_none() && now >= self.deadline() {
            let late = now.saturating_sub(self.renewed).as_secs();
            self.loss = Some(format!("it was not renewed for {late} s"));
        }
        self.loss.as_deref().map_or(Ok(()), Err)
    }

    /// The time of the next renewal; `None` if the lease is lost.
    pub fn next_attempt(&self) -> Option<Duration> {
        self.loss.is_none().then_some(self.next_attempt)
    }

    /// Records that the attempt succeeded.
    pub fn confirm(&mut self, attempt: WriteAttempt, etag: Etag) {
        self.etag = etag;
        self.counter += 1;
        self.renewed = self.renewed.max(attempt.sent);
        self.next_attempt = self.renewed + self.timing.renewal();
    }

    /// Records that the attempt failed and that the lease could not be read either. It is unknown whether the lease
    /// was renewed.
    pub fn retry_later(&mut self, now: Duration) {
        self.next_attempt = now + self.timing.retry();
    }

    /// Records the content `stored`, which was read after an attempt whose result is unknown or which found other
    /// content.
    pub fn read_back(&mut self, attempt: WriteAttempt, stored: Option<StoredLease>, now: Duration) {
        let Some(stored) = stored else {
            self.lose("its blob was removed".to_owned());
            return;
        };
        if stored.is_write_of(&self.process, attempt.sequence) {
            self.confirm(attempt, stored.etag);
            return;
        }
        self.retry_later(now);
        if stored.etag == self.etag {
            return;
        }
        match stored.record {
            // The content was written by an earlier attempt, which arrived late. The age of this attempt is unknown,
            // so the deadline does not move, and the next attempt follows immediately.
            Some(record)
                if record.process.id == self.process
                    && record.sequence > self.acquired
                    && record.state == LeaseState::Held =>
            {
                self.etag = stored.etag;
                self.counter = record.counter;
                self.next_attempt = now;
            }
            Some(record) => self.lose(format!(
                "run `{}` on `{}` (pid {}) took it over",
                record.run, record.process.host, record.process.pid
            )),
            None => self.lose("its blob was overwritten".to_owned()),
        }
    }

    /// Ends the use of the lease before its release, so that no further step starts.
    pub fn end(&mut self) {
        self.lose("it was released".to_owned());
    }

    fn lose(&mut self, reason: String) {
        self.loss.get_or_insert(reason);
    }
}
