//! Run records in a store: one blob for each run. A listing of runs uses only the keys of these blobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Precondition};
use qontract_runtime::RunRecord;

use crate::rounds::Rounds;
use crate::run_key::{RUNS_PREFIX, RunId, RunKey, RunSummary, days_since};

/// An error of the store of run records.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The store cannot be read or written.
    #[error("cannot {doing} run records in `{place}`")]
    Store {
        /// The operation that failed.
        doing: &'static str,
        /// The location of the store.
        place: String,
        /// The error of the store.
        #[source]
        source: BlobsError,
    },
    /// A record is not valid.
    #[error("cannot parse the record of run `{run}` in `{place}`")]
    Record {
        /// The id of the run.
        run: String,
        /// The location of the store.
        place: String,
        /// The error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// The name of a run is not an id.
    #[error("`{0}` is not the id of a run")]
    Id(String),
}

/// The limits on the number and the age of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of records of one integration.
    pub max_records: usize,
    /// Maximum age of a record.
    pub max_age: jiff::SignedDuration,
}

impl Retention {
    /// The records to remove: the oldest ones of each integration beyond the maximum number, and all records that are
    /// too old.
    fn expired<'k>(&self, keys: &'k [RunKey], now: Timestamp) -> Vec<&'k RunKey> {
        // If the start of the period is outside the calendar, all records are kept.
        let start = now.checked_sub(self.max_age).unwrap_or(Timestamp::MIN);
        let start = start.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut newest: Vec<&RunKey> = keys.iter().collect();
        newest.sort_by_key(|key| Reverse(key.order()));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        newest.retain(|key| {
            let count = counts.entry(key.run.integration()).or_default();
            *count += 1;
            *count > self.max_records || key.run.second() < start.as_str()
        });
        newest
    }
}

/// The result of removing old records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedRuns {
    /// The runs whose records were removed.
    pub removed: Vec<RunId>,
    /// Number of records that each integration still has.
    pub kept: BTreeMap<String, usize>,
}

/// Access to the run records in a store.
#[derive(Clone)]
pub struct RunRecords {
    blobs: Arc<dyn Blobs>,
    place: String,
    read: ReadPermit,
}

impl fmt::Debug for RunRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRecords").field("place", &self.place).finish_non_exhaustive()
    }
}

impl RunRecords {
    /// Creates access to the records in a store; `place` is the location of the store, for messages.
    pub fn new(blobs: Arc<dyn Blobs>, place: String) -> Self {
        Self { blobs, place, read: ReadPermit::for_data() }
    }

    /// The rounds in the store of the records.
    pub fn rounds(&self) -> Rounds {
        Rounds::new(Arc::clone(&self.blobs))
    }

    /// The location of the store.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Stores the record of a run. If another process has stored a record for the run, both records are kept, and the
    /// newer one is used.
    pub async fn store(
        &self,
        write: &WritePermit,
        record: &RunRecord,
        summary: RunSummary,
    ) -> Result<(), RecordsError> {
        let run = RunId::parse(&record.run).ok_or_else(|| RecordsError::Id(record.run.clone()))?;
        let failed = self.failed("store");
        let key = BlobKey::new(RunKey::new(run, summary).as_str()).map_err(&failed)?;
        let bytes = serde_json::to_vec_pretty(record).expect("a record can be written as JSON");
        self.blobs.put(write, &key, &BlobContent::new(bytes), &Precondition::Any).await.map_err(&failed)?;
        Ok(())
    }

    /// The keys of the records since a time, the newest first. Without a time, the keys of all records.
    ///
    /// S3 needs one request per day, and one more per thousand records.
    pub async fn list(&self, since: Option<Timestamp>, now: Timestamp) -> Result<Vec<RunKey>, RecordsError> {
        let mut keys: Vec<RunKey> = Vec::new();
        for prefix in days_since(RUNS_PREFIX, since, now) {
            let listed = self.blobs.keys(&self.read, &prefix).await.map_err(self.failed("list"))?;
            keys.extend(listed.iter().filter_map(|key| RunKey::parse(key)));
        }
        keys.sort_by(|a, b| b.order().cmp(&a.order()));
        // Of several records of a run, only the newest one is listed.
        let mut seen = BTreeSet::new();
        keys.retain(|key| seen.insert(key.run.clone()));
        if let Some(since) = since {
            let first = since.strftime("%Y%m%dT%H%M%SZ").to_string();
            keys.retain(|key| key.run.second() >= first.as_str());
        }
        Ok(keys)
    }

    /// The key of the record of a run, if it has one.
    pub async fn find(&self, run: &RunId) -> Result<Option<RunKey>, RecordsError> {
        let listed = self.blobs.keys(&self.read, &RunKey::prefix(run)).await.map_err(self.failed("list"))?;
        let keys = listed.iter().filter_map(|key| RunKey::parse(key));
        Ok(keys.max_by(|a, b| a.order().cmp(&b.order())))
    }

    /// Reads a record; `None` if it was removed since it was listed.
    pub async fn read(&self, key: &RunKey) -> Result<Option<RunRecord>, RecordsError> {
        let blob_key = BlobKey::new(key.as_str()).map_err(self.failed("read"))?;
        let blob = self.blobs.get(&self.read, &blob_key).await.map_err(self.failed("read"))?;
        let Some(blob) = blob else { return Ok(None) };
        let (run, place) = (key.run.to_string(), self.place.clone());
        serde_json::from_slice(&blob.bytes).map(Some).map_err(|source| RecordsError::Record {
            run,
            place,
            source,
        })
    }

    /// Removes the records that exceed the retention. Without a permit, only determines them.
    pub async fn prune(
        &self,
        write: Option<&WritePermit>,
        retention: Retention,
        now: Timestamp,
    ) -> Result<PrunedRuns, RecordsError> {
        let listed = self.blobs.keys(&self.read, RUNS_PREFIX).await.map_err(self.failed("list"))?;
        let keys: Vec<RunKey> = listed.iter().filter_map(|key| RunKey::parse(key)).collect();
        let mut pruned = PrunedRuns::default();
        for key in &keys {
            *pruned.kept.entry(key.run.integration().to_owned()).or_default() += 1;
        }
        for key in retention.expired(&keys, now) {
            let Some(write) = write else {
                pruned.removed.push(key.run.clone());
                continue;
            };
            let blob_key = BlobKey::new(key.as_str()).map_err(self.failed("remove"))?;
            self.blobs.delete(write, &blob_key, None).await.map_err(self.failed("remove"))?;
            pruned.removed.push(key.run.clone());
            pruned.kept.entry(key.run.integration().to_owned()).and_modify(|count| *count -= 1);
        }
        Ok(pruned)
    }

    fn failed(&self, doing: &'static str) -> impl Fn(BlobsError) -> RecordsError {
        move |source| RecordsError::Store { doing, place: self.place.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use qontract_access::Mode;
    use qontract_runtime::RunState;

    use super::*;
    use crate::run_key::{ChangesByKind, RunFacts};

    fn key(run: &str, stored: i64) -> RunKey {
        let summary = RunSummary {
            stored,
            mode: Mode::Real,
            state: RunState::Ok,
            changes: ChangesByKind::default(),
            held: 0,
            errors: 0,
            not_made: 0,
            milliseconds: 1,
            facts: RunFacts::default(),
        };
        RunKey::new(RunId::parse(run).expect("an id"), summary)
    }

    #[test]
    fn records_beyond_the_number_or_the_age_expire() {
        let keys = [
            key("20261101T000000Z-a-1", 1),
            key("20261102T000000Z-a-2", 2),
            key("20261103T000000Z-a-3", 3),
            key("20261103T000000Z-a-0", 4),
            key("20261101T120000Z-b-1", 5),
        ];
        let check = |max_records: usize, days: i64, expect: &[&str]| {
            let retention = Retention { max_records, max_age: jiff::SignedDuration::from_hours(24 * days) };
            let now: Timestamp = "2026-11-03T12:00:00Z".parse().unwrap();
            let mut expired: Vec<&str> =
                retention.expired(&keys, now).into_iter().map(|key| key.run.as_str()).collect();
            expired.sort_unstable();
            assert_eq!(expired, expect, "{max_records} records, {days} days");
        };
        check(4, 30, &[]);
        check(3, 30, &["20261101T000000Z-a-1"]);
        // Of two runs that started in the same second, the one that ended first is the older one.
        check(1, 30, &["20261101T000000Z-a-1", "20261102T000000Z-a-2", "20261103T000000Z-a-3"]);
        check(9, 2, &["20261101T000000Z-a-1"]);
        check(9, 1, &["20261101T000000Z-a-1", "20261101T120000Z-b-1", "20261102T000000Z-a-2"]);
    }
}
