//! The connection to one cluster: where it is, how one logs in, and one call.
//!
//! **Invariant:** a token is sent to the server of its cluster alone, over TLS unless the server is on this machine, and is in
//! no error.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use kube::core::request::Error as BuildError;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_http::{Http, Request, SafePost, SafeRehearsal, Secret, Settings, StatusCode, Url};
use tokio::sync::Mutex;

use super::access::REVIEWS;
use super::catalogue::Catalogue;
use super::status::Subject;
use super::{ClusterSettings, Clusters, TokenError};
use crate::error::KubernetesError;
use crate::object::Cluster;

/// Statuses that say what is the matter; others are failures of the stack, which may try again.
const ANSWERS: [StatusCode; 9] = [
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

/// A request as `kube` builds it.
pub(super) type Built = Result<http::Request<Vec<u8>>, BuildError>;

/// The connection to one cluster.
pub(super) struct Connection {
    http: Http,
    base: Url,
    token: Mutex<Option<Arc<Secret>>>,
    pub catalogue: Mutex<Catalogue>,
    pub settings: ClusterSettings,
}

/// Which half asks.
#[derive(Clone, Copy)]
pub(super) enum Half<'a> {
    Read,
    Write(&'a WritePermit),
}

impl Half<'_> {
    /// Whether a request is sent as a dry run: without a permit the server must not store anything.
    pub fn is_dry_run(self) -> bool {
        matches!(self, Self::Read)
    }
}

/// What a cluster answered.
pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// The server's clock.
    pub date: Option<SystemTime>,
}

impl Answer {
    /// Whether it is what was asked for.
    pub fn is_fine(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Connection {
    /// A connection to this cluster; nothing is sent yet.
    #[expect(
        clippy::disallowed_methods,
        reason = "`dryRun=All` and access reviews are how API servers of Kubernetes are asked without effect"
    )]
    pub fn new(
        permit: &ReadPermit,
        http: &Settings,
        cluster: &Cluster,
        settings: ClusterSettings,
    ) -> Result<Self, KubernetesError> {
        let base = server(cluster)?;
        let roots = http.roots.iter().cloned().chain(settings.ca.clone()).collect();
        let identity = settings.certificate.as_ref().map(|certificate| certificate.pem.clone());
        let limits = Settings { roots, identity, per_second: Some(settings.per_second), ..http.clone() };
        let unreachable = |error| KubernetesError::Unreachable { cluster: cluster.name.clone(), error };
        let reviews = format!("{}{REVIEWS}", base.path().trim_end_matches('/'));
        let http = Http::new(permit, limits).map_err(unreachable)?;
        let mut http = http.with_safe_post(SafePost::new(&base, &reviews));
        if settings.rehearses {
            http = http.with_safe_rehearsal(SafeRehearsal::new(&base));
        }
        Ok(Self { http, base, token: Mutex::default(), catalogue: Mutex::default(), settings })
    }

    fn url(&self, path: &str) -> Option<Url> {
        Url::parse(&format!("{}{path}", self.base.as_str().trim_end_matches('/'))).ok()
    }
}

impl Clusters {
    /// One call.
    pub(super) async fn send(
        &self,
        half: Half<'_>,
        cluster: &Cluster,
        subject: &Subject,
        request: Built,
    ) -> Result<Answer, KubernetesError> {
        let connection = self.connection(cluster)?;
        // `kube` refuses names that would be other paths.
        let request = request.map_err(|error| subject.malformed(error.to_string()))?;
        let url = connection.url(&request.uri().to_string());
        let url = url.ok_or_else(|| subject.malformed("its address is no URL"))?;
        let token = self.token(&connection, cluster).await?;
        let (parts, body) = request.into_parts();
        // Every write carries a precondition, or fails if it is there already.
        let mut sent = Request::new(parts.method, url).idempotent();
        if let Some(token) = &token {
            sent = sent.secret_header("authorization", token);
        }
        if !parts.headers.contains_key("accept") {
            sent = sent.header("accept", "application/json");
        }
        for (name, value) in &parts.headers {
            sent = sent.header(name.as_str(), value.to_str().unwrap_or_default());
        }
        if !body.is_empty() {
            sent = sent.bytes(body);
        }
        let sent = ANSWERS.into_iter().fold(sent, Request::also);
        let http = connection.http.for_run(&self.permit);
        let answered = match half {
            Half::Read => http.read(&self.permit, sent).await,
            Half::Write(permit) => http.write(permit, sent).await,
        };
        let answered = answered.map_err(|error| subject.failed(error))?;
        if answered.status == StatusCode::UNAUTHORIZED {
            *connection.token.lock().await = None;
        }
        Ok(Answer { status: answered.status.as_u16(), date: answered.date(), body: answered.body })
    }

    /// What a refusal means. If the kind is not served any more, all that is known of the cluster is forgotten.
    pub(super) async fn refused(
        &self,
        cluster: &Cluster,
        subject: &Subject,
        answer: &Answer,
    ) -> KubernetesError {
        let error = subject.refused(answer.status, &answer.body);
        if matches!(error, KubernetesError::Unserved { .. })
            && let Ok(connection) = self.connection(cluster)
        {
            *connection.catalogue.lock().await = Catalogue::default();
        }
        error
    }

    /// The value of the header to log in with; asked for once, and again when it was not accepted. A client certificate needs none.
    async fn token(
        &self,
        connection: &Connection,
        cluster: &Cluster,
    ) -> Result<Option<Arc<Secret>>, KubernetesError> {
        let failed = |TokenError { why, transient }: TokenError| KubernetesError::Credentials {
            cluster: cluster.name.clone(),
            why,
            transient,
        };
        if let Some(certificate) = &connection.settings.certificate {
            if !is_same(&certificate.server, &connection.base) {
                let (own, other) = (&certificate.server, &cluster.server);
                return Err(failed(
                    format!("its client certificate is for `{own}`, not for `{other}`").into(),
                ));
            }
            return Ok(None);
        }
        let mut known = connection.token.lock().await;
        if let Some(token) = &*known {
            return Ok(Some(Arc::clone(token)));
        }
        let token = self.shared.tokens.token(&self.permit, cluster).await.map_err(failed)?;
        if let Some(other) = token.server.as_deref().filter(|server| !is_same(server, &connection.base)) {
            let why = format!("its credentials are for the server `{other}`, not for `{}`", cluster.server);
            return Err(failed(why.into()));
        }
        let header = Arc::new(Secret::new(format!("Bearer {}", token.secret.expose())));
        *known = Some(Arc::clone(&header));
        Ok(Some(header))
    }
}

/// The address of a cluster's server.
fn server(cluster: &Cluster) -> Result<Url, KubernetesError> {
    let failed = |why: &str| KubernetesError::Credentials {
        cluster: cluster.name.clone(),
        why: format!("`{}` is {why}", cluster.server),
        transient: false,
    };
    // What stands before an `@` may be a password, and is not told.
    if cluster.server.contains('@') {
        let why = "its address has a user or a password".to_owned();
        return Err(KubernetesError::Credentials { cluster: cluster.name.clone(), why, transient: false });
    }
    let url = Url::parse(&cluster.server).map_err(|_| failed("no URL"))?;
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

fn is_same(server: &str, base: &Url) -> bool {
    let plain = |url: &Url| (url.origin(), url.path().trim_end_matches('/').to_owned());
    Url::parse(server).is_ok_and(|server| plain(&server) == plain(base))
}

#[cfg(test)]
mod tests {
    use qontract_client_http::Url;

    use super::{is_same, server};
    use crate::object::Cluster;

    fn check(address: &str, expect: Result<(), &str>) {
        let cluster = Cluster { name: "c1".to_owned(), server: address.to_owned(), token: None };
        let error = server(&cluster).map(drop).map_err(|error| error.to_string());
        assert_eq!(
            error,
            expect.map_err(|why| format!("cannot log in to the cluster `c1`: `{address}` is {why}"))
        );
    }

    #[test]
    fn servers_are_spoken_to_over_tls_unless_they_are_here() {
        check("https://api.example.com:6443", Ok(()));
        check("http://127.0.0.1:8001", Ok(()));
        check("http://localhost/k8s/c1/", Ok(()));
        check("http://[::1]:80", Ok(()));
        check("http://api.example.com", Err("not https"));
        check("http://127.0.0.1.example.com", Err("not https"));
        check("ftp://localhost", Err("not https"));
        check("https://h/x?y", Err("not the address of a server"));
        check("api.example.com", Err("no URL"));
    }

    #[test]
    fn a_server_is_the_same_however_it_is_written() {
        let base = Url::parse("https://api.example.com/").unwrap();
        assert!(is_same("https://API.example.com:443", &base));
        assert!(!is_same("https://api.example.com:6443", &base));
        assert!(!is_same("https://api.example.com/x", &base));
        assert!(!is_same("http://api.example.com", &base));
    }
}
