//! Parses GraphQL in the same way as graphql-js: the same documents are rejected, at the same location, with
//! the same messages.
//!
//! The parser does not depend on any schema. In one pass, it parses a string into a tree that borrows from
//! the string, or returns the first syntax error.

mod cursor;
mod definitions;
mod lexer;
mod literals;
mod parser;
pub mod tree;

pub use literals::{block_text, string_text};
pub use parser::parse;

/// The reason why a string is not a GraphQL document.
#[derive(Debug, PartialEq, Eq)]
pub enum QuerySyntaxError {
    /// A syntax error.
    Mistake {
        /// The message.
        message: String,
        /// The byte offset of the error.
        at: usize,
    },
    /// The document is nested too deeply.
    TooDeep,
}

impl QuerySyntaxError {
    fn new(at: usize, message: impl std::fmt::Display) -> Self {
        QuerySyntaxError::Mistake { message: format!("Syntax Error: {message}"), at }
    }
}
