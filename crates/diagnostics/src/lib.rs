//! Findings about data, and their output formats.
//!
//! A [`Diagnostic`] describes what is wrong, where, and how to fix it. Findings are collected, never thrown:
//! a file with three mistakes yields three of them. [`render`] formats them for people, [`record::Record`]
//! for machines, and [`code`] has the long text of each code.
//!
//! This crate is pure: it reads no files. The caller passes the texts of files through [`Sources`].

pub mod code;
mod diagnostic;
pub mod human;
mod messages;
mod place;
pub mod record;
pub mod render;
mod report;
mod shown;
mod styled;
pub mod suggest;

pub use code::Code;
pub use diagnostic::{Diagnostic, Note, Severity};
pub use messages::MessageSink;
pub use place::{LineIndex, Place, Position, Span, position};
pub use report::{MAX_PER_FILE, NoSources, Omitted, Report, Sources, counted};
pub use shown::{is_safe, shown, shown_json, shown_lines, shown_yaml};
pub use styled::{Style, Styled};
