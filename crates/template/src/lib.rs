//! The templates of a data repo, rendered as Jinja2 renders them, or refused. Pure: values in, values out.
//!
//! [`render`] takes a [`Source`], its variables and whoever answers for what lies outside ([`Lookups`]). Nothing is fetched here:
//! what is not known yet comes back as [`Outcome::Needs`], to be looked up and rendered again. In declared state
//! ([`Declared`]) a look-up is its own address. The README lists every function, filter and tag.

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
