//! Renders the templates of a data repo exactly as Jinja2 does, or refuses them. Pure: values in, values out.
//!
//! [`render`] takes a [`Source`], its variables and a source of external look-ups ([`Lookups`]). Nothing is
//! fetched here: look-ups without a result are returned as [`Outcome::Needs`], for the caller to make and
//! render again. In declared state ([`Declared`]) a look-up is replaced by its own text. The README lists
//! every function, filter and tag.

mod address;
mod braces;
mod calls;
mod checks;
mod constant;
mod data;
mod dedent;
mod entry;
mod fault;
mod filters;
mod functions;
mod iterate;
mod jsonpath;
mod lexer;
mod limits;
mod literal;
mod methods;
mod parser;
mod percent;
mod readable;
mod rendered;
mod run;
mod scope;
mod source;
mod syntax;
mod value;
mod wrap;
mod yaml;

pub use address::{Address, Answer, Declared, Lookups};
pub use calls::is_only_called_plainly;
pub use data::Data;
pub use entry::entry_dialect;
pub use fault::{Fault, Kind};
pub use limits::Limits;
pub use readable::{SyntaxError, check_syntax};
pub use rendered::{Outcome, Rendered, Request, known, render};
pub use run::Strictness;
pub(crate) use run::{float as run_float, float_of as run_float_of};
pub use source::{Dialect, Source, Whitespace};
