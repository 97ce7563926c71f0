//! Collects the records of the dry runs of `--once`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use qontract_runtime::{ChangeKind, RunRecord};
use qontract_telemetry::log::LogLine;

use crate::audit::WriteObserver;
use crate::plan_report;
use crate::reporter::{ChangeCounts, LoopReporter};
use crate::runner::{EndedRun, RunObserver};

/// The records of dry runs, by integration.
#[derive(Default)]
pub struct PlannedRecords(Mutex<BTreeMap<String, RunRecord>>);

impl PlannedRecords {
    /// Locks the records.
    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RunRecord>> {
        self.0.lock()
    }

    /// The number of planned and held changes of an integration.
    pub fn counts(&self, name: &str) -> Option<ChangeCounts> {
        let records = self.lock();
        let shards = records.get(name)?.shards.values();
        Some(shards.map(ChangeCounts::of).sum())
    }

    /// The number of errors of an integration.
    pub fn errors(&self, name: &str) -> Option<usize> {
        Some(plan_report::distinct_errors(self.lock().get(name)?).len())
    }
}

/// Collects the records of dry runs for the report at the end, instead of logging their changes.
pub struct RecordCollector {
    /// The reporter of the run.
    pub reporter: Arc<LoopReporter>,
    /// The records so far.
    pub planned: Arc<PlannedRecords>,
}

impl WriteObserver for RecordCollector {
    fn wrote(&self, line: &LogLine, run: &str, kind: ChangeKind, since_commit: Option<i64>) {
        self.reporter.wrote(line, run, kind, since_commit);
    }

    fn audit_failed(&self, why: &str) {
        self.reporter.audit_failed(why);
    }

    fn unfinished_run(&self, warning: &str) {
        self.reporter.unfinished_run(warning);
    }
}

impl RunObserver for RecordCollector {
    fn ran(&self, integration: &str, run: Result<EndedRun<'_>, &anyhow::Error>) {
        match run {
            Ok(run) => drop(self.planned.lock().insert(integration.to_owned(), run.record.clone())),
            Err(_) => self.reporter.ran(integration, run),
        }
    }
}
