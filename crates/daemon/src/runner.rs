//! Executes the runs of an integration in a loop.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_runtime::guard::{Budgets, Ledger};
use qontract_runtime::reconcile_loop::{LoopJob, ShutdownSignal};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, Integration, Options, RunEnd, RunRecord, run};

use crate::audit::WriteObserver;
use crate::pinned_data::PinnedData;
use crate::run_setup::RunSetup;
use crate::run_store::{RecordStorage, RunStore};
use crate::source::DataSource;

/// Settings of runs.
#[derive(Clone)]
pub struct RunSettings {
    /// Whether they may change target systems.
    pub mode: Mode,
    /// The hash slot of this process.
    pub slot: Slot,
    /// The removal budgets.
    pub budgets: Budgets,
    /// The removal ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Whether the list of allowed schemas is enforced.
    pub validate_schemas: bool,
    /// Whether plans show the content of created objects.
    pub bodies: Bodies,
}

/// A run that ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'r> {
    /// Its record.
    pub record: &'r RunRecord,
    /// Whether the record is stored.
    pub storage: RecordStorage,
}

/// Observes the end of runs.
pub trait RunObserver: WriteObserver {
    /// Called with a run that ended, or with the reason why it could not start.
    fn ran(&self, integration: &str, run: Result<EndedRun<'_>, &anyhow::Error>);
}

/// The runs of an integration.
#[derive(Clone)]
pub struct Runner {
    /// The integration.
    pub integration: Arc<Integration>,
    /// The flags.
    pub options: Options,
    /// The source of its data.
    pub source: Arc<dyn DataSource>,
    /// The settings of the runs.
    pub settings: RunSettings,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// Observes the runs.
    pub observer: Arc<dyn RunObserver>,
    /// The data of the last run that left nothing to do.
    pub reconciled: ReconciledData,
}

/// The data that the targets were last fully reconciled with, by the runs of one loop.
///
/// If the data changes, the next run compares with it: a shard that is no longer declared is cleaned up, past
/// the guards. It is kept until a run on newer data succeeds with nothing held, failed or skipped. It lives
/// in memory: a shard that is removed while no loop runs is cleaned up by a run with `--base`.
#[derive(Clone, Default)]
pub struct ReconciledData(Arc<Mutex<Option<Arc<PinnedData>>>>);

impl ReconciledData {
    /// The data to compare `head` with; none if it is the same bundle.
    fn base_of(&self, head: &PinnedData) -> Option<Arc<PinnedData>> {
        let base = self.0.lock().clone();
        base.filter(|base| base.source.sha() != head.source.sha())
    }

    /// Notes the end of a run.
    fn ran(&self, head: &Arc<PinnedData>, ended: RunEnd) {
        let mut reconciled = self.0.lock();
        if matches!(ended, RunEnd::Ok | RunEnd::Degraded) || reconciled.is_none() {
            *reconciled = Some(Arc::clone(head));
        }
    }
}

impl LoopJob for Runner {
    fn run_once(&self, stop: ShutdownSignal) -> BoxFuture<'static, RunEnd> {
        let runner = self.clone();
        async move {
            let name = &runner.integration.meta().name;
            match runner.run(stop).await {
                Ok((record, storage)) => {
                    runner.observer.ran(name, Ok(EndedRun { record: &record, storage }));
                    record.ended
                }
                Err(error) => {
                    runner.observer.ran(name, Err(&error));
                    RunEnd::Transient
                }
            }
        }
        .boxed()
    }
}

impl Runner {
    /// Executes one run, and stores its record.
    async fn run(&self, stop: ShutdownSignal) -> anyhow::Result<(RunRecord, RecordStorage)> {
        let Self { integration, options, source: feed, settings, runs, observer, reconciled } = self;
        let head = feed.current()?;
        let start = RunSetup {
            integration: &integration.meta().name,
            mode: settings.mode,
            head: &head,
            runs,
            ledger: &settings.ledger,
            observer: Arc::clone(observer) as Arc<dyn WriteObserver>,
        };
        let mut begun = start.start()?;
        let request = &mut begun.request;
        request.set_options(options.clone(), &integration.meta().flags);
        request.slot = settings.slot;
        request.budgets = settings.budgets;
        request.validate_schemas = settings.validate_schemas;
        request.bodies = settings.bodies;
        request.newer_data = Some(feed.subscribe());
        request.shutdown = stop;
        if settings.mode == Mode::Real {
            request.base = reconciled.base_of(&head).map(|base| Arc::clone(&base.source));
        }
        let outcome = run(integration, &begun.request).await;
        reconciled.ran(&head, outcome.ended);
        // All source lines are those of the head, whatever it was compared with.
        let mut record = begun.record(&outcome, &head, None);
        // The run is reported even if its record cannot be stored.
        let storage = runs.record_loop_run(&record).unwrap_or_else(|error| {
            record.warnings.push(format!("cannot store the run record: {error:#}"));
            RecordStorage::Counted
        });
        Ok((record, storage))
    }
}
