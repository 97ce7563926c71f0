//! Templates: rendered from the data alone where that is possible, with look-ups where it is not.

pub(crate) mod may_query;
pub(crate) mod outside;
pub mod preview;
pub(crate) mod render;
pub(crate) mod variables;

pub use outside::{Allowed, Limits, Outside};
