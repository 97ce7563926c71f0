//! Access depends on the token: results that are cached in a round are not shared with another token.

use std::sync::Arc;

use qontract_access::Mode;
use qontract_client_kubernetes::{Cluster, Kind, KubernetesError, Sandbox, TokenRef};
use qontract_inventory::{Callers, Owner, Replacement};
use qontract_objects::{ManagedKind, ManagedScope, ObjectReconciler, WriteVersion};
use qontract_runtime::{
    AddressTrust, Data, IntegrationMeta, Observed, QueryPolicy, ReadContext, RoundCache, ShardSecrets,
};
use qontract_testkit::{Scratch, permits};

use crate::support::refusing_sandbox::RefusingSandbox;
use crate::support::test_integration::source;

/// Accepts one token only.
fn denied(cluster: &Cluster, _: &Kind) -> Option<KubernetesError> {
    let is_good = cluster.token.as_ref().is_some_and(|token| token.path == "creds/good");
    (!is_good).then(|| KubernetesError::Denied { cluster: cluster.name.clone(), why: "not you".to_owned() })
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
        replacement: Replacement::default(),
        write_version: WriteVersion::default(),
    })
}

#[tokio::test]
async fn results_for_one_token_are_not_used_for_another() {
    let scratch = Scratch::new();
    let cluster = RefusingSandbox { sandbox: Sandbox::new(scratch.path()), refusal: denied };
    let reconciler = ObjectReconciler::new(Arc::new(cluster));
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
