//! Plans integrations: dry runs of several integrations against a base and a head, concurrently.

use std::sync::Arc;

use futures_util::StreamExt as _;
use qontract_access::ReadPermit;
use qontract_diagnostics::MessageSink;
use qontract_journal::Journal;
use qontract_report::{PlanReport, RevisionInfo, RunMode};
use qontract_runtime::guard::{Ledger, LedgerError, MemoryLedger};
use qontract_runtime::reconcile_loop::ShutdownSignal;
use qontract_runtime::{Integration, RunRecord, definition};
use qontract_telemetry::activity::Activities;

use crate::audit::WarningObserver;
use crate::pinned_data::PinnedData;
use crate::run_settings::RunSettings;
use crate::run_setup::RunSetup;
use crate::run_store::RunStore;

/// Maximum number of integrations that are planned concurrently. Each processes several shards concurrently.
const MAX_CONCURRENT: usize = 4;

/// Shared context of the runs of a plan.
pub struct Planner {
    /// The data to plan.
    pub head: Arc<PinnedData>,
    /// The data to compare with.
    pub base: PinnedData,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// The settings of the dry runs.
    pub settings: RunSettings,
    /// Receives warnings.
    pub messages: Arc<dyn MessageSink>,
    /// The current activities of the runs.
    pub activities: Activities,
    /// Ends all runs.
    pub stop: ShutdownSignal,
}

impl Planner {
    /// A report without runs. It notes integrations that only the base defines: they no longer run, and their
    /// objects stay.
    pub fn empty_report(&self) -> anyhow::Result<PlanReport> {
        let mut report = PlanReport::new(RunMode::DryRun, Some(revision(&self.base)), revision(&self.head));
        let head: Vec<String> =
            definition::all(&*self.head.source)?.into_iter().map(|(name, _)| name).collect();
        for (name, _) in definition::all(&*self.base.source)? {
            if !head.contains(&name) {
                let text = format!(
                    "`{name}` is no longer defined: it stops running, and the objects that it manages stay"
                );
                report.notes.push(text);
            }
        }
        Ok(report)
    }

    /// Plans all integrations, a few of them concurrently. A failure does not stop the others.
    pub async fn plan_all(
        self: Arc<Self>,
        integrations: Vec<Integration>,
    ) -> Vec<(String, anyhow::Result<RunRecord>)> {
        let planned = integrations.into_iter().map(|integration| {
            let (planner, name) = (Arc::clone(&self), integration.meta().name.clone());
            let task = tokio::spawn(async move { planner.plan(&integration).await });
            async move {
                let planned = task.await.unwrap_or_else(|panic| Err(anyhow::anyhow!("it panicked: {panic}")));
                (name, planned)
            }
        });
        futures_util::stream::iter(planned).buffered(MAX_CONCURRENT).collect().await
    }

    async fn plan(&self, integration: &Integration) -> anyhow::Result<RunRecord> {
        let Self { head, base, runs, settings, .. } = self;
        let observer = Arc::new(WarningObserver::new(Arc::clone(&self.messages)));
        let mut started = RunSetup { integration, settings, head, runs, observer }.start()?;
        let request = &mut started.request;
        request.base = Some(Arc::clone(&base.source));
        request.shutdown = self.stop.clone();
        let outcome = self.activities.scope(qontract_runtime::run(integration, &started.request)).await;
        Ok(started.record(&outcome, head, Some(base)))
    }
}

/// The revision of pinned data, as the report shows it.
pub fn revision(side: &PinnedData) -> RevisionInfo {
    RevisionInfo {
        sha256: side.source.sha().to_owned(),
        commit: side.source.commit().map(str::to_owned),
        modified: side.is_modified(),
    }
}

/// The ledger that the removal budgets of a plan are checked against. A machine that only plans, such as a CI
/// runner, has no ledger: the plan then assumes that nothing was removed before, and a warning is printed.
pub async fn ledger_of(journal: Arc<Journal>, messages: &dyn MessageSink) -> Arc<dyn Ledger> {
    match journal.check(&ReadPermit::for_data()).await {
        Err(LedgerError::NotInitialised { place, .. }) => {
            messages.note(&format!(
                "warning: no removal ledger in `{place}`: the plan assumes that nothing was removed in the last 24 hours\nhint: pass the `--runs` directory of the processes that reconcile, if this machine can read it"
            ));
            Arc::new(MemoryLedger::default())
        }
        _ => journal,
    }
}
