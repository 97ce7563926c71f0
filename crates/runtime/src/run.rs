//! The runner: executes one run of one integration, from one or two pinned bundles to an outcome.
//!
//! **Invariant:** a dry run and a real run execute the same code; a dry run has no write permit, so it ends
//! before the first step is applied.

mod apply;
mod approvals;
mod early_exit;
mod orphaned_shard;
mod planned_shard;
mod preflight;
mod printing;
mod rehearsal;
mod renamed_target;
mod round;
mod selection;
mod shard_lease;
mod unplanned;
mod unresolved;
mod waiting;

pub use rehearsal::NOT_VALIDATED;

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_access::{Mode, Permits, WriteBounds};
use tokio::time::Instant;

use crate::data::{BundleReader, Data, QueryLog};
use crate::deadline::with_deadline;
use crate::fault::Fault;
use crate::flag::Flag;
use crate::function::FunctionContext;
use crate::integration::{Integration, IntegrationForm};
use crate::key::ShardKey;
use crate::lazy_lease::LazyLease;
use crate::outcome::{ApprovalForm, Decision, PinnedBundle, RunEnd, RunOutcome, ShardOutcome, ShardState};
use crate::redaction;
use crate::reservation::Reservations;
use crate::run_request::RunRequest;
use crate::slot::Slot;

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
    let printing;
    let request = if request.options.prints(&integration.meta().flags) {
        // A run that prints gets no write permit, regardless of its mode.
        printing = RunRequest { mode: Mode::DryRun, ..request.clone() };
        &printing
    } else {
        request
    };
    let mut outcome = begin(integration, request);
    if let Some(missing) = request.options.missing(&integration.meta().flags) {
        outcome.faults.push(missing_argument(missing));
        outcome.ended = RunEnd::Usage;
        return outcome;
    }
    let permits = qontract_access::mint_within(request.mode, request.write_bounds.clone());
    let preflight = match preflight::check(integration, request, &mut outcome) {
        Ok(preflight) => preflight,
        Err(fault) => {
            outcome.faults.push(fault);
            outcome.conclude(request.shutdown.interruption());
            return outcome;
        }
    };
    let performed = execute(integration, request, &permits, &preflight.data, &mut outcome).await;
    outcome.query_log = preflight.data.query_log();
    // A forbidden schema is reported only once, with a hint. A shutdown is reported by the end state of the
    // run.
    let failed =
        performed.err().filter(|fault| outcome.query_log.forbidden.is_empty() && !fault.is_interrupted);
    outcome.faults.extend(failed);
    selection::report_schemas(integration, &preflight, &mut outcome);
    outcome.conclude(request.shutdown.interruption());
    outcome
}

/// The fault for a run without a required argument.
fn missing_argument(argument: &Flag) -> Fault {
    let variable = argument.variable.map(|name| format!(" and `${name}` is not set")).unwrap_or_default();
    Fault::operator(format!("the argument `{}` is missing{variable}", argument.spelling()))
}

/// The decisions that follow from the request alone: the bounds of the run's writes, and the flags that take their
/// values from the environment.
fn request_decisions(request: &RunRequest) -> Vec<Decision> {
    let bounds = request.write_bounds.iter().map(|bounds| bounds_decision(bounds));
    let variables = request.options.variables().map(|(flag, variable)| Decision {
        text: format!("`{flag}` comes from `${variable}`"),
        places: Vec::new(),
    });
    let only = request.only_shards.iter().map(|only| {
        let keys: Vec<String> = only.iter().map(|key| format!("`{key}`")).collect();
        Decision { text: format!("only these shards run: {}", keys.join(", ")), places: Vec::new() }
    });
    bounds.chain(variables).chain(only).collect()
}

/// The decision that records the bounds of a run's writes.
fn bounds_decision(bounds: &WriteBounds) -> Decision {
    Decision { text: format!("writes only {bounds}"), places: Vec::new() }
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
        only_shards: request.only_shards.clone(),
        decisions: request_decisions(request),
        causes: Vec::new(),
        renamed: BTreeMap::new(),
        shards: BTreeMap::new(),
        released: Vec::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
        query_log: QueryLog::default(),
        approval: None,
        approval_form: ApprovalForm::default(),
        unplanned_holds: 0,
        ended: RunEnd::Ok,
        interruption: None,
    }
}

/// The key of the lease of a foreign command. The key names the slot of the process, because the command selects its
/// shards itself.
fn slot_key(slot: Slot) -> ShardKey {
    if slot == Slot::default() {
        return ShardKey::default();
    }
    ShardKey::new([("slot", &*format!("{}/{}", slot.index(), slot.count()))])
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
    if let Some(observer) = &request.selection {
        observer.selected(&work.processed_keys());
    }
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
                reservations: Reservations::new(&guard, request, permits),
            };
            if request.options.prints(&integration.meta().flags) {
                rounds.print_shards(work, outcome).await;
                return Ok(());
            }
            rounds.run_rounds(work, outcome).await;
            outcome.warnings.extend(rounds.reservations.warning());
            if !request.options.restrict(&integration.meta().flags) {
                approvals::report_unplanned_holds(&guard, request, permits, outcome).await;
            }
        }
        IntegrationForm::Function(_) | IntegrationForm::Foreign(_)
            if request.options.prints(&integration.meta().flags) =>
        {
            return Err(Fault::internal("only an integration with shards prints its desired state"));
        }
        IntegrationForm::Function(_) if !request.slot.contains(&ShardKey::default().slot_value()) => {
            let text = "it runs in another slot: the integration is not sharded".to_owned();
            outcome.decisions.push(Decision { text, places: Vec::new() });
        }
        IntegrationForm::Function(function) => {
            let lease = LazyLease::new(&integration.meta().name, ShardKey::default(), request, permits);
            let cx = FunctionContext::new(data, base.as_ref(), request, permits, &guard)
                .with_limits(limits)
                .with_lease(&lease);
            let ran = match function.ready() {
                Ok(()) => tokio::select! {
                    biased;
                    ran = with_deadline(limits.phase_timeout, "run", function.run(&cx)) => ran,
                    () = cx.interrupted() => Ok(()),
                    never = lease.maintain() => match never {},
                },
                Err(fault) => Err(fault),
            };
            let did = cx.finish();
            lease.release(&mut outcome.warnings).await;
            let mut shard = ShardOutcome::new(ShardState::Ran);
            shard.rounds = 1;
            shard.removed = did.removed;
            (shard.changes, shard.held) = (did.changes, did.held);
            (shard.faults, shard.applied) = (did.faults, did.applied);
            // A change that was abandoned because of a shutdown is already one of the faults.
            shard.faults.extend(ran.err().filter(|fault| !fault.is_interrupted));
            outcome.shards.insert(ShardKey::default(), shard);
        }
        IntegrationForm::Foreign(foreign) => {
            let lease = LazyLease::new(&integration.meta().name, slot_key(request.slot), request, permits);
            let ran = tokio::select! {
                biased;
                ran = foreign.run(request, &lease) => ran,
                never = lease.maintain() => match never {},
            };
            lease.release(&mut outcome.warnings).await;
            outcome.shards.insert(ShardKey::default(), ran);
        }
    }
    approvals::report_approvals(&guard, integration, request, outcome);
    Ok(())
}
