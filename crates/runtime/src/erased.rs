//! Type erasure for the contract, so that the runner is compiled once and integrations fit into one list.
//!
//! **Invariant:** an erased value goes back into the integration that made it. The runner never mixes values
//! of several integrations; a mix panics.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_bundle::Sha256;
use serde::Serialize;

use crate::about::About;
use crate::contract::{
    Applied, DeclaredOf, Observed, Read, Rehearsed, Staged, View, Want, Wanted, World, Write,
};
use crate::data::Data;
use crate::fault::Fault;
use crate::key::{Scope, ShardKey};
use crate::options::Options;
use crate::place::Place;
use crate::plan::{Plan, Thing};
use crate::secrets::SecretLookup;
use crate::state::{Comparison, Declared, Disabled, compare, digest};

/// A value that only the integration that made it can interpret.
pub type Opaque = Box<dyn Any + Send + Sync>;

/// The desired state of an object, as far as the runner knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It must exist.
    Present,
    /// It must not exist.
    Delete,
    /// It could not be resolved, for this reason.
    Unresolved(Fault),
}

/// The desired state of a shard.
pub struct Wants {
    /// The facts that guards and reports need.
    pub facts: Vec<Fact>,
    inner: Opaque,
}

/// One object of desired state, with its source location.
pub type Fact = (Thing, Option<Place>, Kind);

impl Wants {
    pub(crate) fn new(facts: Vec<Fact>, inner: Opaque) -> Self {
        Self { facts, inner }
    }

    pub(crate) fn inner(&self) -> &dyn Any {
        &*self.inner
    }
}

/// The current state of a shard.
pub struct Found {
    /// Number of objects per scope, or why the scope could not be read.
    pub scopes: BTreeMap<Scope, Result<usize, Fault>>,
    /// Facts about desired state that `observe` found out.
    pub facts: Vec<Fact>,
    pub(crate) inner: Opaque,
}

/// The declared state of an integration.
pub trait AnyDeclared: Send + Sync {
    /// The keys of its shards, in order.
    fn keys(&self) -> Vec<&ShardKey>;
    /// The source location of a shard.
    fn place(&self, key: &ShardKey) -> Option<Place>;
    /// The reason why a shard is disabled, if it is.
    fn disabled(&self, key: &ShardKey) -> Option<&Disabled>;
    /// Whether a shard has a label.
    fn has_label(&self, label: &str, key: &ShardKey) -> bool;
    /// The faults of shards whose declaration is invalid.
    fn faults(&self) -> &BTreeMap<ShardKey, Vec<Fault>>;
    /// Compares this state, of base, with the state that the same integration declares for head.
    fn compare(&self, head: &dyn AnyDeclared) -> Comparison;
    /// The digest of a shard's target address.
    fn target(&self, key: &ShardKey) -> Option<Sha256>;
    /// The state as JSON: common, and per key target and state.
    fn json(&self) -> serde_json::Value;
    /// All texts in the state of a shard and in the common state.
    fn texts(&self, key: &ShardKey) -> Vec<String>;
    /// The state as `Any`, for the integration that declared it.
    fn as_any(&self) -> &dyn Any;
}

impl<C, T, S> AnyDeclared for Declared<C, T, S>
where
    C: Serialize + Send + Sync + 'static,
    T: Serialize + Send + Sync + 'static,
    S: Serialize + Send + Sync + 'static,
{
    fn keys(&self) -> Vec<&ShardKey> {
        self.shards.keys().collect()
    }

    fn place(&self, key: &ShardKey) -> Option<Place> {
        self.shards.get(key)?.places.get("").cloned()
    }

    fn disabled(&self, key: &ShardKey) -> Option<&Disabled> {
        self.shards.get(key)?.disabled.as_ref()
    }

    fn has_label(&self, label: &str, key: &ShardKey) -> bool {
        self.has_label(label, key)
    }

    fn faults(&self) -> &BTreeMap<ShardKey, Vec<Fault>> {
        &self.faults
    }

    fn compare(&self, head: &dyn AnyDeclared) -> Comparison {
        compare(self, own::<Self>(head.as_any()))
    }

    fn target(&self, key: &ShardKey) -> Option<Sha256> {
        self.shards.get(key).map(|shard| digest(&shard.target))
    }

    fn json(&self) -> serde_json::Value {
        let shards = self.shards.iter().map(|(key, shard)| {
            let shard = serde_json::json!({"target": shard.target, "state": shard.state});
            (key.to_string(), shard)
        });
        serde_json::json!({"common": self.common, "shards": shards.collect::<serde_json::Map<_, _>>()})
    }

    fn texts(&self, key: &ShardKey) -> Vec<String> {
        let mut texts = vec![key.to_string()];
        let shard = self.shards.get(key);
        collect(&serde_json::json!(self.common), &mut texts);
        if let Some(shard) = shard {
            collect(&serde_json::json!([shard.target, shard.state]), &mut texts);
        }
        texts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// All keys and texts of a JSON value.
pub fn texts(value: &serde_json::Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    texts
}

/// Adds all keys and texts of a JSON value.
fn collect(value: &serde_json::Value, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                collect(value, texts);
            }
        }
        serde_json::Value::Number(number) => texts.push(number.to_string()),
        serde_json::Value::Null | serde_json::Value::Bool(_) => {}
    }
}

/// Object-safe form of [`Staged`].
pub trait Dynamic: Send + Sync {
    /// The integration's metadata.
    fn about(&self) -> &About;
    /// See [`Staged::declare`].
    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclared>, Fault>;
    /// See [`Staged::secret_lookups`]; empty for an unknown shard.
    fn secret_lookups(&self, _: &dyn AnyDeclared, _: &ShardKey) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }
    /// All text that follows from the data of a shard alone; see [`Staged::public_texts`].
    fn public_texts(&self, declared: &dyn AnyDeclared, key: &ShardKey) -> Vec<String> {
        declared.texts(key)
    }
    /// See [`Staged::resolve`].
    fn resolve<'a>(
        &'a self,
        read: &'a Read,
        declared: &'a dyn AnyDeclared,
        key: &'a ShardKey,
    ) -> BoxFuture<'a, Result<Wants, Fault>>;
    /// The empty desired state.
    fn nothing(&self) -> Wants;
    /// See [`Staged::observe`]; `declared` is that of base for a shard that only base has.
    fn observe<'a>(
        &'a self,
        read: &'a Read,
        declared: &'a dyn AnyDeclared,
        key: &'a ShardKey,
        desired: &'a Wants,
    ) -> BoxFuture<'a, Result<Found, Fault>>;
    /// See [`Staged::plan`].
    fn plan(&self, desired: &Wants, current: &Found) -> Plan<Opaque>;
    /// See [`Staged::rehearse`].
    fn rehearse<'a>(&'a self, read: &'a Read, action: &'a Opaque) -> BoxFuture<'a, Result<Rehearsed, Fault>>;
    /// See [`Staged::apply`].
    fn apply<'a>(&'a self, write: &'a Write<'a>, action: &'a Opaque)
    -> BoxFuture<'a, Result<Applied, Fault>>;
}

/// Adapts a [`Staged`] integration to [`Dynamic`].
pub struct Erased<I>(pub I);

impl<I: Staged> Dynamic for Erased<I> {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclared>, Fault> {
        Ok(Box::new(self.0.declare(data, options)?))
    }

    fn secret_lookups(&self, declared: &dyn AnyDeclared, key: &ShardKey) -> BTreeSet<SecretLookup> {
        let declared = own::<DeclaredOf<I>>(declared.as_any());
        let Some(shard) = declared.shards.get(key) else { return BTreeSet::new() };
        self.0.secret_lookups(View { key, common: &declared.common, shard })
    }

    fn public_texts(&self, declared: &dyn AnyDeclared, key: &ShardKey) -> Vec<String> {
        let mut texts = declared.texts(key);
        let declared = own::<DeclaredOf<I>>(declared.as_any());
        if let Some(shard) = declared.shards.get(key) {
            texts.extend(self.0.public_texts(View { key, common: &declared.common, shard }));
        }
        texts
    }

    fn resolve<'a>(
        &'a self,
        read: &'a Read,
        declared: &'a dyn AnyDeclared,
        key: &'a ShardKey,
    ) -> BoxFuture<'a, Result<Wants, Fault>> {
        async move {
            let declared = own::<DeclaredOf<I>>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let view = View { key, common: &declared.common, shard };
            Ok(wants(self.0.resolve(read, view).await?))
        }
        .boxed()
    }

    fn nothing(&self) -> Wants {
        wants::<I::Item>(Vec::new())
    }

    fn observe<'a>(
        &'a self,
        read: &'a Read,
        declared: &'a dyn AnyDeclared,
        key: &'a ShardKey,
        desired: &'a Wants,
    ) -> BoxFuture<'a, Result<Found, Fault>> {
        async move {
            let declared = own::<DeclaredOf<I>>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let view = View { key, common: &declared.common, shard };
            let current = self.0.observe(read, view, own::<Vec<Want<I::Item>>>(&*desired.inner)).await?;
            let count = |observed: &Observed<I::Found>| match observed {
                Observed::Known(things) => Ok(things.len()),
                Observed::Unknown(fault) => Err(fault.clone()),
            };
            let scopes = current.iter().map(|(scope, observed)| (scope.clone(), count(observed))).collect();
            Ok(Found { scopes, facts: Vec::new(), inner: Box::new(current) })
        }
        .boxed()
    }

    fn plan(&self, desired: &Wants, current: &Found) -> Plan<Opaque> {
        let (desired, current) =
            (own::<Vec<Want<I::Item>>>(&*desired.inner), own::<World<I::Found>>(&*current.inner));
        self.0.plan(desired, current).map(|action| Box::new(action) as Opaque)
    }

    fn rehearse<'a>(&'a self, read: &'a Read, action: &'a Opaque) -> BoxFuture<'a, Result<Rehearsed, Fault>> {
        self.0.rehearse(read, own::<I::Action>(&**action)).boxed()
    }

    fn apply<'a>(
        &'a self,
        write: &'a Write<'a>,
        action: &'a Opaque,
    ) -> BoxFuture<'a, Result<Applied, Fault>> {
        self.0.apply(write, own::<I::Action>(&**action)).boxed()
    }
}

fn wants<T: Send + Sync + 'static>(desired: Vec<Want<T>>) -> Wants {
    let facts = desired.iter().map(|want| {
        let kind = match &want.wanted {
            Wanted::Present(_) => Kind::Present,
            Wanted::Delete => Kind::Delete,
            Wanted::Unresolved(why) => Kind::Unresolved(why.clone()),
        };
        (want.thing.clone(), want.place.clone(), kind)
    });
    Wants { facts: facts.collect(), inner: Box::new(desired) }
}

pub(crate) fn own<T: 'static>(value: &dyn Any) -> &T {
    value.downcast_ref().expect("a value goes back into the integration that made it")
}

pub(crate) fn no_shard(key: &ShardKey) -> Fault {
    Fault::us(format!("the declared state has no shard `{key}`"))
}
