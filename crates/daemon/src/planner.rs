//! Plans integrations: dry runs of several integrations against a base and a head, concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt as _;
use qontract_access::{Mode, ReadPermit};
use qontract_bundle::repo::{self, GitError};
use qontract_config::Config;
use qontract_diagnostics::{MessageSink, pluralize};
use qontract_journal::Journal;
use qontract_report::{DataSide, InvalidData, Location, PlanReport, RevisionInfo, UncheckedIntegration};
use qontract_runtime::guard::{Ledger, LedgerError, MemoryLedger};
use qontract_runtime::reconcile_loop::ShutdownSignal;
use qontract_runtime::{Fault, Integration, RunEnd, RunRecord, definition};
use qontract_telemetry::activity::Activities;

use crate::audit::WarningObserver;
use crate::exit::{SandboxUnsupported, UsageError};
use crate::input::ValidationFailed;
use crate::pinned_data::{self, PinnedData};
use crate::plan_report;
use crate::registry::{self, Registry, describe_missing};
use crate::run_settings::RunSettings;
use crate::run_setup::RunSetup;
use crate::run_store::RunStore;

/// Maximum number of integrations that are planned concurrently. The number is low because each integration processes
/// several shards concurrently.
const MAX_CONCURRENT: usize = 4;

/// The context that the runs of a plan share.
pub struct Planner {
    /// The data to plan.
    pub head: Arc<PinnedData>,
    /// The data with which the head is compared.
    pub base: PinnedData,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// The settings of the dry runs.
    pub settings: RunSettings,
    /// Receives warnings.
    pub messages: Arc<dyn MessageSink>,
    /// The current activities of the runs.
    pub activities: Activities,
    /// The signal that ends all runs.
    pub stop: ShutdownSignal,
}

impl Planner {
    /// Creates a report without runs. The report notes if the head lacks commits of the base; `folder` is the data
    /// repo.
    pub fn empty_report(&self, folder: &Path) -> PlanReport {
        let mut report = PlanReport::new(Mode::DryRun, Some(revision(&self.base)), revision(&self.head));
        report.notes.extend(self.missing_commits(folder));
        report
    }

    /// The note about commits of the base that the head lacks: their changes are shown as reverted.
    fn missing_commits(&self, folder: &Path) -> Option<String> {
        let (base, head) = (self.base.source.commit()?, self.head.source.commit()?);
        match repo::missing_commits(folder, base, head) {
            Ok(0) => None,
            Ok(count) => {
                let (commits, verb) = (pluralize(usize::try_from(count).unwrap_or(usize::MAX), "commit"), if count == 1 { "is" } else { "are" });
                Some(format!(
                    "{commits} of the base {verb} not in the head: their changes are shown as reverted; merge the base or rebase, or plan the merge result"
                ))
            }
            Err(GitError::Failed { .. }) => Some(
                "the local history is incomplete: if the head lacks commits of the base, their changes are shown as reverted"
                    .to_owned(),
            ),
            // The commits of the bundles are not in this repository.
            Err(_) => None,
        }
    }

    /// Adds the integrations that only the base defines: after the change, they no longer run, and their objects
    /// stay.
    pub fn add_undefined(
        &self,
        create: impl Fn(&str) -> anyhow::Result<Integration>,
        report: &mut PlanReport,
    ) -> anyhow::Result<()> {
        let head: BTreeSet<String> =
            definition::all(&*self.head.source)?.into_iter().map(|(name, _)| name).collect();
        for (name, definition) in definition::all(&*self.base.source)? {
            if head.contains(&name) {
                continue;
            }
            let counted = create(&name)
                .ok()
                .and_then(|integration| qontract_runtime::count_declared(&integration, &self.base.source));
            let at = Location::parse(&self.base.file(&definition.place));
            report.add(plan_report::undefined(&name, counted, at));
        }
        Ok(())
    }

    /// Plans all integrations, a limited number of them concurrently. A failure of one integration does not
    /// stop the others.
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

    /// Adds the results of the runs to the report and stores the records of the runs. `unready` contains the
    /// integrations that cannot run on this machine, with the reasons.
    pub async fn add_results(
        &self,
        results: Vec<(String, anyhow::Result<RunRecord>)>,
        unready: &BTreeMap<String, String>,
        report: &mut PlanReport,
    ) {
        for (integration, planned) in results {
            match (planned, unready.get(&integration)) {
                // The record is not stored, because the run had nothing to do and its record would displace other
                // records.
                (Ok(record), _) if record.ended == RunEnd::EarlyExit => plan_report::add(report, &record),
                (Ok(_), Some(reason)) => {
                    report.add_unchecked(UncheckedIntegration { integration, reason: reason.clone() });
                }
                (Ok(record), None) => {
                    if let Err(error) = self.runs.store(&record).await {
                        self.messages.note(&format!("warning: cannot store the run record: {error:#}"));
                    }
                    plan_report::add(report, &record);
                }
                (Err(error), _) => report.add(plan_report::unstarted(&integration, &error)),
            }
        }
        report.note_objects_removed_with_namespaces();
    }

    async fn plan(&self, integration: &Integration) -> anyhow::Result<RunRecord> {
        let Self { head, base, runs, settings, .. } = self;
        let options = RunSettings::with_variables(settings.options.clone(), integration)?;
        let settings = &RunSettings { options, ..settings.clone() };
        let observer = Arc::new(WarningObserver::new(Arc::clone(&self.messages)));
        let mut started = RunSetup { integration, settings, head, runs, observer }.start().await?;
        let request = &mut started.request;
        request.base = Some(Arc::clone(&base.source));
        request.shutdown = self.stop.clone();
        let outcome = self.activities.scope(qontract_runtime::run(integration, &started.request)).await;
        let mut record = started.record(&outcome, head, Some(base));
        if record.ended != RunEnd::EarlyExit {
            record.warnings.extend(started.store_inputs());
        }
        Ok(record)
    }
}

/// Creates the report about invalid data. `head` is set if only the base is invalid.
pub fn invalid_report(side: DataSide, failed: &ValidationFailed, head: Option<&PinnedData>) -> PlanReport {
    let ValidationFailed { findings, repo, commit, sha, .. } = failed;
    let invalid = RevisionInfo {
        sha256: sha.clone().unwrap_or_default(),
        commit: Some(commit.clone()).filter(|commit| !commit.is_empty()),
        modified: !commit.is_empty() && pinned_data::is_modified(repo, commit),
    };
    let report = match head {
        Some(head) => PlanReport::new(Mode::DryRun, Some(invalid), revision(head)),
        None => PlanReport::new(Mode::DryRun, None, invalid),
    };
    report.with_invalid(InvalidData::new(side, findings, repo))
}

/// The names of the integrations to plan: `requested`, or those that the data defines and that are available.
pub fn integrations_to_plan(
    requested: &[String],
    integrations: Registry,
    config: &Config,
    head: &PinnedData,
) -> anyhow::Result<Vec<String>> {
    let is_available = |name: &String| integrations.has(name, config);
    if let Some(unknown) = requested.iter().find(|name| !is_available(name)) {
        return Err(integrations.unknown(unknown, config));
    }
    let mut names: Vec<String> = if requested.is_empty() {
        definition::all(&*head.source)?.into_iter().map(|(name, _)| name).filter(is_available).collect()
    } else {
        requested.to_vec()
    };
    names.sort();
    names.dedup();
    Ok(names)
}

/// The integrations of a plan.
#[derive(Default)]
pub struct PlannedIntegrations {
    /// The integrations to run.
    pub integrations: Vec<Integration>,
    /// The integrations in `integrations` for which this machine lacks a requirement, with the reasons. They run only
    /// to determine whether the change affects them.
    unready: BTreeMap<String, Fault>,
}

impl PlannedIntegrations {
    /// Creates the integrations. Integrations that cannot be created are added to the report. If the command line
    /// names an integration that cannot run, an error is returned.
    pub fn create(
        names: Vec<String>,
        create: impl Fn(&str) -> anyhow::Result<Integration>,
        requested: &[String],
        report: &mut PlanReport,
    ) -> anyhow::Result<Self> {
        let mut planned = Self::default();
        for name in names {
            match create(&name) {
                Ok(integration) => {
                    if let Some(fault) = registry::unavailable(&integration)
                        && requested.is_empty()
                    {
                        planned.unready.insert(name, fault);
                    }
                    planned.integrations.push(integration);
                }
                // No integration can be planned without targets, so the error is reported only once.
                Err(error) if error.is::<UsageError>() => return Err(error),
                Err(error) if error.is::<SandboxUnsupported>() => {
                    let reason = error.to_string();
                    report.add_unchecked(UncheckedIntegration { integration: name, reason });
                }
                Err(error) => report.add(plan_report::unstarted(&name, &error)),
            }
        }
        Ok(planned)
    }

    /// The reasons why integrations cannot run on this machine.
    pub fn unready(&self) -> BTreeMap<String, String> {
        self.unready.iter().map(|(name, fault)| (name.clone(), describe_missing(fault))).collect()
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

/// The ledger against which the removal budgets of a plan are checked. A machine that only plans, such as a
/// CI runner, has no ledger: the plan then assumes that nothing was removed before, and a warning is printed.
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
