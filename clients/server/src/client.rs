//! The data server client and its calls.

use std::fmt;
use std::time::Duration;

use qontract_access::ReadPermit;
use qontract_client_http::{Http, HttpError, Request, Response, SafePost, Secret, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{QueryAnswer, errors_of};
use crate::error::ServerError;
use crate::extension::{Batch, BatchAnswer, EXTENSIONS_HEADER, QueryExtension, ServerExtensions};
use crate::sha::Sha;

/// Selects the bundle to query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleSelector {
    /// The bundle with this sha.
    Sha(Sha),
    /// The latest bundle at the time of the request.
    Latest,
}

impl fmt::Display for BundleSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha(sha) => write!(f, "bundle `{sha}`"),
            Self::Latest => f.write_str("the latest bundle"),
        }
    }
}

/// A GraphQL query.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct GraphqlQuery<'q> {
    /// The query document.
    #[serde(rename = "query")]
    pub text: &'q str,
    /// Values of the query's variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<&'q Value>,
    /// The name of the operation to execute.
    #[serde(rename = "operationName", skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'q str>,
    /// The options of the query beyond GraphQL, for a server that has [`ServerExtensions::query`].
    #[serde(
        rename = "extensions",
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_extension"
    )]
    pub extension: Option<QueryExtension<'q>>,
}

#[expect(clippy::ref_option, reason = "the signature that serde requires")]
fn write_extension<S: serde::Serializer>(
    extension: &Option<QueryExtension<'_>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(extension.iter().map(|extension| ("qontract", extension)))
}

/// The commit from which a bundle was built, and the extensions of the server that has the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CommitInfo {
    /// The commit.
    pub commit: String,
    /// The time in seconds since 1970.
    pub timestamp: String,
    /// The extensions of the server, which are in a header.
    #[serde(skip)]
    pub extensions: ServerExtensions,
}

/// A lease, which keeps a bundle on the server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerLease {
    /// The name of the lease.
    pub lease: String,
    /// The expiry, in milliseconds since 1970.
    pub expires: u64,
}

/// A client of a data server.
#[derive(Clone, Debug)]
pub struct ServerClient {
    http: Http,
    url: Url,
    token: Option<Secret>,
}

impl ServerClient {
    /// A client of the server whose latest bundle is queried at `graphql_url`; other endpoints have a
    /// different path on the same server. `token` is the complete value of `Authorization`.
    #[expect(
        clippy::disallowed_methods,
        reason = "GraphQL queries are posted, and a data server has no mutations; a lease changes no data"
    )]
    pub fn new(http: &Http, graphql_url: Url, token: Option<Secret>) -> Self {
        let http = http
            .with_safe_post(SafePost::new(&graphql_url, graphql_url.path()))
            .with_safe_post(SafePost::new(&graphql_url, "/graphqlsha/"))
            .with_safe_post(SafePost::new(&graphql_url, "/batch/"))
            .with_safe_post(SafePost::new(&graphql_url, "/compare/"))
            .with_safe_post(SafePost::new(&graphql_url, "/locate/"))
            .with_safe_post(SafePost::new(&graphql_url, "/leases/"));
        Self { http, url: graphql_url, token }
    }

    /// Requests the sha of the latest bundle.
    pub async fn latest_sha(&self, permit: &ReadPermit) -> Result<Sha, ServerError> {
        let request = Request::get(self.url_at("/sha256"));
        let response = self.call(permit, request).await.map_err(|e| self.failed(e, ServerError::Latest))?;
        let sha = str::from_utf8(&response.body).ok().and_then(|text| Sha::parse(text.trim()));
        sha.ok_or(ServerError::Malformed { what: "it is not the sha256 of a bundle", source: None })
    }

    /// Requests the commit that a bundle was built from, and the extensions of the server.
    pub async fn commit_info(&self, permit: &ReadPermit, sha: &Sha) -> Result<CommitInfo, ServerError> {
        let request = Request::get(self.url_at(&format!("/git-commit-info/{sha}")))
            .header(EXTENSIONS_HEADER, "query batch compare locate")
            .accept_status(StatusCode::NOT_FOUND);
        let response = self.call(permit, request).await;
        let response = response
            .map_err(|error| self.failed(error, |source| ServerError::Commit { sha: sha.clone(), source }))?;
        if response.status == StatusCode::NOT_FOUND {
            return Err(ServerError::UnknownSha(sha.clone()));
        }
        let info: CommitInfo = serde_json::from_slice(&response.body).map_err(|error| {
            ServerError::Malformed { what: "it has no commit or timestamp", source: Some(error) }
        })?;
        let header = response.headers.get(EXTENSIONS_HEADER).and_then(|names| names.to_str().ok());
        let extensions = header.map(ServerExtensions::parse).unwrap_or_default();
        Ok(CommitInfo { extensions, ..info })
    }

    /// Runs a query against a bundle.
    pub async fn query(
        &self,
        permit: &ReadPermit,
        address: &BundleSelector,
        query: GraphqlQuery<'_>,
    ) -> Result<QueryAnswer, ServerError> {
        let url = match address {
            BundleSelector::Sha(sha) => self.url_at(&format!("/graphqlsha/{sha}")),
            BundleSelector::Latest => self.url.clone(),
        };
        let body = serde_json::to_vec(&query).expect("strings and JSON values can be written as JSON");
        // The response to an invalid query has status 400 and the errors.
        let mut request = Request::post(url, "application/json", body).accept_status(StatusCode::BAD_REQUEST);
        if let BundleSelector::Sha(_) = address {
            request = request.accept_status(StatusCode::NOT_FOUND);
        }
        let response = self.call(permit, request).await;
        let response = response.map_err(|error| {
            self.failed(error, |source| ServerError::Request { selector: address.clone(), source })
        })?;
        match address {
            BundleSelector::Sha(sha) if response.status == StatusCode::NOT_FOUND => {
                Err(ServerError::UnknownSha(sha.clone()))
            }
            BundleSelector::Sha(_) | BundleSelector::Latest => {
                let answer = QueryAnswer::parse(response.body)?;
                if query.extension.is_some() { answer.require_extension() } else { Ok(answer) }
            }
        }
    }

    /// Runs several queries against a bundle, and gets resources, in one request. The server must have
    /// [`ServerExtensions::batch`].
    pub async fn batch(
        &self,
        permit: &ReadPermit,
        sha: &Sha,
        batch: Batch<'_>,
    ) -> Result<BatchAnswer, ServerError> {
        let body = self.post(permit, &format!("/batch/{sha}"), sha, &batch).await?;
        BatchAnswer::parse(&body, batch.queries)
    }

    /// Compares two bundles. The server must have [`ServerExtensions::compare`], which defines the request and the
    /// response.
    pub async fn compare<R: DeserializeOwned>(
        &self,
        permit: &ReadPermit,
        [base, head]: [&Sha; 2],
        request: &impl Serialize,
    ) -> Result<R, ServerError> {
        let body = self.post(permit, &format!("/compare/{base}/{head}"), head, request).await?;
        parse_extension(&body)
    }

    /// Resolves JSON pointers into the files of a bundle to source lines (`file:line`). The server must have
    /// [`ServerExtensions::locate`], which defines the request and the response.
    pub async fn locate<R: DeserializeOwned>(
        &self,
        permit: &ReadPermit,
        sha: &Sha,
        request: &impl Serialize,
    ) -> Result<R, ServerError> {
        let body = self.post(permit, &format!("/locate/{sha}"), sha, request).await?;
        parse_extension(&body)
    }

    /// Sends a request of an extension; returns the body of a successful response.
    async fn post(
        &self,
        permit: &ReadPermit,
        path: &str,
        sha: &Sha,
        request: &impl Serialize,
    ) -> Result<Vec<u8>, ServerError> {
        let body = serde_json::to_vec(request).expect("strings and JSON values can be written as JSON");
        let request = Request::post(self.url_at(path), "application/json", body)
            .accept_status(StatusCode::BAD_REQUEST)
            .accept_status(StatusCode::NOT_FOUND);
        let selector = BundleSelector::Sha(sha.clone());
        let response = self.call(permit, request).await;
        let response = response
            .map_err(|error| self.failed(error, |source| ServerError::Request { selector, source }))?;
        match response.status {
            StatusCode::NOT_FOUND => Err(ServerError::UnknownSha(sha.clone())),
            StatusCode::BAD_REQUEST => Err(errors_of(&response.body)),
            _ => Ok(response.body),
        }
    }

    /// Leases a bundle for `time`, or until it is released. `None` if the server does not support leases or
    /// has too many leases.
    pub async fn lease(
        &self,
        permit: &ReadPermit,
        sha: &Sha,
        time: Duration,
    ) -> Result<Option<ServerLease>, ServerError> {
        let failed = |error| self.failed(error, |source| ServerError::Lease { sha: sha.clone(), source });
        let response = self.post_lease(permit, sha.as_str(), time.as_secs().max(1)).await.map_err(failed)?;
        if response.status != StatusCode::CREATED {
            return Ok(None);
        }
        let lease: ServerLease = serde_json::from_slice(&response.body).map_err(|error| {
            ServerError::Malformed { what: "it has no valid lease name", source: Some(error) }
        })?;
        // The name is checked, because it becomes a part of a path.
        let is_name = lease.lease.bytes().all(|letter| letter.is_ascii_alphanumeric());
        if !is_name || lease.lease.is_empty() {
            return Err(ServerError::Malformed { what: "it has no valid lease name", source: None });
        }
        Ok(Some(lease))
    }

    /// Releases a lease. Releasing an expired lease succeeds.
    pub async fn release(
        &self,
        permit: &ReadPermit,
        sha: &Sha,
        lease: &ServerLease,
    ) -> Result<(), ServerError> {
        let failed = |error| self.failed(error, |source| ServerError::Lease { sha: sha.clone(), source });
        self.post_lease(permit, &lease.lease, 0).await.map(|_| ()).map_err(failed)
    }

    async fn post_lease(&self, permit: &ReadPermit, name: &str, seconds: u64) -> Result<Response, HttpError> {
        let body = format!("{{\"seconds\": {seconds}}}").into_bytes();
        let mut request = Request::post(self.url_at(&format!("/leases/{name}")), "application/json", body);
        let none = [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN, StatusCode::METHOD_NOT_ALLOWED];
        for status in none.into_iter().chain([StatusCode::SERVICE_UNAVAILABLE]) {
            request = request.accept_status(status);
        }
        self.call(permit, request).await
    }

    async fn call(&self, permit: &ReadPermit, request: Request) -> Result<Response, HttpError> {
        let request = match &self.token {
            Some(token) => request.secret_header("authorization", token),
            None => request,
        };
        self.http.read(permit, request).await
    }

    fn failed(&self, error: HttpError, what: impl FnOnce(HttpError) -> ServerError) -> ServerError {
        ServerError::from_call(error, self.token.is_some(), what)
    }

    /// The URL with a different path.
    fn url_at(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(path);
        url
    }
}

fn parse_extension<R: DeserializeOwned>(body: &[u8]) -> Result<R, ServerError> {
    serde_json::from_slice(body)
        .map_err(|error| ServerError::Malformed { what: "it is not as documented", source: Some(error) })
}
