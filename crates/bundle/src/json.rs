//! The JSON parser, and writers for two JSON dialects.
//!
//! Bundles are written as Python's `json` module writes them (ASCII, with floats as Python prints them).
//! Responses and diffs are written as JavaScript's `JSON.stringify` writes them (with the numbers and the key
//! order of JavaScript).

mod javascript;
mod python;
mod reader;
mod shapes;

pub use javascript::{JavaScriptWriter, write_javascript};
pub use python::write_python;
pub use qontract_python_json::write_str as write_python_str;
pub use reader::{JsonError, JsonParser};
pub(crate) use shapes::ShapeTree;
