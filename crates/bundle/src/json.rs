//! The JSON parser, and writers for the two dialects of the contracts.
//!
//! Bundles are written as Python's `json` module writes them (ASCII, floats as Python prints them); responses
//! and diffs as JavaScript's `JSON.stringify` does (numbers and key order of JavaScript).

mod javascript;
mod python;
mod reader;
mod shapes;

pub use javascript::{JavaScriptWriter, write_javascript};
pub use python::write_python;
pub use qontract_python_json::write_str as write_python_str;
pub use reader::{JsonError, JsonParser};
pub(crate) use shapes::ShapeTree;
