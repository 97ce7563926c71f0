//! JSON as Python's `json` module writes it, to the byte: ASCII, floats as `repr` prints them.
//!
//! The one implementation for bundles, hashes of objects, stored state and templates. [`to_string`] writes a value of
//! `serde_json`; what has values of its own uses [`Writer`], or [`write_str`] and [`write_float`].

pub mod escape;
mod float;
mod writer;

pub use escape::write_str;
pub use float::{ShortestDigits, float_repr, write_float};
pub use writer::{Writer, to_string};
