//! The JSON parser, and writers for the two dialects of the contracts.
//!
//! A bundle is written like Python's `json` does (ASCII, floats as Python prints them); answers and diffs are
//! written like JavaScript's `JSON.stringify` (numbers and key order of JavaScript).

mod javascript;
mod python;
mod reader;
mod shapes;

pub use javascript::{JavaScriptWriter, write_javascript};
pub use python::write_python;
pub use qontract_python_json::write_str as write_python_str;
pub use reader::{JsonError, JsonParser};
pub(crate) use shapes::ShapeTree;
