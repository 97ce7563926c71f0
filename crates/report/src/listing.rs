//! Lists and shows what the data describes, by the schema alone; no kind has code of its own.

mod kind;
mod rows;
mod selection;

pub use kind::{Kind, list};
pub use rows::Rows;
pub use selection::{ROWS, Selection};

/// A kind or a field that the data does not have, with the nearest name.
#[derive(Debug)]
pub struct UnknownName(pub String);
