//! The runner: executes one run of one integration, from one or two pinned bundles to an outcome.
//!
//! **Invariant:** a dry run and a real run take the same path; a dry run has no write permit, so it ends
//! before the first step is applied.

mod affairs;
mod apply;
mod prepare;
mod redact;
mod rehearse;
mod reserve;
mod round;
mod unresolved;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use qontract_access::{Mode, Permits};

use crate::about::Flag;
use crate::affected::Pair;
use crate::audit::{Audit, NoAudit};
use crate::data::{Data, Source, Terms};
use crate::fault::Fault;
use crate::function::Cx;
use crate::guard::{Budgets, Date, Ledger, MemoryLedger, ProtectedKinds};
use crate::key::ShardKey;
use crate::looping::Stop;
use crate::options::Options;
use crate::outcome::{Decision, Ended, Outcome, Pinned, ShardOutcome, ShardState};
use crate::room::{Form, Room};
use crate::slot::Slot;

pub(crate) use apply::{result_of, until_forced};
pub(crate) use reserve::Reservations;

/// Timeout and concurrency limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Timeout of one phase of one shard.
    pub phase: Duration,
    /// Maximum number of shards that are processed concurrently.
    pub shards: usize,
    /// Maximum number of groups that are applied concurrently, per stage of one shard.
    pub groups: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { phase: Duration::from_mins(10), shards: 10, groups: 8 }
    }
}

/// Whether changes that create something show all of its fields.
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
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own that callers make by name")]
pub struct Request {
    /// The name of the run.
    pub run: String,
    /// Whether the run may write to targets.
    pub mode: Mode,
    /// The data to reconcile.
    pub head: Arc<dyn Source>,
    /// The data before a proposed change.
    pub base: Option<Arc<dyn Source>>,
    /// The integration's flags.
    pub options: Options,
    /// The hash slot of this process.
    pub slot: Slot,
    /// Whether to run only shards that the change affects.
    pub only_affected: bool,
    /// Whether to run the integration even if the change does not affect it.
    pub even_unaffected: bool,
    /// Whether a flag that selects a shard that does not exist is an error; otherwise it is a warning.
    pub strict_selectors: bool,
    /// Whether to enforce the allow-list of schemas.
    pub validate_schemas: bool,
    /// Whether to contact target addresses that are new or changed in head.
    pub trust_head: bool,
    /// Whether changes that create something show all of its fields.
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
    pub limits: Limits,
    /// The shutdown signal. Once requested, reads end immediately and no further step starts; steps in
    /// progress are finished, or abandoned when the shutdown is forced.
    pub stop: Stop,
    /// Receives every write as it happens.
    pub audit: Arc<dyn Audit>,
}

impl Limits {
    /// Limits the number of concurrent shards, and the concurrent groups of one shard to the same number.
    #[must_use]
    pub fn with_concurrency(self, shards: usize) -> Self {
        let shards = shards.max(1);
        Self { shards, groups: self.groups.min(shards), ..self }
    }
}

impl Request {
    /// Sets the integration's options, and the shard concurrency if an option names it.
    pub fn set_options(&mut self, options: Options, flags: &[Flag]) {
        if let Some(concurrency) = options.concurrency(flags) {
            self.limits = self.limits.with_concurrency(concurrency);
        }
        self.options = options;
    }

    /// A run on `head` with defaults for everything else. Protected kinds have no default: no caller may
    /// forget them.
    pub fn new(
        run: impl Into<String>,
        mode: Mode,
        head: Arc<dyn Source>,
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
            even_unaffected: false,
            strict_selectors: false,
            validate_schemas: true,
            trust_head: false,
            bodies: Bodies::default(),
            protected,
            budgets: Budgets::default(),
            ledger: Arc::new(MemoryLedger::default()),
            now: today.to_zoned(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |start| start.timestamp()),
            today,
            limits: Limits::default(),
            stop: Stop::never(),
            audit: Arc::new(NoAudit),
        }
    }

    /// Whether this is a dry run of a proposed change: addresses and secrets that only head names are not
    /// used.
    pub(crate) fn distrusts_head(&self) -> bool {
        self.mode == Mode::DryRun && self.base.is_some() && !self.trust_head
    }

    /// The two bundles to compare. Head uses the handle of the run, so that its reads are logged.
    fn pair(&self, integration: &Room, head: &Data) -> Option<Pair> {
        let base = Data::new(Arc::clone(self.base.as_ref()?), Terms::of(integration.about()));
        Some(Pair { base, head: head.clone() })
    }
}

/// Runs an integration.
#[expect(clippy::disallowed_methods, reason = "the runner mints, once per run")]
pub async fn run(integration: &Room, request: &Request) -> Outcome {
    let mut outcome = begin(integration, request);
    let permits = qontract_access::mint(request.mode);
    let data = match prepare::prepare(integration, request, &mut outcome) {
        Ok(data) => data,
        Err(fault) => {
            outcome.faults.push(fault);
            outcome.conclude(request.stop.interruption());
            return outcome;
        }
    };
    let performed = perform(integration, request, &permits, &data, &mut outcome).await;
    outcome.asked = data.asked();
    // A forbidden schema is reported once, with a hint; a shutdown is reported by the end state of the run.
    let failed = performed.err().filter(|fault| outcome.asked.forbidden.is_empty() && !fault.is_interrupted);
    outcome.faults.extend(failed);
    affairs::report_asked(integration, request, &mut outcome);
    outcome.conclude(request.stop.interruption());
    outcome
}

fn begin(integration: &Room, request: &Request) -> Outcome {
    let pinned = |source: &dyn Source| Pinned {
        sha: source.sha().to_owned(),
        commit: source.commit().map(str::to_owned),
    };
    Outcome {
        run: request.run.clone(),
        integration: integration.about().name.clone(),
        mode: request.mode,
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
        asked: crate::data::Asked::default(),
        approval: None,
        ended: Ended::Ok,
        interruption: None,
    }
}

async fn perform(
    integration: &Room,
    request: &Request,
    permits: &Permits,
    data: &Data,
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    let Some(work) = affairs::decide(integration, request, data, outcome)? else { return Ok(()) };
    let guard = affairs::guard(integration, request, &work)?;
    match integration.form() {
        Form::Staged(staged) => {
            let crew = round::Crew { integration: &**staged, request, data, permits, guard: &guard };
            crew.work(work, outcome).await;
        }
        Form::Function(_) if !request.slot.has(&ShardKey::default().slot_value()) => {
            let text = "another slot runs it: its work is not split into shards".to_owned();
            outcome.decisions.push(Decision { text, places: Vec::new() });
        }
        Form::Function(function) => {
            let cx = Cx::new(data, request, permits, &guard);
            let ran = match function.ready() {
                Ok(()) => tokio::select! {
                    biased;
                    ran = round::guarded(request.limits.phase, "run", function.run(&cx)) => ran,
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
            // A change that a shutdown abandoned is among the faults already.
            shard.faults.extend(ran.err().filter(|fault| !fault.is_interrupted));
            outcome.shards.insert(ShardKey::default(), shard);
        }
    }
    affairs::approval(&guard, request, outcome);
    Ok(())
}
