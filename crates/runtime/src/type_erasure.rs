//! Type erasure for the contract, so that the runner is compiled only once and all integrations have one type.
//!
//! **Invariant:** an erased value is passed only to the integration that created it. If a value is passed to another
//! integration, the call panics.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_bundle::Sha256;
use serde::Serialize;

use crate::contract::{
    ApplyResult, ApprovedObject, CurrentState, DeclaredShardView, DeclaredStateOf, DesiredItem, DesiredState,
    Observed, PlanInputs, ReadContext, RehearsalResult, StagedIntegration, WriteContext,
};
use crate::data::Data;
use crate::fault::Fault;
use crate::fingerprint::Fingerprints;
use crate::guard::Date;
use crate::key::{Scope, ShardKey};
use crate::meta::IntegrationMeta;
use crate::options::Options;
use crate::plan::{Change, ObjectKey, Plan};
use crate::secrets::SecretLookup;
use crate::source_location::SourceLocation;
use crate::state::{Comparison, DeclaredState, DisabledReason, RemovalConsent, compare, digest};
use crate::trust::TargetAddress;
use crate::unplanned::ReleasedPart;

/// A value that only the integration that created it can interpret.
pub type OpaqueValue = Box<dyn Any + Send + Sync>;

/// The desired state of an object, without the value that only the integration can interpret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredKind {
    /// The object must exist.
    Present,
    /// The object must not exist.
    Delete,
    /// The integration observed an approval of the removal of the object.
    Approved,
    /// The desired state could not be resolved, for this reason.
    Unresolved(Fault),
}

/// The desired state of a shard.
pub struct AnyDesiredState {
    /// The facts that guards and reports need.
    pub facts: Vec<DesiredFact>,
    inner: OpaqueValue,
}

/// One object of desired state, with its source location.
pub struct DesiredFact {
    /// The object to which the desired state belongs.
    pub object: ObjectKey,
    /// The location in the data that declares the object.
    pub place: Option<SourceLocation>,
    /// The kind of the object's desired state.
    pub kind: DesiredKind,
}

impl AnyDesiredState {
    pub(crate) fn new(facts: Vec<DesiredFact>, inner: OpaqueValue) -> Self {
        Self { facts, inner }
    }

    pub(crate) fn inner(&self) -> &dyn Any {
        &*self.inner
    }
}

/// The current state of a shard.
pub struct AnyCurrentState {
    /// The number of objects in each scope, or the reason why the scope could not be read.
    pub scopes: BTreeMap<Scope, Result<usize, Fault>>,
    /// Facts about desired state that `observe` adds.
    pub facts: Vec<DesiredFact>,
    /// See [`StagedIntegration::incarnations`].
    pub incarnations: BTreeSet<String>,
    pub(crate) inner: OpaqueValue,
}

/// The printed desired state of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedShard {
    /// The text; `None` if the integration prints nothing for the shard.
    pub text: Option<String>,
    /// The faults of the shard, except for the faults of unresolved objects in the desired state.
    pub faults: Vec<Fault>,
}

/// The declared state of an integration.
pub trait AnyDeclaredState: Send + Sync {
    /// The keys of all shards, in order.
    fn keys(&self) -> Vec<&ShardKey>;
    /// Whether a shard has this key.
    fn has(&self, key: &ShardKey) -> bool;
    /// The source location of a shard.
    fn place(&self, key: &ShardKey) -> Option<SourceLocation>;
    /// The known files that declare a shard.
    fn files(&self, key: &ShardKey) -> BTreeSet<&str>;
    /// The reason why a shard is disabled; `None` if it is enabled.
    fn disabled(&self, key: &ShardKey) -> Option<&DisabledReason>;
    /// Whether a shard has a label.
    fn has_label(&self, label: &str, key: &ShardKey) -> bool;
    /// The key of a shard with the address of its target in place of the target's name, if the integration declares
    /// such a key.
    fn target_key(&self, key: &ShardKey) -> Option<&ShardKey>;
    /// The shard with this target key.
    fn shard_on_target(&self, target_key: &ShardKey) -> Option<&ShardKey>;
    /// The faults of shards whose declaration is invalid.
    fn faults(&self) -> &BTreeMap<ShardKey, Vec<Fault>>;
    /// Compares this state, which is that of base, with the state that the same integration declares for head.
    fn compare(&self, head: &dyn AnyDeclaredState) -> Comparison;
    /// The removals that a shard approves as a whole.
    fn consent(&self, key: &ShardKey) -> RemovalConsent;
    /// The digest of a shard's target address.
    fn target_digest(&self, key: &ShardKey) -> Option<Sha256>;
    /// The digest of a shard's declared state, of its target and of the common state.
    fn shard_digest(&self, key: &ShardKey) -> Option<Sha256>;
    /// The state as JSON: the common state, and the target and the state of each shard.
    fn json(&self) -> serde_json::Value;
    /// The state of a shard as JSON.
    fn state_json(&self, key: &ShardKey) -> Option<serde_json::Value>;
    /// All strings in the state of a shard and in the common state.
    fn texts(&self, key: &ShardKey) -> Vec<String>;
    /// The state as `Any`, for the integration that declared it.
    fn as_any(&self) -> &dyn Any;
}

impl<C, T, S> AnyDeclaredState for DeclaredState<C, T, S>
where
    C: Serialize + Send + Sync + 'static,
    T: Serialize + Send + Sync + 'static,
    S: Serialize + Send + Sync + 'static,
{
    fn keys(&self) -> Vec<&ShardKey> {
        self.shards.keys().collect()
    }

    fn has(&self, key: &ShardKey) -> bool {
        self.shards.contains_key(key)
    }

    fn place(&self, key: &ShardKey) -> Option<SourceLocation> {
        self.shards.get(key)?.places.get("").cloned()
    }

    fn files(&self, key: &ShardKey) -> BTreeSet<&str> {
        let places = self.shards.get(key).into_iter().flat_map(|shard| shard.places.values());
        places.map(|place| &*place.path).collect()
    }

    fn disabled(&self, key: &ShardKey) -> Option<&DisabledReason> {
        self.shards.get(key)?.disabled.as_ref()
    }

    fn has_label(&self, label: &str, key: &ShardKey) -> bool {
        self.has_label(label, key)
    }

    fn target_key(&self, key: &ShardKey) -> Option<&ShardKey> {
        self.target_keys.get(key)
    }

    fn shard_on_target(&self, target_key: &ShardKey) -> Option<&ShardKey> {
        self.target_keys.iter().find(|(_, target)| *target == target_key).map(|(key, _)| key)
    }

    fn faults(&self) -> &BTreeMap<ShardKey, Vec<Fault>> {
        &self.faults
    }

    fn compare(&self, head: &dyn AnyDeclaredState) -> Comparison {
        compare(self, downcast::<Self>(head.as_any()))
    }

    fn consent(&self, key: &ShardKey) -> RemovalConsent {
        self.shards.get(key).map(|shard| shard.removal_consent.clone()).unwrap_or_default()
    }

    fn target_digest(&self, key: &ShardKey) -> Option<Sha256> {
        self.shards.get(key).map(|shard| digest(&shard.target))
    }

    fn shard_digest(&self, key: &ShardKey) -> Option<Sha256> {
        let shard = self.shards.get(key)?;
        Some(digest(&(&self.common, &shard.target, &shard.state)))
    }

    fn json(&self) -> serde_json::Value {
        let shards = self.shards.iter().map(|(key, shard)| {
            let shard = serde_json::json!({"target": shard.target, "state": shard.state});
            (key.to_string(), shard)
        });
        serde_json::json!({"common": self.common, "shards": shards.collect::<serde_json::Map<_, _>>()})
    }

    fn state_json(&self, key: &ShardKey) -> Option<serde_json::Value> {
        self.shards.get(key).map(|shard| serde_json::json!(shard.state))
    }

    fn texts(&self, key: &ShardKey) -> Vec<String> {
        let mut texts = vec![key.to_string()];
        let shard = self.shards.get(key);
        collect_texts(&serde_json::json!(self.common), &mut texts);
        if let Some(shard) = shard {
            collect_texts(&serde_json::json!([shard.target, shard.state]), &mut texts);
        }
        texts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// All keys and strings in a JSON value.
pub fn texts(value: &serde_json::Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect_texts(value, &mut texts);
    texts
}

/// Adds all keys and strings in a JSON value.
fn collect_texts(value: &serde_json::Value, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                collect_texts(value, texts);
            }
        }
        serde_json::Value::Number(number) => texts.push(number.to_string()),
        serde_json::Value::Null | serde_json::Value::Bool(_) => {}
    }
}

/// Object-safe form of [`StagedIntegration`].
pub trait DynIntegration: Send + Sync {
    /// The integration's metadata.
    fn meta(&self) -> &IntegrationMeta;
    /// See [`StagedIntegration::declare`].
    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclaredState>, Fault>;
    /// See [`StagedIntegration::secret_lookups`]; empty for an unknown shard.
    fn secret_lookups(&self, _: &dyn AnyDeclaredState, _: &ShardKey) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }
    /// See [`StagedIntegration::addresses`]; empty for an unknown shard.
    fn addresses(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<TargetAddress> {
        shard_address(declared, key)
    }
    /// See [`StagedIntegration::released`]; empty for an unknown shard.
    fn released(
        &self,
        _: &dyn AnyDeclaredState,
        head: Option<&dyn AnyDeclaredState>,
        _: &ShardKey,
    ) -> Vec<ReleasedPart> {
        if head.is_some() { Vec::new() } else { vec![ReleasedPart::whole()] }
    }
    /// All strings that follow from the data of a shard alone; see [`StagedIntegration::public_texts`].
    fn public_texts(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<String> {
        declared.texts(key)
    }
    /// See [`StagedIntegration::resolve`].
    fn resolve<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
    ) -> BoxFuture<'a, Result<AnyDesiredState, Fault>>;
    /// The empty desired state.
    fn nothing_desired(&self) -> AnyDesiredState;
    /// See [`StagedIntegration::observe`]; for a shard that exists only in base, `declared` is the state of
    /// base.
    fn observe<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        desired: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<AnyCurrentState, Fault>>;
    /// See [`StagedIntegration::plan`].
    fn plan(&self, desired: &AnyDesiredState, current: &AnyCurrentState) -> Plan<OpaqueValue>;
    /// See [`StagedIntegration::record_inputs`].
    fn record_inputs(
        &self,
        _: &AnyDesiredState,
        _: &AnyCurrentState,
        _: &Fingerprints,
    ) -> Option<serde_json::Value> {
        None
    }
    /// The plan that results from recorded inputs; `None` if the inputs cannot be read.
    fn replay_plan(&self, _: &serde_json::Value) -> Option<Plan<OpaqueValue>> {
        None
    }
    /// See [`StagedIntegration::print`]. A program resolves the desired state itself when it prints.
    fn print<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        desired: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<PrintedShard, Fault>>;
    /// See [`StagedIntegration::approval_text`].
    fn approval_text(&self, _: &[&Change], _: Date) -> Option<String> {
        None
    }
    /// See [`StagedIntegration::rehearse`].
    fn rehearse<'a>(
        &'a self,
        read: &'a ReadContext,
        action: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<RehearsalResult, Fault>>;
    /// See [`StagedIntegration::apply`].
    fn apply<'a>(
        &'a self,
        write: &'a WriteContext<'a>,
        action: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<ApplyResult, Fault>>;
}

/// Adapts a [`StagedIntegration`] to [`DynIntegration`].
pub struct StagedAdapter<I>(pub I);

impl<I: StagedIntegration> DynIntegration for StagedAdapter<I> {
    fn meta(&self) -> &IntegrationMeta {
        self.0.meta()
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclaredState>, Fault> {
        Ok(Box::new(self.0.declare(data, options)?))
    }

    fn secret_lookups(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> BTreeSet<SecretLookup> {
        let declared = downcast::<DeclaredStateOf<I>>(declared.as_any());
        let Some(shard) = declared.shards.get(key) else { return BTreeSet::new() };
        self.0.secret_lookups(DeclaredShardView { key, common: &declared.common, shard })
    }

    fn addresses(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<TargetAddress> {
        let declared = downcast::<DeclaredStateOf<I>>(declared.as_any());
        let Some(shard) = declared.shards.get(key) else { return Vec::new() };
        self.0.addresses(DeclaredShardView { key, common: &declared.common, shard })
    }

    fn released(
        &self,
        base: &dyn AnyDeclaredState,
        head: Option<&dyn AnyDeclaredState>,
        key: &ShardKey,
    ) -> Vec<ReleasedPart> {
        let base = downcast::<DeclaredStateOf<I>>(base.as_any());
        let head = head.map(|head| downcast::<DeclaredStateOf<I>>(head.as_any()));
        let Some(shard) = base.shards.get(key) else { return Vec::new() };
        let base = DeclaredShardView { key, common: &base.common, shard };
        let Some(head) = head else { return self.0.released(base, None) };
        let Some(shard) = head.shards.get(key) else { return Vec::new() };
        self.0.released(base, Some(DeclaredShardView { key, common: &head.common, shard }))
    }

    fn public_texts(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<String> {
        let mut texts = declared.texts(key);
        let declared = downcast::<DeclaredStateOf<I>>(declared.as_any());
        if let Some(shard) = declared.shards.get(key) {
            texts.extend(self.0.public_texts(DeclaredShardView { key, common: &declared.common, shard }));
        }
        texts
    }

    fn resolve<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
    ) -> BoxFuture<'a, Result<AnyDesiredState, Fault>> {
        async move {
            let declared = downcast::<DeclaredStateOf<I>>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let view = DeclaredShardView { key, common: &declared.common, shard };
            Ok(erase_desired(self.0.resolve(read, view).await?))
        }
        .boxed()
    }

    fn nothing_desired(&self) -> AnyDesiredState {
        erase_desired::<I::Desired>(Vec::new())
    }

    fn observe<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        desired: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<AnyCurrentState, Fault>> {
        async move {
            let declared = downcast::<DeclaredStateOf<I>>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let view = DeclaredShardView { key, common: &declared.common, shard };
            let current =
                self.0.observe(read, view, downcast::<Vec<DesiredItem<I::Desired>>>(&*desired.inner)).await?;
            let count = |observed: &Observed<I::Current>| match observed {
                Observed::Known(objects) => Ok(objects.len()),
                Observed::Unknown(fault) => Err(fault.clone()),
            };
            let scopes = current.iter().map(|(scope, observed)| (scope.clone(), count(observed))).collect();
            let approved = self.0.approved_removals(&current).into_iter();
            let facts = approved
                .map(|ApprovedObject { object, place }| DesiredFact {
                    object,
                    place,
                    kind: DesiredKind::Approved,
                })
                .collect();
            let incarnations = self.0.incarnations(&current);
            Ok(AnyCurrentState { scopes, facts, incarnations, inner: Box::new(current) })
        }
        .boxed()
    }

    fn plan(&self, desired: &AnyDesiredState, current: &AnyCurrentState) -> Plan<OpaqueValue> {
        let (desired, current) = (
            downcast::<Vec<DesiredItem<I::Desired>>>(&*desired.inner),
            downcast::<CurrentState<I::Current>>(&*current.inner),
        );
        self.0.plan(desired, current).map(|action| Box::new(action) as OpaqueValue)
    }

    fn record_inputs(
        &self,
        desired: &AnyDesiredState,
        current: &AnyCurrentState,
        fingerprints: &Fingerprints,
    ) -> Option<serde_json::Value> {
        let (desired, current) = (
            downcast::<Vec<DesiredItem<I::Desired>>>(&*desired.inner),
            downcast::<CurrentState<I::Current>>(&*current.inner),
        );
        self.0.record_inputs(desired, current, fingerprints)
    }

    fn replay_plan(&self, inputs: &serde_json::Value) -> Option<Plan<OpaqueValue>> {
        let PlanInputs { desired, current } = self.0.restore_inputs(inputs)?;
        Some(self.0.plan(&desired, &current).map(|action| Box::new(action) as OpaqueValue))
    }

    fn print<'a>(
        &'a self,
        _: &'a ReadContext,
        _: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        desired: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<PrintedShard, Fault>> {
        let text = self.0.print(key, downcast::<Vec<DesiredItem<I::Desired>>>(&*desired.inner));
        std::future::ready(Ok(PrintedShard { text, faults: Vec::new() })).boxed()
    }

    fn approval_text(&self, held: &[&Change], today: Date) -> Option<String> {
        self.0.approval_text(held, today)
    }

    fn rehearse<'a>(
        &'a self,
        read: &'a ReadContext,
        action: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<RehearsalResult, Fault>> {
        self.0.rehearse(read, downcast::<I::Action>(&**action)).boxed()
    }

    fn apply<'a>(
        &'a self,
        write: &'a WriteContext<'a>,
        action: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<ApplyResult, Fault>> {
        self.0.apply(write, downcast::<I::Action>(&**action)).boxed()
    }
}

fn erase_desired<T: Send + Sync + 'static>(desired: Vec<DesiredItem<T>>) -> AnyDesiredState {
    let facts = desired.iter().map(|want| {
        let kind = match &want.state {
            DesiredState::Present(_) => DesiredKind::Present,
            DesiredState::Delete => DesiredKind::Delete,
            DesiredState::Unresolved(why) => DesiredKind::Unresolved(why.clone()),
        };
        DesiredFact { object: want.object.clone(), place: want.place.clone(), kind }
    });
    AnyDesiredState { facts: facts.collect(), inner: Box::new(desired) }
}

pub(crate) fn downcast<T: 'static>(value: &dyn Any) -> &T {
    value.downcast_ref().expect("a value is passed only to the integration that created it")
}

pub(crate) fn no_shard(key: &ShardKey) -> Fault {
    Fault::internal(format!("the declared state has no shard `{key}`"))
}

/// The target of a shard as one address; empty for an unknown shard.
pub(crate) fn shard_address(declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<TargetAddress> {
    let digest = declared.target_digest(key).into_iter();
    digest.map(|digest| TargetAddress::of_digest(key.to_string(), digest)).collect()
}
