//! Provenance: the source location of a value in the data, as a file and a JSON pointer. Line numbers are
//! looked up later, when the files are available.

use std::collections::HashMap;

use qontract_graphql::{ObjectOrigin, OriginKind, Provenance};
use serde::{Deserialize, Serialize};

/// A location in the data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceLocation {
    /// Whether the file is a resource; otherwise it is a datafile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resource: bool,
    /// The path of the file in the bundle.
    pub path: Box<str>,
    /// JSON pointer into the file; empty for the whole file.
    pub pointer: Box<str>,
}

impl SourceLocation {
    /// Creates a location in a datafile.
    pub fn datafile(path: &str, pointer: &str) -> Self {
        Self { resource: false, path: path.into(), pointer: pointer.into() }
    }

    /// Creates the location of a resource as a whole.
    pub fn resource(path: &str) -> Self {
        Self { resource: true, path: path.into(), pointer: "".into() }
    }

    /// Creates a location below this one.
    #[must_use]
    pub fn below(&self, pointer: &str) -> Self {
        Self { pointer: format!("{}{pointer}", self.pointer).into(), ..self.clone() }
    }
}

impl From<&ObjectOrigin> for SourceLocation {
    fn from(origin: &ObjectOrigin) -> Self {
        let ObjectOrigin { at: _, kind, path, pointer } = origin;
        Self {
            resource: match kind {
                OriginKind::Datafile => false,
                OriginKind::Resource => true,
            },
            path: path.clone(),
            pointer: pointer.clone(),
        }
    }
}

/// The source locations of the objects in a query result.
#[derive(Clone, Debug, Default)]
pub struct SourceLocations(HashMap<Box<str>, SourceLocation>);

impl SourceLocations {
    /// The source location of the object at a JSON pointer into the query result, if known.
    pub fn of(&self, at: &str) -> Option<SourceLocation> {
        self.0.get(at).cloned()
    }
}

impl FromIterator<(Box<str>, SourceLocation)> for SourceLocations {
    fn from_iter<I: IntoIterator<Item = (Box<str>, SourceLocation)>>(locations: I) -> Self {
        Self(locations.into_iter().collect())
    }
}

impl From<&Provenance> for SourceLocations {
    fn from(provenance: &Provenance) -> Self {
        Self(
            provenance
                .origins()
                .iter()
                .map(|origin| (origin.at.clone(), SourceLocation::from(origin)))
                .collect(),
        )
    }
}
