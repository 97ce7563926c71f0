//! The function form, for validators and small jobs: one `run`, in which every effect goes through [`Cx::act`].

use std::collections::BTreeSet;
use std::future::Future;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use qontract_access::{Permits, ReadPermit};
use tokio::sync::RwLock;

use crate::about::About;
use crate::audit::{Attempt, Written};
use crate::contract::Write;
use crate::data::Data;
use crate::fault::Fault;
use crate::guard::{Facts, Proposal, Refusal, RemovalGuard};
use crate::key::ShardKey;
use crate::options::Options;
use crate::plan::{Change, Held, set_result};
use crate::run::{Request, Reservations, result_of, until_forced};
use crate::state::Declared;

/// The early-exit state of a function: one shard, or several.
pub type FunctionState = Declared<serde_json::Value, (), serde_json::Value>;

/// An integration of the function form.
pub trait Function: Send + Sync + 'static {
    /// What it says about itself.
    fn about(&self) -> &About;

    /// What its outcome depends on, for early exit; `None` if that cannot be said from the data alone.
    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault>;

    /// Whether what it needs on this machine is there. Without it a run ends with this fault, and `up`, which needs nothing
    /// installed, leaves it out.
    fn ready(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Does the job. An error is for when it cannot be done; what is wrong with single things goes to [`Cx::fault`].
    fn run(&self, cx: &Cx<'_>) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// What a function did or would do.
#[derive(Debug, Default)]
pub struct Did {
    /// Changes, made in a real run.
    pub changes: Vec<Change>,
    /// Changes that a guard holds.
    pub held: Vec<Held>,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// How many changes were made.
    pub applied: usize,
    /// How many things were removed without an approval.
    pub removed: usize,
}

/// What a function works with.
pub struct Cx<'r> {
    /// The data.
    pub data: &'r Data,
    /// Its flags.
    pub options: &'r Options,
    permits: &'r Permits,
    guard: &'r RemovalGuard,
    reservations: Reservations<'r>,
    request: &'r Request,
    did: Mutex<Did>,
    /// Held for reading while a change is being made.
    acting: RwLock<()>,
}

impl<'r> Cx<'r> {
    pub(crate) fn new(
        data: &'r Data,
        request: &'r Request,
        permits: &'r Permits,
        guard: &'r RemovalGuard,
    ) -> Self {
        let reservations = Reservations::new(guard, request, permits);
        let (options, did, acting) = (&request.options, Mutex::default(), RwLock::default());
        Self { data, options, permits, guard, reservations, request, did, acting }
    }

    /// Why a change is held, if it is; a removal that is not is reserved in a real run.
    async fn refusal(&self, change: &Change) -> Option<Refusal> {
        if !self.guard.removes(change) {
            return None;
        }
        // How many things the scope has is not known: only absolute limits apply.
        let facts = Facts { counts: [(change.thing.scope.clone(), 0)].into(), ..Facts::default() };
        let (key, steps, groups) = (&ShardKey::default(), vec![std::slice::from_ref(change)], vec![1]);
        let proposal = Proposal { key, facts: &facts, steps, groups };
        self.reservations.judge(&[proposal]).await.into_iter().flatten().next().flatten()
    }

    /// The permit to read the world.
    pub fn read(&self) -> &ReadPermit {
        &self.permits.read
    }

    /// Makes a change: recorded always, executed only in a real run, and only if no guard holds it.
    pub async fn act<F>(&self, change: Change, effect: F) -> Result<(), Fault>
    where
        F: for<'w> FnOnce(&'w Write<'w>) -> BoxFuture<'w, Result<(), Fault>> + Send,
    {
        let interrupted = || Fault::interrupted(format!("{change} was not started: shutting down"));
        if self.permits.write.is_some() && self.request.stop.is_asked() {
            let fault = interrupted();
            self.lock().changes.push(change);
            return Err(fault);
        }
        let counts = self.guard.counts(&BTreeSet::new(), &change);
        if let Some(refusal) = self.refusal(&change).await {
            self.lock().held.push(Held { change, why: refusal.why(), hold: refusal.hold() });
            return Ok(());
        }
        {
            let mut did = self.lock();
            did.removed += usize::from(counts);
            did.changes.push(change.clone());
        }
        let Some(permit) = &self.permits.write else { return Ok(()) };
        let _acting = self.acting.read().await;
        let Request { run, audit, stop, .. } = self.request;
        let Some(step) = stop.begin_step(&change.to_string()) else { return Err(interrupted()) };
        let shard = ShardKey::default();
        let attempt = Attempt { shard: &shard, changes: std::slice::from_ref(&change) };
        audit.begin(&attempt);
        let done = until_forced(stop, effect(&Write { permit, read: &self.permits.read, run })).await;
        let failed = done.as_ref().err();
        audit.wrote(&Written { run, shard: &shard, changes: attempt.changes, failed });
        audit.end(&attempt);
        let mut did = self.lock();
        set_result(&mut did.changes, &change, result_of(&done));
        did.applied += usize::from(done.is_ok());
        drop(did);
        if failed.is_some_and(|fault| fault.is_interrupted) {
            let text = format!("interrupted: {change} may be done in part");
            self.fault(Fault::interrupted(text).at(change.place));
        } else {
            step.finish();
        }
        done
    }

    /// Waits until a shutdown is asked for and no change is being made.
    pub(crate) async fn interrupted(&self) {
        self.request.stop.asked().await;
        let _none = self.acting.write().await;
    }

    /// Tells what is wrong with one thing; the rest goes on.
    pub fn fault(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    pub(crate) fn finish(self) -> Did {
        self.did.into_inner()
    }

    fn lock(&self) -> MutexGuard<'_, Did> {
        self.did.lock()
    }
}

/// The function form without its types.
pub trait DynamicFunction: Send + Sync {
    /// What it says about itself.
    fn about(&self) -> &About;
    /// See [`Function::state`].
    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault>;
    /// See [`Function::ready`].
    fn ready(&self) -> Result<(), Fault>;
    /// See [`Function::run`].
    fn run<'a>(&'a self, cx: &'a Cx<'_>) -> BoxFuture<'a, Result<(), Fault>>;
}

impl<F: Function> DynamicFunction for F {
    fn about(&self) -> &About {
        Function::about(self)
    }

    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault> {
        Function::state(self, data, options)
    }

    fn ready(&self) -> Result<(), Fault> {
        Function::ready(self)
    }

    fn run<'a>(&'a self, cx: &'a Cx<'_>) -> BoxFuture<'a, Result<(), Fault>> {
        Function::run(self, cx).boxed()
    }
}
