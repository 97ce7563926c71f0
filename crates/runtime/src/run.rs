//! The runner: one run of one integration, from two pinned bundles to an outcome.
//!
//! **Invariant:** a dry run and a real run take the same way; a dry run has no permit to write, so it ends before the
//! first step is done.

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
use crate::guard::{Budgets, Date, Ledger, MemoryLedger};
use crate::key::ShardKey;
use crate::looping::Stop;
use crate::options::Options;
use crate::outcome::{Decision, Ended, Outcome, Pinned, ShardOutcome, ShardState};
use crate::room::{Form, Room};
use crate::slot::Slot;

pub(crate) use apply::{result_of, until_forced};
pub(crate) use reserve::Reservations;

/// How long and how wide a run may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest that one phase of one shard may take.
    pub phase: Duration,
    /// How many shards are worked on at once.
    pub shards: usize,
    /// How many groups of one stage of one shard are worked on at once.
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
    /// They do not.
    #[default]
    Hidden,
    /// They do.
    Shown,
}

/// What a run is asked to do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own that callers make by name")]
pub struct Request {
    /// The name of the run.
    pub run: String,
    /// Whether it may change the world.
    pub mode: Mode,
    /// The data.
    pub head: Arc<dyn Source>,
    /// The data before a proposed change.
    pub base: Option<Arc<dyn Source>>,
    /// The integration's flags.
    pub options: Options,
    /// The hash slot of this process.
    pub slot: Slot,
    /// Whether only shards that the change affects are run.
    pub only_affected: bool,
    /// Whether an integration that the change does not affect runs, too.
    pub even_unaffected: bool,
    /// Whether a flag that selects a shard that does not exist ends the run; otherwise it is a warning.
    pub strict_selectors: bool,
    /// Whether the list of allowed schemas is enforced.
    pub validate_schemas: bool,
    /// Whether addresses that head changes are used all the same.
    pub trust_head: bool,
    /// Whether changes that create something show all of its fields.
    pub bodies: Bodies,
    /// How much may be removed.
    pub budgets: Budgets,
    /// Where removals are reserved.
    pub ledger: Arc<dyn Ledger>,
    /// When the run began.
    pub now: Timestamp,
    /// Today, for approvals and for what is wanted until a day only.
    pub today: Date,
    /// How long and how wide the run may be.
    pub limits: Limits,
    /// Whether to shut down: what only reads ends at once, steps in progress are finished until that is forced, and no other step is begun.
    pub stop: Stop,
    /// Receives every write when it is made.
    pub audit: Arc<dyn Audit>,
}

impl Limits {
    /// With so many shards at a time, and no more groups of one shard than that.
    #[must_use]
    pub fn with_concurrency(self, shards: usize) -> Self {
        let shards = shards.max(1);
        Self { shards, groups: self.groups.min(shards), ..self }
    }
}

impl Request {
    /// Sets the integration's options, and with them how many shards are processed concurrently.
    pub fn set_options(&mut self, options: Options, flags: &[Flag]) {
        if let Some(concurrency) = options.concurrency(flags) {
            self.limits = self.limits.with_concurrency(concurrency);
        }
        self.options = options;
    }

    /// A run on `head`, with everything else as it usually is.
    pub fn new(run: impl Into<String>, mode: Mode, head: Arc<dyn Source>, today: Date) -> Self {
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
            budgets: Budgets::default(),
            ledger: Arc::new(MemoryLedger::default()),
            now: today.to_zoned(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |start| start.timestamp()),
            today,
            limits: Limits::default(),
            stop: Stop::never(),
            audit: Arc::new(NoAudit),
        }
    }

    /// Whether this is a check of a proposed change: what only head says is not dialled or read.
    pub(crate) fn distrusts_head(&self) -> bool {
        self.mode == Mode::DryRun && self.base.is_some() && !self.trust_head
    }

    /// The two bundles to compare; head is asked through the handle of the run, which keeps what was asked.
    fn pair(&self, room: &Room, head: &Data) -> Option<Pair> {
        let base = Data::new(Arc::clone(self.base.as_ref()?), Terms::of(room.about()));
        Some(Pair { base, head: head.clone() })
    }
}

/// Runs an integration.
#[expect(clippy::disallowed_methods, reason = "the runner mints, once per run")]
pub async fn run(room: &Room, request: &Request) -> Outcome {
    let mut outcome = begin(room, request);
    let permits = qontract_access::mint(request.mode);
    let data = match prepare::prepare(room, request, &mut outcome) {
        Ok(data) => data,
        Err(fault) => {
            outcome.faults.push(fault);
            outcome.conclude(request.stop.interruption());
            return outcome;
        }
    };
    let performed = perform(room, request, &permits, &data, &mut outcome).await;
    outcome.asked = data.asked();
    // A schema that it may not read is reported once, with what to add; a shutdown is reported by how the run ended.
    let failed = performed.err().filter(|fault| outcome.asked.forbidden.is_empty() && !fault.is_interrupted);
    outcome.faults.extend(failed);
    affairs::report_asked(room, request, &mut outcome);
    outcome.conclude(request.stop.interruption());
    outcome
}

fn begin(room: &Room, request: &Request) -> Outcome {
    let pinned = |source: &dyn Source| Pinned {
        sha: source.sha().to_owned(),
        commit: source.commit().map(str::to_owned),
    };
    Outcome {
        run: request.run.clone(),
        integration: room.about().name.clone(),
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
    room: &Room,
    request: &Request,
    permits: &Permits,
    data: &Data,
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    let Some(work) = affairs::decide(room, request, data, outcome)? else { return Ok(()) };
    let guard = affairs::guard(room, request, &work)?;
    match room.form() {
        Form::Staged(staged) => {
            let crew = round::Crew { room: &**staged, request, data, permits, guard: &guard };
            crew.work(work, outcome).await;
        }
        Form::Function(_) if !request.slot.has(&ShardKey::default().slot_value()) => {
            let text = "another slot runs it: it is not split".to_owned();
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
