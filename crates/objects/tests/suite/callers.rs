//! Callers share the lists of their namespace and the callers of a bundle, however many they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, WorkloadRestart,
};
use qontract_client_secrets::ConfigSecrets;
use qontract_inventory::Callers;
use qontract_objects::templates::ExternalLookups;
use qontract_objects::{Declared, DeclaredObjects, ManagedObjects, ObjectIntegration};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::state::Shard;
use qontract_runtime::{
    Data, Fault, Integration, IntegrationMeta, ManagedKinds, Options, RunOutcome, RunRequest, ShardKey, run,
};
use qontract_testkit::Scratch;
use serde_json::{Value, json};

use crate::support::test_integration::source;

type KubernetesFuture<'a, T> = BoxFuture<'a, Result<T, KubernetesError>>;

/// A sandbox that counts its list requests.
struct CountingSandbox {
    sandbox: Sandbox,
    lists: Arc<AtomicUsize>,
}

impl ObjectReader for CountingSandbox {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> KubernetesFuture<'a, ApiResource> {
        self.sandbox.api_resource(permit, cluster, kind)
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> KubernetesFuture<'a, Vec<Object>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.sandbox.list(permit, cluster, kind, namespace)
    }

    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> KubernetesFuture<'a, Option<Object>> {
        self.sandbox.get(permit, cluster, address)
    }

    fn rehearse<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, Rehearsal> {
        self.sandbox.rehearse(permit, cluster, manager, draft)
    }
}

impl ObjectWriter for CountingSandbox {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, ()> {
        self.sandbox.put(permit, cluster, manager, draft)
    }

    fn remove<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
        version: &'a ObjectVersion,
    ) -> KubernetesFuture<'a, ()> {
        self.sandbox.remove(permit, cluster, address, version)
    }

    fn restart<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> KubernetesFuture<'a, ()> {
        self.sandbox.restart(permit, cluster, restart)
    }
}

/// Five callers in one namespace. The last one declares no object of the second kind, and the first one no
/// object at all.
struct Fleet {
    /// Whether a changed object restarts the workloads that use it.
    recycles: bool,
    asked_for_callers: Arc<AtomicUsize>,
}

const CALLERS: [&str; 5] = ["a", "b", "c", "d", "e"];

impl Fleet {
    fn object(&self, kind: &str, caller: &str) -> Value {
        let annotations = if self.recycles { json!({"qontract.recycle": "true"}) } else { json!({}) };
        let metadata = json!({"name": format!("of-{caller}"), "annotations": annotations});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {}})
    }
}

impl ObjectIntegration for Fleet {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        IntegrationMeta::new("test-objects", "Declares objects of five callers").rounds(3)
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Fixed("ConfigMap")
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        let mut declared = Declared::new(());
        for caller in CALLERS {
            let server = "https://c1.example.com".to_owned();
            let cluster = Cluster { name: "c1".to_owned(), server, token: None };
            let kinds: BTreeSet<Kind> = ["ConfigMap", "Secret"].map(Kind::named).into();
            let objects = match caller {
                "a" => Vec::new(),
                "e" => vec![self.object("ConfigMap", caller)],
                _ => vec![self.object("ConfigMap", caller), self.object("Secret", caller)],
            };
            let key = ShardKey::new([("cluster", "c1"), ("namespace", "shop"), ("caller", caller)]);
            let state = DeclaredObjects { kinds, objects, ..DeclaredObjects::default() };
            declared.add(key, Shard::new(cluster, state, None));
        }
        Ok(declared)
    }

    fn has_callers(&self) -> bool {
        true
    }

    fn callers(&self, _: &Data) -> Result<Callers, Fault> {
        self.asked_for_callers.fetch_add(1, Ordering::Relaxed);
        Ok(Callers::Whole(CALLERS.map(str::to_owned).into()))
    }
}

/// A target with the namespace, and the counters of its requests.
struct Fixture {
    _scratch: Scratch,
    lists: Arc<AtomicUsize>,
    asked_for_callers: Arc<AtomicUsize>,
    integration: Integration,
}

impl Fixture {
    fn new(recycles: bool) -> Self {
        let (scratch, lists, asked) = (Scratch::new(), Arc::default(), Arc::default());
        scratch.write("clusters/c1/_cluster/Namespace/shop.yaml", "{}");
        let sandbox = Sandbox::new(scratch.path());
        let kubernetes = Arc::new(CountingSandbox { sandbox, lists: Arc::clone(&lists) });
        let lookups = ExternalLookups::secrets(Arc::new(ConfigSecrets::new(toml::Table::new())));
        let fleet = Fleet { recycles, asked_for_callers: Arc::clone(&asked) };
        let integration = Integration::staged(ManagedObjects::new(fleet, kubernetes, Arc::new(lookups)));
        Self { _scratch: scratch, lists, asked_for_callers: asked, integration }
    }

    /// Runs once, and returns the outcome with the number of list requests.
    async fn run(&self, mode: Mode) -> (RunOutcome, usize) {
        let protected = ProtectedKinds::default();
        let mut request = RunRequest::new("run", mode, source(), jiff::civil::date(2026, 1, 1), protected);
        request.validate_schemas = false;
        let outcome = run(&self.integration, &request).await;
        assert_eq!(outcome.all_faults().next(), None);
        (outcome, self.lists.swap(0, Ordering::Relaxed))
    }
}

#[tokio::test]
async fn callers_of_a_namespace_share_one_list_per_kind() {
    let fixture = Fixture::new(false);
    let (outcome, lists) = fixture.run(Mode::DryRun).await;
    let changes: usize = outcome.shards.values().map(|shard| shard.changes.len()).sum();
    assert_eq!((changes, lists), (7, 2));
    // A real run has a second round, which reads again.
    assert_eq!(fixture.run(Mode::Real).await.1, 4);
    assert_eq!(fixture.run(Mode::Real).await.1, 2, "nothing to do");
}

#[tokio::test]
async fn the_workloads_of_a_namespace_are_listed_once_for_all_callers() {
    let fixture = Fixture::new(true);
    // Each of the three rounds lists two kinds. The second one also lists the four kinds of workloads, because the
    // first one has created objects that restart them; the third one finds nothing to do.
    assert_eq!(fixture.run(Mode::Real).await.1, 3 * 2 + 4);
}

#[tokio::test]
async fn the_callers_of_a_bundle_are_determined_once() {
    let fixture = Fixture::new(false);
    let bundle = source();
    for _ in 0..2 {
        let (today, protected) = (jiff::civil::date(2026, 1, 1), ProtectedKinds::default());
        let mut request = RunRequest::new("run", Mode::Real, Arc::clone(&bundle) as _, today, protected);
        request.validate_schemas = false;
        run(&fixture.integration, &request).await;
    }
    assert_eq!(fixture.asked_for_callers.load(Ordering::Relaxed), 1);
}
