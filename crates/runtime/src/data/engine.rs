//! Executes requests against a bundle that is loaded in this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_graphql::{Engine, Request, TypedError};

use super::query_name::{abbreviate, quoted};
use super::{BundleReader, DataError, QueryRequest, UntypedAnswer};
use crate::source_location::SourceLocations;
use crate::unknown_fields::unknown_fields;

/// A bundle that is loaded in this process.
#[derive(Clone, Debug)]
pub struct LoadedBundle {
    engine: Arc<Engine>,
    sha: String,
}

impl LoadedBundle {
    /// Creates the source of requests for the bundle of an engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        let sha = engine.bundle().sha().to_string();
        Self { engine, sha }
    }
}

impl BundleReader for LoadedBundle {
    fn sha(&self) -> &str {
        &self.sha
    }

    fn commit(&self) -> Option<&str> {
        Some(self.engine.bundle().stamp().commit.as_str()).filter(|commit| !commit.is_empty())
    }

    fn commit_time(&self) -> Option<i64> {
        self.engine.bundle().stamp().timestamp.parse().ok()
    }

    fn answer(&self, query: QueryRequest<'_>) -> Result<UntypedAnswer, DataError> {
        let typed = self.engine.tree(request(query)).map_err(|error| refused(query, error))?;
        Ok(UntypedAnswer {
            data: typed.data,
            places: typed.provenance.as_ref().map(SourceLocations::from).unwrap_or_default(),
            schemas: typed.schemas.into_iter().map(String::from).collect(),
        })
    }

    fn check(&self, query: QueryRequest<'_>) -> Result<BTreeSet<String>, DataError> {
        let typed = self.engine.check(request(query)).map_err(|error| refused(query, error))?;
        Ok(typed.schemas.into_iter().map(String::from).collect())
    }

    fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        Ok(self.engine.bundle().resource(path).map(|resource| resource.content.to_string()))
    }

    fn engine(&self) -> Option<&Arc<Engine>> {
        Some(&self.engine)
    }
}

fn request(query: QueryRequest<'_>) -> Request<'_> {
    let QueryRequest { text, operation, variables, places, only, allowed_schemas: _ } = query;
    Request {
        query: text,
        operation,
        variables,
        provenance: places,
        only_elements: only,
        ..Request::default()
    }
}

fn refused(query: QueryRequest<'_>, error: TypedError) -> DataError {
    let query = quoted(query.operation.unwrap_or(&abbreviate(query.text)));
    let why = match error {
        TypedError::Failed(failures) => {
            let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
            let why = messages.join("; ");
            if let Some(fields) = unknown_fields(&messages) {
                return DataError::UnknownFields { query, fields, why };
            }
            why
        }
        form @ TypedError::Mismatch(_) => form.to_string(),
    };
    DataError::Refused { query, why }
}
