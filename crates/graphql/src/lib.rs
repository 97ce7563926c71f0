//! GraphQL over a bundle.
//!
//! A request's text becomes a document (parsed and validated once), the document and the values of its
//! variables become a plan (compiled once), and the plan is executed over the immutable bundle and writes the
//! bytes of the answer. Nothing here uses the network, the clock or the file system.
//!
//! ```
//! use std::sync::Arc;
//!
//! use qontract_bundle::{Pool, load};
//! use qontract_graphql::{Engine, Request};
//!
//! let bundle = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
//!     "graphql": [
//!         {"name": "Query", "fields": [
//!             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
//!         {"name": "Team", "fields": [{"name": "name", "type": "string", "isSearchable": true}]}],
//!     "data": {"/a.yml": {"$schema": "/team.yml", "name": "core"}, "/b.yml": {"$schema": "/team.yml"}}}"#;
//! let engine = Engine::new(Arc::new(load(bundle, &Pool::default())?))?;
//! let answer = engine.answer(Request { query: "{ teams { name } }", ..Request::default() });
//! assert_eq!(
//!     String::from_utf8(answer.body)?,
//!     "{\"data\":{\"teams\":[{\"name\":\"core\"},{\"name\":null}]},\"extensions\":{\"schemas\":[\"/team.yml\"]}}\n"
//! );
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod answer;
mod arguments;
mod cache;
mod columns;
mod cost;
mod document;
mod engine;
mod entities;
mod execute;
mod failure;
mod filter;
mod footprint;
pub mod generate;
mod index;
mod input;
mod leads;
mod limits;
mod links;
mod location;
mod meta;
mod plan;
mod provenance;
mod reach;
pub mod schema;
mod sink;
mod source;
mod touched;
mod tree;
mod typed;
mod variables;

pub use alike::loosely;
pub use answer::Answer;
pub use cache::Cache;
pub use engine::{Engine, Ready, Request};
pub use entities::{Entities, Named};
pub use failure::{Code, Failure, Step};
pub use footprint::{Footprint, Keys, Strays};
pub use index::Index;
pub use limits::Limits;
pub use location::Location;
pub use provenance::{Origin, OriginKind, Provenance};
pub use schema::{Schema, SchemaError};
pub use touched::Touched;
pub use tree::Node;
pub use typed::{Operation, QuerySource, Typed, TypedError, Unfit};
