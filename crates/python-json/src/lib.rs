//! Writes the same JSON as Python's `json` module, byte for byte: in ASCII, with floats as `repr` prints
//! them.
//!
//! This is the only implementation; bundles, object hashes, stored state and templates use it. [`to_string`]
//! writes a `serde_json` value; other value types use [`Writer`], or [`write_str`] and [`write_float`].

pub mod escape;
mod float;
mod writer;

pub use escape::write_str;
pub use float::{ShortestDigits, float_repr, write_float};
pub use writer::{Writer, to_string};
