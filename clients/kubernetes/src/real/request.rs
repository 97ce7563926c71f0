//! Requests to the Kubernetes API: paths, query parameters and bodies. Pure.
//!
//! **Invariant:** only a valid Kubernetes name becomes part of a path, so a name cannot change the path.

use qontract_client_http::{Method, Url};
use serde_json::{Value, json};

use crate::error::KubernetesError;
use crate::object::check_name;

/// The media type of objects and lists.
const JSON: &str = "application/json";

/// A request to an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiRequest {
    pub method: Method,
    /// The path below the address of the server.
    path: String,
    /// Query parameters, in order.
    query: Vec<(&'static str, String)>,
    pub body: Option<ApiBody>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiBody {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

impl ApiBody {
    fn new(media_type: &'static str, value: &Value) -> Self {
        Self { media_type, bytes: value.to_string().into_bytes() }
    }
}

/// The kind of a patch, which decides its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    /// A JSON merge patch.
    Merge,
    /// Server-side apply.
    Apply,
    /// Server-side apply that takes over fields of other managers.
    ForcedApply,
}

impl PatchKind {
    fn media_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Apply | Self::ForcedApply => "application/apply-patch+yaml",
        }
    }
}

/// The field manager of a write, and whether the server only rehearses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteOptions<'o> {
    pub manager: &'o str,
    pub dry_run: bool,
}

impl ApiRequest {
    /// Reads a document at a fixed path.
    pub fn document(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), query: Vec::new(), body: None }
    }

    /// Reads one page of a list. The token of the previous page selects the page.
    pub fn list(path: &str, limit: u32, continue_token: Option<&str>) -> Self {
        let mut query = vec![("limit", limit.to_string())];
        query.extend(continue_token.map(|token| ("continue", token.to_owned())));
        Self { query, ..Self::document(path) }
    }

    /// Reads one object.
    pub fn get(path: &str, name: &str) -> Result<Self, KubernetesError> {
        Ok(Self::document(&format!("{path}/{}", check_name(name)?)))
    }

    /// Submits an access review, which only reads.
    pub fn review(path: &str, review: &Value) -> Self {
        Self { method: Method::POST, body: Some(ApiBody::new(JSON, review)), ..Self::document(path) }
    }

    /// Creates an object.
    pub fn create(path: &str, options: WriteOptions<'_>, object: &Value) -> Self {
        Self { query: options.query(None), ..Self::review(path, object) }
    }

    /// Patches an object.
    pub fn patch(
        path: &str,
        name: &str,
        options: WriteOptions<'_>,
        kind: PatchKind,
        patch: &Value,
    ) -> Result<Self, KubernetesError> {
        let query = options.query((kind == PatchKind::ForcedApply).then_some("force"));
        let body = Some(ApiBody::new(kind.media_type(), patch));
        Ok(Self { method: Method::PATCH, query, body, ..Self::get(path, name)? })
    }

    /// Deletes exactly this version of an object.
    pub fn delete(
        path: &str,
        name: &str,
        uid: &str,
        resource_version: &str,
        propagation: Propagation,
    ) -> Result<Self, KubernetesError> {
        let options = json!({
            "propagationPolicy": propagation.as_str(),
            "preconditions": {"resourceVersion": resource_version, "uid": uid},
        });
        let body = Some(ApiBody::new(JSON, &options));
        Ok(Self { method: Method::DELETE, body, ..Self::get(path, name)? })
    }

    /// The URL on the server at `base`.
    pub fn url(&self, base: &Url) -> Option<Url> {
        let mut url = Url::parse(&format!("{}{}", base.as_str().trim_end_matches('/'), self.path)).ok()?;
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Some(url)
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after the object.
    Background,
    /// The object exists until they are deleted.
    Foreground,
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

impl WriteOptions<'_> {
    fn query(self, flag: Option<&'static str>) -> Vec<(&'static str, String)> {
        let dry_run = self.dry_run.then(|| ("dryRun", "All".to_owned()));
        let flag = flag.map(|flag| (flag, "true".to_owned()));
        dry_run.into_iter().chain(flag).chain([("fieldManager", self.manager.to_owned())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request as `METHOD URL`, with the media type and the body, if it has one.
    fn text(request: &ApiRequest) -> String {
        let base = Url::parse("https://api.example.com/k8s/").unwrap();
        let line = format!("{} {}", request.method, request.url(&base).unwrap());
        request.body.as_ref().map_or(line.clone(), |ApiBody { media_type, bytes }| {
            format!("{line} {media_type} {}", String::from_utf8_lossy(bytes))
        })
    }

    #[test]
    fn lists_are_read_in_pages() {
        assert_eq!(
            text(&ApiRequest::list("/api/v1/pods", 500, None)),
            "GET https://api.example.com/k8s/api/v1/pods?limit=500"
        );
        assert_eq!(
            text(&ApiRequest::list("/api/v1/pods", 5, Some("a/b+c&d="))),
            "GET https://api.example.com/k8s/api/v1/pods?limit=5&continue=a%2Fb%2Bc%26d%3D"
        );
    }

    #[test]
    fn a_rehearsal_is_in_the_query() {
        let options = WriteOptions { manager: "a b", dry_run: true };
        assert_eq!(
            text(&ApiRequest::create("/api/v1/pods", options, &json!({}))),
            "POST https://api.example.com/k8s/api/v1/pods?dryRun=All&fieldManager=a+b application/json {}"
        );
        let options = WriteOptions { manager: "m", dry_run: false };
        let patch = |kind| text(&ApiRequest::patch("/api/v1/pods", "p", options, kind, &json!({})).unwrap());
        let url = "PATCH https://api.example.com/k8s/api/v1/pods/p";
        assert_eq!(
            patch(PatchKind::Merge),
            format!("{url}?fieldManager=m application/merge-patch+json {{}}")
        );
        assert_eq!(
            patch(PatchKind::Apply),
            format!("{url}?fieldManager=m application/apply-patch+yaml {{}}")
        );
        assert_eq!(
            patch(PatchKind::ForcedApply),
            format!("{url}?force=true&fieldManager=m application/apply-patch+yaml {{}}")
        );
    }

    #[test]
    fn a_deletion_names_the_version() {
        assert_eq!(
            text(&ApiRequest::delete("/api/v1/pods", "p", "u", "7", Propagation::Background).unwrap()),
            "DELETE https://api.example.com/k8s/api/v1/pods/p application/json {\"preconditions\":{\"resourceVersion\":\"7\",\"uid\":\"u\"},\"propagationPolicy\":\"Background\"}"
        );
    }

    #[test]
    fn a_name_cannot_lead_to_another_path() {
        let options = WriteOptions { manager: "m", dry_run: false };
        for name in ["", ".", "..", "a/b", "../a", "a?b", "a#b", "a%2fb", "a b"] {
            assert!(ApiRequest::get("/api/v1/pods", name).is_err(), "{name:?}");
            assert!(
                ApiRequest::delete("/api/v1/pods", name, "u", "1", Propagation::Background).is_err(),
                "{name:?}"
            );
            assert!(
                ApiRequest::patch("/api/v1/pods", name, options, PatchKind::Apply, &json!({})).is_err(),
                "{name:?}"
            );
        }
    }
}
