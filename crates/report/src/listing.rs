//! Lists and shows objects of the data according to the GraphQL schema, without code for individual kinds.

mod kind;
mod rows;
mod selection;

pub use kind::{Kind, list};
pub use rows::Rows;
pub use selection::{ROWS_KEY, Selection};

/// The error for an unknown kind or field; the message suggests the closest name.
#[derive(Debug)]
pub struct UnknownName(pub String);
