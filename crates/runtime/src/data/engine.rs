//! A bundle in this process as a source.

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
        let Ask { text, operation, variables, places, only } = ask;
        let request =
            Request { query: text, operation, variables, provenance: places, only, ..Request::default() };
        let typed = self.engine.tree(request).map_err(|error| DataError::Refused {
            query: super::quoted(operation.unwrap_or(&super::abridged(text))),
            why: match error {
                TypedError::Failed(failures) => {
                    failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ")
                }
                form @ TypedError::Form(_) => form.to_string(),
            },
        })?;
        Ok(Answered {
            data: typed.data,
            places: typed.provenance.as_ref().map(Places::from).unwrap_or_default(),
            schemas: typed.schemas.into_iter().map(String::from).collect(),
        })
    }

    fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        Ok(self.engine.bundle().resource(path).map(|resource| resource.content.to_string()))
    }

    fn engine(&self) -> Option<&Arc<Engine>> {
        Some(&self.engine)
    }
}
