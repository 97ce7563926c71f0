//! The test fixture: a cluster with a namespace of its own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, Permits, ReadPermit};
use qontract_client_http::{Proxies, Secret, Settings};
use qontract_client_kubernetes::{
    Cluster, ClusterSettings, ClusterToken, Clusters, FieldOwnership, Kind, Kubernetes, KubernetesError,
    MANAGER, Object, ObjectAddress, ObjectDraft, Sandbox, TokenError, TokenSource, WritePrecondition,
};
use qontract_testkit::{Scratch, permits};
use serde_json::{Value, json};

/// A cluster to test on.
pub struct ContractFixture {
    pub kubernetes: Box<dyn Kubernetes>,
    pub permits: Permits,
    pub cluster: Cluster,
    /// A namespace that no other test uses.
    pub namespace: String,
    /// The directory of the sandbox.
    pub scratch: Option<Scratch>,
}

/// The real API server, from environment variables.
pub struct RealApiServer {
    pub url: String,
    pub ca: Vec<u8>,
    pub token: String,
    pub plain_token: String,
    pub kubectl: String,
}

impl RealApiServer {
    pub fn shared() -> Self {
        let variable = |name: &str| {
            std::env::var(name)
                .unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test` for a real cluster"))
        };
        Self {
            url: variable("QONTRACT_KUBE_URL"),
            ca: std::fs::read(variable("QONTRACT_KUBE_CA")).expect("QONTRACT_KUBE_CA is a file"),
            token: variable("QONTRACT_KUBE_TOKEN"),
            plain_token: variable("QONTRACT_KUBE_PLAIN_TOKEN"),
            kubectl: variable("QONTRACT_KUBECTL"),
        }
    }

    pub fn cluster(&self) -> Cluster {
        Cluster { name: "real".to_owned(), server: self.url.clone(), token: None }
    }

    pub fn settings(&self) -> ClusterSettings {
        ClusterSettings {
            ca: Some(self.ca.clone()),
            per_second: NonZeroU32::new(1000).unwrap(),
            rehearses: true,
            removal_timeout: Duration::from_secs(2),
            ..ClusterSettings::default()
        }
    }

    /// The clusters of a run, with this token.
    pub fn clusters(&self, permit: &ReadPermit, token: &str) -> Clusters {
        let token = ClusterToken { secret: Secret::new(token), server: Some(format!("{}/", self.url)) };
        let settings = BTreeMap::from([("real".to_owned(), self.settings())]);
        Clusters::new(permit, http(), Arc::new(FixedToken(token)), settings)
    }

    /// Runs kubectl and returns its output.
    pub fn kubectl(&self, arguments: &[&str], input: &Value) -> String {
        let scratch = Scratch::new();
        let ca = scratch.write("ca.pem", &self.ca);
        let mut child = Command::new(&self.kubectl)
            .args(["--kubeconfig=/dev/null", "--server", &self.url, "--token", &self.token])
            .arg(format!("--certificate-authority={}", ca.display()))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl can be run");
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The same token for all clusters.
pub struct FixedToken(pub ClusterToken);

impl TokenSource for FixedToken {
    fn token<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>> {
        async { Ok(self.0.clone()) }.boxed()
    }
}

/// HTTP settings with few and short retries.
pub fn http() -> Settings {
    Settings {
        retries: 1,
        initial_backoff: Duration::from_millis(10),
        proxies: Proxies::Never,
        ..Settings::default()
    }
}

/// A unique name.
pub fn unique(prefix: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl ContractFixture {
    pub async fn sandbox() -> Self {
        let scratch = Scratch::new();
        let cluster =
            Cluster { name: "c1".to_owned(), server: "https://api.example.com".to_owned(), token: None };
        Self::start(Box::new(Sandbox::new(scratch.path())), cluster, Some(scratch)).await
    }

    pub async fn real_cluster() -> Self {
        let api = RealApiServer::shared();
        let clusters = api.clusters(&permits(Mode::Real).read, &api.token);
        Self::start(Box::new(clusters), api.cluster(), None).await
    }

    async fn start(kubernetes: Box<dyn Kubernetes>, cluster: Cluster, scratch: Option<Scratch>) -> Self {
        let fixture =
            Self { kubernetes, permits: permits(Mode::Real), cluster, namespace: unique("t"), scratch };
        let namespace = ObjectAddress::cluster_scoped(Kind::namespace(), fixture.namespace.clone());
        fixture.put(&namespace, json!({}), WritePrecondition::Absent).await.unwrap();
        fixture
    }

    /// Removes the namespace.
    pub async fn clean(&self) {
        let namespace = ObjectAddress::cluster_scoped(Kind::namespace(), self.namespace.clone());
        // The controllers of a real cluster write to it as well, so the removal may have to be retried.
        while let Err(error) = self.remove(&self.get(&namespace).await).await {
            assert!(matches!(error, KubernetesError::Stale { .. }), "{error}");
        }
    }

    pub fn config_map(&self, name: &str) -> ObjectAddress {
        self.address("ConfigMap", name)
    }

    pub fn address(&self, kind: &str, name: &str) -> ObjectAddress {
        ObjectAddress::in_namespace(kind.parse().unwrap(), self.namespace.clone(), name)
    }

    pub async fn put(
        &self,
        address: &ObjectAddress,
        body: Value,
        onto: WritePrecondition,
    ) -> Result<(), KubernetesError> {
        self.put_as(MANAGER, address, body, onto).await
    }

    pub async fn put_as(
        &self,
        manager: &str,
        address: &ObjectAddress,
        body: Value,
        onto: WritePrecondition,
    ) -> Result<(), KubernetesError> {
        let draft = ObjectDraft { address: address.clone(), body, precondition: onto, is_sensitive: false };
        self.kubernetes.put(self.permits.write.as_ref().unwrap(), &self.cluster, manager, &draft).await
    }

    /// Applies onto the current version.
    pub async fn apply(&self, address: &ObjectAddress, body: Value) -> Result<(), KubernetesError> {
        let live = self.get(address).await;
        self.put(address, body, WritePrecondition::Version(live.version, live.field_ownership)).await
    }

    /// Applies onto the current version as another manager.
    pub async fn apply_as(&self, manager: &str, address: &ObjectAddress, body: Value) {
        loop {
            let live = self.get(address).await;
            let onto = WritePrecondition::Version(live.version, FieldOwnership::Ours);
            match self.put_as(manager, address, body.clone(), onto).await {
                // The controllers of a real cluster write to workloads as well.
                Err(KubernetesError::Stale { .. }) => {}
                other => return other.unwrap(),
            }
        }
    }

    pub async fn find(&self, address: &ObjectAddress) -> Option<Object> {
        self.kubernetes.get(&self.permits.read, &self.cluster, address).await.unwrap()
    }

    pub async fn get(&self, address: &ObjectAddress) -> Object {
        self.find(address).await.unwrap()
    }

    pub async fn list(&self, kind: &str, namespace: &str) -> Vec<Object> {
        let kind = kind.parse().unwrap();
        self.kubernetes.list(&self.permits.read, &self.cluster, &kind, Some(namespace)).await.unwrap()
    }

    pub async fn remove(&self, object: &Object) -> Result<(), KubernetesError> {
        let write = self.permits.write.as_ref().unwrap();
        self.kubernetes.remove(write, &self.cluster, &object.address, &object.version).await
    }

    /// Applies client-side, like kubectl.
    pub fn kubectl_apply(&self, name: &str, body: &Value) {
        self.kubectl_apply_kind("v1", "ConfigMap", name, body);
    }

    /// Applies an object of a kind client-side, like kubectl.
    pub fn kubectl_apply_kind(&self, api_version: &str, kind: &str, name: &str, body: &Value) {
        let mut body = body.clone();
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        body["metadata"] = json!({"name": name, "namespace": self.namespace});
        let Some(scratch) = &self.scratch else {
            RealApiServer::shared().kubectl(&["apply", "-f", "-"], &body);
            return;
        };
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": body.to_string()});
        body["metadata"]["annotations"] = annotations;
        scratch.write(&format!("clusters/c1/{}/{kind}/{name}.yaml", self.namespace), body.to_string());
    }

    /// Waits until a kind is served: a real cluster takes a moment.
    pub async fn wait_until_served(&self, kind: &str) {
        let kind: Kind = kind.parse().unwrap();
        for _ in 0..200 {
            if self.kubernetes.api_resource(&self.permits.read, &self.cluster, &kind).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{kind} is not served after 10 s");
    }
}
