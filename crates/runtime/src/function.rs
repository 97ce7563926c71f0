//! The function form, for validators and small jobs: a single `run` function that makes all writes through
//! [`FunctionContext::apply`].

use std::future::Future;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use qontract_access::{Permits, ReadPermit};
use tokio::sync::RwLock;

use crate::audit::{IntendedRound, WriteRecord};
use crate::contract::WriteContext;
use crate::data::Data;
use crate::deadline::with_deadline;
use crate::fault::Fault;
use crate::guard::{JudgedShard, Proposal, RemovalGuard, ShardFacts, ShardPlans};
use crate::key::ShardKey;
use crate::lazy_lease::LazyLease;
use crate::meta::IntegrationMeta;
use crate::options::Options;
use crate::plan::{Change, HeldPlanChange, Plan, set_result};
use crate::reservation::Reservations;
use crate::run_request::{RunLimits, RunRequest};
use crate::state::DeclaredState;
use crate::step_effect::{result_of, until_forced};

/// The early-exit state of a function: one shard, or several.
pub type FunctionState = DeclaredState<serde_json::Value, (), serde_json::Value>;

/// An integration of the function form.
///
/// An example that reports every team whose name is not lowercase:
///
/// ```
/// # use std::sync::Arc;
/// # use qontract_access::Mode;
/// # use qontract_runtime::guard::ProtectedKinds;
/// # use qontract_runtime::state::{DeclaredState, Shard};
/// # use qontract_runtime::*;
/// # #[derive(serde::Deserialize)]
/// # struct Teams { teams: Vec<Team> }
/// # #[derive(serde::Deserialize)]
/// # struct Team { name: String }
/// # impl Operation for Teams {
/// #     const SOURCE: QuerySource = QuerySource::new("Teams", "query Teams { teams { name } }", &[]);
/// # }
/// # struct Names { meta: IntegrationMeta }
/// impl Function for Names {
/// #   fn meta(&self) -> &IntegrationMeta { &self.meta }
///     fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
///         let mut declared = DeclaredState::new(serde_json::Value::Null);
///         for Team { name } in data.query::<Teams>()?.data.teams {
///             declared.add(ShardKey::new([("team", &*name)]), Shard::new((), name.into(), None));
///         }
///         Ok(Some(declared))
///     }
///     async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
///         let answer = cx.data.query::<Teams>()?;
///         for (index, Team { name }) in answer.data.teams.iter().enumerate() {
///             if *name != name.to_lowercase() {
///                 let place = answer.places.of(&format!("/teams/{index}"));
///                 cx.report_fault(Fault::author(format!("the name `{name}` is not lowercase")).at(place));
///             }
///         }
///         Ok(())
///     }
/// }
///
/// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
/// #     "graphql": [
/// #         {"name": "Query", "fields": [
/// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
/// #         {"name": "Team", "fields": [{"name": "name", "type": "string"}]}],
/// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "Core"}}}"#;
/// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
/// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
/// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
/// # let request = |mode| {
/// #     let today = jiff::civil::date(2026, 1, 1);
/// #     let request = RunRequest::new("run", mode, Arc::clone(&bundle), today, ProtectedKinds::default());
/// #     RunRequest { validate_schemas: false, ..request }
/// # };
/// # let meta = IntegrationMeta::new("names", "Checks the names of teams").query::<Teams>();
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let outcome = run(&Integration::function(Names { meta }), &request(Mode::DryRun)).await;
/// let fault = outcome.all_faults().next().expect("the name is `Core`");
/// assert_eq!(fault.text, "the name `Core` is not lowercase");
/// assert_eq!(fault.places, [SourceLocation::datafile("/core.yml", "")]);
/// assert_eq!(outcome.ended, RunEnd::Failed);
/// # });
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait Function: Send + Sync + 'static {
    /// The integration's metadata.
    fn meta(&self) -> &IntegrationMeta;

    /// The part of the data that determines the outcome, for early exit; `None` if the outcome also depends on other
    /// inputs.
    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault>;

    /// Checks the prerequisites of the integration on this machine, such as an installed tool. If one is
    /// missing, a run ends with this fault, and `up` skips the integration.
    fn ready(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Runs the integration. Return an error only if it cannot run at all; report faults of individual
    /// objects with [`FunctionContext::report_fault`].
    fn run(&self, cx: &FunctionContext<'_>) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// The changes and faults of a function.
#[derive(Debug, Default)]
pub struct FunctionReport {
    /// The planned changes, which a real run applies.
    pub changes: Vec<Change>,
    /// Changes that a guard holds.
    pub held: Vec<HeldPlanChange>,
    /// Faults of individual objects.
    pub faults: Vec<Fault>,
    /// Number of applied changes.
    pub applied: usize,
    /// Number of objects that were removed without an approval.
    pub removed: usize,
}

/// The verdict of the guards on a change.
#[derive(Debug, Default)]
struct Verdict {
    /// Whether the change counts against the budgets.
    is_counted: bool,
    /// The change, if it is held.
    held: Option<HeldPlanChange>,
}

/// The context of a function.
pub struct FunctionContext<'r> {
    /// The data of the run.
    pub data: &'r Data,
    /// The data before a proposed change, if the run compares two bundles.
    pub base: Option<&'r Data>,
    /// The time of the run. Functions use it instead of a clock, so that a run can be replayed.
    pub now: Timestamp,
    /// The values of the integration's flags.
    pub options: &'r Options,
    permits: &'r Permits,
    guard: &'r RemovalGuard,
    reservations: Reservations<'r>,
    request: &'r RunRequest,
    limits: RunLimits,
    report: Mutex<FunctionReport>,
    /// The lease, which is acquired when the first change is applied.
    lease: Option<&'r LazyLease<'r>>,
    /// A lock that is held for reading while a change is applied.
    acting: RwLock<()>,
}

impl<'r> FunctionContext<'r> {
    pub(crate) fn new(
        data: &'r Data,
        base: Option<&'r Data>,
        request: &'r RunRequest,
        permits: &'r Permits,
        guard: &'r RemovalGuard,
    ) -> Self {
        let reservations = Reservations::new(guard, request, permits);
        Self {
            data,
            base,
            now: request.now,
            options: &request.options,
            permits,
            guard,
            reservations,
            request,
            limits: request.limits,
            report: Mutex::default(),
            lease: None,
            acting: RwLock::default(),
        }
    }

    /// Sets the limits of the integration.
    #[must_use]
    pub(crate) fn with_limits(self, limits: RunLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the lease under which changes are applied.
    #[must_use]
    pub(crate) fn with_lease(self, lease: &'r LazyLease<'r>) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// The verdict of the guards on a change. In a real run, a removal that is not held is reserved in the ledger.
    async fn judge(&self, change: &Change) -> Verdict {
        let mut verdict = Verdict::default();
        if !self.guard.removes(change) {
            return verdict;
        }
        // The number of objects in the scope is unknown, so only the absolute limits of the budgets apply.
        let mut facts =
            ShardFacts { counts: [(change.object.scope.clone(), 0)].into(), ..ShardFacts::default() };
        let mut plan = Plan::default();
        plan.add_step(change.clone(), ());
        // The plan of a function consists of one change.
        let digest = plan.digest();
        facts.plans = ShardPlans::first(digest.clone());
        let proposals = [Proposal { key: ShardKey::default(), facts, groups: plan.groups }];
        let judged = self.reservations.judge_and_reserve(&proposals).await;
        for step in judged.iter().flat_map(JudgedShard::steps) {
            verdict.is_counted = step.counted_changes().next().is_some();
            let mut mismatches = step.judged_changes().filter_map(|one| one.clearance.mismatch());
            let mismatch = mismatches.next().map(|mismatch| format!("; {mismatch}")).unwrap_or_default();
            verdict.held = step.refusal().map(|refusal| HeldPlanChange {
                change: change.clone(),
                why: format!("{}{mismatch}", refusal.why()),
                hold: refusal.hold(),
                plan: Some(digest.clone()),
                remedy: None,
            });
        }
        verdict
    }

    /// The permit for reads.
    pub fn read(&self) -> &ReadPermit {
        &self.permits.read
    }

    /// Applies a change. The change is always recorded, but it is executed only in a real run and only if no guard
    /// holds it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use futures_util::FutureExt as _;
    /// # use parking_lot::Mutex;
    /// # use qontract_access::Mode;
    /// # use qontract_runtime::guard::ProtectedKinds;
    /// # use qontract_runtime::*;
    /// # struct Announce { meta: IntegrationMeta, sent: Arc<Mutex<Vec<&'static str>>> }
    /// impl Function for Announce {
    /// #   fn meta(&self) -> &IntegrationMeta { &self.meta }
    /// #   fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> { Ok(None) }
    ///     async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
    ///         let (scope, kind, name) = (Scope::default(), "Message".to_owned(), "weekly".to_owned());
    ///         let change = Change::new(ChangeKind::Add, ObjectKey { scope, kind, name }, "send message");
    ///         let sent = Arc::clone(&self.sent);
    ///         let effect = async move { sent.lock().push("weekly"); Ok(()) };
    ///         cx.apply(change, |_write| effect.boxed()).await
    ///     }
    /// }
    ///
    /// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
    /// #     "graphql": [
    /// #         {"name": "Query", "fields": [
    /// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
    /// #         {"name": "Team", "fields": [{"name": "name", "type": "string"}]}],
    /// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core"}}}"#;
    /// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
    /// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
    /// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
    /// # let request = |mode| {
    /// #     let today = jiff::civil::date(2026, 1, 1);
    /// #     let request = RunRequest::new("run", mode, Arc::clone(&bundle), today, ProtectedKinds::default());
    /// #     RunRequest { validate_schemas: false, ..request }
    /// # };
    /// # let (meta, sent) = (IntegrationMeta::new("announce", "Sends a message"), Arc::default());
    /// let announce = Integration::function(Announce { meta, sent: Arc::clone(&sent) });
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// for (mode, expect) in [(Mode::DryRun, StepResult::Planned), (Mode::Real, StepResult::Done)] {
    ///     let outcome = run(&announce, &request(mode)).await;
    ///     assert_eq!(outcome.shards[&ShardKey::default()].changes[0].result, expect);
    /// }
    /// assert_eq!(*sent.lock(), ["weekly"], "only the real run has an effect");
    /// # });
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub async fn apply<F>(&self, change: Change, effect: F) -> Result<(), Fault>
    where
        F: for<'w> FnOnce(&'w WriteContext<'w>) -> BoxFuture<'w, Result<(), Fault>> + Send,
    {
        let interrupted = || Fault::interrupted(format!("{change} was not started: shutting down"));
        if self.permits.write.is_some() && self.request.shutdown.is_requested() {
            let fault = interrupted();
            self.lock().changes.push(change);
            return Err(fault);
        }
        let Verdict { is_counted, held } = self.judge(&change).await;
        if let Some(held) = held {
            self.lock().held.push(held);
            return Ok(());
        }
        if let Some(lease) = self.lease
            && let Err(fault) = lease.check().await
        {
            self.lock().changes.push(change);
            return Err(fault);
        }
        {
            let mut did = self.lock();
            did.removed += usize::from(is_counted);
            did.changes.push(change.clone());
        }
        let Some(permit) = &self.permits.write else { return Ok(()) };
        let _acting = self.acting.read().await;
        let RunRequest { run, audit, shutdown: stop, .. } = self.request;
        let Some(step) = stop.begin_long_step(&change.to_string(), self.limits.shutdown_timeout) else {
            return Err(interrupted());
        };
        let shard = ShardKey::default();
        let changes = std::slice::from_ref(&change);
        let round = audit.begin_round(&IntendedRound::of_change(&change)).await;
        let write = WriteContext { permit, read: &self.permits.read, run, now: self.now };
        let done = until_forced(stop, effect(&write));
        let done = with_deadline(self.limits.step_timeout, "apply", done).await;
        let failed = done.as_ref().err();
        audit.record_write(&WriteRecord { run, shard: &shard, changes, fault: failed });
        audit.end_round(round, &[Change { result: result_of(&done), ..change.clone() }]).await;
        let mut did = self.lock();
        set_result(&mut did.changes, &change, result_of(&done));
        did.applied += usize::from(done.is_ok());
        drop(did);
        if failed.is_some_and(|fault| fault.is_interrupted) {
            let text = format!("interrupted: {change} may be partially applied");
            self.report_fault(Fault::interrupted(text).at(change.place));
        } else {
            step.finish();
        }
        done
    }

    /// Waits until a shutdown is requested and no change is being applied.
    pub(crate) async fn interrupted(&self) {
        self.request.shutdown.requested().await;
        let _none = self.acting.write().await;
    }

    /// Reports a fault of an individual object; the function continues.
    pub fn report_fault(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    pub(crate) fn finish(self) -> FunctionReport {
        self.report.into_inner()
    }

    fn lock(&self) -> MutexGuard<'_, FunctionReport> {
        self.report.lock()
    }
}

/// Object-safe form of [`Function`].
pub trait DynFunction: Send + Sync {
    /// The integration's metadata.
    fn meta(&self) -> &IntegrationMeta;
    /// See [`Function::state`].
    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault>;
    /// See [`Function::ready`].
    fn ready(&self) -> Result<(), Fault>;
    /// See [`Function::run`].
    fn run<'a>(&'a self, cx: &'a FunctionContext<'_>) -> BoxFuture<'a, Result<(), Fault>>;
}

impl<F: Function> DynFunction for F {
    fn meta(&self) -> &IntegrationMeta {
        Function::meta(self)
    }

    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault> {
        Function::state(self, data, options)
    }

    fn ready(&self) -> Result<(), Fault> {
        Function::ready(self)
    }

    fn run<'a>(&'a self, cx: &'a FunctionContext<'_>) -> BoxFuture<'a, Result<(), Fault>> {
        Function::run(self, cx).boxed()
    }
}
