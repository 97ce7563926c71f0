//! Lists and shows objects of the data, driven by the schema; there is no code for single kinds.

mod kind;
mod rows;
mod selection;

pub use kind::{Kind, list};
pub use rows::Rows;
pub use selection::{ROWS_KEY, Selection};

/// The message for an unknown kind or field, with the closest name.
#[derive(Debug)]
pub struct UnknownName(pub String);
