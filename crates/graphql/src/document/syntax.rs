//! The grammar of GraphQL as graphql-js reads it: the same texts are refused, at the same place, in the same words.
//!
//! Nothing here knows a schema. A text becomes a tree that borrows from it, in one pass, or the first mistake in it.

mod cursor;
mod definitions;
mod lexer;
mod literals;
mod parser;
pub mod tree;

pub use literals::{block_text, string_text};
pub use parser::parse;

/// Why a text is no document.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// It breaks the grammar.
    Mistake {
        /// What is wrong.
        message: String,
        /// The byte where it is.
        at: usize,
    },
    /// It is nested deeper than is looked at.
    TooDeep,
}

impl Fault {
    fn new(at: usize, message: impl std::fmt::Display) -> Self {
        Fault::Mistake { message: format!("Syntax Error: {message}"), at }
    }
}
