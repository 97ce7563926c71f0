//! Limits concurrent work, and shares work that several tasks need at once.
//!
//! [`Limiter`] bounds how much runs concurrently and how much may wait; [`OnceMap`] computes a value once per
//! key while other callers of the same key wait for it (single-flight).

mod limiter;
mod once_map;

pub use limiter::{LimitError, Limiter, Permit};
pub use once_map::{OnceEntry, OnceMap};
