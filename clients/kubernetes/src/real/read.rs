//! Reads objects of real clusters.

use qontract_access::AccessPermit;
use serde_json::Value;

use super::Clusters;
use super::discovery_cache::ServedKind;
use super::page::{ListLimit, ListPage, PageItem};
use super::request::ApiRequest;
use super::status::RequestSubject;
use crate::draft::namespace;
use crate::error::KubernetesError;
use crate::object::{Cluster, Kind, KindVersion, Object, ObjectAddress, ObjectVersion, check_name};

/// Number of objects per page.
const PAGE_SIZE: u32 = 500;
/// Maximum number of attempts to read a list that expires on the server.
const MAX_LIST_ATTEMPTS: usize = 3;

impl Clusters {
    /// All objects of a kind.
    pub(super) async fn list_all(
        &self,
        cluster: &Cluster,
        KindVersion { kind, api_version }: KindVersion<'_>,
        namespace: Option<&str>,
    ) -> Result<Vec<Object>, KubernetesError> {
        let mut served = self.find_kind(cluster, kind).await?;
        if let Some(version) =
            api_version.filter(|version| served.resource.versions.iter().any(|one| one == version))
        {
            version.clone_into(&mut served.resource.api_version);
        }
        let namespace = namespace.filter(|_| served.resource.is_namespaced).map(check_name).transpose()?;
        let subject = RequestSubject::kind(cluster, kind, namespace);
        let path = collection_path(&served, &served.resource.api_version, namespace);
        for _ in 0..MAX_LIST_ATTEMPTS {
            if let Some(items) = self.list_pages(cluster, &subject, &path).await? {
                let objects = items.into_iter().map(|item| object(&served, kind, item, &subject));
                let mut objects = objects.collect::<Result<Vec<_>, _>>()?;
                let is_elsewhere = |object: &Object| object.address.namespace.as_deref() != namespace;
                if namespace.is_some() && objects.iter().any(is_elsewhere) {
                    return Err(subject.malformed("the list contains an object from another namespace"));
                }
                objects.sort_by(|a, b| a.address.cmp(&b.address));
                return Ok(objects);
            }
        }
        Err(KubernetesError::Failed {
            cluster: cluster.name.clone(),
            status: 410,
            why: format!("the list of {kind} expired before all pages were read"),
        })
    }

    /// All pages of a list; `None` if the list expired on the server.
    async fn list_pages(
        &self,
        cluster: &Cluster,
        subject: &RequestSubject,
        path: &str,
    ) -> Result<Option<Vec<PageItem>>, KubernetesError> {
        let (mut items, mut limit) = (Vec::new(), ListLimit::default());
        let (mut page_size, mut continue_token) = (PAGE_SIZE, None);
        loop {
            let request = ApiRequest::list(path, page_size, continue_token.as_deref());
            let answer = match self.send(AccessPermit::Read(&self.permit), cluster, subject, request).await {
                // A page of large objects may exceed the size limit, so the page is requested again with a
                // smaller page size.
                Err(KubernetesError::Malformed { .. }) if page_size > 1 => {
                    page_size = (page_size / 10).max(1);
                    continue;
                }
                other => other?,
            };
            match answer.status {
                410 => return Ok(None),
                _ if answer.is_success() => {}
                _ => return Err(self.refusal_error(cluster, subject, &answer).await),
            }
            limit.add(answer.body.len()).map_err(|why| subject.malformed(why))?;
            let page: ListPage =
                serde_json::from_slice(&answer.body).map_err(|error| subject.malformed(error.to_string()))?;
            items.extend(page.items.unwrap_or_default());
            if page.metadata.next.is_empty() {
                return Ok(Some(items));
            }
            let next = Some(page.metadata.next);
            if next == continue_token {
                return Err(subject.malformed("the server returned the same continue token twice"));
            }
            continue_token = next;
        }
    }

    /// One object.
    pub(super) async fn get_object(
        &self,
        cluster: &Cluster,
        address: &ObjectAddress,
    ) -> Result<Option<Object>, KubernetesError> {
        let served = self.find_kind(cluster, &address.kind).await?;
        let subject = RequestSubject::object(cluster, address);
        let Some(body) = self.fetch(cluster, address, &served, &served.resource.api_version).await? else {
            return Ok(None);
        };
        object(&served, &address.kind, PageItem::from(body), &subject).map(Some)
    }

    /// One object as the server returns it.
    pub(super) async fn fetch(
        &self,
        cluster: &Cluster,
        address: &ObjectAddress,
        served: &ServedKind,
        api_version: &str,
    ) -> Result<Option<Value>, KubernetesError> {
        let subject = RequestSubject::object(cluster, address);
        let path = collection_path(served, api_version, namespace(address, &served.resource)?);
        let request = ApiRequest::get(&path, &address.name)?;
        let answer = self.send(AccessPermit::Read(&self.permit), cluster, &subject, request).await?;
        if answer.is_success() {
            let body = serde_json::from_slice(&answer.body);
            return body.map(Some).map_err(|error| subject.malformed(error.to_string()));
        }
        match self.refusal_error(cluster, &subject, &answer).await {
            KubernetesError::Stale { .. } | KubernetesError::NamespaceMissing { .. }
                if answer.status == 404 =>
            {
                Ok(None)
            }
            error => Err(error),
        }
    }
}

/// The path of the objects of a kind.
pub(super) fn collection_path(served: &ServedKind, api_version: &str, namespace: Option<&str>) -> String {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    format!("{root}/{api_version}{namespace}/{}", served.resource.plural)
}

/// The version of an object, which consists of its uid and its revision.
pub(super) fn version(body: &Value) -> Option<ObjectVersion> {
    let (uid, revision) = (body["metadata"]["uid"].as_str()?, body["metadata"]["resourceVersion"].as_str()?);
    Some(ObjectVersion { uid: Some(uid.to_owned()), resource_version: revision.to_owned() })
}

/// Whether a string is a valid Kubernetes name. Names are shown in plans and become parts of paths.
fn is_name(name: &str) -> bool {
    (1..=253).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.contains('/')
}

/// Converts a listed item, and adds its kind, which items of lists do not contain.
fn object(
    served: &ServedKind,
    kind: &Kind,
    item: PageItem,
    subject: &RequestSubject,
) -> Result<Object, KubernetesError> {
    let PageItem { mut body, field_ownership: fields, managed_fields: ownership } = item;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = text(&body["metadata"]["name"]).ok_or_else(|| subject.malformed("it has no name"))?;
    if !is_name(&name) {
        return Err(subject
            .malformed("a name in the list has more than 253 characters or contains control characters"));
    }
    let version = version(&body).ok_or_else(|| subject.malformed("it has no version"))?;
    if !body["kind"].is_string() {
        body["kind"] = served.kind.name.clone().into();
        body["apiVersion"] = served.resource.api_version.clone().into();
    }
    let address = ObjectAddress { kind: kind.clone(), namespace: text(&body["metadata"]["namespace"]), name };
    Ok(Object { address, version, field_ownership: fields, managed_fields: ownership, body })
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn a_listed_name_is_printable_and_short() {
        let longest = "a".repeat(253);
        for fine in ["a", "system:node:a", "a%b", longest.as_str()] {
            assert!(is_name(fine), "{fine}");
        }
        let too_long = "a".repeat(254);
        for wrong in ["", "a b", "a\nb", "a\u{1b}[2J", "a\u{202e}", "../a", "a/b", too_long.as_str()] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
    }
}
