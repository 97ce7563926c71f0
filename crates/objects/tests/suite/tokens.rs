//! Access depends on the token: results that are cached in a round are not shared with another token.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, TokenRef, WorkloadRestart,
};
use qontract_inventory::{Callers, Owner};
use qontract_objects::{ManagedKind, ManagedScope, ObjectReconciler};
use qontract_runtime::{
    AddressTrust, Data, IntegrationMeta, Observed, QueryPolicy, ReadContext, RoundCache, ShardSecrets,
};
use qontract_testkit::{Scratch, permits};

use crate::support::test_integration::source;

/// A sandbox that accepts one token only.
struct OneTokenSandbox(Sandbox);

type KubernetesFuture<'a, T> = BoxFuture<'a, Result<T, KubernetesError>>;

fn check_token<'a, T: Send + 'a>(
    cluster: &'a Cluster,
    answer: KubernetesFuture<'a, T>,
) -> KubernetesFuture<'a, T> {
    if cluster.token.as_ref().is_some_and(|token| token.path == "creds/good") {
        return answer;
    }
    let error = KubernetesError::Denied { cluster: cluster.name.clone(), why: "not you".to_owned() };
    std::future::ready(Err(error)).boxed()
}

fn unsupported<'a, T: Send + 'a>() -> KubernetesFuture<'a, T> {
    let error = KubernetesError::Unsupported { what: "anything else".to_owned(), by: "this test" };
    std::future::ready(Err(error)).boxed()
}

impl ObjectReader for OneTokenSandbox {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> KubernetesFuture<'a, ApiResource> {
        check_token(cluster, self.0.api_resource(permit, cluster, kind))
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> KubernetesFuture<'a, Vec<Object>> {
        check_token(cluster, self.0.list(permit, cluster, kind, namespace))
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
    ) -> KubernetesFuture<'a, Option<Object>> {
        unsupported()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, Rehearsal> {
        unsupported()
    }
}

impl ObjectWriter for OneTokenSandbox {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a WorkloadRestart,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }
}

fn managed_scope(token: &str) -> Arc<ManagedScope> {
    let token = TokenRef { path: token.to_owned(), field: "token".to_owned(), version: None };
    let cluster =
        Cluster { name: "c1".to_owned(), server: "https://c1.example.com".to_owned(), token: Some(token) };
    Arc::new(ManagedScope {
        cluster,
        namespace: None,
        kinds: vec![ManagedKind::from(Kind::named("ClusterRole"))],
        owner: Arc::new(Owner::of("openshift-resources", None).unwrap()),
        callers: Arc::new(Callers::Unknown),
        adopts_unmarked: false,
        is_shared: false,
    })
}

#[tokio::test]
async fn results_for_one_token_are_not_used_for_another() {
    let scratch = Scratch::new();
    let reconciler = ObjectReconciler::new(Arc::new(OneTokenSandbox(Sandbox::new(scratch.path()))));
    for order in [["creds/good", "creds/bad"], ["creds/bad", "creds/good"]] {
        let data =
            Data::new(source(), QueryPolicy::of(&IntegrationMeta::new("test-objects", "Manages objects")));
        let read = ReadContext {
            permit: permits(Mode::DryRun).read,
            data,
            cache: RoundCache::default(),
            base: None,
            now: jiff::Timestamp::UNIX_EPOCH,
            secrets: ShardSecrets::default(),
            trust: AddressTrust::default(),
        };
        for token in order {
            let current = reconciler.observe(&read, &managed_scope(token), &[]).await;
            let is_known = current.values().all(|observed| matches!(observed, Observed::Known(_)));
            assert!(!current.is_empty());
            assert_eq!(is_known, token == "creds/good", "{token} in {order:?}");
        }
    }
}
