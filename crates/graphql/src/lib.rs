//! A GraphQL query engine for bundles.
//!
//! The query string of a request is parsed and validated into a document; the document and the values of its
//! variables are compiled into a plan; the plan is executed on the immutable bundle and writes the bytes of
//! the response. Documents and plans are cached. This crate uses neither the network, the clock nor the file
//! system.
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

mod answer;
mod arguments;
mod cache;
mod columns;
mod cost;
mod data_view;
mod document;
mod element_selection;
mod elements;
mod engine;
mod execute;
mod failure;
mod filter;
mod footprint;
pub mod generate;
mod impact;
mod index;
mod input;
mod introspection;
mod limits;
mod location;
mod plan;
mod provenance;
mod read_set;
mod ref_targets;
mod reference_graph;
mod same_key;
pub mod schema;
mod sink;
mod source;
mod suggestions;
mod tree;
mod typed_answer;
mod variables;

pub use answer::Answer;
pub use cache::Cache;
pub use element_selection::ElementSelection;
pub use elements::NamedOperation;
pub use engine::{Engine, PreparedQuery, Request};
pub use failure::{Code, ErrorPathSegment, Failure};
pub use footprint::{Footprint, Keys, MistypedTargets};
pub use index::Index;
pub use limits::QueryLimits;
pub use location::Location;
pub use provenance::{ObjectOrigin, OriginKind, Provenance};
pub use read_set::ReadSet;
pub use same_key::normalize_key;
pub use schema::{Schema, SchemaCache, SchemaError};
pub use tree::Node;
pub use typed_answer::{Operation, QuerySource, ShapeMismatch, TypedAnswer, TypedError};
