//! The adapter for integrations that manage Kubernetes objects.
//!
//! An [`ObjectIntegration`] declares the objects of each shard; [`ManagedObjects`] adds the other stages of
//! an integration: observe, plan, rehearse and apply.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use qontract_client_kubernetes::{Cluster, Kind, KindVersion, Kubernetes, Object};
use qontract_concurrency::OnceMap;
use qontract_inventory::{Callers, Owner, Replacement};
use qontract_runtime::guard::Date;
use qontract_runtime::replay::{Fingerprints, PlanInputs};
use qontract_runtime::{
    ApplyResult, CALLER_DIMENSION, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    Fault, IntegrationMeta, ManagedKinds, Observed, Options, Patience, Plan, ReadContext, RehearsalResult,
    ReleasedPart, SecretLookup, ShardKey, StagedIntegration, WriteContext,
};
use serde::Serialize;
use serde_json::Value;

use crate::Declared;
use crate::duplicates::{EqualContent, reject_duplicates};
use crate::flags::with_print_flag;
use crate::print::print_objects;
use crate::reconcile::{
    LiveObject, ObjectAction, ObjectReconciler, plan_objects, record_inputs, restore_inputs,
};
use crate::scope::{DesiredObject, ManagedKind, ManagedScope, WriteVersion};
use crate::templates::ExternalLookups;

/// The version in the marks of an integration that qontract-reconcile does not have.
const FIRST_VERSION: &str = "0.1.0";

/// Default time that a run waits for objects that are being deleted.
const PATIENCE: Patience = Patience { every: Duration::from_secs(2), total: Duration::from_secs(10) };

/// A declared shard and its key.
pub type ObjectShardView<'d, S> = DeclaredShardView<'d, (), Cluster, S>;

/// The integration-specific part of a Kubernetes integration.
pub trait ObjectIntegration: Send + Sync + 'static {
    /// The declared state of a shard; [`DeclaredObjects`](crate::DeclaredObjects) if the objects of a shard
    /// follow from the data alone.
    type State: ObjectState;

    /// Metadata of the integration: name, queries, flags and guarantees.
    fn meta(&self) -> IntegrationMeta;

    /// The kinds that the integration manages, which determine the permissions that it needs on clusters.
    fn managed_kinds(&self) -> ManagedKinds;

    /// Declares the shards and their states from the data.
    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<Self::State>, Fault>;

    /// The secrets that the data names for a shard; see [`StagedIntegration::secret_lookups`].
    fn secret_lookups(&self, _: ObjectShardView<'_, Self::State>) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }

    /// All callers of the integration in the whole bundle. An object of another caller is taken over only if
    /// that caller is not among them. The result must depend only on the bundle. The function is called once
    /// per bundle, on a thread that may block. By default, every caller is treated as existing.
    fn callers(&self, _: &Data) -> Result<Callers, Fault> {
        Ok(Callers::Unknown)
    }

    /// Whether shards of the integration may have callers, so that several shards manage objects of the same
    /// kinds in one namespace.
    fn has_callers(&self) -> bool {
        false
    }

    /// Strings that follow from the data alone; see [`StagedIntegration::public_texts`].
    fn public_texts(&self, _: ObjectShardView<'_, Self::State>) -> Vec<String> {
        Vec::new()
    }

    /// The desired objects of a shard. By default, they follow from the state of the shard alone. An
    /// integration that looks up templates or secrets overrides this function.
    fn resolve(
        &self,
        context: ResolveContext<'_>,
        shard: ObjectShardView<'_, Self::State>,
    ) -> impl Future<Output = Result<Vec<DesiredItem<DesiredObject>>, Fault>> + Send {
        std::future::ready(Self::State::desired(shard, context.scope, context.read.today()))
    }
}

/// The declared state of one shard.
pub trait ObjectState: Serialize + Send + Sync + Sized + 'static {
    /// The objects that the shard manages.
    fn scope_spec(shard: ObjectShardView<'_, Self>) -> ScopeSpec;

    /// The declared objects; `None` for an object whose kind or name does not follow from the data alone.
    fn declared_objects(shard: ObjectShardView<'_, Self>) -> Vec<Option<DeclaredObject>>;

    /// The objects that follow from the state alone. An integration that needs lookups overrides
    /// [`ObjectIntegration::resolve`] instead.
    fn desired(
        _: ObjectShardView<'_, Self>,
        _: &Arc<ManagedScope>,
        _: Date,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        Err(Fault::internal("the integration does not resolve its objects"))
    }
}

/// Specification of the objects that a shard manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSpec {
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The managed kinds.
    pub kinds: Vec<ManagedKind>,
    /// Whether unmarked objects are managed as well. If so, unmarked objects that are not declared are
    /// removed.
    pub adopts_unmarked: bool,
    /// The objects that may be replaced in order to change an immutable field.
    pub replacement: Replacement,
    /// The API version in which objects are written.
    pub write_version: WriteVersion,
}

/// The identity of a declared object, with the group of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredObject {
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub name: String,
}

impl DeclaredObject {
    /// The identity of an object; `None` if it has no kind.
    pub fn of(body: &Value) -> Option<Self> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Kind::of(body).map(|kind| Self { kind, name })
    }
}

impl ScopeSpec {
    /// Whether the shard manages an object.
    fn manages(&self, object: &DeclaredObject) -> bool {
        self.kinds.iter().any(|managed| {
            let (one, other) = (&managed.kind, &object.kind);
            let is_group = one.group.is_none() || other.group.is_none() || one.group == other.group;
            let is_kind = one.name == other.name && is_group;
            is_kind && managed.names.as_ref().is_none_or(|names| names.contains(&object.name))
        })
    }
}

/// The context for resolving a shard.
#[derive(Clone, Copy, Debug)]
pub struct ResolveContext<'r> {
    /// The read context, with the permit, the data and the cache of this round.
    pub read: &'r ReadContext,
    /// Secrets and other external lookups of templates.
    pub lookups: &'r ExternalLookups,
    /// The objects that the shard manages.
    pub scope: &'r Arc<ManagedScope>,
    reconciler: &'r ObjectReconciler,
}

impl ResolveContext<'_> {
    /// All objects of a kind in the namespace of the shard, regardless of their owner. If the shard manages the kind,
    /// the version is that of the declared objects, so that `observe` uses the same list.
    pub async fn live_objects(self, kind: &Kind, api_version: Option<&str>) -> Result<Vec<Object>, Fault> {
        let kind = KindVersion { kind, api_version };
        self.reconciler.live_objects(self.read, self.scope, kind).await
    }
}

/// An [`ObjectIntegration`] bound to clusters: the form that the runner executes.
///
/// ```
/// # use std::sync::Arc;
/// # use qontract_access::Mode;
/// # use qontract_client_kubernetes::Sandbox;
/// # use qontract_objects::templates::ExternalLookups;
/// # use qontract_objects::{Cluster, Declared, DeclaredObjects, Kind, ManagedObjects, ObjectIntegration};
/// # use qontract_runtime::state::Shard;
/// # use qontract_runtime::*;
/// # use serde_json::json;
/// struct Settings;
/// impl ObjectIntegration for Settings {
///     type State = DeclaredObjects;
///     fn meta(&self) -> IntegrationMeta {
///         IntegrationMeta::new("settings", "Creates a ConfigMap in each namespace")
///     }
///     fn managed_kinds(&self) -> ManagedKinds {
///         ManagedKinds::Fixed("ConfigMap")
///     }
///     fn declare(&self, _: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
///         let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
///         let server = "https://c1.example.com".to_owned();
///         let cluster = Cluster { name: "c1".to_owned(), server, token: None };
///         let key = ShardKey::new([("cluster", "c1"), ("namespace", "shop")]);
///         let kind = Kind::named("ConfigMap");
///         let mut declared = Declared::new(());
///         declared.add(key, Shard::new(cluster, DeclaredObjects::of(kind, vec![body]), None));
///         Ok(declared)
///     }
/// }
///
/// # let scratch = qontract_testkit::Scratch::new();
/// # scratch.write("clusters/c1/_cluster/Namespace/shop.yaml", "{}");
/// # let secrets = qontract_client_secrets::ConfigSecrets::new(toml::Table::new());
/// # let lookups = Arc::new(ExternalLookups::secrets(Arc::new(secrets)));
/// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": {},
/// #     "graphql": [{"name": "Query", "fields": [{"name": "none", "type": "string"}]}]}"#;
/// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
/// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
/// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
/// # let request = || {
/// #     let (today, protected) = (jiff::civil::date(2026, 1, 1), guard::ProtectedKinds::default());
/// #     let request = RunRequest::new("run", Mode::Real, Arc::clone(&bundle), today, protected);
/// #     RunRequest { validate_schemas: false, ..request }
/// # };
/// let kubernetes = Arc::new(Sandbox::new(scratch.path()));
/// let settings = Integration::staged(ManagedObjects::new(Settings, kubernetes, lookups));
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// for changes in [1, 0] {
///     let outcome = run(&settings, &request()).await;
///     assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, changes));
/// }
/// # });
/// assert!(scratch.path().join("clusters/c1/shop/ConfigMap/settings.yaml").is_file());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct ManagedObjects<I> {
    integration: Arc<I>,
    meta: IntegrationMeta,
    owner: Arc<Owner>,
    reconciler: ObjectReconciler,
    lookups: Arc<ExternalLookups>,
    /// The callers of the integration in a bundle, by the sha of the bundle. Only the entry of the last
    /// bundle is kept.
    callers: OnceMap<String, Result<Arc<Callers>, Fault>>,
}

impl<I: ObjectIntegration> ManagedObjects<I> {
    /// Binds the integration to clusters and lookups.
    pub fn new(integration: I, kubernetes: Arc<dyn Kubernetes>, lookups: Arc<ExternalLookups>) -> Self {
        let mut meta = object_meta(&integration);
        if meta.patience == Patience::NONE {
            meta.patience = PATIENCE;
        }
        let owner = owner_of(&meta, None);
        let (integration, reconciler) = (Arc::new(integration), ObjectReconciler::new(kubernetes));
        Self { integration, meta, owner, reconciler, lookups, callers: OnceMap::default() }
    }

    /// The objects that the shard manages. `resolve` and `observe` each build it, because an orphaned shard
    /// is observed without being resolved.
    async fn managed_scope(
        &self,
        read: &ReadContext,
        shard: ObjectShardView<'_, I::State>,
    ) -> Result<Arc<ManagedScope>, Fault> {
        let ScopeSpec { namespace, kinds, adopts_unmarked, replacement, write_version } =
            I::State::scope_spec(shard);
        let (owner, callers) = match shard.key.get(CALLER_DIMENSION) {
            Some(caller) => (owner_of(&self.meta, Some(caller)), self.callers(read).await?),
            None => (Arc::clone(&self.owner), Arc::new(Callers::Unknown)),
        };
        let cluster = shard.shard.target.clone();
        let is_shared = self.integration.has_callers();
        Ok(Arc::new(ManagedScope {
            cluster,
            namespace,
            kinds,
            owner,
            callers,
            adopts_unmarked,
            is_shared,
            replacement,
            write_version,
        }))
    }

    /// The callers of the integration, determined once per bundle. A fault is cached only for one round.
    async fn callers(&self, read: &ReadContext) -> Result<Arc<Callers>, Fault> {
        Result::clone(&*read.cache.get_or_read(CallersKey, self.callers_of_bundle(&read.data)).await)
    }

    async fn callers_of_bundle(&self, data: &Data) -> Result<Arc<Callers>, Fault> {
        let entry = self.callers.entry(data.sha().to_owned());
        self.callers.retain(|sha, _| sha == data.sha());
        let (integration, data) = (Arc::clone(&self.integration), data.clone());
        let query = || async move {
            let query = tokio::task::spawn_blocking(move || integration.callers(&data).map(Arc::new));
            query.await.unwrap_or_else(|error| Err(Fault::internal(error.to_string())))
        };
        entry.get_or_init_if(Result::is_ok, query).await
    }
}

/// The metadata of an integration as [`ManagedObjects`], which adds the flag that prints objects and the
/// permissions of the integration.
pub fn object_meta(integration: &impl ObjectIntegration) -> IntegrationMeta {
    with_print_flag(integration.meta()).permissions(integration.managed_kinds().permissions())
}

/// The key of the callers in the cache of a round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CallersKey;

/// The owner that an integration writes into the annotations of its objects.
fn owner_of(meta: &IntegrationMeta, caller: Option<&str>) -> Arc<Owner> {
    let caller = || caller.map(str::to_owned);
    let first = || Owner::new(&*meta.name, FIRST_VERSION, caller()).expect("a version");
    Arc::new(Owner::of(&meta.name, caller()).unwrap_or_else(first))
}

impl<I: ObjectIntegration> StagedIntegration for ManagedObjects<I> {
    type Common = ();
    type Target = Cluster;
    type State = I::State;
    type Desired = DesiredObject;
    type Current = LiveObject;
    type Action = ObjectAction;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        self.integration.declare(data, options)
    }

    fn secret_lookups(&self, shard: ObjectShardView<'_, I::State>) -> BTreeSet<SecretLookup> {
        self.integration.secret_lookups(shard)
    }

    fn released(
        &self,
        base: ObjectShardView<'_, I::State>,
        head: Option<ObjectShardView<'_, I::State>>,
    ) -> Vec<ReleasedPart> {
        let declared = I::State::declared_objects(base);
        let Some(head) = head else {
            return vec![ReleasedPart { kind: None, count: Some(declared.len()), place: None }];
        };
        let (before, after) = (I::State::scope_spec(base), I::State::scope_spec(head));
        let mut released: BTreeMap<String, usize> = BTreeMap::new();
        for object in declared.iter().flatten().filter(|one| before.manages(one) && !after.manages(one)) {
            *released.entry(object.kind.name.clone()).or_default() += 1;
        }
        let place = head.shard.place("/kinds");
        let part =
            |(kind, count)| ReleasedPart { kind: Some(kind), count: Some(count), place: place.cloned() };
        released.into_iter().map(part).collect()
    }

    fn public_texts(&self, shard: ObjectShardView<'_, I::State>) -> Vec<String> {
        self.integration.public_texts(shard)
    }

    async fn resolve(
        &self,
        read: &ReadContext,
        shard: ObjectShardView<'_, I::State>,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        let scope = self.managed_scope(read, shard).await?;
        let (lookups, reconciler) = (&*self.lookups, &self.reconciler);
        let context = ResolveContext { read, lookups, scope: &scope, reconciler };
        let wanted = self.integration.resolve(context, shard).await?;
        Ok(reject_duplicates(wanted, EqualContent::Merge))
    }

    fn print(&self, key: &ShardKey, wanted: &[DesiredItem<DesiredObject>]) -> Option<String> {
        print_objects(key, wanted)
    }

    async fn observe(
        &self,
        read: &ReadContext,
        shard: ObjectShardView<'_, I::State>,
        wanted: &[DesiredItem<DesiredObject>],
    ) -> Result<CurrentState<LiveObject>, Fault> {
        let scope = self.managed_scope(read, shard).await?;
        Ok(self.reconciler.observe(read, &scope, wanted).await)
    }

    fn incarnations(&self, current: &CurrentState<LiveObject>) -> BTreeSet<String> {
        let objects = current.values().filter_map(|observed| match observed {
            Observed::Known(objects) => Some(objects),
            Observed::Unknown(_) => None,
        });
        // A shard also reads objects that it does not manage, such as workloads to restart.
        let managed = objects.flatten().filter(|object| object.is_managed());
        managed.filter_map(|object| object.version.uid.clone()).collect()
    }

    fn plan(
        &self,
        wanted: &[DesiredItem<DesiredObject>],
        current: &CurrentState<LiveObject>,
    ) -> Plan<ObjectAction> {
        plan_objects(wanted, current)
    }

    fn record_inputs(
        &self,
        wanted: &[DesiredItem<DesiredObject>],
        current: &CurrentState<LiveObject>,
        fingerprints: &Fingerprints,
    ) -> Option<Value> {
        record_inputs(wanted, current, fingerprints)
    }

    fn restore_inputs(&self, recorded: &Value) -> Option<PlanInputs<DesiredObject, LiveObject>> {
        restore_inputs(recorded)
    }

    async fn rehearse(&self, read: &ReadContext, action: &ObjectAction) -> Result<RehearsalResult, Fault> {
        self.reconciler.rehearse(read, action).await
    }

    async fn apply(&self, write: &WriteContext<'_>, action: &ObjectAction) -> Result<ApplyResult, Fault> {
        self.reconciler.apply(write, action).await
    }
}
