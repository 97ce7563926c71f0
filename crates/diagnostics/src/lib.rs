//! Findings about data, and how they are shown.
//!
//! A [`Diagnostic`] says what is wrong, where, and what to do about it. Findings are collected, never thrown: a
//! file with three mistakes yields three of them. The text a person sees is made in [`render`], the machine's
//! form is [`record::Record`], and what a code means at length is in [`code`].
//!
//! This crate is pure: it reads no files. Whoever renders hands in the texts through [`Sources`].

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
