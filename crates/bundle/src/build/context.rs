//! The schemas and GraphQL types, on which the result of every datafile depends.

use qontract_diagnostics::Diagnostic;

use super::graphql;
use super::schemas::{self, Schemas};
use crate::digest::Sha256;
use crate::json;
use crate::repo::{NameFilter, Repo, RepoError};
use crate::types::Types;
use crate::value::Value;

/// Everything that the result of a datafile depends on besides the file itself.
#[derive(Debug)]
pub(super) struct SchemaContext {
    /// Whether a schema or the GraphQL type file is a symbolic link.
    pub has_links: bool,
    pub graphql: Option<Value>,
    pub types: Types,
    pub schemas: Schemas,
}

impl SchemaContext {
    /// Reads the GraphQL types and all schemas.
    pub fn read(repo: &Repo, findings: &mut Vec<Diagnostic>) -> Result<Self, RepoError> {
        let layout = repo.layout();
        let graphql = match repo.file(&layout.graphql)? {
            Ok(file) => graphql::read(&file, findings),
            Err(finding) => {
                findings.push(*finding);
                None
            }
        };
        let types = graphql.as_ref().map(Types::read).unwrap_or_default();
        let listing = repo.list(&layout.schemas, NameFilter::Documents)?;
        let has_links = listing.has_links || repo.is_behind_link(&layout.graphql);
        let schemas = schemas::read(listing, findings);
        Ok(Self { has_links, graphql, types, schemas })
    }

    /// The cache key: cached results are valid only for an equal digest.
    pub fn digest(&self, repo: &Repo) -> Sha256 {
        let mut types = Vec::new();
        json::write_python(self.graphql.as_ref().unwrap_or(&Value::Null), &mut types);
        // The location of the repo is not part of the key: files are compared by stamp and content.
        let place = format!("{:?}", repo.layout());
        Sha256::of_parts([place.as_bytes(), b"\0", &types, b"\0", self.schemas.digests()])
    }
}
