//! Answers requests from a bundle that is loaded in this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_graphql::{Engine, Request, TypedError};

use super::{Answered, Ask, DataError, Source};
use crate::place::Places;

/// A bundle that is loaded in this process.
#[derive(Clone, Debug)]
pub struct Loaded {
    engine: Arc<Engine>,
    sha: String,
}

impl Loaded {
    /// Wraps the engine of a bundle.
    pub fn new(engine: Arc<Engine>) -> Self {
        let sha = engine.bundle().sha().to_string();
        Self { engine, sha }
    }
}

impl Source for Loaded {
    fn sha(&self) -> &str {
        &self.sha
    }

    fn commit(&self) -> Option<&str> {
        Some(self.engine.bundle().stamp().commit.as_str()).filter(|commit| !commit.is_empty())
    }

    fn committed(&self) -> Option<i64> {
        self.engine.bundle().stamp().timestamp.parse().ok()
    }

    fn answer(&self, query: Ask<'_>) -> Result<Answered, DataError> {
        let typed = self.engine.tree(request(query)).map_err(|error| refused(query, error))?;
        Ok(Answered {
            data: typed.data,
            places: typed.provenance.as_ref().map(Places::from).unwrap_or_default(),
            schemas: typed.schemas.into_iter().map(String::from).collect(),
        })
    }

    fn check(&self, query: Ask<'_>) -> Result<BTreeSet<String>, DataError> {
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

fn request(query: Ask<'_>) -> Request<'_> {
    let Ask { text, operation, variables, places, only } = query;
    Request { query: text, operation, variables, provenance: places, only, ..Request::default() }
}

fn refused(query: Ask<'_>, error: TypedError) -> DataError {
    let query = super::quoted(query.operation.unwrap_or(&super::abridged(query.text)));
    let why = match error {
        TypedError::Failed(failures) => {
            failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ")
        }
        form @ TypedError::Form(_) => form.to_string(),
    };
    DataError::Refused { query, why }
}
