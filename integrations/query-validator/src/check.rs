//! Checks that each listed query can be executed and each listed resource exists.

use std::collections::{BTreeMap, BTreeSet};

use qontract_runtime::{Data, DataError, Fault, SourceLocation};
use serde::Serialize;

use crate::query::{NamespaceOpenshiftResource, Validations};

/// A datafile that lists queries and resources.
pub struct Validation {
    /// The name.
    pub name: String,
    /// The provenance.
    pub place: Option<SourceLocation>,
    /// The queries and resources.
    pub items: Vec<ValidationItem>,
}

/// A listed query or resource.
#[derive(Serialize)]
pub struct ValidationItem {
    /// The path of the resource.
    pub path: String,
    /// The JSON pointer in the datafile.
    #[serde(skip)]
    pub pointer: String,
    /// The query source; `None` for resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The schemas that the query reads.
    pub reads: BTreeSet<String>,
    /// The error, if the check failed.
    pub problem: Option<String>,
}

/// All validations, with the results of their queries.
pub fn validations(data: &Data) -> Result<Vec<Validation>, Fault> {
    let answer = data.query::<Validations>()?;
    let validations = answer.data.query_validations_v1.unwrap_or_default();
    let paths = validations.iter().flat_map(|validation| &validation.queries).map(|query| query.path.clone());
    let texts = data.resources(paths.collect())?;
    // Many validations list the same queries, and a result may contain all data, so each query is checked
    // once.
    let mut checked: BTreeMap<String, QueryResult> = BTreeMap::new();
    let mut all = Vec::new();
    for (index, validation) in validations.into_iter().enumerate() {
        let place = answer.places.of(&format!("/query_validations_v1/{index}"));
        let mut items = Vec::new();
        for (number, query) in validation.queries.into_iter().enumerate() {
            let outcome = match checked.get(&query.path) {
                Some(cached) => cached.clone(),
                None => check_query(data, texts.get(&query.path)?)?,
            };
            checked.entry(query.path.clone()).or_insert_with(|| outcome.clone());
            let QueryResult { text, reads, problem } = outcome;
            let pointer = format!("/queries/{number}/path");
            items.push(ValidationItem { path: query.path, pointer, text, reads, problem });
        }
        for (number, resource) in validation.resources.into_iter().flatten().enumerate() {
            items.push(check_resource(&resource, format!("/resources/{number}/path")));
        }
        all.push(Validation { name: validation.name, place, items });
    }
    Ok(all)
}

/// The result of a query.
#[derive(Clone)]
struct QueryResult {
    text: Option<String>,
    reads: BTreeSet<String>,
    problem: Option<String>,
}

fn check_query(data: &Data, text: Option<String>) -> Result<QueryResult, Fault> {
    let Some(text) = text else {
        let problem = Some("the resource does not exist".to_owned());
        return Ok(QueryResult { text: None, reads: BTreeSet::new(), problem });
    };
    let mut reads = BTreeSet::new();
    let problem = match data.check(&text) {
        // Forbidden schemas are reported by the runner, with a hint.
        Ok(schemas) | Err(DataError::Forbidden { schemas, .. }) => {
            reads = schemas;
            None
        }
        Err(DataError::Refused { why, .. } | DataError::UnknownFields { why, .. }) => {
            Some(format!("the query cannot be executed: {why}"))
        }
        Err(other @ (DataError::Unreachable { .. } | DataError::Undeclared { .. })) => {
            return Err(other.into());
        }
    };
    Ok(QueryResult { text: Some(text), reads, problem })
}

/// Providers whose entries refer to a resource. The path of a secret belongs to the secret store.
const RESOURCE_PROVIDERS: [&str; 4] = ["prometheus-rule", "resource", "resource-template", "route"];

fn check_resource(entry: &NamespaceOpenshiftResource, pointer: String) -> ValidationItem {
    let path = entry.resource.as_ref().map(|resource| resource.path.clone());
    let is_missing = path.is_none() && RESOURCE_PROVIDERS.contains(&entry.provider.as_str());
    let problem = is_missing.then(|| "the resource does not exist".to_owned());
    ValidationItem { path: path.unwrap_or_default(), pointer, text: None, reads: BTreeSet::new(), problem }
}
