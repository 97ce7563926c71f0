//! The contract of the staged form: five questions that every integration answers. The runner owns everything else:
//! order, deadlines, concurrency, dry run, early exit, shards, guards, waits, report.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use qontract_access::{ReadPermit, WritePermit};
use serde::Serialize;

use crate::about::About;
use crate::data::Data;
use crate::fault::Fault;
use crate::guard::Date;
use crate::key::{Scope, ShardKey};
use crate::memo::Memo;
use crate::options::Options;
use crate::place::Place;
use crate::plan::{Plan, Thing};
use crate::secrets::{SecretLookup, ShardSecrets};
use crate::state::{Declared, Shard};

/// Something that is wanted, or wanted gone.
#[derive(Clone, Debug)]
pub struct Want<T> {
    /// What it is about.
    pub thing: Thing,
    /// Where in the data it comes from.
    pub place: Option<Place>,
    /// What is wanted.
    pub wanted: Wanted<T>,
}

/// What is wanted of a thing.
#[derive(Clone, Debug)]
pub enum Wanted<T> {
    /// It is to be like this.
    Present(T),
    /// It is to be gone: the data says so in as many words, which approves its removal.
    Delete,
    /// What it is to be could not be found out: nothing in its scope is removed.
    Unresolved(Fault),
}

/// What one read of a scope told us.
#[derive(Clone, Debug)]
pub enum Observed<T> {
    /// All that is there and concerns us.
    Known(Vec<T>),
    /// It could not be read: nothing in it is removed, only reported.
    Unknown(Fault),
}

/// What the world has now, scope by scope.
pub type World<T> = BTreeMap<Scope, Observed<T>>;

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It is done.
    Done,
    /// It was planned on an old version of the world: plan again.
    Stale,
}

/// What came of rehearsing a step, which a dry run does where a target can: nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsed {
    /// The target would do it.
    Taken,
    /// The target would not, and why.
    Refused(Fault),
    /// It could not be found out, and why: what it needs is not there yet.
    NotValidated(String),
    /// Nobody wants it to be found out.
    NotAsked,
}

/// What reading takes.
#[derive(Clone, Debug)]
pub struct Read {
    /// The permit.
    pub permit: ReadPermit,
    /// The data, for what is looked up on the way.
    pub data: Data,
    /// What was read in this round already, by whichever shard.
    pub memo: Memo,
    /// Today.
    pub today: Date,
    /// Which secrets this shard may read. What it reads is recorded there.
    pub secrets: ShardSecrets,
}

/// What writing takes. It exists only in a real run.
#[derive(Debug)]
pub struct Write<'r> {
    /// The permit.
    pub permit: &'r WritePermit,
    /// The permit to read, for preconditions.
    pub read: &'r ReadPermit,
    /// The run, for what is written into the world about it.
    pub run: &'r str,
}

/// One shard of a declared state, as `resolve` and `observe` see it.
#[derive(Debug)]
pub struct View<'d, C, T, S> {
    /// Its key.
    pub key: &'d ShardKey,
    /// What matters to every shard.
    pub common: &'d C,
    /// What is declared.
    pub shard: &'d Shard<T, S>,
}

// Whatever it looks at, a view can be copied.
impl<C, T, S> Clone for View<'_, C, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, T, S> Copy for View<'_, C, T, S> {}

/// The declared state of an integration.
pub type DeclaredOf<I> = Declared<<I as Staged>::Common, <I as Staged>::Target, <I as Staged>::State>;

/// An integration of the staged form.
pub trait Staged: Send + Sync + 'static {
    /// What matters to every shard.
    type Common: Serialize + Send + Sync + 'static;
    /// How a shard is reached.
    type Target: Serialize + Clone + Send + Sync + 'static;
    /// What is declared for a shard.
    type State: Serialize + Send + Sync + 'static;
    /// A thing as it is to be.
    type Item: Send + Sync + 'static;
    /// A thing as it is.
    type Found: Send + Sync + 'static;
    /// What is done in a step.
    type Action: Send + Sync + 'static;

    /// What it says about itself.
    fn about(&self) -> &About;

    /// What does the data say?
    fn declare(&self, data: &Data, options: &Options) -> Result<DeclaredOf<Self>, Fault>
    where
        Self: Sized;

    /// The secrets that the data names for a shard. In a check, `resolve` reads only those that base names, too.
    fn secret_lookups(&self, _: View<'_, Self::Common, Self::Target, Self::State>) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }

    /// Text that follows from the data of a shard alone and is not in its serialised state. It is shown even where it equals a
    /// secret.
    fn public_texts(&self, _: View<'_, Self::Common, Self::Target, Self::State>) -> Vec<String> {
        Vec::new()
    }

    /// Outside inputs. What cannot be found out is `Unresolved`; an error is for when nothing can be.
    fn resolve(
        &self,
        read: &Read,
        view: View<'_, Self::Common, Self::Target, Self::State>,
    ) -> impl Future<Output = Result<Vec<Want<Self::Item>>, Fault>> + Send;

    /// All that we own there now; of a shard that only base has, as base declares it, with nothing wanted.
    fn observe(
        &self,
        read: &Read,
        view: View<'_, Self::Common, Self::Target, Self::State>,
        wanted: &[Want<Self::Item>],
    ) -> impl Future<Output = Result<World<Self::Found>, Fault>> + Send;

    /// What would change?
    fn plan(&self, wanted: &[Want<Self::Item>], world: &World<Self::Found>) -> Plan<Self::Action>;

    /// Would the target do this step? Asked in dry runs only.
    fn rehearse(&self, _: &Read, _: &Self::Action) -> impl Future<Output = Result<Rehearsed, Fault>> + Send {
        std::future::ready(Ok(Rehearsed::NotAsked))
    }

    /// Do one step; may run twice.
    fn apply(
        &self,
        write: &Write<'_>,
        action: &Self::Action,
    ) -> impl Future<Output = Result<Applied, Fault>> + Send;
}
