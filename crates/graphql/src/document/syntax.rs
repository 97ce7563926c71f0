//! The GraphQL grammar as graphql-js reads it: the same texts are rejected, at the same location, with the
//! same messages.
//!
//! Independent of any schema. One pass turns a text into a tree that borrows from it, or into its first
//! syntax error.

mod cursor;
mod definitions;
mod lexer;
mod literals;
mod parser;
pub mod tree;

pub use literals::{block_text, string_text};
pub use parser::parse;

/// Why a text is not a document.
#[derive(Debug, PartialEq, Eq)]
pub enum QuerySyntaxError {
    /// It violates the grammar.
    Mistake {
        /// The message.
        message: String,
        /// The byte offset.
        at: usize,
    },
    /// It is nested too deep.
    TooDeep,
}

impl QuerySyntaxError {
    fn new(at: usize, message: impl std::fmt::Display) -> Self {
        QuerySyntaxError::Mistake { message: format!("Syntax Error: {message}"), at }
    }
}
