//! The adapter for integrations that manage Kubernetes objects.
//!
//! An [`ObjectIntegration`] declares the objects of each shard; [`ManagedObjects`] turns it into an
//! integration that observes, plans, rehearses and applies like all others.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kubernetes};
use qontract_inventory::{Callers, Owner};
use qontract_runtime::guard::Date;
use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Rehearsed, SecretLookup, Staged, View,
    Want, World, Write,
};
use serde::Serialize;

use crate::Declared;
use crate::reconcile::{Action, LiveObject, ObjectReconciler};
use crate::scope::{DesiredObject, ManagedKind, ManagedScope};
use crate::templates::Outside;

/// The version in the annotations of an integration that does not exist in the established runtime.
const FIRST_VERSION: &str = "0.1.0";

/// One shard with its key.
pub type ShardView<'d, S> = View<'d, (), Cluster, S>;

/// The part that differs between Kubernetes integrations.
pub trait ObjectIntegration: Send + Sync + 'static {
    /// The declared state of a shard: [`DeclaredObjects`](crate::DeclaredObjects) if its objects follow from the data alone.
    type State: ObjectState;

    /// Its name, queries, flags and promises.
    fn about(&self) -> About;

    /// Declares the shards and their states from the data.
    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<Self::State>, Fault>;

    /// The secrets that the data names for a shard; see [`Staged::secret_lookups`].
    fn secret_lookups(&self, _: ShardView<'_, Self::State>) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }

    /// Texts that follow from the data alone; see [`Staged::public_texts`].
    fn public_texts(&self, _: ShardView<'_, Self::State>) -> Vec<String> {
        Vec::new()
    }

    /// The desired objects of a shard. By default they follow from its state alone; override this to look up
    /// templates and secrets.
    fn resolve(
        &self,
        context: ResolveContext<'_>,
        shard: ShardView<'_, Self::State>,
    ) -> impl Future<Output = Result<Vec<Want<DesiredObject>>, Fault>> + Send {
        std::future::ready(Self::State::wants(shard, context.scope, context.read.today))
    }
}

/// The declared state of one shard.
pub trait ObjectState: Serialize + Send + Sync + Sized + 'static {
    /// The objects that the shard manages.
    fn scope(shard: ShardView<'_, Self>) -> ScopeSpec;

    /// The objects that follow from the state alone. An integration that needs look-ups overrides
    /// [`ObjectIntegration::resolve`] instead.
    fn wants(
        _: ShardView<'_, Self>,
        _: &Arc<ManagedScope>,
        _: Date,
    ) -> Result<Vec<Want<DesiredObject>>, Fault> {
        Err(Fault::us("the integration does not resolve its objects"))
    }
}

/// Specification of the objects that a shard manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeSpec {
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The kinds.
    pub kinds: Vec<ManagedKind>,
    /// Whether unmarked objects are managed, too: those that are not desired are removed.
    pub adopts_unmarked: bool,
}

/// The context for resolving a shard.
#[derive(Clone, Copy, Debug)]
pub struct ResolveContext<'r> {
    /// The read context: permit, data, and the cache of this round.
    pub read: &'r Read,
    /// Secrets and other external look-ups of templates.
    pub lookups: &'r Outside,
    /// The objects that the shard manages.
    pub scope: &'r Arc<ManagedScope>,
}

/// An [`ObjectIntegration`] bound to clusters: the form that the runner executes.
pub struct ManagedObjects<I> {
    integration: I,
    about: About,
    owner: Arc<Owner>,
    reconciler: ObjectReconciler,
    lookups: Arc<Outside>,
}

impl<I: ObjectIntegration> ManagedObjects<I> {
    /// Binds the integration to clusters and look-ups.
    pub fn new(integration: I, kubernetes: Arc<dyn Kubernetes>, lookups: Arc<Outside>) -> Self {
        let about = integration.about();
        let first = || Owner::new(&*about.name, FIRST_VERSION, None).expect("a version");
        let owner = Arc::new(Owner::of(&about.name, None).unwrap_or_else(first));
        Self { integration, about, owner, reconciler: ObjectReconciler::new(kubernetes), lookups }
    }

    fn scope(&self, shard: ShardView<'_, I::State>) -> Arc<ManagedScope> {
        let ScopeSpec { namespace, kinds, adopts_unmarked } = I::State::scope(shard);
        Arc::new(ManagedScope {
            cluster: shard.shard.target.clone(),
            namespace,
            kinds,
            owner: Arc::clone(&self.owner),
            callers: Arc::new(Callers::Unknown),
            adopts_unmarked,
        })
    }
}

impl<I: ObjectIntegration> Staged for ManagedObjects<I> {
    type Common = ();
    type Target = Cluster;
    type State = I::State;
    type Item = DesiredObject;
    type Found = LiveObject;
    type Action = Action;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<DeclaredOf<Self>, Fault> {
        self.integration.declare(data, options)
    }

    fn secret_lookups(&self, shard: ShardView<'_, I::State>) -> BTreeSet<SecretLookup> {
        self.integration.secret_lookups(shard)
    }

    fn public_texts(&self, shard: ShardView<'_, I::State>) -> Vec<String> {
        self.integration.public_texts(shard)
    }

    async fn resolve(
        &self,
        read: &Read,
        shard: ShardView<'_, I::State>,
    ) -> Result<Vec<Want<DesiredObject>>, Fault> {
        let scope = self.scope(shard);
        let context = ResolveContext { read, lookups: &self.lookups, scope: &scope };
        self.integration.resolve(context, shard).await
    }

    async fn observe(
        &self,
        read: &Read,
        shard: ShardView<'_, I::State>,
        wanted: &[Want<DesiredObject>],
    ) -> Result<World<LiveObject>, Fault> {
        Ok(self.reconciler.observe(read, &self.scope(shard), wanted).await)
    }

    fn plan(&self, wanted: &[Want<DesiredObject>], world: &World<LiveObject>) -> Plan<Action> {
        self.reconciler.plan(wanted, world)
    }

    async fn rehearse(&self, read: &Read, action: &Action) -> Result<Rehearsed, Fault> {
        self.reconciler.rehearse(read, action).await
    }

    async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        self.reconciler.apply(write, action).await
    }
}
