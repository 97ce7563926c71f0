//! Renders templates: from the data alone where possible, with look-ups where needed.

pub(crate) mod may_query;
pub(crate) mod outside;
pub mod preview;
pub(crate) mod render;
pub(crate) mod variables;

pub use outside::{Allowed, Limits, Outside};
