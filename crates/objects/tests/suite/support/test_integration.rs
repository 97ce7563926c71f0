//! A test integration whose data is a list of objects: the common part of Kubernetes integrations, and
//! nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_bundle::{Pool, load};
use qontract_client_kubernetes::{Cluster, Kind, Kubernetes};
use qontract_graphql::Engine;
use qontract_inventory::{Callers, DesiredBody, Owner, Replacement};
use qontract_objects::{
    DesiredObject, LiveObject, ManagedKind, ManagedScope, ObjectAction, ObjectReconciler, Sensitivity,
    WriteVersion, plan_objects,
};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem, DesiredState, Fault,
    Integration, IntegrationMeta, LoadedBundle, Options, Plan, ReadContext, RehearsalResult, RunOutcome,
    RunRequest, ShardKey, StagedIntegration, WriteContext, run,
};
use serde_json::{Value, json};

/// An object of the test data.
#[derive(Clone, Debug)]
pub struct TestObject {
    /// The object; to delete one, kind and name are enough.
    pub body: Value,
    /// The intent.
    pub intent: TestIntent,
    /// Integrations that the data moved it from.
    pub moved_from: BTreeSet<String>,
}

/// The intent for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestIntent {
    /// It is desired.
    Present,
    /// It is to be deleted.
    Delete,
    /// The desired state is unknown.
    Unresolved,
}

impl TestObject {
    /// A desired object.
    pub fn for_object(body: Value) -> Self {
        Self { body, intent: TestIntent::Present, moved_from: BTreeSet::new() }
    }
}

/// The objects of one namespace.
#[derive(Clone, Debug)]
pub struct TestNamespace {
    /// The namespace.
    pub namespace: String,
    /// The objects.
    pub objects: Vec<TestObject>,
}

/// The integration.
pub struct TestIntegration {
    meta: IntegrationMeta,
    reconciler: ObjectReconciler,
    cluster: Cluster,
    kinds: Vec<ManagedKind>,
    owner: Arc<Owner>,
    callers: Arc<Callers>,
    namespaces: Vec<TestNamespace>,
}

impl TestIntegration {
    /// An integration on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>, cluster: Cluster, owner: Owner, kinds: &[&str]) -> Self {
        Self {
            meta: IntegrationMeta::new("test-objects", "Manages objects").rounds(3),
            reconciler: ObjectReconciler::new(kubernetes),
            cluster,
            kinds: kinds.iter().map(|kind| ManagedKind::from(kind.parse::<Kind>().unwrap())).collect(),
            owner: Arc::new(owner),
            callers: Arc::new(Callers::Unknown),
            namespaces: Vec::new(),
        }
    }

    /// Sets all callers of the integration.
    pub fn callers(mut self, callers: Callers) -> Self {
        self.callers = Arc::new(callers);
        self
    }

    /// Adds a kind that is managed by these names only.
    pub fn named(mut self, kind: &str, names: &[&str]) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.kinds.push(ManagedKind { kind: kind.parse().unwrap(), names: Some(names) });
        self
    }

    /// Sets the number of rounds.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.meta.rounds = rounds;
        self
    }

    /// Adds a namespace with its objects.
    pub fn with_namespace(mut self, namespace: &str, objects: Vec<TestObject>) -> Self {
        self.namespaces.push(TestNamespace { namespace: namespace.to_owned(), objects });
        self
    }

    fn managed_scope(&self, namespace: &str) -> Arc<ManagedScope> {
        Arc::new(ManagedScope {
            cluster: self.cluster.clone(),
            namespace: Some(namespace.to_owned()),
            kinds: self.kinds.clone(),
            owner: Arc::clone(&self.owner),
            callers: Arc::clone(&self.callers),
            adopts_unmarked: false,
            is_shared: false,
            replacement: Replacement::default(),
            write_version: WriteVersion::default(),
        })
    }

    /// Runs once.
    pub fn run(self, mode: Mode) -> RunOutcome {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        tokio.block_on(self.run_in(mode))
    }

    /// Runs once, in the current async runtime.
    pub async fn run_in(self, mode: Mode) -> RunOutcome {
        let mut request = RunRequest::new("run", mode, source(), jiff::civil::date(2026, 1, 1), protected());
        request.validate_schemas = false;
        run(&Integration::staged(self), &request).await
    }
}

/// A bundle that only defines the integration.
pub fn source() -> Arc<LoadedBundle> {
    let bundle = json!({"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": {
            "/integration.yml": {"$schema": "/integration", "path": "/integration.yml", "name": "test-objects", "schemas": []}},
        "graphql": [
            {"name": "Query", "fields": [
                {"name": "integrations_v1", "type": "Integration", "isList": true, "datafileSchema": "/integration"}]},
            {"name": "Integration", "fields": [{"name": "name", "type": "string"}, {"name": "path", "type": "string"},
                {"name": "schemas", "type": "string", "isList": true}]}]});
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).unwrap())))
}

impl StagedIntegration for TestIntegration {
    type Common = ();
    type Target = String;
    type State = usize;
    type Desired = DesiredObject;
    type Current = LiveObject;
    type Action = ObjectAction;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        for (index, namespace) in self.namespaces.iter().enumerate() {
            let key = ShardKey::new([("namespace", namespace.namespace.as_str())]);
            declared.add(key, Shard::new(namespace.namespace.clone(), index, None));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, usize>,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        let managed_scope = self.managed_scope(&view.shard.target);
        let want = |test_object: &TestObject| {
            let kind = managed_scope.kind_of(&test_object.body).expect("a managed kind").clone();
            let name = test_object.body["metadata"]["name"].as_str().unwrap();
            let item = || DesiredObject {
                managed_scope: Arc::clone(&managed_scope),
                kind: kind.clone(),
                desired: DesiredBody::new(test_object.body.clone()).unwrap(),
                sensitivity: Sensitivity::Public,
                moved_from: test_object.moved_from.clone(),
                awaits_rollout: false,
                hints: Vec::new(),
            };
            let wanted = match test_object.intent {
                TestIntent::Present => DesiredState::Present(item()),
                TestIntent::Delete => DesiredState::Delete,
                TestIntent::Unresolved => DesiredState::Unresolved(Fault::remote("the store is away")),
            };
            DesiredItem { object: managed_scope.object_key(&kind, name), place: None, state: wanted }
        };
        Ok(self.namespaces[view.shard.state].objects.iter().map(want).collect())
    }

    async fn observe(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
        wanted: &[DesiredItem<DesiredObject>],
    ) -> Result<CurrentState<LiveObject>, Fault> {
        Ok(self.reconciler.observe(read, &self.managed_scope(&view.shard.target), wanted).await)
    }

    fn plan(
        &self,
        wanted: &[DesiredItem<DesiredObject>],
        current: &CurrentState<LiveObject>,
    ) -> Plan<ObjectAction> {
        plan_objects(wanted, current)
    }

    async fn rehearse(&self, read: &ReadContext, action: &ObjectAction) -> Result<RehearsalResult, Fault> {
        self.reconciler.rehearse(read, action).await
    }

    async fn apply(&self, write: &WriteContext<'_>, action: &ObjectAction) -> Result<ApplyResult, Fault> {
        self.reconciler.apply(write, action).await
    }
}

/// The kinds whose removal needs an approval.
fn protected() -> ProtectedKinds {
    ProtectedKinds::new(["Namespace", "Project", "PersistentVolume", "PersistentVolumeClaim"])
}
