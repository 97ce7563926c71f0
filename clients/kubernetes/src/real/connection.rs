//! The connection to one cluster: address, credentials and request handling.
//!
//! **Invariant:** a token is sent only to the server of its cluster, over TLS unless the server is on this
//! machine. No error contains a token.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use qontract_access::{AccessPermit, ReadPermit};
use qontract_client_http::{Http, Request, SafePost, SafeRehearsal, Secret, Settings, StatusCode, Url};
use tokio::sync::Mutex;

use super::access::ACCESS_REVIEWS_PATH;
use super::discovery_cache::DiscoveryCache;
use super::request::{ApiBody, ApiRequest};
use super::status::RequestSubject;
use super::{ClusterSettings, Clusters, TokenError};
use crate::error::KubernetesError;
use crate::object::Cluster;

/// Error status codes that this module handles. The HTTP stack treats other error codes as failures and may
/// retry the request.
const HANDLED_STATUSES: [StatusCode; 9] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::INTERNAL_SERVER_ERROR,
];

/// The connection to one cluster.
pub(super) struct ClusterConnection {
    http: Http,
    base: Url,
    token: Mutex<Option<Arc<Secret>>>,
    pub discovery: Mutex<DiscoveryCache>,
    pub settings: ClusterSettings,
}

/// The response of a cluster.
pub(super) struct ApiResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// The server's clock.
    pub date: Option<SystemTime>,
}

impl ApiResponse {
    /// Whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl ClusterConnection {
    /// Creates a connection to this cluster. No request is sent yet.
    #[expect(
        clippy::disallowed_methods,
        reason = "`dryRun=All` and access reviews have no effect on a Kubernetes API server"
    )]
    pub fn new(
        permit: &ReadPermit,
        http: &Settings,
        cluster: &Cluster,
        settings: ClusterSettings,
    ) -> Result<Self, KubernetesError> {
        let base = server_url(cluster)?;
        let roots = http.roots.iter().cloned().chain(settings.ca.clone()).collect();
        let identity = settings.certificate.as_ref().map(|certificate| certificate.pem.clone());
        let deadline = settings.deadline.unwrap_or(http.deadline);
        // The timeout of an attempt is at most half of the deadline, so that at least two attempts are
        // possible.
        let attempt_timeout = http.attempt_timeout.min(deadline / 2);
        let per_second = Some(settings.per_second);
        let limits = Settings { roots, identity, per_second, deadline, attempt_timeout, ..http.clone() };
        let unreachable = |error| KubernetesError::Unreachable { cluster: cluster.name.clone(), error };
        let reviews = format!("{}{ACCESS_REVIEWS_PATH}", base.path().trim_end_matches('/'));
        let http = Http::new(permit, limits).map_err(unreachable)?;
        let mut http = http.with_safe_post(SafePost::new(&base, &reviews));
        if settings.rehearses {
            http = http.with_safe_rehearsal(SafeRehearsal::new(&base));
        }
        Ok(Self { http, base, token: Mutex::default(), discovery: Mutex::default(), settings })
    }
}

impl Clusters {
    /// Sends one request.
    pub(super) async fn send(
        &self,
        access: AccessPermit<'_>,
        cluster: &Cluster,
        subject: &RequestSubject,
        request: ApiRequest,
    ) -> Result<ApiResponse, KubernetesError> {
        let connection = self.connection(cluster)?;
        let url = request.url(&connection.base);
        let url = url.ok_or_else(|| subject.malformed("its address is not a URL"))?;
        let token = self.authorization(&connection, cluster).await?;
        // Every write has a precondition, or fails if the object exists, so that a retry is safe.
        let mut sent = Request::new(request.method, url).idempotent().header("accept", "application/json");
        if let Some(token) = &token {
            sent = sent.secret_header("authorization", token);
        }
        if let Some(ApiBody { media_type, bytes }) = request.body {
            sent = sent.body(media_type, bytes);
        }
        let sent = HANDLED_STATUSES.into_iter().fold(sent, Request::accept_status);
        let http = connection.http.for_run(&self.permit);
        let answered = http.send(access, sent).await.map_err(|error| subject.failure(error))?;
        if answered.status == StatusCode::UNAUTHORIZED {
            *connection.token.lock().await = None;
        }
        Ok(ApiResponse { status: answered.status.as_u16(), date: answered.date(), body: answered.body })
    }

    /// Converts a refusal into an error. If the kind is no longer served, the discovery cache of the cluster
    /// is invalidated.
    pub(super) async fn refusal_error(
        &self,
        cluster: &Cluster,
        subject: &RequestSubject,
        answer: &ApiResponse,
    ) -> KubernetesError {
        let error = subject.refusal(answer.status, &answer.body);
        if matches!(error, KubernetesError::Unserved { .. })
            && let Ok(connection) = self.connection(cluster)
        {
            *connection.discovery.lock().await = DiscoveryCache::default();
        }
        error
    }

    /// The value of the `authorization` header. The value is cached until the server rejects it. `None` if a
    /// client certificate is used.
    async fn authorization(
        &self,
        connection: &ClusterConnection,
        cluster: &Cluster,
    ) -> Result<Option<Arc<Secret>>, KubernetesError> {
        let failed = |TokenError { why, transient }: TokenError| KubernetesError::Credentials {
            cluster: cluster.name.clone(),
            why,
            transient,
        };
        if let Some(certificate) = &connection.settings.certificate {
            if !is_same_server(&certificate.server, &connection.base) {
                let (own, other) = (&certificate.server, &cluster.server);
                return Err(failed(
                    format!("its client certificate is for `{own}`, not for `{other}`").into(),
                ));
            }
            return Ok(None);
        }
        let mut cached = connection.token.lock().await;
        if let Some(token) = &*cached {
            return Ok(Some(Arc::clone(token)));
        }
        let token = self.shared.tokens.token(&self.permit, cluster).await.map_err(failed)?;
        if let Some(other) =
            token.server.as_deref().filter(|server| !is_same_server(server, &connection.base))
        {
            let why = format!("its credentials are for the server `{other}`, not for `{}`", cluster.server);
            return Err(failed(why.into()));
        }
        let header = Arc::new(Secret::new(format!("Bearer {}", token.secret.expose())));
        *cached = Some(Arc::clone(&header));
        Ok(Some(header))
    }
}

/// The URL of a cluster's server.
fn server_url(cluster: &Cluster) -> Result<Url, KubernetesError> {
    let failed = |why: &str| KubernetesError::Credentials {
        cluster: cluster.name.clone(),
        why: format!("`{}` is {why}", cluster.server),
        transient: false,
    };
    // The part before an `@` may contain a password, so the error does not quote it.
    if cluster.server.contains('@') {
        let why = "its address has a user name or password".to_owned();
        return Err(KubernetesError::Credentials { cluster: cluster.name.clone(), why, transient: false });
    }
    let url = Url::parse(&cluster.server).map_err(|_| failed("not a URL"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_local(&url)) {
        return Err(failed("not https"));
    }
    if url.query().is_some() || url.fragment().is_some() || url.path().contains('%') {
        return Err(failed("not the address of a server"));
    }
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn is_same_server(server: &str, base: &Url) -> bool {
    let plain = |url: &Url| (url.origin(), url.path().trim_end_matches('/').to_owned());
    Url::parse(server).is_ok_and(|server| plain(&server) == plain(base))
}

#[cfg(test)]
mod tests {
    use qontract_client_http::Url;

    use super::{is_same_server, server_url};
    use crate::object::Cluster;

    fn check(address: &str, expect: Result<(), &str>) {
        let cluster = Cluster { name: "c1".to_owned(), server: address.to_owned(), token: None };
        let error = server_url(&cluster).map(drop).map_err(|error| error.to_string());
        assert_eq!(
            error,
            expect.map_err(|why| format!("cannot log in to the cluster `c1`: `{address}` is {why}"))
        );
    }

    #[test]
    fn servers_need_tls_unless_they_are_local() {
        check("https://api.example.com:6443", Ok(()));
        check("http://127.0.0.1:8001", Ok(()));
        check("http://localhost/k8s/c1/", Ok(()));
        check("http://[::1]:80", Ok(()));
        check("http://api.example.com", Err("not https"));
        check("http://127.0.0.1.example.com", Err("not https"));
        check("ftp://localhost", Err("not https"));
        check("https://h/x?y", Err("not the address of a server"));
        check("api.example.com", Err("not a URL"));
    }

    #[test]
    fn servers_are_compared_by_normalized_urls() {
        let base = Url::parse("https://api.example.com/").unwrap();
        assert!(is_same_server("https://API.example.com:443", &base));
        assert!(!is_same_server("https://api.example.com:6443", &base));
        assert!(!is_same_server("https://api.example.com/x", &base));
        assert!(!is_same_server("http://api.example.com", &base));
    }
}
