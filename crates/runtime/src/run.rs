//! The runner: executes one run of one integration, from one or two pinned bundles to an outcome.
//!
//! **Invariant:** a dry run and a real run execute the same code; a dry run has no write permit, so it ends
//! before the first step is applied.

mod apply;
mod approvals;
mod deadline;
mod preflight;
mod redaction;
mod rehearsal;
mod reservation;
mod round;
mod selection;
mod unresolved;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use qontract_access::{Mode, Permits};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::affected::BundlePair;
use crate::audit::{Audit, NoAudit};
use crate::data::{BundleReader, Data, QueryPolicy};
use crate::fault::Fault;
use crate::function::FunctionContext;
use crate::guard::{Budgets, Date, Ledger, MemoryLedger, ProtectedKinds};
use crate::integration::{Integration, IntegrationForm};
use crate::key::ShardKey;
use crate::meta::{Flag, IntegrationLimits};
use crate::options::Options;
use crate::outcome::{Decision, PinnedBundle, RunEnd, RunOutcome, ShardOutcome, ShardState};
use crate::reconcile_loop::ShutdownSignal;
use crate::slot::Slot;

pub(crate) use apply::{result_of, until_forced};
pub(crate) use deadline::with_deadline;
pub(crate) use reservation::Reservations;

/// Timeout and concurrency limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Timeout of one phase of one shard; of the whole run in the function form.
    pub phase_timeout: Duration,
    /// Timeout of applying one step.
    pub step_timeout: Duration,
    /// Time that a step in progress needs to end after a shutdown request, if that is longer than usual.
    pub shutdown_timeout: Duration,
    /// Maximum number of shards that are processed concurrently.
    pub max_shards: usize,
    /// Maximum number of groups that are applied concurrently, per stage of one shard.
    pub max_groups: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        let timeout = Duration::from_mins(10);
        Self {
            phase_timeout: timeout,
            step_timeout: timeout,
            shutdown_timeout: Duration::ZERO,
            max_shards: 10,
            max_groups: 8,
        }
    }
}

/// Whether changes that create an object show all of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// No.
    #[default]
    Hidden,
    /// Yes.
    Shown,
}

/// The input of a run.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options that callers set by name")]
pub struct RunRequest {
    /// The name of the run.
    pub run: String,
    /// Whether the run may write to targets.
    pub mode: Mode,
    /// The data to reconcile.
    pub head: Arc<dyn BundleReader>,
    /// The data before a proposed change, if two bundles are compared.
    pub base: Option<Arc<dyn BundleReader>>,
    /// The integration's flags.
    pub options: Options,
    /// The shard slot of this process.
    pub slot: Slot,
    /// Whether to run only shards that the change affects.
    pub only_affected: bool,
    /// Whether to run the integration even if the change does not affect it.
    pub include_unaffected: bool,
    /// Whether a flag that selects a nonexistent shard is an error instead of a warning.
    pub strict_selectors: bool,
    /// Whether to enforce the allow-list of schemas.
    pub validate_schemas: bool,
    /// Whether to contact target addresses that are new or changed in head.
    pub trust_head: bool,
    /// Whether changes that create an object show all of its fields.
    pub bodies: Bodies,
    /// Kinds whose removal always needs an approval.
    pub protected: ProtectedKinds,
    /// The removal budgets.
    pub budgets: Budgets,
    /// The ledger in which removals are reserved.
    pub ledger: Arc<dyn Ledger>,
    /// The start time of the run.
    pub now: Timestamp,
    /// The date of the run, for approvals and for declarations that expire.
    pub today: Date,
    /// Timeout and concurrency limits.
    pub limits: RunLimits,
    /// Waits for rollouts, at most for this time; without it, rollouts are only reported.
    pub await_rollouts: Option<Duration>,
    /// Changes when newer data is available, which ends waiting: the next run continues with that data.
    pub newer_data: Option<watch::Receiver<u64>>,
    /// The shutdown signal. Once requested, reads end immediately and no further step starts; steps in
    /// progress are finished, or abandoned when the shutdown is forced.
    pub shutdown: ShutdownSignal,
    /// Receives every write as it happens.
    pub audit: Arc<dyn Audit>,
}

impl RunLimits {
    /// Limits the number of concurrent shards, and the concurrent groups of one shard to the same number.
    #[must_use]
    pub fn with_concurrency(self, shards: usize) -> Self {
        let shards = shards.max(1);
        Self { max_shards: shards, max_groups: self.max_groups.min(shards), ..self }
    }
}

impl RunLimits {
    /// These limits, with those that the integration sets for itself. The number of concurrent shards is only
    /// ever lowered.
    #[must_use]
    pub fn for_integration(self, own: &IntegrationLimits) -> Self {
        let IntegrationLimits { phase_timeout, step_timeout, max_shards, shutdown_timeout } = *own;
        let limits = Self {
            phase_timeout: phase_timeout.unwrap_or(self.phase_timeout),
            step_timeout: step_timeout.unwrap_or(self.step_timeout),
            shutdown_timeout: shutdown_timeout.unwrap_or(self.shutdown_timeout),
            ..self
        };
        match max_shards {
            Some(width) if width < limits.max_shards => limits.with_concurrency(width),
            Some(_) | None => limits,
        }
    }
}

impl RunRequest {
    /// Sets the integration's options, and the shard concurrency if an option names it.
    pub fn set_options(&mut self, options: Options, flags: &[Flag]) {
        if let Some(concurrency) = options.concurrency(flags) {
            self.limits = self.limits.with_concurrency(concurrency);
        }
        self.options = options;
    }

    /// A run on `head`, with defaults for all other fields. Protected kinds have no default, so that no
    /// caller can forget them.
    pub fn new(
        run: impl Into<String>,
        mode: Mode,
        head: Arc<dyn BundleReader>,
        today: Date,
        protected: ProtectedKinds,
    ) -> Self {
        Self {
            run: run.into(),
            mode,
            head,
            base: None,
            options: Options::default(),
            slot: Slot::default(),
            only_affected: true,
            include_unaffected: false,
            strict_selectors: false,
            validate_schemas: true,
            trust_head: false,
            bodies: Bodies::default(),
            protected,
            budgets: Budgets::default(),
            ledger: Arc::new(MemoryLedger::default()),
            now: today.to_zoned(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |start| start.timestamp()),
            today,
            limits: RunLimits::default(),
            await_rollouts: None,
            newer_data: None,
            shutdown: ShutdownSignal::never(),
            audit: Arc::new(NoAudit),
        }
    }

    /// The time of the run this long after its start. It follows the monotonic clock, so that a step of the
    /// system clock does not affect a run.
    pub(crate) fn time_after(&self, elapsed: Duration) -> Timestamp {
        self.now.checked_add(elapsed).unwrap_or(self.now)
    }

    /// Whether this is a dry run of a proposed change, in which addresses and secrets that only head names
    /// are not used.
    pub(crate) fn distrusts_head(&self) -> bool {
        self.mode == Mode::DryRun && self.base.is_some() && !self.trust_head
    }

    /// The two bundles to compare. Head uses the handle of the run, so that its reads are logged.
    fn pair(&self, integration: &Integration, head: &Data) -> Option<BundlePair> {
        let base = Data::new(Arc::clone(self.base.as_ref()?), QueryPolicy::of(integration.meta()));
        Some(BundlePair { base, head: head.clone() })
    }
}

/// Runs an integration.
///
/// ```
/// # use std::sync::Arc;
/// use jiff::civil::date;
/// use qontract_access::Mode;
/// use qontract_runtime::guard::ProtectedKinds;
/// use qontract_runtime::{RunEnd, RunRequest, run};
/// # use qontract_runtime::*;
/// # struct Nothing { meta: IntegrationMeta }
/// # impl Function for Nothing {
/// #     fn meta(&self) -> &IntegrationMeta { &self.meta }
/// #     fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> { Ok(None) }
/// #     async fn run(&self, _: &FunctionContext<'_>) -> Result<(), Fault> { Ok(()) }
/// # }
/// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
/// #     "graphql": [
/// #         {"name": "Query", "fields": [
/// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
/// #         {"name": "Team", "fields": [{"name": "name", "type": "string"}]}],
/// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core"}}}"#;
/// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
/// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
/// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
/// # let integration = Integration::function(Nothing { meta: IntegrationMeta::new("groups", "Does nothing") });
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let protected = ProtectedKinds::new(["Namespace"]);
/// let mut request = RunRequest::new("run-1", Mode::DryRun, bundle, date(2026, 1, 1), protected);
/// let outcome = run(&integration, &request).await;
/// assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::NotDefined, 4));
/// assert_eq!(outcome.faults[0].text, "the data does not define the integration `groups`");
///
/// request.validate_schemas = false;
/// let outcome = run(&integration, &request).await;
/// assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Ok, 0));
/// assert_eq!(outcome.applied(), 0);
/// # });
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[expect(clippy::disallowed_methods, reason = "the runner creates the permits, once per run")]
pub async fn run(integration: &Integration, request: &RunRequest) -> RunOutcome {
    let mut outcome = begin(integration, request);
    let permits = qontract_access::mint(request.mode);
    let data = match preflight::permitted_data(integration, request, &mut outcome) {
        Ok(data) => data,
        Err(fault) => {
            outcome.faults.push(fault);
            outcome.conclude(request.shutdown.interruption());
            return outcome;
        }
    };
    let performed = execute(integration, request, &permits, &data, &mut outcome).await;
    outcome.query_log = data.query_log();
    // A forbidden schema is reported only once, with a hint. The end state of the run reports a shutdown.
    let failed =
        performed.err().filter(|fault| outcome.query_log.forbidden.is_empty() && !fault.is_interrupted);
    outcome.faults.extend(failed);
    selection::report_schemas(integration, request, &mut outcome);
    outcome.conclude(request.shutdown.interruption());
    outcome
}

fn begin(integration: &Integration, request: &RunRequest) -> RunOutcome {
    let pinned = |source: &dyn BundleReader| PinnedBundle {
        sha: source.sha().to_owned(),
        commit: source.commit().map(str::to_owned),
    };
    RunOutcome {
        run: request.run.clone(),
        integration: integration.meta().name.clone(),
        mode: request.mode,
        now: request.now,
        head: pinned(&*request.head),
        base: request.base.as_deref().map(pinned),
        options: request.options.clone(),
        slot: request.slot,
        decisions: Vec::new(),
        causes: Vec::new(),
        renamed: BTreeMap::new(),
        shards: BTreeMap::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
        query_log: crate::data::QueryLog::default(),
        approval: None,
        unplanned_holds: 0,
        ended: RunEnd::Ok,
        interruption: None,
    }
}

async fn execute(
    integration: &Integration,
    request: &RunRequest,
    permits: &Permits,
    data: &Data,
    outcome: &mut RunOutcome,
) -> Result<(), Fault> {
    let started = Instant::now();
    let limits = request.limits.for_integration(&integration.meta().limits);
    let base = request.base.as_ref().map(|base| data.of_bundle(Arc::clone(base)));
    let Some(work) = selection::select_shards(integration, request, data, outcome)? else { return Ok(()) };
    let guard = approvals::removal_guard(integration, request, &work)?;
    match integration.form() {
        IntegrationForm::Staged(staged) => {
            let rounds = round::RoundRunner {
                started,
                limits,
                base: base.as_ref(),
                integration: &**staged,
                request,
                data,
                permits,
                guard: &guard,
            };
            rounds.run_rounds(work, outcome).await;
            approvals::report_unplanned_holds(&guard, request, permits, outcome).await;
        }
        IntegrationForm::Function(_) if !request.slot.contains(&ShardKey::default().slot_value()) => {
            let text = "it runs in another slot: the integration is not sharded".to_owned();
            outcome.decisions.push(Decision { text, places: Vec::new() });
        }
        IntegrationForm::Function(function) => {
            let cx = FunctionContext::new(data, base.as_ref(), request, permits, &guard).with_limits(limits);
            let ran = match function.ready() {
                Ok(()) => tokio::select! {
                    biased;
                    ran = with_deadline(limits.phase_timeout, "run", function.run(&cx)) => ran,
                    () = cx.interrupted() => Ok(()),
                },
                Err(fault) => Err(fault),
            };
            let did = cx.finish();
            let mut shard = ShardOutcome::new(ShardState::Ran);
            shard.rounds = 1;
            shard.removed = did.removed;
            (shard.changes, shard.held) = (did.changes, did.held);
            (shard.faults, shard.applied) = (did.faults, did.applied);
            // The faults already contain a change that was abandoned because of a shutdown.
            shard.faults.extend(ran.err().filter(|fault| !fault.is_interrupted));
            outcome.shards.insert(ShardKey::default(), shard);
        }
    }
    approvals::report_approvals(&guard, request, outcome);
    Ok(())
}
