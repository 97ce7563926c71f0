//! GraphQL over a bundle.
//!
//! The road of a request: its text becomes a document (parsed and checked once), the document and the
//! values of its variables become a plan (compiled once), the plan is executed over the immutable bundle and writes
//! the answer's bytes. Nothing here knows a network, a clock or a file.

mod answer;
mod arguments;
mod cache;
mod cost;
mod document;
mod engine;
mod execute;
mod failure;
mod filter;
mod footprint;
pub mod generate;
mod index;
mod input;
mod limits;
mod location;
mod meta;
mod plan;
mod provenance;
pub mod schema;
mod sink;
mod source;
mod touched;
mod tree;
mod typed;
mod variables;

pub use answer::Answer;
pub use engine::{Engine, Request};
pub use failure::{Code, Failure, Step};
pub use footprint::{Footprint, Keys, Strays};
pub use index::Index;
pub use limits::Limits;
pub use location::Location;
pub use provenance::{Origin, OriginKind, Provenance};
pub use schema::{Schema, SchemaError};
pub use touched::Touched;
pub use tree::Node;
pub use typed::{Typed, TypedError};
