//! Writes JSON byte for byte like Python's `json` module: ASCII, floats as `repr` prints them.
//!
//! The only implementation for bundles, object hashes, stored state and templates. [`to_string`] writes a
//! `serde_json` value; other value types use [`Writer`], or [`write_str`] and [`write_float`].

pub mod escape;
mod float;
mod writer;

pub use escape::write_str;
pub use float::{ShortestDigits, float_repr, write_float};
pub use writer::{Writer, to_string};
