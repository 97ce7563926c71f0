//! Pushgateway client: pushes the metrics of a process, which the gateway stores for Prometheus.
//!
//! **Invariant:** only `POST`s below `/metrics/job/` are sent.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use qontract_access::ReadPermit;
use qontract_client_http::{Http, HttpError, Request, SafePost, Secret, Url};

/// The job label of all pushed metrics.
const JOB: &str = "qontract-reconcile";

/// A Pushgateway client.
#[derive(Clone, Debug)]
pub struct Pushgateway {
    http: Http,
    url: Url,
    login: Secret,
}

/// An error of a push.
#[derive(Debug, thiserror::Error)]
pub enum PushgatewayError {
    /// The request failed.
    #[error("cannot push metrics")]
    Push(#[source] HttpError),
}

impl Pushgateway {
    /// Creates a client of the gateway at this URL, with basic authentication.
    pub fn new(http: &Http, url: Url, user: &str, password: &Secret) -> Self {
        // A push counts as a read, because metrics change no target.
        #[expect(clippy::disallowed_methods, reason = "our own metrics, only below this path")]
        let http = http.with_safe_post(SafePost::new(&url, &format!("{}/metrics/job/", base_path(&url))));
        let login = STANDARD.encode(format!("{user}:{}", password.expose()));
        let login = Secret::new(format!("Basic {login}"));
        Self { http, url, login }
    }

    /// Pushes the metrics of a group, which is identified by labels.
    pub async fn push(
        &self,
        permit: &ReadPermit,
        labels: &[(&str, &str)],
        metrics: &str,
    ) -> Result<(), PushgatewayError> {
        let mut url = self.url.clone();
        url.set_path(&group_path(&base_path(&self.url), labels));
        let body = metrics.as_bytes().to_vec();
        let request = Request::post(url, "text/plain; version=0.0.4", body)
            .idempotent()
            .secret_header("Authorization", &self.login);
        self.http.read(permit, request).await.map(drop).map_err(PushgatewayError::Push)
    }
}

fn base_path(url: &Url) -> String {
    url.path().trim_end_matches('/').to_owned()
}

/// The path of a group.
fn group_path(base: &str, labels: &[(&str, &str)]) -> String {
    let mut path = format!("{base}/metrics/job/{JOB}");
    for (name, value) in labels {
        let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
        if value.is_empty() {
            // The gateway encodes an empty value in this way.
            path.push_str(&format!("/{name}@base64/="));
        } else if value.chars().all(is_plain) {
            path.push_str(&format!("/{name}/{value}"));
        } else {
            path.push_str(&format!("/{name}@base64/{}", URL_SAFE.encode(value)));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::group_path;

    #[test]
    fn a_group_is_a_path() {
        let check = |value: &str, expect: &str| {
            assert_eq!(
                group_path("/push", &[("integration", value)]),
                format!("/push/metrics/job/qontract-reconcile{expect}")
            );
        };
        check("a-b_c.1", "/integration/a-b_c.1");
        check("a/b", "/integration@base64/YS9i");
        check("", "/integration@base64/=");
    }
}
