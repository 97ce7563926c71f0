//! A bundle in this process as a source.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_graphql::{Engine, Request, TypedError};

use super::{Answered, Ask, DataError, Source};
use crate::place::Places;

/// A bundle in this process.
#[derive(Clone, Debug)]
pub struct Loaded {
    engine: Arc<Engine>,
    sha: String,
}

impl Loaded {
    /// The bundle of an engine.
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

    fn answer(&self, ask: Ask<'_>) -> Result<Answered, DataError> {
        let typed = self.engine.tree(request(ask)).map_err(|error| refused(ask, error))?;
        Ok(Answered {
            data: typed.data,
            places: typed.provenance.as_ref().map(Places::from).unwrap_or_default(),
            schemas: typed.schemas.into_iter().map(String::from).collect(),
        })
    }

    fn check(&self, ask: Ask<'_>) -> Result<BTreeSet<String>, DataError> {
        let typed = self.engine.check(request(ask)).map_err(|error| refused(ask, error))?;
        Ok(typed.schemas.into_iter().map(String::from).collect())
    }

    fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        Ok(self.engine.bundle().resource(path).map(|resource| resource.content.to_string()))
    }

    fn engine(&self) -> Option<&Arc<Engine>> {
        Some(&self.engine)
    }
}

fn request(ask: Ask<'_>) -> Request<'_> {
    let Ask { text, operation, variables, places, only } = ask;
    Request { query: text, operation, variables, provenance: places, only, ..Request::default() }
}

fn refused(ask: Ask<'_>, error: TypedError) -> DataError {
    let query = super::quoted(ask.operation.unwrap_or(&super::abridged(ask.text)));
    let why = match error {
        TypedError::Failed(failures) => {
            failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ")
        }
        form @ TypedError::Form(_) => form.to_string(),
    };
    DataError::Refused { query, why }
}
