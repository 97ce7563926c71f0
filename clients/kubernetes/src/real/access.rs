//! Access reviews: checks whether a cluster allows an operation, with `SelfSubjectAccessReview`, a `POST`
//! that only reads.

use std::time::SystemTime;

use qontract_access::{AccessPermit, ReadPermit};
use serde_json::json;

use super::Clusters;
use super::request::ApiRequest;
use super::status::RequestSubject;
use crate::error::KubernetesError;
use crate::object::{Cluster, Kind};

/// The path of access reviews. Posting a review creates no object.
pub(super) const ACCESS_REVIEWS_PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// An operation to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRequest {
    /// The verb: `list`, `create`, `patch`, `delete`.
    pub verb: &'static str,
    /// The group of the kind; empty for the core group.
    pub group: String,
    /// The plural name of the kind: `configmaps`.
    pub resource: String,
    /// The namespace; `None` means all namespaces.
    pub namespace: Option<String>,
}

/// The result of an access review.
#[derive(Clone, Copy, Debug)]
pub struct AccessDecision {
    /// Whether the operation is allowed.
    pub is_allowed: bool,
    /// The server's clock.
    pub date: Option<SystemTime>,
}

impl Clusters {
    /// Checks whether a cluster allows an operation.
    pub async fn review_access(
        &self,
        _: &ReadPermit,
        cluster: &Cluster,
        request: &AccessRequest,
    ) -> Result<AccessDecision, KubernetesError> {
        let AccessRequest { verb, group, resource, namespace } = request;
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace.as_deref().unwrap_or_default()});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        });
        let subject = RequestSubject::kind(
            cluster,
            &Kind { name: "SelfSubjectAccessReview".to_owned(), group: None },
            None,
        );
        let request = ApiRequest::review(ACCESS_REVIEWS_PATH, &review);
        let answer = self.send(AccessPermit::Read(&self.permit), cluster, &subject, request).await?;
        if !answer.is_success() {
            return Err(self.refusal_error(cluster, &subject, &answer).await);
        }
        let body: serde_json::Value =
            serde_json::from_slice(&answer.body).map_err(|_| subject.malformed("it is not JSON"))?;
        let is_allowed = body.pointer("/status/allowed").and_then(serde_json::Value::as_bool);
        let is_allowed = is_allowed.ok_or_else(|| subject.malformed("it has no `status.allowed`"))?;
        Ok(AccessDecision { is_allowed, date: answer.date })
    }
}
