//! Fetches resources of a bundle on a server, with few requests for any number of resources.
//!
//! A server with the extensions of qontract gets the paths as a batch. qontract-server has no query for a set of
//! paths. A small number of resources is requested together, each under an alias. For a larger number, one request
//! lists all resources of the bundle, and unneeded resources are dropped. qontract-server supports both queries,
//! which stay within the limits of `serve` (200 aliases, 2,000 selections).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use qontract_access::ReadPermit;
use qontract_bundle::{Map, Value};
use qontract_client_server::{Batch, Sha};
use qontract_runtime::{DataError, QueryRequest};
use serde::Deserialize;

use super::{RemoteBundle, ResultForm};

/// Maximum number of resources in one request without the extension.
const MAX_BATCH: usize = 150;
/// Maximum number of paths in one batch of the extension. A path has up to about 200 bytes, and a request 1 MiB.
const MAX_PATHS: usize = 4_000;
/// Maximum number of batches. If more are needed, all resources are listed instead.
const MAX_BATCHES: usize = 2;

#[derive(Deserialize)]
struct ResourceRow<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ResourceList<'a> {
    #[serde(borrow)]
    resources_v1: Option<Vec<ResourceRow<'a>>>,
}

impl RemoteBundle {
    /// The content of one resource.
    pub(super) fn fetch_resource(&self, path: &str) -> Result<Option<String>, DataError> {
        let text = "query Resource($path: String) { resources_v1(path: $path) { path content } }";
        let variables = Map::new(vec![("path", Value::str(path))]);
        let request = QueryRequest {
            text,
            operation: Some("Resource"),
            variables: Some(&variables),
            ..QueryRequest::default()
        };
        let found = match self.request(request, ResultForm::Data) {
            Ok(answer) => answer,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(other) => return Err(other),
        };
        let found: ResourceList<'_> = serde_json::from_str(found.data())
            .map_err(|error| super::refused_query(&request, error.to_string()))?;
        let resource = found.resources_v1.into_iter().flatten().next();
        Ok(resource.map(|resource| resource.content.into_owned()))
    }

    /// The contents of many resources; resources that are not in the bundle are omitted.
    pub(super) fn fetch_many(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, String>, DataError> {
        if let Some(sha) = self.pinned_sha().filter(|_| self.extensions().batch) {
            return self.fetch_by_path(sha, paths);
        }
        if paths.len() <= MAX_BATCH * MAX_BATCHES {
            match self.fetch_batches(paths) {
                // If one resource is missing, the whole response is an error, so all resources are listed.
                Err(error) if is_missing(&error) => {}
                answer => return answer,
            }
        }
        match self.fetch_all(paths) {
            // The list exceeds the server's limits.
            Err(DataError::Refused { .. } | DataError::UnknownFields { .. }) => self.fetch_each(paths),
            answer => answer,
        }
    }

    /// Fetches resources with batches of the extension.
    fn fetch_by_path(
        &self,
        sha: &Sha,
        paths: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, DataError> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let (permit, mut contents) = (ReadPermit::for_data(), BTreeMap::new());
        for part in paths.chunks(MAX_PATHS) {
            let batch = Batch { resources: part, ..Batch::default() };
            let answer = self.wait_for(self.server.batch(&permit, sha, batch)).map_err(super::unreachable)?;
            contents.extend(answer.resources);
        }
        Ok(contents)
    }

    fn fetch_batches(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, String>, DataError> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut texts = BTreeMap::new();
        for batch in paths.chunks(MAX_BATCH) {
            let variables = Map::new(path_variables(batch));
            let text = batch_query(batch.len());
            let request = QueryRequest {
                text: &text,
                operation: Some("Resources"),
                variables: Some(&variables),
                ..QueryRequest::default()
            };
            let answer = self.request(request, ResultForm::Data)?;
            let found: BTreeMap<&str, Option<Vec<ResourceRow<'_>>>> = serde_json::from_str(answer.data())
                .map_err(|error| super::refused_query(&request, error.to_string()))?;
            texts.extend(found.into_values().flatten().flatten().map(ResourceRow::into_entry));
        }
        Ok(texts)
    }

    fn fetch_all(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, String>, DataError> {
        let text = "query AllResources { resources_v1 { path content } }";
        let request = QueryRequest { text, operation: Some("AllResources"), ..QueryRequest::default() };
        let answer = self.request(request, ResultForm::Data)?;
        let found: ResourceList<'_> = serde_json::from_str(answer.data())
            .map_err(|error| super::refused_query(&request, error.to_string()))?;
        let wanted = found.resources_v1.into_iter().flatten();
        let wanted = wanted.filter(|resource| paths.contains(&*resource.path));
        Ok(wanted.map(ResourceRow::into_entry).collect())
    }

    fn fetch_each(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, String>, DataError> {
        let mut texts = BTreeMap::new();
        for path in paths {
            if let Some(text) = self.fetch_resource(path)? {
                texts.insert(path.clone(), text);
            }
        }
        Ok(texts)
    }
}

impl ResourceRow<'_> {
    fn into_entry(self) -> (String, String) {
        (self.path.into_owned(), self.content.into_owned())
    }
}

/// Whether the error means that a resource does not exist.
fn is_missing(error: &DataError) -> bool {
    matches!(error, DataError::Refused { why, .. } if why.contains("not exist"))
}

/// A query for `count` resources. Their paths are variables.
fn batch_query(count: usize) -> String {
    let (mut variables, mut fields) = (String::new(), String::new());
    for number in 0..count {
        // Writing to a string does not fail.
        let _ = write!(variables, "$p{number}: String ");
        let _ = write!(fields, " r{number}: resources_v1(path: $p{number}) {{ path content }}");
    }
    format!("query Resources({}) {{{fields} }}", variables.trim_end())
}

fn path_variables(batch: &[&str]) -> Vec<(String, Value)> {
    batch.iter().enumerate().map(|(number, path)| (format!("p{number}"), Value::str(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::batch_query;

    #[test]
    fn a_batch_names_each_resource_by_a_variable() {
        let expect = "query Resources($p0: String $p1: String) { r0: resources_v1(path: $p0) { path content } \
             r1: resources_v1(path: $p1) { path content } }";
        assert_eq!(batch_query(2), expect);
    }
}
