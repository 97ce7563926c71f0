//! Renders the templates of a data repo exactly as Jinja2 does, or refuses them. Pure: all functions take and
//! return values.
//!
//! [`render`] takes a [`RenderRequest`] (a [`Source`] and its variables) and a [`LookupSource`], which
//! provides external data. This crate fetches nothing: lookups without a result are returned as
//! [`RenderOutcome::Needs`], and the caller makes these lookups and renders the template again. In declared
//! state ([`DeclaredLookups`]), a lookup is replaced by its description. The README lists every function,
//! filter and tag.

mod call_analysis;
mod constant;
mod data;
mod dedent;
mod entry;
mod fault;
mod filters;
mod functions;
mod interpreter;
mod iterators;
mod jinja_tests;
mod jsonpath;
mod lexer;
mod limits;
mod literal;
mod lookup;
mod methods;
mod parser;
mod percent_format;
mod rendering;
mod scope;
mod source;
mod str_format;
mod syntax;
mod syntax_check;
mod value;
mod wrap;
mod yaml;

pub use call_analysis::has_only_literal_calls;
pub use data::Data;
pub use entry::entry_dialect;
pub use fault::{Kind, TemplateFault};
pub use interpreter::Strictness;
pub(crate) use interpreter::{float as run_float, float_of as run_float_of};
pub use limits::RenderLimits;
pub use lookup::{DeclaredLookups, LookupSource, LookupState, TemplateLookup};
pub use rendering::{RenderOutcome, RenderRequest, RenderedTemplate, builtin_names, render};
pub use source::{Dialect, Source, Whitespace};
pub use syntax_check::{SyntaxError, check_syntax};
