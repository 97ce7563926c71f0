//! Findings about data, and their output formats.
//!
//! A [`Diagnostic`] describes what is wrong, where, and how to fix it. Findings are collected, never thrown:
//! a file with three mistakes yields three findings. [`render`] formats them for people, [`record::Record`]
//! for machines, and [`code`] has the explanation of each code.
//!
//! This crate is pure: it reads no files. The caller provides file contents through [`Sources`].

pub mod code;
mod diagnostic;
mod error_chain;
pub mod human;
mod location;
mod messages;
pub mod record;
pub mod render;
mod report;
mod sanitize;
mod styled_text;
pub mod suggest;

pub use code::Code;
pub use diagnostic::{Diagnostic, Note, Severity};
pub use error_chain::error_chain;
pub use location::{DiagnosticLocation, LineIndex, Position, Span, position};
pub use messages::MessageSink;
pub use report::{MAX_PER_FILE, NoSources, OmittedFindings, Report, Sources, pluralize};
pub use sanitize::{is_safe, sanitize, sanitize_json, sanitize_lines, sanitize_yaml};
pub use styled_text::{StyledText, TextStyle};
