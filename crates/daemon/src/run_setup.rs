//! Sets up the id, the clock and the audit log of a run, which is a single run or a run of a loop.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_journal::{RoundOwner, RunId};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::record::BundleRecord;
use qontract_runtime::{
    Integration, LineResolvers, RunOutcome, RunRecord, RunRequest, RunTiming, SourceLocation,
};

use crate::audit::{AuditLog, WriteObserver};
use crate::input_store::{InputStore, RunInputs};
use crate::lease_host;
use crate::line_cache::LineCache;
use crate::pinned_data::{ComparedData, PinnedData, ReportPlaces};
use crate::run_rounds::RunRounds;
use crate::run_settings::RunSettings;
use crate::run_store::RunStore;
use crate::simulation;
use crate::unfinished_runs;

/// The year 2020. A clock that shows an earlier time was never set.
const MIN_CLOCK: Duration = Duration::from_hours((50 * 365 + 12) * 24);

/// The inputs of a run.
pub struct RunSetup<'a> {
    /// The integration that runs.
    pub integration: &'a Integration,
    /// The settings of the run.
    pub settings: &'a RunSettings,
    /// The data of the run.
    pub head: &'a Arc<PinnedData>,
    /// The store of run records, with the audit log.
    pub runs: &'a Arc<RunStore>,
    /// Observes writes.
    pub observer: Arc<dyn WriteObserver>,
}

/// A run that has started.
pub struct StartedRun {
    /// The recorded inputs of the run.
    inputs: Option<Arc<RunInputs>>,
    /// The request of the run. The base, newer data and the shutdown signal have their defaults.
    pub request: RunRequest,
    began: Timestamp,
    since: Instant,
}

impl RunSetup<'_> {
    /// Starts the run: sets its start time and its id.
    pub async fn start(self) -> anyhow::Result<StartedRun> {
        let Self { integration, settings, head, runs, observer } = self;
        let name = integration.meta().name.as_str();
        let now = checked_clock(simulation::now()?)?;
        let start = Timestamp::from_second(now.as_second())?;
        let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        // The random number is seeded by the operating system, so that the ids of processes that start at the same
        // time differ.
        let id = RunId::new(name, now, fastrand::u64(..));
        let run = id.to_string();
        if settings.mode == Mode::Real {
            for warning in unfinished_runs::report(runs, name, now).await {
                observer.unfinished_run(&warning);
            }
        }
        let source = &head.source;
        let bundle = BundleRecord {
            sha: source.sha().to_owned(),
            commit: source.commit().map(str::to_owned),
            modified: head.is_modified(),
        };
        let process = lease_host::this_process();
        let owner = RoundOwner { run: id, began: start, head: bundle, process };
        let protected = ProtectedKinds::new(qontract_kinds::protected_kinds());
        let mut request = RunRequest::new(run, settings.mode, Arc::clone(source), today, protected);
        settings.apply(integration, &mut request);
        request.now = now;
        let inputs = runs.folder().map(InputStore::new);
        let (recorder, inputs) = inputs.and_then(|inputs| inputs.recorder()).unzip();
        request.inputs = recorder;
        request.audit = Arc::new(AuditLog {
            integration: name.to_owned(),
            head: Arc::clone(head),
            runs: Arc::clone(runs),
            observer,
            failure_reported: Once::new(),
            lines: LineCache::default(),
            rounds: RunRounds::new(Arc::clone(runs), owner),
        });
        Ok(StartedRun { request, inputs, began: start, since: Instant::now() })
    }
}

impl StartedRun {
    /// Stores the inputs of the run. Called when the record of the run is stored. Returns a warning if storing the
    /// inputs fails.
    pub fn store_inputs(&self) -> Option<String> {
        let stored = self.inputs.as_ref().map_or(Ok(()), |inputs| inputs.store());
        stored.err().map(|error| format!("the run cannot be replayed: {error:#}"))
    }

    /// The start time and the duration so far.
    fn clock(&self) -> RunTiming {
        RunTiming {
            began: self.began,
            milliseconds: u64::try_from(self.since.elapsed().as_millis()).unwrap_or_default(),
        }
    }

    /// The record of the run, whose duration ends now. The source lines are those of the differences between base and
    /// head; for objects that exist only in the base, they are lines in the base.
    pub fn record(&self, outcome: &RunOutcome, head: &PinnedData, base: Option<&PinnedData>) -> RunRecord {
        let timing = self.clock();
        let mut record = if let Some(base) = base {
            let sides = ComparedData::new(base, head);
            sides.prefetch(&outcome.causes, |places| collect_places(outcome, timing, places));
            let changes = |place: &SourceLocation| sides.line(place, &outcome.causes);
            let faults = |place: &SourceLocation| sides.own_line(place);
            RunRecord::new(outcome, timing, LineResolvers { changes: &changes, faults: &faults })
        } else {
            if head.is_remote() {
                let places = ReportPlaces::default();
                collect_places(outcome, timing, &places);
                let ReportPlaces { changes, others } = places;
                head.prefetch_lines(changes.into_inner().into_iter().chain(others.into_inner()));
            }
            head.with_lines(|line| RunRecord::new(outcome, timing, LineResolvers::uniform(line)))
        };
        record.head.modified = head.is_modified();
        record
    }
}

/// Collects the source locations whose lines a record contains.
fn collect_places(outcome: &RunOutcome, timing: RunTiming, places: &ReportPlaces) {
    let collect = |into: &Mutex<BTreeSet<SourceLocation>>, place: &SourceLocation| {
        into.lock().insert(place.clone());
        String::new()
    };
    let changes = |place: &SourceLocation| collect(&places.changes, place);
    let others = |place: &SourceLocation| collect(&places.others, place);
    RunRecord::new(outcome, timing, LineResolvers { changes: &changes, faults: &others });
}

/// Returns the time; fails if the clock is wrong.
///
/// **Invariant:** no run starts while the clock is wrong, because expired approvals could become valid again
/// (`a_wrong_clock_begins_no_run`).
fn checked_clock(now: SystemTime) -> anyhow::Result<Timestamp> {
    let wrong = "the system clock is wrong";
    let began = now.duration_since(UNIX_EPOCH).context(wrong)?;
    let at = Timestamp::try_from(now).context(wrong)?;
    anyhow::ensure!(began >= MIN_CLOCK, "{wrong}: it shows {}", at.strftime("%Y-%m-%d"));
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_begins_no_run() {
        let day = Duration::from_hours(24);
        for wrong in [UNIX_EPOCH - day, UNIX_EPOCH, UNIX_EPOCH + day, UNIX_EPOCH + MIN_CLOCK - day] {
            let error = checked_clock(wrong).expect_err("a wrong clock").to_string();
            assert!(error.starts_with("the system clock is wrong"), "{error}");
        }
        // The time is past the end of the calendar.
        assert!(checked_clock(UNIX_EPOCH + day * 366 * 9_000).is_err());
    }
}
