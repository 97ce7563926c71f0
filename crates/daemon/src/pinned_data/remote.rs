//! A bundle on a server, pinned by its sha.

mod cache;
mod resources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cache::{AnswerCache, RequestKey};
use qontract_access::ReadPermit;
use qontract_bundle::json::write_javascript;
use qontract_bundle::{Map, Value};
use qontract_client_http::{Http, Secret, Settings, Url};
use qontract_client_server::{
    BundleSelector, CommitInfo, GraphqlQuery, QueryAnswer, ServerClient, ServerError, ServerLease, Sha,
};
use qontract_config::GraphqlTable;
use qontract_graphql::{Engine, Node};
use qontract_runtime::{
    BundleReader, DataError, QueryRequest, SourceLocations, UntypedAnswer, unknown_fields,
};
use tokio::runtime::Handle;

use crate::exit::UsageError;
use crate::pinned_data::PinnedData;
use crate::reconciled_data::OpenError;

/// The server of a configuration.
pub struct ServerConnection {
    server: ServerClient,
    url: Url,
    runtime: Handle,
    /// Whether requests have a token; the server grants leases only with a token.
    has_token: bool,
}

/// Duration of a lease, which is the maximum that a server grants, and the maximum duration of a loop run.
/// The lease is released when the run ends.
const LEASE_DURATION: Duration = Duration::from_hours(1);

/// A lease on a bundle of the server, released when this is dropped.
struct BundleLease {
    server: ServerClient,
    runtime: Handle,
    sha: Sha,
    lease: ServerLease,
}

impl Drop for BundleLease {
    fn drop(&mut self) {
        let (server, sha, lease) = (self.server.clone(), self.sha.clone(), self.lease.clone());
        let release = async move {
            let permit = ReadPermit::for_data();
            // A lease that cannot be released expires.
            let _ = tokio::time::timeout(Duration::from_secs(2), server.release(&permit, &sha, &lease)).await;
        };
        if Handle::try_current().is_ok() {
            self.runtime.spawn(release);
        } else {
            self.runtime.block_on(release);
        }
    }
}

impl ServerConnection {
    /// The server of a configuration; sends no request.
    pub fn new(graphql: &GraphqlTable, runtime: Handle) -> anyhow::Result<Self> {
        Self::with_limits(graphql, runtime, Settings::default())
    }

    /// The server of a configuration, with these request limits; sends no request.
    pub fn with_limits(graphql: &GraphqlTable, runtime: Handle, limits: Settings) -> anyhow::Result<Self> {
        let url = Url::parse(&graphql.server)
            .map_err(|error| UsageError(format!("`graphql.server` is not a URL: {error}")))?;
        let http = Http::new(&ReadPermit::for_data(), limits)?;
        let token = graphql.token.as_deref().map(Secret::new);
        let has_token = token.is_some();
        Ok(Self { server: ServerClient::new(&http, url.clone(), token), url, runtime, has_token })
    }

    /// The sha of the latest bundle.
    pub fn latest(&self) -> anyhow::Result<String> {
        Ok(self.latest_sha()?.to_string())
    }

    fn latest_sha(&self) -> anyhow::Result<Sha> {
        let permit = ReadPermit::for_data();
        let call = self.server.latest_sha(&permit);
        tokio::task::block_in_place(|| self.runtime.block_on(call))
            .with_context(|| format!("cannot read the data of `{}`", self.url))
    }

    /// The latest bundle. Unless it is pinned, each query uses the latest bundle at that time.
    pub fn head(&self, pinned: bool) -> anyhow::Result<RemoteBundle> {
        let sha = self.latest_sha()?;
        let address = if pinned { BundleSelector::Sha(sha.clone()) } else { BundleSelector::Latest };
        Ok(self.remote(&sha, address))
    }

    /// Requests a lease on a bundle. A failure is ignored: without a lease, a bundle stays loaded as long as
    /// it is queried.
    fn lease(&self, sha: &Sha) -> Option<BundleLease> {
        if !self.has_token {
            return None;
        }
        let permit = ReadPermit::for_data();
        let call = self.server.lease(&permit, sha, LEASE_DURATION);
        let lease = tokio::task::block_in_place(|| self.runtime.block_on(call)).ok()??;
        Some(BundleLease {
            server: self.server.clone(),
            runtime: self.runtime.clone(),
            sha: sha.clone(),
            lease,
        })
    }

    /// The bundle with a sha.
    pub fn base(&self, sha: &str) -> anyhow::Result<RemoteBundle> {
        let sha = Sha::parse(sha).ok_or_else(|| {
            UsageError(format!("`{sha}` is not the SHA-256 of a bundle, which has 64 digits"))
        })?;
        Ok(self.remote(&sha, BundleSelector::Sha(sha.clone())))
    }

    /// Identifies the server: its URL without credentials.
    pub fn identity(&self) -> String {
        let mut url = self.url.clone();
        // They fail for URLs that cannot have credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }

    /// A bundle that the server had earlier.
    pub fn reopen(&self, sha: &str) -> Result<PinnedData, OpenError> {
        let name = Sha::parse(sha).context("it is not the sha of a bundle").map_err(OpenError::Lost)?;
        let permit = ReadPermit::for_data();
        let call = self.server.commit_info(&permit, &name);
        match tokio::task::block_in_place(|| self.runtime.block_on(call)) {
            Err(error @ ServerError::UnknownSha(_)) => Err(OpenError::Lost(error.into())),
            Err(error) => Err(OpenError::Unavailable(error.into())),
            Ok(_) => {
                self.base(sha).map(|bundle| PinnedData::remote(Arc::new(bundle))).map_err(OpenError::Lost)
            }
        }
    }

    fn remote(&self, sha: &Sha, address: BundleSelector) -> RemoteBundle {
        let permit = ReadPermit::for_data();
        // A failure is ignored: if the server does not have the bundle, the first query reports it.
        let call = self.server.commit_info(&permit, sha);
        let info = tokio::task::block_in_place(|| self.runtime.block_on(call)).ok();
        RemoteBundle {
            server: self.server.clone(),
            runtime: self.runtime.clone(),
            endpoint: match &address {
                BundleSelector::Sha(sha) => format!("{}sha/{sha}", self.url),
                BundleSelector::Latest => self.url.to_string(),
            },
            lease: matches!(address, BundleSelector::Sha(_)).then(|| self.lease(sha)).flatten(),
            cache: matches!(address, BundleSelector::Sha(_)).then(AnswerCache::default),
            address,
            sha: sha.to_string(),
            info,
        }
    }
}

/// A bundle on a server.
pub struct RemoteBundle {
    server: ServerClient,
    runtime: Handle,
    address: BundleSelector,
    endpoint: String,
    sha: String,
    info: Option<CommitInfo>,
    /// Response cache of a pinned bundle, whose responses do not change.
    cache: Option<AnswerCache>,
    #[expect(dead_code, reason = "releases the lease when it is dropped")]
    lease: Option<BundleLease>,
}

impl RemoteBundle {
    /// The URL of its endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Sends a request, or returns the cached response of a pinned bundle.
    fn request(&self, request: QueryRequest<'_>) -> Result<Arc<QueryAnswer>, DataError> {
        let QueryRequest { text, operation, variables, places: _, only } = request;
        if only.is_some() {
            return Err(refused_query(&request, "a server does not support partial queries".to_owned()));
        }
        let variables = variables.map(json).transpose().map_err(|why| refused_query(&request, why))?;
        let key = RequestKey {
            text: text.to_owned(),
            operation: operation.map(str::to_owned),
            variables: variables.as_ref().map(ToString::to_string),
        };
        if let Some(answer) = self.cache.as_ref().and_then(|cache| cache.get(&key)) {
            return Ok(answer);
        }
        let query = GraphqlQuery { text, variables: variables.as_ref(), operation };
        let permit = ReadPermit::for_data();
        let call = self.server.query(&permit, &self.address, query);
        // Integrations are synchronous, and query data from within the asynchronous runner.
        let answer =
            tokio::task::block_in_place(|| self.runtime.block_on(call)).map_err(|error| match error {
                ServerError::GraphqlErrors(ref errors) => {
                    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
                    let (query, why) = (query_name(&request), error.to_string());
                    match unknown_fields(&messages) {
                        Some(fields) => DataError::UnknownFields { query, fields, why },
                        None => DataError::Refused { query, why },
                    }
                }
                other => DataError::Unreachable { why: format!("{:#}", anyhow::Error::new(other)) },
            })?;
        let answer = Arc::new(answer);
        if let Some(cache) = &self.cache {
            cache.store(key, &answer);
        }
        Ok(answer)
    }
}

impl std::fmt::Debug for RemoteBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl BundleReader for RemoteBundle {
    fn sha(&self) -> &str {
        &self.sha
    }

    fn commit(&self) -> Option<&str> {
        self.info.as_ref().map(|info| info.commit.as_str())
    }

    fn commit_time(&self) -> Option<i64> {
        self.info.as_ref()?.timestamp.parse().ok()
    }

    fn answer(&self, request: QueryRequest<'_>) -> Result<UntypedAnswer, DataError> {
        let answer = self.request(request)?;
        let refused = |error: serde_json::Error| refused_query(&request, error.to_string());
        let data: Node = serde_json::from_str(answer.data()).map_err(refused)?;
        let schemas = answer.schemas().iter().cloned().collect();
        Ok(UntypedAnswer { data, places: SourceLocations::default(), schemas })
    }

    fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        self.fetch_resource(path)
    }

    fn fetch_resources(
        &self,
        paths: &BTreeSet<String>,
    ) -> Result<Option<BTreeMap<String, String>>, DataError> {
        self.fetch_many(paths).map(Some)
    }

    fn engine(&self) -> Option<&Arc<Engine>> {
        None
    }
}

fn refused_query(request: &QueryRequest<'_>, why: String) -> DataError {
    DataError::Refused { query: query_name(request), why }
}

fn query_name(request: &QueryRequest<'_>) -> String {
    request.operation.map_or_else(|| "without a name".to_owned(), |name| format!("`{name}`"))
}

fn json(variables: &Map) -> Result<serde_json::Value, String> {
    let mut text = Vec::new();
    write_javascript(&Value::Map(variables.clone()), &mut text);
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
