//! Executes the runs of an integration in a loop.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::Mode;
use qontract_runtime::reconcile_loop::{LoopJob, ShutdownSignal};
use qontract_runtime::{Integration, RunEnd, RunRecord, run};

use crate::audit::WriteObserver;
use crate::reconciled_data::ReconciledData;
use crate::run_settings::RunSettings;
use crate::run_setup::RunSetup;
use crate::run_store::{RecordStorage, RunStore};
use crate::source::DataSource;

/// A run that ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'r> {
    /// The record of the run.
    pub record: &'r RunRecord,
    /// Whether the record is stored.
    pub storage: RecordStorage,
    /// The commit time of the data of the run, in seconds since 1970, if known.
    pub commit_time: Option<i64>,
}

/// A run, with its record.
struct CompletedRun {
    record: RunRecord,
    storage: RecordStorage,
    commit_time: Option<i64>,
}

/// Observes the end of runs.
pub trait RunObserver: WriteObserver {
    /// Called with a run that ended, or with the reason why it could not start.
    fn ran(&self, integration: &str, run: Result<EndedRun<'_>, &anyhow::Error>);
}

/// The runs of an integration.
#[derive(Clone)]
pub struct Runner {
    /// The integration that runs.
    pub integration: Arc<Integration>,
    /// The source of the data.
    pub source: Arc<dyn DataSource>,
    /// The settings of the runs.
    pub settings: RunSettings,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// Observes the runs.
    pub observer: Arc<dyn RunObserver>,
    /// The data that the targets were last fully reconciled with.
    pub reconciled: ReconciledData,
}

impl LoopJob for Runner {
    fn run_once(&self, stop: ShutdownSignal) -> BoxFuture<'static, RunEnd> {
        let runner = self.clone();
        async move {
            let name = &runner.integration.meta().name;
            match runner.run(stop).await {
                Ok(CompletedRun { record, storage, commit_time }) => {
                    let ended = EndedRun { record: &record, storage, commit_time };
                    runner.observer.ran(name, Ok(ended));
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
    /// Executes one run and stores its record.
    async fn run(&self, stop: ShutdownSignal) -> anyhow::Result<CompletedRun> {
        let Self { integration, source: feed, settings, runs, observer, reconciled } = self;
        let head = feed.current()?;
        let observer = Arc::clone(observer) as Arc<dyn WriteObserver>;
        let mut begun = RunSetup { integration, settings, head: &head, runs, observer }.start().await?;
        let request = &mut begun.request;
        request.newer_data = Some(feed.subscribe());
        request.shutdown = stop;
        let mut warnings = Vec::new();
        // **Invariant:** a run that is restricted to some shards does not process the other shards, so its data does
        // not count as reconciled.
        let is_complete = settings.mode == Mode::Real && settings.only_shards.is_none();
        if is_complete {
            match reconciled.base_of(&head, &**feed).await {
                Ok(base) => request.base = base.map(|base| Arc::clone(&base.source)),
                Err(error) => warnings.push(format!("{error:#}")),
            }
        }
        let outcome = run(integration, &begun.request).await;
        if is_complete && let Err(error) = reconciled.ran(&head, outcome.ended).await {
            warnings.push(format!("the data of this run is forgotten after a restart: {error:#}"));
        }
        // All source lines are lines in the head, even if a base is compared.
        let mut record = begun.record(&outcome, &head, None);
        record.warnings.append(&mut warnings);
        // The run is reported even if its record cannot be stored.
        let storage = runs.record_loop_run(&record).await.unwrap_or_else(|error| {
            record.warnings.push(format!("cannot store the run record: {error:#}"));
            RecordStorage::Counted
        });
        if storage == RecordStorage::Stored {
            record.warnings.extend(begun.store_inputs());
        }
        Ok(CompletedRun { record, storage, commit_time: head.source.commit_time() })
    }
}
