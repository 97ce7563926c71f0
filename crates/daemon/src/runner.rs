//! Executes the runs of an integration in a loop.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_runtime::reconcile_loop::{LoopJob, ShutdownSignal};
use qontract_runtime::{Integration, RunEnd, RunRecord, run};

use crate::audit::WriteObserver;
use crate::pinned_data::PinnedData;
use crate::run_settings::RunSettings;
use crate::run_setup::RunSetup;
use crate::run_store::RunStore;
use crate::source::DataSource;

/// Observes the end of runs.
pub trait RunObserver: WriteObserver {
    /// Called with the record of a run that ended, or with the reason why it could not start.
    fn ran(&self, integration: &str, run: Result<&RunRecord, &anyhow::Error>);
}

/// The runs of an integration.
#[derive(Clone)]
pub struct Runner {
    /// The integration.
    pub integration: Arc<Integration>,
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
                Ok(record) => {
                    runner.observer.ran(name, Ok(&record));
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
    /// Executes one run, and returns its record.
    async fn run(&self, stop: ShutdownSignal) -> anyhow::Result<RunRecord> {
        let Self { integration, source: feed, settings, runs, observer, reconciled } = self;
        let head = feed.current()?;
        let observer = Arc::clone(observer) as Arc<dyn WriteObserver>;
        let mut begun = RunSetup { integration, settings, head: &head, runs, observer }.start()?;
        let request = &mut begun.request;
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
        if let Err(error) = runs.record_loop_run(&record) {
            record.warnings.push(format!("cannot store the run record: {error:#}"));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::data_with;

    #[test]
    fn a_run_compares_with_the_data_of_the_last_run_that_left_nothing_to_do() {
        let [first, second, third] = [&["a"][..], &["a", "b"], &["b"]].map(data_with);
        let reconciled = ReconciledData::default();
        let base = |head: &PinnedData| reconciled.base_of(head).map(|base| base.source.sha().to_owned());
        let sha = |data: &PinnedData| Some(data.source.sha().to_owned());
        assert_eq!(base(&first), None);
        // The first data is the base even if its run failed: there is no earlier one.
        reconciled.ran(&first, RunEnd::Failed);
        assert_eq!((base(&first), base(&second)), (None, sha(&first)));
        for ended in [RunEnd::Failed, RunEnd::Held, RunEnd::Transient, RunEnd::Interrupted] {
            reconciled.ran(&second, ended);
            assert_eq!(base(&third), sha(&first), "{ended:?}");
        }
        for ended in [RunEnd::Ok, RunEnd::Degraded] {
            reconciled.ran(&second, ended);
            assert_eq!((base(&second), base(&third)), (None, sha(&second)), "{ended:?}");
        }
    }
}
