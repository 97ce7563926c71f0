//! What a cluster lets us do, asked without doing it: `SelfSubjectAccessReview`, a `POST` that only reads.

use std::time::SystemTime;

use qontract_access::{AccessPermit, ReadPermit};
use serde_json::json;

use super::Clusters;
use super::status::Subject;
use crate::error::KubernetesError;
use crate::object::{Cluster, Kind};

/// Where the question is sent. It creates no object.
pub(super) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Something that a cluster may let us do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRequest {
    /// What: `list`, `create`, `patch`, `delete`.
    pub verb: &'static str,
    /// The group of the kind; empty for the core group.
    pub group: String,
    /// The kind, as it is in addresses: `configmaps`.
    pub resource: String,
    /// The namespace; all of them without one.
    pub namespace: Option<String>,
}

/// What the cluster answered.
#[derive(Clone, Copy, Debug)]
pub struct AccessAnswer {
    /// Whether it lets us.
    pub is_allowed: bool,
    /// The server's clock.
    pub date: Option<SystemTime>,
}

impl Clusters {
    /// Asks a cluster whether it would let us do something.
    pub async fn may(
        &self,
        _: &ReadPermit,
        cluster: &Cluster,
        request: &AccessRequest,
    ) -> Result<AccessAnswer, KubernetesError> {
        let AccessRequest { verb, group, resource, namespace } = request;
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace.as_deref().unwrap_or_default()});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        });
        let subject =
            Subject::kind(cluster, &Kind { name: "SelfSubjectAccessReview".to_owned(), group: None }, None);
        let post = http::Request::post(REVIEWS).header("content-type", "application/json");
        let post = post.body(review.to_string().into_bytes());
        let post = post.map_err(|error| subject.malformed(error.to_string()))?;
        let answer = self.send(AccessPermit::Read(&self.permit), cluster, &subject, Ok(post)).await?;
        if !answer.is_fine() {
            return Err(self.refused(cluster, &subject, &answer).await);
        }
        let body: serde_json::Value =
            serde_json::from_slice(&answer.body).map_err(|_| subject.malformed("it is not JSON"))?;
        let is_allowed = body.pointer("/status/allowed").and_then(serde_json::Value::as_bool);
        let is_allowed = is_allowed.ok_or_else(|| subject.malformed("it has no `status.allowed`"))?;
        Ok(AccessAnswer { is_allowed, date: answer.date })
    }
}
