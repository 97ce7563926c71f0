//! Client for real clusters. All requests go through our HTTP stack, so that its guarantees apply.

mod access;
mod connection;
mod discovery_cache;
mod page;
mod read;
mod request;
mod rewrite;
mod status;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_http::{Secret, Settings};

use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, Kind, KindVersion, Object, ObjectAddress, ObjectVersion};
use crate::{ObjectDraft, ObjectReader, ObjectWriter, Rehearsal, WorkloadRestart};
use connection::ClusterConnection;

pub use access::{AccessDecision, AccessRequest};

/// A token for a cluster.
#[derive(Clone, Debug)]
pub struct ClusterToken {
    /// The token.
    pub secret: Secret,
    /// The only server to which the token may be sent, if known.
    pub server: Option<String>,
}

/// An error while reading a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// The reason.
    pub why: String,
    /// Whether a retry may help.
    pub transient: bool,
}

impl<T: Into<String>> From<T> for TokenError {
    fn from(why: T) -> Self {
        Self { why: why.into(), transient: false }
    }
}

/// The source of tokens.
pub trait TokenSource: Send + Sync {
    /// Reads the token of a cluster. Called once for each cluster, and again after the token was rejected.
    fn token<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
    ) -> BoxFuture<'a, Result<ClusterToken, TokenError>>;
}

/// A client certificate, used instead of a token.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate and its private key, as PEM.
    pub pem: Secret,
    /// The only server for which the certificate may be used.
    pub server: String,
}

/// Settings of a cluster that are not part of the data.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The client certificate, if no token is used.
    pub certificate: Option<ClientCertificate>,
    /// Certificates, as PEM, to trust in addition to the trust store of the machine.
    pub ca: Option<Vec<u8>>,
    /// Maximum number of requests per second.
    pub per_second: NonZeroU32,
    /// Timeout of a request, including retries; by default that of the HTTP settings.
    pub deadline: Option<Duration>,
    /// Whether writes are rehearsed on the cluster.
    pub rehearses: bool,
    /// Timeout for the removal of an object that is replaced.
    pub removal_timeout: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            certificate: None,
            ca: None,
            per_second: NonZeroU32::new(50).expect("not zero"),
            deadline: None,
            rehearses: false,
            removal_timeout: Duration::from_secs(30),
        }
    }
}

/// The source of the settings of clusters.
pub trait SettingsSource: Send + Sync {
    /// Reads the settings of a cluster; the error names the key of the configuration. Called by the first
    /// request to the cluster, and again by the next request if the call failed.
    fn settings(&self, cluster: &str) -> Result<ClusterSettings, String>;
}

impl SettingsSource for BTreeMap<String, ClusterSettings> {
    /// The settings by the name of the cluster; clusters without an entry have the default settings.
    fn settings(&self, cluster: &str) -> Result<ClusterSettings, String> {
        Ok(self.get(cluster).cloned().unwrap_or_default())
    }
}

impl<S: SettingsSource + ?Sized> SettingsSource for Arc<S> {
    fn settings(&self, cluster: &str) -> Result<ClusterSettings, String> {
        (**self).settings(cluster)
    }
}

/// Client of real clusters for one run. Create one per process: discovery results and connections are shared
/// with the clients of other runs.
#[derive(Clone)]
pub struct Clusters {
    permit: ReadPermit,
    shared: Arc<SharedClusters>,
}

/// The state that the clients of several runs share.
struct SharedClusters {
    http: Settings,
    tokens: Arc<dyn TokenSource>,
    settings: Box<dyn SettingsSource>,
    connections: Mutex<BTreeMap<Cluster, Arc<ClusterConnection>>>,
}

impl Clusters {
    /// Creates a client for the run of the permit. The settings of a cluster are read on its first use.
    pub fn new(
        permit: &ReadPermit,
        http: Settings,
        tokens: Arc<dyn TokenSource>,
        settings: impl SettingsSource + 'static,
    ) -> Self {
        let settings = Box::new(settings);
        let shared = SharedClusters { http, tokens, settings, connections: Mutex::default() };
        Self { permit: permit.clone(), shared: Arc::new(shared) }
    }

    /// Creates a client of the same clusters for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { permit: permit.clone(), shared: Arc::clone(&self.shared) }
    }

    /// The connection to a cluster: one per name, server and token. It is created on first use, under the
    /// lock of the map.
    fn connection(&self, cluster: &Cluster) -> Result<Arc<ClusterConnection>, KubernetesError> {
        let mut connections = self.shared.connections.lock();
        if let Some(connection) = connections.get(cluster) {
            return Ok(Arc::clone(connection));
        }
        let settings = self.shared.settings.settings(&cluster.name);
        let settings =
            settings.map_err(|why| KubernetesError::Settings { cluster: cluster.name.clone(), why })?;
        let connection = ClusterConnection::new(&self.permit, &self.shared.http, cluster, settings)?;
        let connection = Arc::new(connection);
        connections.insert(cluster.clone(), Arc::clone(&connection));
        Ok(connection)
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clusters({})", self.permit.mode().as_str())
    }
}

impl ObjectReader for Clusters {
    fn api_resource<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> BoxFuture<'a, Result<ApiResource, KubernetesError>> {
        async move { Ok(self.find_kind(cluster, kind).await?.resource) }.boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        self.list_all(cluster, KindVersion { kind, api_version: None }, namespace).boxed()
    }

    fn list_version<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: KindVersion<'a>,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, KubernetesError>> {
        self.list_all(cluster, kind, namespace).boxed()
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
    ) -> BoxFuture<'a, Result<Option<Object>, KubernetesError>> {
        self.get_object(cluster, address).boxed()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<Rehearsal, KubernetesError>> {
        self.rehearse_draft(cluster, manager, draft).boxed()
    }
}

impl ObjectWriter for Clusters {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        manager: &'a str,
        draft: &'a ObjectDraft,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.put_draft(permit, cluster, manager, draft).boxed()
    }

    fn remove<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        address: &'a ObjectAddress,
        version: &'a ObjectVersion,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.remove_object(permit, cluster, address, version).boxed()
    }

    fn restart<'a>(
        &'a self,
        permit: &'a WritePermit,
        cluster: &'a Cluster,
        restart: &'a WorkloadRestart,
    ) -> BoxFuture<'a, Result<(), KubernetesError>> {
        self.restart_workload(permit, cluster, restart).boxed()
    }
}
